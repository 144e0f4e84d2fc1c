"""How far a session is: truthful after a reload, never backwards, and the same in every condition."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.kinds import get_kind
from experiments.models import Study
from experiments.paradigms.reverse_turing import ReverseTuringDesign
from experiments.selectors import definition_of
from experiments.sessions.progress import READING_MINUTES, reading_minutes, trials_minutes
from experiments.study_files.load import STUDIES_DIR, find_study, load_study
from tests.experiments.definitions import definition
from tests.world import Person

SLUGS = sorted(path.parent.name for path in STUDIES_DIR.glob("*/study.toml"))
STEPS = ["consent", "questions", "instructions", "quiz", "practice", "trials", "questions", "comment"]


def walk(person: Person) -> list[tuple[str, dict[str, Any] | None]]:
    """(step, progress) at every page of a whole session; each is asked for twice, as by a reload."""
    seen: list[tuple[str, dict[str, Any] | None]] = []
    person.join()
    while person.state["step"] != "comment":
        seen.append((person.state["step"], person.state["progress"]))
        assert person.refresh()["progress"] == seen[-1][1]
        if person.state["step"] == "trials":
            person.answer(4)
        else:
            person.gate(person.good_value())
    seen.append(("comment", person.state["progress"]))
    person.finish()
    seen.append(("finish", person.refresh()["progress"]))
    return seen


@pytest.mark.django_db
def test_it_runs_from_the_first_page_to_the_last_and_never_back(small: Study) -> None:
    seen = walk(Person("ada"))
    assert seen[0] == ("device", None) and seen[-1] == ("finish", None)
    rows = [row for _, row in seen[1:-1] if row is not None]
    assert len(rows) == len(seen) - 2
    assert {row["steps"] for row in rows} == {len(STEPS)}
    steps = [row["step"] for row in rows]
    assert steps == sorted(steps) and set(steps) == set(range(1, len(STEPS) + 1))
    done = [row["done"] for row in rows]
    assert done[0] == 0 and done == sorted(done) and done[-1] < 1
    assert {row["minutes"] for row in rows} == {definition_of(small).reward.expected_minutes}


@pytest.mark.django_db
def test_it_weighs_pages_and_trials_by_the_study_s_own_estimate(small: Study) -> None:
    """By hand: 7 pages share two minutes of reading; a trial takes its kind's seconds and the gap."""
    seen = walk(Person("ada"))
    person_trials = Person("bo")
    person_trials.arrive()
    seconds = [get_kind(trial.kind).seconds + 0.3 for trial in person_trials.trials()]
    whole_s = 120 + sum(seconds)
    in_trials = [row for step, row in seen if step == "trials" and row is not None]
    for number, row in enumerate(in_trials):
        expected_s = 5 * 120 / 7 + sum(seconds[: 4 * number])
        assert row["done"] == pytest.approx(expected_s / whole_s)
        assert row["trials"] == pytest.approx(sum(seconds) / whole_s)
    last = next(row for step, row in seen if step == "comment" and row is not None)
    assert last["done"] == pytest.approx((6 * 120 / 7 + sum(seconds)) / whole_s)


@pytest.mark.django_db
def test_it_is_the_same_in_every_condition(small: Study) -> None:
    walks = [walk(Person(f"p{number}")) for number in range(3)]
    conditions = {str(slot.condition) for slot in small.slots.exclude(holder=None)}
    assert conditions == {"baseline", "control", "saliency"}
    assert walks[0] == walks[1] == walks[2]


def blind_kinds(design: dict[str, Any]) -> list[str]:
    if design["role"] == "solve":
        return ["solve"] * (design["tasks_per_list"] + design["known_per_list"])
    per_run = design["tasks_per_run"] + design["lures_per_run"] + design["known_per_run"]
    return ["review"] * (design["runs"] * per_run + design.get("alone_per_run", 0))


@pytest.mark.pure
@pytest.mark.parametrize("slug", SLUGS)
def test_the_trials_of_a_shipped_study_are_its_largest_part(slug: str) -> None:
    """Trials as the study file plans them for one person, told by its numbers alone."""
    definition = load_study(find_study(slug))
    design = definition.design
    if definition.paradigm == "blind_review":
        kinds = blind_kinds(design)
    elif definition.paradigm == "assisted_decision":
        kinds = ["learn"] * design["train_items"] + ["decide"] * 2 * design["test_items"]
    elif definition.paradigm == "rating":
        kinds = ["rate"] * (design["list_length"] + design["anchors"])
    elif definition.paradigm == "reverse_turing":
        sized = ReverseTuringDesign(**design)
        kinds = ["learn"] * sized.train_items + ["predict"] * sized.test_items
    else:
        tests = design["blocks"] * design["test_per_block"] + definition.checks.repeat
        kinds = ["learn"] * design["blocks"] * design["train_per_block"] + ["predict"] * tests
    kinds += ["instructed"] * definition.checks.instructed
    assert trials_minutes(definition, kinds) > READING_MINUTES


@pytest.mark.pure
def test_a_page_of_ratings_takes_longer_with_each_question() -> None:
    """By hand: 6 s to look, 5 s for each of the six questions, the shortest view and the gap of 1.8 s."""
    definition = load_study(find_study("rate-explanations"))
    assert trials_minutes(definition, ["rate"]) * 60 == pytest.approx(6 + 6 * 5 + 1.8)
    split = definition.model_copy(update={"design": {**definition.design, "questions": "split"}})
    assert trials_minutes(split, ["rate"]) * 60 == pytest.approx(6 + 5 + 1.8)


def test_plates_of_the_colour_check_take_their_time() -> None:
    plain, checked = definition(), definition(plates={"count": 24})
    assert reading_minutes(plain) == READING_MINUTES
    assert reading_minutes(checked) - reading_minutes(plain) == pytest.approx(24 * 5 / 60)
