"""The demo of a study of two stages, as a person runs it: solved, closed, frozen and reviewed on few plates,
with the colour check."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from crowd.rehearsal.demo.multistage_study import stages_of
from experiments.errors import StudyError
from tests import services
from tests.journeys.studies.test_demo import cells, run_demo

COMMON = """
slug = "{slug}"
title = "Digits of dots"
paradigm = "blind_review"
seed = 5
[plates]
count = 6
controls = 1
axis = "red_green"
severity = 0.6
[stimuli]
items = 12
balance = "none"
classes = ["0", "1", "4"]
dataset = {{ name = "plates", digits = [0, 1, 4], axis = "red_green", severity = 0.6, count = 12, known = 6, \
blank = 4, tuning = 3, model_count = 96 }}
predictor = {{ name = "trained_cnn", downsampling = "average", mirrored = false, input_px = 32, epochs = 6, \
train_items = 96, width = 6 }}
[texts]
consent = "consent.md"
instructions = "instructions.md"
debrief = "debrief.md"
[checks]
instructed = 0
[ethics]
contact = "lab@example.org"
deception = "Who else solves."
special_category = "health data: a colour check with a consent of its own"
retention_days = 90
[reward]
amount_cents = 100
currency = "USD"
expected_minutes = 5
"""
SOLVE = """
[design]
role = "solve"
colour_vision = "plates"
grid = 14
tasks_per_list = 3
known_per_list = 1
[[conditions]]
name = "people"
role = "source"
[[conditions]]
name = "occlusion"
role = "method"
explainer = { name = "occlusion", patch_share = 0.5, stride_share = 0.25 }
"""
KINDS = ("plate_reader", "weak_reader", "guesser", "careless")
REVIEW = """
[design]
role = "review"
colour_vision = "plates"
solutions_from = "dots"
tasks_per_run = 3
lures_per_run = 0
known_per_run = 0
alone_per_run = 1
grid = 14
[[conditions]]
name = "people"
role = "source"
slots = 12
[[conditions]]
name = "occlusion"
role = "method"
slots = 12
"""


def written(folder: Path, slug: str, tables: str) -> Path:
    """A study file with its texts, in a folder of its own."""
    folder.mkdir(parents=True)
    for name in ("consent", "instructions", "debrief"):
        (folder / f"{name}.md").write_text(f"# {name}\n")
    path = folder / "study.toml"
    path.write_text(COMMON.format(slug=slug) + tables)
    return path


@pytest.fixture
def stages(tmp_path: Path) -> tuple[Path, Path]:
    """Two studies in folders beside each other; the second starts from the first."""
    return (
        written(tmp_path / "studies" / "first", "dots", SOLVE),
        written(tmp_path / "studies" / "second", "dots-judged", REVIEW),
    )


@pytest.mark.long(
    stays="tests/crowd/rehearsal/test_stages.py::test_a_stage_that_was_solved_is_closed_and_frozen"
)
@pytest.mark.sqlite_only("the demo keeps its rows there")
def test_it_runs_both_stages_in_one_command(project_env: dict[str, str], stages: tuple[Path, Path]) -> None:
    env = {**project_env, "DATABASE_URL": f"sqlite:///{stages[0].parent / 'rows.sqlite3'}"}
    result = run_demo(env, stages[0], "--participants", "4", "--port", str(services.free_port()))
    assert result.returncode == 0, result.stderr[-2000:] + result.stdout[-2000:]
    solved, judged = result.stdout.split("Closed: ")
    # 15 tasks and tuning tasks in lists of 3: all are filled.
    assert "dots is open: 5 slots" in solved and ", of which 5 passed, " in solved
    assert re.search(r"^dots is closed\.$", judged, re.MULTILINE)
    assert re.search(r"^dots is frozen: \d+ solutions, digest [0-9a-f]{64}\.$", judged, re.MULTILINE)
    # 4 leads, and 8 places for visitors.
    assert "dots-judged is open: 12 slots" in judged and ", of which 4 passed, " in judged
    assert "Done. 8 walk-in slots are free." in judged
    for printed, place in ((solved, 0), (judged, 1)):
        told = printed.split("Colour vision of simulated people by the plates")[1].split("Digits of dots")[0]
        table = [[*map(int, row[1:])] for kind in KINDS for row in cells(told, kind)]
        went_on, left = (sum(row[column] for row in table) for column in (-2, -1))
        assert went_on >= 4 and left > 0, told
        # Only people of ordinary vision go on in the first stage, only those of reduced vision in the second.
        assert all(row[-2] <= row[place] and sum(row[:4]) == row[-2] + row[-1] for row in table), told
        assert sum(row[1 - place] for row in table) > 0, "some are for the other stage"
        assert "Computational observers, not people." in printed
    with sqlite3.connect(stages[0].parent / "rows.sqlite3") as rows_kept:
        states = rows_kept.execute(
            "SELECT slug, state, frozen_digest != '' FROM experiments_study"
        ).fetchall()
        shared = rows_kept.execute(
            "SELECT COUNT(*) FROM (SELECT person_hash FROM crowd_identity GROUP BY 1 HAVING COUNT(*) > 1)"
        ).fetchone()
    assert sorted(states) == [("dots", "closed", 1), ("dots-judged", "open", 0)]
    assert shared == (0,), "other people come to the second stage"


def test_it_refuses_stages_with_other_sources_before_anything_is_built(
    project_env: dict[str, str], stages: tuple[Path, Path]
) -> None:
    text = stages[1].read_text()
    stages[1].write_text(text.replace('name = "occlusion"', 'name = "saliency"'))
    result = run_demo(project_env, stages[0], "--port", str(services.free_port()))
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert result.stderr.strip() == (
        "CommandError: 'dots-judged' starts from the solutions of 'dots', whose sources are occlusion "
        "(method), people (source); its own conditions are people (source), saliency (method). Give "
        "both the same conditions."
    )
    assert result.stdout == "" and not Path(project_env["STORAGE_URL"]).exists()


def test_it_names_the_stage_that_is_missing(project_env: dict[str, str], stages: tuple[Path, Path]) -> None:
    stages[0].unlink()
    result = run_demo(project_env, stages[1], "--port", str(services.free_port()))
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert (
        "'dots-judged' starts from the solutions of 'dots', and no study file with that slug" in result.stderr
    )
    assert str(stages[1]) in result.stderr


@pytest.mark.pure
def test_either_file_of_two_stages_leads_to_both(stages: tuple[Path, Path]) -> None:
    assert stages_of(stages[0], ()) == stages_of(stages[1], ()) == stages


@pytest.mark.pure
def test_a_stage_may_lie_beside_the_other_or_in_a_folder_of_studies(tmp_path: Path) -> None:
    first = written(tmp_path / "a", "dots", SOLVE)
    beside = first.with_name("review.toml")
    beside.write_text(COMMON.format(slug="dots-judged") + REVIEW)
    far = written(tmp_path / "elsewhere" / "studies" / "x", "dots-judged-far", REVIEW)
    folders = (tmp_path / "elsewhere" / "studies",)
    assert stages_of(first, folders) == (first, beside), "the nearest counts"
    beside.unlink()
    assert stages_of(first, folders) == (first, far)
    assert stages_of(first, ()) == (first,)


@pytest.mark.pure
def test_it_asks_which_of_two_reviews_is_to_follow(stages: tuple[Path, Path], tmp_path: Path) -> None:
    other = written(tmp_path / "studies" / "third", "dots-judged-again", REVIEW)
    with pytest.raises(StudyError, match=r"Several studies start from the solutions of 'dots' .* --study"):
        stages_of(stages[0], ())
    assert stages_of(other, ()) == (stages[0], other)


@pytest.mark.pure
def test_files_that_are_no_studies_are_passed_over(stages: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "studies" / "first" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "studies" / "first" / "broken.toml").write_text("slug = \n")
    assert stages_of(stages[0], ()) == stages


@pytest.mark.pure
def test_stages_that_start_from_each_other_are_refused(stages: tuple[Path, Path]) -> None:
    stages[0].write_text(
        stages[1]
        .read_text()
        .replace('"dots"', '"dots-judged"', 1)
        .replace('slug = "dots-judged"', 'slug = "dots"')
    )
    with pytest.raises(StudyError, match="start from each other"):
        stages_of(stages[1], ())
