"""What the demo asks of a study's file and of its stages, before and between them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crowd.rehearsal.demo.multistage_study import end_stage, print_routing, stages_of
from crowd.rehearsal.demo.server import print_addresses
from crowd.rehearsal.demo.study_rounds import scale_study
from experiments.errors import StudyError
from experiments.models import Solution, Study
from experiments.study_files.load import find_study, load_study
from experiments.terminal import Terminal
from tests.experiments.checked import checked_study
from tests.experiments.protocols import SOLVE, solved, staged
from tests.world import Person


@pytest.mark.parametrize(
    ("slug", "wanted", "changes"),
    [
        # Each of 64 leads judges the solutions of both sources, one at a time.
        ("digit-answers", 56, {}),
        ("digits-by-label", 56, {}),
    ],
)
def test_as_many_people_come_as_a_shipped_study_has_places_for(
    slug: str, wanted: int, changes: dict[str, object]
) -> None:
    assert scale_study(load_study(find_study(slug)), None) == (wanted, changes)


def test_the_usual_demo_is_small_and_that_of_240_people_is_the_file_s() -> None:
    definition = load_study(find_study("wolf-or-husky"))
    wanted, changes = scale_study(definition, None)
    # 8 x 6 places, of which 8 are for visitors; 3 blocks of 5 + 7 trials fit 40 items.
    assert wanted == 40 and {table["slots"] for table in changes["conditions"]} == {6}
    whole = definition.stimuli.model_dump(mode="json", exclude_none=True)
    assert whole["items"] == 120 and changes["stimuli"] == {**whole, "items": 40}
    load_study(find_study("wolf-or-husky"), changes=changes)
    assert scale_study(definition, 240) == (240, {})


def test_a_stage_of_lists_alone_gets_one_more_solver_of_each_task_for_visitors() -> None:
    definition = load_study(find_study("find-the-digit"))
    wanted, changes = scale_study(definition, None)
    assert wanted == 80 and changes == {"design": {**definition.design, "solutions_per_task": 2}}


def test_the_shipped_stages_are_found_from_either(tmp_path: Path) -> None:
    first, second = (find_study(slug) for slug in ("find-the-digit", "digit-answers"))
    assert stages_of(first, ()) == stages_of(second, ()) == (first, second)
    alone = find_study("digits-by-label")
    assert stages_of(alone, ()) == (alone,), "labels are no study"


@pytest.mark.django_db
def test_a_stage_that_nobody_solved_is_closed_and_not_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = staged(tmp_path / "s", "tasks", SOLVE)
    with Terminal() as terminal, pytest.raises(StudyError, match="has no kept answers that could be solu"):
        end_stage(study, terminal)
    study.refresh_from_db()
    assert (study.state, study.frozen_digest) == ("closed", "")
    assert "tasks is closed." in capsys.readouterr().out


@pytest.mark.django_db
def test_a_stage_that_was_solved_is_closed_and_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = solved(tmp_path / "s")
    Study.objects.update(state="open", closed_at=None)
    study.refresh_from_db()
    with Terminal() as terminal:
        end_stage(study, terminal)
    study.refresh_from_db()
    assert study.state == "closed" and re.fullmatch("[0-9a-f]{64}", study.frozen_digest)
    count = Solution.objects.count()
    said = f"tasks is frozen: {count} solutions, digest {study.frozen_digest}."
    assert count > 0 and said in capsys.readouterr().out


@pytest.mark.django_db
def test_it_says_where_each_kind_of_eyes_was_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stage wants ordinary eyes: two readers have them, and one of two weak readers has not."""
    study = checked_study(tmp_path / "checked", monkeypatch)
    eyes = (("plate_reader", "ordinary"), ("weak_reader", "reduced"), ("weak_reader", "ordinary"))
    for number, (kind, vision) in enumerate(eyes):
        person = Person(f"p{number}", slug="tasks", vision=vision, simulated=kind)
        person.arrive("trials" if vision == "ordinary" else "finish")
    with Terminal() as terminal:
        print_routing(study, terminal)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row for row in rows if row[:1] in (["plate_reader"], ["weak_reader"])] == [
        ["plate_reader", *"100010"],
        ["weak_reader", *"110011"],
    ]


@pytest.mark.django_db
def test_the_addresses_say_which_stage_is_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = staged(tmp_path / "s", "tasks", SOLVE)
    second = staged(tmp_path / "t", "more-tasks", SOLVE)
    with Terminal() as terminal:
        print_addresses(second, "http://127.0.0.1:8000", terminal, True, [first])
    said = capsys.readouterr().out
    assert "Take part          http://127.0.0.1:8000/join/more-tasks/   (2 places are free)" in said
    assert "Closed stage       http://127.0.0.1:8000/studies/tasks/   (its solutions are judged in" in said
