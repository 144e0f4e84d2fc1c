"""k distinct people for every explanation and question, however people come, leave, return and are late."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from analysis.tables.response_reader import read_frames
from experiments.models import Response, Session, Slot, Study, Trial
from experiments.sessions.lifecycle import mark_left, withdraw
from tests.experiments.protocols import RATING, TWO_MODELS, answer, opened
from tests.world import Person

pytestmark = pytest.mark.django_db
ITEMS, METHODS, RATERS, ANCHORS = 8, 2, 3, 2
TABLES = (
    RATING.replace("raters_per_explanation = 2", f"raters_per_explanation = {RATERS}\nanchors = {ANCHORS}")
    .replace("list_length = 8", "list_length = 5")
    .replace(
        'asked = ["q1", "q2"]',
        'asked = ["q1", "q5"]\nperturbations = { light_requires = "kept_and_correct" }',
    )
)
ROUTES = ("finishes", "finishes", "finishes", "leaves", "withdraws", "erases", "falls silent")
Asked = tuple[str, str, str]
"""(item, condition, question)."""


@pytest.fixture(params=["together", "split"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    tables = TABLES.replace("list_length", f'questions = "{request.param}"\nlist_length')
    return opened(tmp_path, "ratings", "rating", tables, sources=TWO_MODELS, sittings=50)


@dataclass
class Crowd:
    """People who come and go by chance, until every list is kept."""

    study: Study
    rng: np.random.Generator
    sittings: Counter[str] = field(default_factory=Counter)
    silent: list[Person] = field(default_factory=list)
    routes: Counter[str] = field(default_factory=Counter)

    def run(self, visits: int = 400) -> None:
        for _ in range(visits):
            if not Slot.objects.filter(study=self.study, pilot=False, kept=False).exists():
                break
            self.visit()
        for person in self.silent:
            self.late(person)

    def visit(self) -> None:
        """Someone new, someone who was here, or someone who fell silent and goes on."""
        if self.silent and self.rng.random() < 0.2:
            self.late(self.silent.pop(int(self.rng.integers(len(self.silent)))))
            return
        known = [name for name in self.sittings if self.rng.random() < 0.5]
        name = known[0] if known and self.rng.random() < 0.6 else f"p{len(self.sittings)}"
        self.sittings[name] += 1
        person = Person(name, slug="ratings", submission=f"{name}-{self.sittings[name]}")
        if seated(person):
            self.go(person, ROUTES[self.rng.integers(len(ROUTES))])

    def go(self, person: Person, route: str) -> None:
        self.routes[route] += 1
        if route == "finishes":
            answer(person)
            assert person.finish().status_code == 200
            return
        answer(person, int(self.rng.integers(4)))
        session = person.session()
        if route == "falls silent":
            over = session.claimed_at
            Session.objects.filter(pk=session.pk).update(lease_ends_at=over)
            Slot.objects.filter(holder=session).update(lease_ends_at=over)
            self.silent.append(person)
        elif route == "leaves":
            assert mark_left(session)
        else:
            withdraw(session, "", erase=route == "erases")

    def late(self, person: Person) -> None:
        self.routes["comes late"] += 1
        person.refresh()
        answer(person)
        assert person.finish().status_code == 200


def seated(person: Person) -> bool:
    """Whether the person got a list; a person whose round is full gets none."""
    if person.join().status_code != 201:
        return False
    while person.state["step"] != "trials":
        if person.gate(person.good_value()).status_code != 200:
            return False
    return True


def planned(study: Study) -> set[Asked]:
    """From the stored pictures and predictions alone, not from the plans: q5 only of right answers that have
    a small change."""
    copies = {
        (copy.copy_of.key, copy.perturbation["predictor"])
        for copy in study.items.filter(copy_of__isnull=False).select_related("copy_of")
        if copy.copy_of
    }
    expected: set[Asked] = set()
    for condition in study.conditions.all():
        for item in study.items.filter(copy_of=None):
            expected.add((item.key, condition.name, "q1"))
            if (item.key, condition.predictor) in copies:
                expected.add((item.key, condition.name, "q5"))
    return expected


def anchors_of(study: Study) -> set[tuple[str, str]]:
    trials = Trial.objects.filter(slot__study=study, extra__anchor=True)
    return set(trials.values_list("item__key", "condition__name"))


@pytest.mark.long(
    stays="tests/experiments/test_other_protocols.py::test_every_explanation_is_rated_by_so_many_people"
)
def test_every_explanation_is_rated_by_k_distinct_people(study: Study) -> None:
    crowd = Crowd(study, np.random.default_rng(2))
    crowd.run()
    assert not Slot.objects.filter(study=study, kept=False).exists()
    assert crowd.routes.keys() == {*ROUTES, "comes late"}
    assert max(crowd.sittings.values()) > 2, "some return"
    anchors = anchors_of(study)
    assert len(anchors) == ANCHORS
    expected = {asked for asked in planned(study) if asked[:2] not in anchors}
    by_rows(study, expected)
    by_export(study, expected)


def by_rows(study: Study, expected: set[Asked]) -> None:
    """From the stored answers of those who hold a list, and of all who ever answered."""
    raters: dict[Asked, list[int]] = defaultdict(list)
    met: Counter[tuple[int, Asked]] = Counter()
    rows = Response.objects.filter(session__study=study, trial__kind="rate").select_related(
        "trial__item", "trial__condition", "session", "trial__slot"
    )
    for row in rows:
        assert row.trial.item and row.trial.condition
        person = row.session.participant_id
        for question in row.value:
            asked = (row.trial.item.key, row.trial.condition.name, question)
            if not row.trial.extra.get("anchor"):
                met[person, asked] += 1
                if row.trial.slot.holder_id == row.session_id:
                    raters[asked].append(person)
    assert {asked: len(people) for asked, people in raters.items()} == dict.fromkeys(expected, RATERS)
    assert all(len(set(people)) == RATERS for people in raters.values())
    assert set(met.values()) == {1}, "and no person met an explanation twice, in lists that were left"
    lanes = Session.objects.filter(study=study, slot__isnull=False).values_list("participant_id", "lane")
    assert len(set(lanes)) == len({person for person, _ in lanes})


def by_export(study: Study, expected: set[Asked]) -> None:
    """In the tables that a researcher has: those who passed, without a surplus."""
    frames = read_frames(study).passed()
    people = frames.participants
    kept = set(people.loc[people["surplus"] != 1, "session"])
    assert len(kept) == Slot.objects.filter(study=study, pilot=False).count() < len(people)
    trials = frames.trials[(frames.trials["kind"] == "rate") & frames.trials["session"].isin(kept)]
    raters: dict[Asked, list[str]] = defaultdict(list)
    again: Counter[tuple[str, str, str]] = Counter()
    for row in trials.to_dict("records"):
        for question in json.loads(row["questions_asked"]):
            if row["anchor"] == 1:
                again[row["participant"], row["item"], row["condition"]] += 1
            else:
                raters[row["item"], row["condition"], question].append(row["participant"])
    assert {asked: len(people) for asked, people in raters.items()} == dict.fromkeys(expected, RATERS)
    assert all(len(set(people)) == RATERS for people in raters.values())
    assert max(again.values()) > 1, "who comes again rates the anchors again"
