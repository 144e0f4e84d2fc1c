"""What goes wrong between two stages is refused in a sentence: other pictures, crafted regions, people who
have solved, settings that change what was frozen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from experiments.errors import StudyError
from experiments.models import Response, Session, Solution, Study, Trial
from experiments.stages.solution_freeze import freeze
from tests.experiments.protocols import (
    REVIEW,
    SOLVE,
    USES,
    answer,
    seen,
    solved,
    staged,
    take_part,
    write,
)
from tests.world import Person, draft_study

pytestmark = pytest.mark.django_db

CELLS = 16
"""Of the grid of SOLVE, 4 x 4."""


@pytest.fixture
def tasks(tmp_path: Path) -> Study:
    """The solve stage, answered, closed and frozen."""
    study = solved(tmp_path / "s")
    freeze(study)
    return study


# Pictures


def darker(images: Path) -> str:
    """One task has another picture under its name, of the same size."""
    path = images / "left" / "left-05.png"
    Image.eval(Image.open(path), lambda level: level // 2).save(path)
    return "left/left-05.png"


def asked_otherwise(images: Path) -> str:
    """A tuning item becomes a task, so that settings were chosen on what is reviewed."""
    path = images / "uses.csv"
    path.write_text(path.read_text().replace("left/left-03.png,tuning", "left/left-03.png,task"))
    return "left/left-03.png"


@pytest.mark.parametrize("change", [darker, asked_otherwise])
def test_items_that_are_not_what_was_solved_are_refused(
    tasks: Study, tmp_path: Path, change: Callable[[Path], str]
) -> None:
    path = write(tmp_path / "v", "judged", "blind_review", REVIEW, uses=USES)
    key = change(tmp_path / "v" / "images")
    words = f"1 of the 32 items that were solved have another picture, truth or use .* '{key}'"
    with pytest.raises(StudyError, match=words):
        draft_study(path)
    assert not Study.objects.filter(slug="judged").exists()


# Regions


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ([CELLS], "from 0 to 15 in ascending order, the cells of the 4 x 4 grid; got '16' after -1"),
        ([3, 2], "got '2' after 3"),
        ([-1], "got '-1'"),
        (list(range(CELLS + 1)), "a list of 1 to 16 cells of the 4 x 4 grid"),
        ([0.5], "got '0.5'"),
        ([[0]], "got '[0]'"),
        ("all", "a list of 1 to 16 cells"),
    ],
)
def test_a_region_that_no_brush_paints_is_refused_and_nothing_stored(
    tmp_path: Path, region: Any, words: str
) -> None:
    study = staged(tmp_path / "s", "tasks", SOLVE)
    eve = Person("eve", slug="tasks")
    eve.arrive()
    trial = eve.state["block"]["trials"][0]
    choice = next(c["value"] for c in trial["content"]["choices"] if c["value"] != "cannot_say")
    sent = {
        "trial": trial["id"],
        "rt_ms": 900,
        "shown_ms": 900,
        "value": {"choice": choice, "region": region},
    }
    reply = eve.respond(sent)
    assert reply.status_code == 400 and words in reply.content.decode().replace("\\u0027", "'")
    assert not Response.objects.filter(session__study=study).exists()
    assert eve.respond({**sent, "value": {"choice": choice, "region": [0, CELLS - 1]}}).status_code == 200


def test_a_lead_s_judgement_takes_nothing_else(tasks: Study, tmp_path: Path) -> None:
    staged(tmp_path / "v", "judged", REVIEW)
    lea = Person("lea", slug="judged")
    lea.arrive()
    sent = {"trial": lea.state["block"]["trials"][0]["id"], "rt_ms": 900, "shown_ms": 900}
    for value in ({"accept": "yes"}, {"accept": None}, {}, {"accept": True, "source": "people"}):
        reply = lea.respond({**sent, "value": value})
        assert reply.status_code == 400 and "expected" in reply.content.decode(), value
    later = Trial.objects.filter(slot=lea.session().slot).order_by("-position")[0]
    assert lea.respond({**sent, "trial": str(later.pk), "value": {"accept": True}}).status_code in (400, 409)


# People


def test_who_has_solved_does_not_judge_and_who_met_no_task_may(tmp_path: Path) -> None:
    """As people do whom the colour check ends at the solve stage, and who are then invited."""
    study = staged(tmp_path / "s", "tasks", SOLVE)
    assert Person("invited", slug="tasks").join().status_code == 201
    for number in range(study.slots.count()):
        take_part(Person(f"expert-{number}", slug="tasks"), seen)
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    freeze(study)
    staged(tmp_path / "v", "judged", REVIEW)
    for number in range(study.slots.count()):
        reply = Person(f"expert-{number}", slug="judged").join()
        assert reply.status_code == 409 and reply.json()["error"]["code"] == "taken_part"
        assert "study" in reply.json()["error"]["message"]
    assert Person("invited", slug="judged").join().status_code == 201


def test_who_left_among_the_tasks_does_not_judge_either(tmp_path: Path) -> None:
    study = staged(tmp_path / "s", "tasks", SOLVE)
    eve = Person("eve", slug="tasks")
    eve.arrive()
    answer(eve, 2, seen)
    eve.call("POST", "/api/session/withdraw/", {"reason": "", "erase": False})
    for number in range(study.slots.count()):
        take_part(Person(f"expert-{number}", slug="tasks"), seen)
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    freeze(study)
    staged(tmp_path / "v", "judged", REVIEW)
    assert Person("eve", slug="judged").join().status_code == 409
    assert study.frozen["left_out"]["not_kept"] == 2


# Nothing is lost


def test_every_answer_is_a_solution_or_left_out_with_a_reason(tmp_path: Path) -> None:
    """Counted by hand: what was answered, what is frozen, what may be reviewed, and the rest by reason."""
    study = solved(tmp_path / "s")
    out = Session.objects.filter(study=study).order_by("pk")[0]
    Session.objects.filter(pk=out.pk).update(excluded={"by": "lab", "reason": "asked"})
    answered = Response.objects.filter(session__study=study, trial__item__isnull=False)
    lost = answered.filter(session=out).count()
    freeze(study)
    people = Solution.objects.filter(study=study, use="solution", source="people")
    left_out = study.frozen["left_out"]
    assert lost and left_out["not_kept"] == lost and people.count() + lost == answered.count()
    by_use = {use: people.filter(item__use=use).count() for use in ("task", "known", "tuning")}
    assert left_out["sources"]["people"] == {"tuning": by_use["tuning"], "unmatched": 0}
    # What only one source has given: the model's answers to what people have not solved are not asked for.
    first = people.filter(item__use="task").order_by("key")[0]
    other = Solution.objects.filter(study=study, use="solution", source="saliency")
    assert set(other.values_list("item__key", flat=True)) == set(people.values_list("item__key", flat=True))
    assert first.item.key in set(other.values_list("item__key", flat=True))


def test_every_solution_that_may_be_reviewed_has_a_stimulus_and_every_other_a_reason(
    tasks: Study, tmp_path: Path
) -> None:
    judged = staged(tmp_path / "v", "judged", REVIEW)
    shown = {*judged.items.values_list("renderings__variant", flat=True)}
    solutions = Solution.objects.filter(study=tasks)
    lost = solutions.exclude(key__in=shown)
    assert {s.item.use for s in lost.select_related("item")} == {"tuning"}
    counted = tasks.frozen["left_out"]["sources"]
    assert lost.count() == sum(row["tuning"] + row["unmatched"] for row in counted.values())


# What was frozen


def test_every_setting_of_the_comparison_is_under_a_digest(tasks: Study, tmp_path: Path) -> None:
    """Solutions and how regions came about under that of the first stage (see test_freezing.py); margin and
    budget under that of the second, which names the first."""
    drafts = []
    for number, change in enumerate(("margin = 0.1", "margin = 0.2", "budget_ms = 2000")):
        tables = REVIEW.replace('role = "review"', f'role = "review"\n{change}')
        drafts.append(draft_study(write(tmp_path / str(number), "judged", "blind_review", tables, uses=USES)))
    assert len({study.digest for study in drafts}) == 3
    assert {study.solutions_digest for study in drafts} == {tasks.frozen_digest}
