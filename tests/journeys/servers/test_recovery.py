"""A planted effect is recovered: people with known accuracy are stored as responses, screened and reported.

The planted people know answers that never leave the server, so they answer plans in memory; from the response
rows on, everything is done by the project's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.utils import timezone
from scipy.stats import binom

from analysis.reports.output.html import page
from analysis.reports.utility import accuracy_anova
from analysis.stored_reports.refresh import make_report
from experiments.design.rng import Streams
from experiments.gates.plan import gate_plan
from experiments.models import Gate, Item, Participant, Response, Session, Slot, Study, Trial
from experiments.opening.opening import stored_pool
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import Plan
from experiments.selectors import arm_of, definition_of
from experiments.sessions.lifecycle import finish, start_session
from experiments.sessions.slot_assignment import claim_slot
from experiments.sessions.verdicts import screen
from tests.planted import Planted, ideal
from tests.proofs.scale import Scale
from tests.world import opened_study, write_study

pytestmark = pytest.mark.django_db

PEOPLE, TESTS, BLOCKS = 16, 8, 2
CONDITIONS = ("baseline", "control", "saliency")
EFFECT = {
    ("baseline", 0): 0.55,
    ("baseline", 1): 0.65,
    ("control", 0): 0.55,
    ("control", 1): 0.65,
    ("saliency", 0): 0.75,
    ("saliency", 1): 0.90,
}
UTILITY = (0.75 + 0.90) / (0.55 + 0.65)
STUDIES = 200
"""Studies per rate. The limits are the binomial's at one in a thousand."""


class Crowd:
    """One person per slot, through every gate; their answers can be given again and again."""

    def __init__(self, study: Study) -> None:
        self.study = study
        definition = definition_of(study)
        paradigm = get_paradigm(study.paradigm)
        planned = paradigm.plans(
            design_of(definition), stored_pool(study, definition), Streams(definition.seed)
        )
        self.plans: dict[int, Plan] = {plan.ordinal: plan for plan in planned}
        self.predicted = dict(Item.objects.filter(study=study).values_list("key", "predicted"))
        self.trials: dict[int, list[Trial]] = {}
        for trial in Trial.objects.filter(slot__study=study).order_by("slot_id", "position"):
            self.trials.setdefault(trial.slot_id, []).append(trial)
        self.sessions = [self._arrived() for _ in self.plans]

    def _arrived(self) -> Session:
        person = Participant.objects.create(study=self.study)
        session, _ = start_session(self.study, person, origin="simulated", simulated_kind="planted")
        slot = claim_slot(session)
        Gate.objects.bulk_create(
            Gate(session=session, kind=stop.kind, attempt=0, value={}, passed=True)
            for stop in gate_plan(self.study, arm_of(slot, self.study))
        )
        Session.objects.filter(pk=session.pk).update(state="running")
        session.refresh_from_db()
        return session

    def answer(self, person: Planted) -> None:
        """Replaces all answers by those of planted people."""
        Response.objects.filter(session__in=self.sessions).delete()
        now = timezone.now()
        Response.objects.bulk_create(
            Response(
                session=session,
                trial=trial,
                position=answer.position,
                remaining=trial.remaining,
                value=dict(answer.value),
                rt_ms=answer.rt_ms,
                shown_ms=answer.shown_ms,
                late=False,
                received_at=now,
            )
            for session in self.sessions
            for trial, answer in zip(*self._sitting(session, person), strict=True)
        )

    def _sitting(self, session: Session, person: Planted) -> tuple[list[Trial], Any]:
        assert session.slot is not None
        return self.trials[session.slot.pk], person.answers(self.plans[session.slot.ordinal])

    def planted(
        self, accuracy: Callable[[str, int], float], seed: int = 5, person_sd: float = 0.0
    ) -> Planted:
        return Planted(self.predicted, accuracy, Streams(seed), person_sd)

    def finish(self) -> None:
        for session in self.sessions:
            finish(session, "")

    def report(self) -> dict[str, Any]:
        return make_report(self.study, "simulated").json()


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    path = write_study(tmp_path, slots=PEOPLE, test_per_block=f"test_per_block = {TESTS}")
    return Crowd(opened_study(path))


def seeds(scale: Scale) -> range:
    return range(scale.seed * STUDIES, (scale.seed + 1) * STUDIES)


def rows(report: Mapping[str, Any]) -> dict[str, Any]:
    return {row["name"]: row for row in report["conditions"]}


def test_it_recovers_a_planted_effect_from_the_rows(crowd: Crowd) -> None:
    crowd.answer(crowd.planted(lambda condition, block: EFFECT[condition, block]))
    crowd.finish()
    assert set(Session.objects.values_list("state", "verdict")) == {("finished", "passed")}
    assert Slot.objects.filter(kept=True).count() == PEOPLE * len(CONDITIONS)
    report = crowd.report()
    measured, answers = rows(report), PEOPLE * TESTS
    for (condition, block), planted in EFFECT.items():
        low, high = binom.interval(0.999, answers, planted)
        assert low <= measured[condition]["accuracy"][block] * answers <= high, (condition, block)
        assert measured[condition]["n"] == PEOPLE
    low, high = measured["saliency"]["intervals"]["utility"]
    assert 1 < low <= UTILITY <= high
    low, high = measured["control"]["intervals"]["utility"]
    assert low <= 1 <= high
    assert report["anova"]["p"] < 0.001
    found_p = {frozenset((p["first"], p["second"])): p["p"] for p in report["tukey"]["pairs"]}
    assert found_p[frozenset(("baseline", "saliency"))] < 0.001 < 0.05
    assert found_p[frozenset(("baseline", "control"))] > 0.05


@pytest.mark.full
def test_it_covers_the_planted_utility_as_often_as_it_says(crowd: Crowd, scale: Scale) -> None:
    crowd.answer(crowd.planted(lambda condition, block: EFFECT[condition, block]))
    crowd.finish()
    missed = 0
    for seed in seeds(scale):
        crowd.answer(crowd.planted(lambda condition, block: EFFECT[condition, block], seed))
        low, high = rows(crowd.report())["saliency"]["intervals"]["utility"]
        missed += not low <= UTILITY <= high
    assert missed <= binom.ppf(0.999, len(seeds(scale)), 0.05)


@pytest.mark.full
def test_it_finds_no_more_than_chance_where_nothing_was_planted(crowd: Crowd, scale: Scale) -> None:
    """People differ from each other, conditions do not."""
    crowd.answer(crowd.planted(lambda condition, block: 0.6))
    crowd.finish()
    anova = planned = tukey = simultaneous = 0
    for seed in seeds(scale):
        crowd.answer(crowd.planted(lambda condition, block: 0.6 + 0.1 * block, seed, person_sd=0.1))
        report = crowd.report()
        anova += report["anova"]["p"] < 0.05
        planned += any(row["p"] < 0.05 for row in report["planned"]["contrasts"])
        tukey += any(pair["p"] < 0.05 for pair in report["tukey"]["pairs"])
        intervals = [row["intervals"]["utility_simultaneous"] for row in report["conditions"][1:]]
        simultaneous += not all(low <= 1 <= high for low, high in intervals)
    most = binom.ppf(0.999, len(seeds(scale)), 0.05)
    rejected = (anova, planned, tukey, simultaneous)
    assert max(rejected) <= most, rejected


@pytest.mark.full
@pytest.mark.parametrize(
    ("statistics", "notice"),
    [
        ("utilities", test_it_covers_the_planted_utility_as_often_as_it_says),
        ("one_way", test_it_finds_no_more_than_chance_where_nothing_was_planted),
    ],
)
def test_it_notices_answers_that_are_counted_as_people(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, statistics: str, notice: Callable[[Crowd, Scale], None]
) -> None:
    """The shortened description is long enough to show the most frequent fault of such reports."""
    right = getattr(accuracy_anova, statistics)

    def wrong(groups: Mapping[str, Any], *more: Any, **options: Any) -> Any:
        def repeated(table: Mapping[str, Any]) -> dict[str, Any]:
            return {name: np.repeat(people, TESTS * BLOCKS, axis=0) for name, people in table.items()}

        given = {name: repeated(value) if name == "people" else value for name, value in options.items()}
        return right(repeated(groups), *more, **given)

    monkeypatch.setattr(accuracy_anova, statistics, wrong)
    with pytest.raises(AssertionError):
        notice(crowd, Scale(is_full=False))


def test_it_screens_planted_people_who_miss_a_check(crowd: Crowd) -> None:
    """The verdict comes from the rows: a changed answer at a check, and the same sitting is screened."""
    crowd.answer(crowd.planted(lambda condition, block: 1.0))
    session = crowd.sessions[0]
    assert screen(session).status == "passed"
    check = Response.objects.filter(session=session, trial__check_kind="instructed").select_related("trial")
    missed = check[0]
    other = next(c["value"] for c in missed.trial.choices if c["value"] != missed.trial.expected)
    Response.objects.filter(pk=missed.pk).update(value={"choice": other})
    verdict = screen(session)
    assert (verdict.status, [reason.rule for reason in verdict.reasons]) == (
        "screened",
        ["instructed_share_min"],
    )


def test_it_gives_the_ideal_everything_and_says_why_there_is_no_test(crowd: Crowd) -> None:
    crowd.answer(ideal(crowd.predicted, Streams(5)))
    crowd.finish()
    built = make_report(crowd.study, "simulated")
    report = built.json()
    for row in report["conditions"]:
        assert (row["n"], row["accuracy"], row["accuracy_mean"]) == (PEOPLE, [1.0] * BLOCKS, 1.0)
        assert (row["utility"], row["utility_k"]) == (1.0, [1.0] * BLOCKS)
        assert row["intervals"]["accuracy_mean"] is None and row["tukey_p"] is None
    method = rows(report)["saliency"]["intervals"]
    # Draws of people who all agree are all alike; a value that is divided by their spread is undefined.
    assert method["utility_bootstrap"] == [1.0, 1.0]
    assert method["utility_simultaneous"] is method["utility"] is None
    assert report["anova"] is None and report["tukey"] is None
    assert "No group has any variance, so no test is defined" in page(built)
