"""Looks before the end: due only as planned, the same for all who ask, and one word without a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from scipy.stats import dunnett as witness

from analysis.models import TakenLook
from analysis.planning.significance_levels import planned_levels
from analysis.reports.base import Section
from analysis.reports.meta_predictor.report import report
from analysis.stored_reports.departures import report_facts
from analysis.stored_reports.refresh import make_report, refresh_report
from crowd.people.study_closure import close_whole
from experiments.models import Session, Study, Trial
from tests.analysis.stored import opened, sitting
from tests.analysis.worlds import facts, frames_of

pytestmark = pytest.mark.django_db
PLAN = {"looks": [5, 8], "boundary": "pocock"}
NAMES = ("baseline", "control", "grad_cam")
ALIKE = {"baseline": (2, 3, 4, 5, 6), "control": (3, 2, 4, 6, 5), "grad_cam": (4, 3, 2, 5, 6)}
APART = {"baseline": (0, 1, 2, 1, 0), "control": (1, 0, 2, 1, 1), "grad_cam": (7, 8, 7, 6, 8)}
"""Right answers of eight, in the order in which people finish."""


@pytest.fixture
def study() -> Study:
    return opened(12, preregistration=PLAN)


def come(study: Study, right: Mapping[str, Sequence[int]], *, start: int = 0, origin: str = "human") -> None:
    for condition, counts in right.items():
        for number, count in enumerate(counts):
            answers = iter([True] * count + [False] * 8)

            def answer(trial: Trial, answers: Any = answers) -> bool:
                is_scored = trial.phase == "test" and not trial.check_kind
                return next(answers) if is_scored else True

            name, minutes = f"{origin}-{condition}-{start + number}", start + number
            sitting(study, name, condition=condition, right=answer, minutes=minutes, origin=origin)


def look(by: str = "grace") -> str:
    out = StringIO()
    call_command("study_look", "wolf-or-husky", by=by, stdout=out)
    return out.getvalue().strip()


def departures(study: Study) -> dict[str, str]:
    return {row["field"]: row["now"] for row in report_facts(study).preregistration["departures"]}


@pytest.mark.parametrize(("right", "word"), [(ALIKE, "continue"), (APART, "stop")])
def test_a_look_says_one_word_by_dunnetts_test_at_its_level(
    study: Study, right: dict[str, tuple[int, ...]], word: str
) -> None:
    come(study, right)
    base, *others = ([count / 8 for count in right[name]] for name in NAMES)
    p = min(witness(*others, control=base).pvalue)
    assert (p <= planned_levels(PLAN, [12, 12, 12])[0]) == (word == "stop")
    sentence = f"Look 1 of 2 at 5 people per condition, Pocock: {word}"
    assert look() == sentence
    assert LogEntry.objects.latest("pk").change_message == f"grace: {sentence}."
    row = {k: v for k, v in TakenLook.objects.values().get().items() if k not in ("id", "looked_at")}
    assert row == {"study_id": study.pk, "number": 1, "people": 5, "answer": word, "looked_by": "grace"}
    made = refresh_report(study, "human")
    (told,) = made.json["preregistration"]["looks"]
    assert made.sealed and told["answer"] == word and set(told) == {"number", "people", "answer", "at", "by"}
    assert all(made.json[key] is None for key in ("planned", "tukey", "anova"))


def test_it_reads_the_first_who_finished_however_late_it_is_asked(study: Study) -> None:
    """The first five are alike; with those who came later the same test would say stop. People who were left
    out by hand are none of them."""
    come(study, APART, start=20)
    come(study, ALIKE)
    outlier = sitting(study, "out", condition="grad_cam", right=lambda trial: True, minutes=-5)
    Session.objects.filter(pk=outlier.pk).update(excluded={"by": "ada", "reason": "spoke", "at": "now"})
    assert look().endswith("continue")
    assert look().startswith("Look 2 of 2 at 8 people") and TakenLook.objects.count() == 2


def refused(by: str = "grace") -> str:
    with pytest.raises(CommandError) as error:
        look(by)
    return str(error.value)


def test_it_is_refused_before_it_is_due_and_once_it_is_taken(study: Study) -> None:
    come(study, {**ALIKE, "control": (3, 2, 4, 6)})
    come(study, dict.fromkeys(NAMES, (4, 5, 3)), origin="simulated", start=40)
    assert "look 1 of 2 is at 5 people kept in every condition, and the smallest has 4." in refused()
    come(study, {"control": (5,)}, start=10)
    assert "needs the name" in refused(" ")
    assert look().endswith("continue")
    told = refused()
    assert "look 2 of 2 is at 8 people" in told and "the smallest has 5. Look 1 was taken on" in told
    assert "by grace." in told
    come(study, dict.fromkeys(NAMES, (4, 5, 3)), start=50)
    assert look("ada").endswith("continue")
    assert "All 2 planned looks are taken" in refused()
    assert not TakenLook.objects.filter(number__gt=2)


def test_it_is_refused_without_a_plan_of_looks() -> None:
    opened(12)
    assert "names no looks" in refused()


def test_it_is_refused_unsealed_after_stop_and_closed(study: Study) -> None:
    come(study, APART)
    Study.objects.update(unsealed_at=study.opened_at, unsealed_by="ada", unsealed_reason="why")
    assert "open already" in refused() and "Unsealed by ada" in refused()
    Study.objects.update(unsealed_at=None, unsealed_by="")
    assert look().endswith("stop")
    assert "said stop: close the study" in refused()
    Study.objects.update(state="closed")
    assert "is closed; a look is taken while" in refused()


def test_people_without_spread_say_continue_and_not_that_they_have_none(study: Study) -> None:
    come(study, dict.fromkeys(NAMES, (8,) * 5))
    assert look() == "Look 1 of 2 at 5 people per condition, Pocock: continue"


def test_a_study_that_stopped_as_planned_departs_from_nothing(study: Study) -> None:
    come(study, APART)
    assert look().endswith("stop")
    come(study, {"control": (5,)}, start=10**6)
    close_whole(study, "grace", "look 1 said stop")
    study.refresh_from_db()
    assert departures(study) == {}
    made = report_facts(study)
    assert made.alpha == planned_levels(PLAN, [12, 12, 12])[0]
    assert "1 person finished after look 1 had said stop" in made.preregistration["notes"][-1]
    said = next(part for part in make_report(study, "human").sections if part.key == "preregistration")
    assert (
        "1 of 2 planned looks taken" in said.paragraphs[2] and "look 1, which said stop" in said.paragraphs[2]
    )
    assert [row[3] for row in said.tables[0].rows] == ["stop", "not taken"]


def test_looks_that_were_missed_or_not_followed_are_departures(study: Study) -> None:
    come(study, APART)
    close_whole(study, "grace", "the money is spent")
    study.refresh_from_db()
    told = departures(study)
    assert told["look 1"] == "not taken" and "look 2" not in told and "stopping" in told
    TakenLook.objects.create(study=study, number=1, people=5, answer="stop", looked_by="ada")
    come(study, dict.fromkeys(NAMES, (4,) * 7), start=100)
    assert departures(study) == {"stopping": "all places were filled after it"}


def test_the_planned_contrasts_are_tested_at_the_level_of_the_end(study: Study) -> None:
    document = {**PLAN, "alpha": 0.05}
    plan = {"stored": True, "document": document, "looks": []}
    people = {name: np.random.default_rng(at).integers(2, 7, (12, 2)) for at, name in enumerate(NAMES)}
    told = replace(facts(NAMES, wanted=12), preregistration=plan)
    level = planned_levels(document, [12, 12, 12])[-1]
    assert told.alpha == level < 0.05
    made = report(frames_of(people, trials=7), told)
    planned: Section = next(part for part in made.sections if part.key == "planned")
    assert planned.content["level"] == pytest.approx(1 - level)
