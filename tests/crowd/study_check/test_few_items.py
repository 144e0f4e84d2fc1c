"""The dry plan warns of sentences about a method that is tested on few items, or on the same for all."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from crowd.study_check.dry_run import DryRun, dry_run, few_items_warnings, warnings_of
from experiments.study_files.load import load_study
from stimuli.store import open_store
from tests import world
from tests.experiments.protocols import RATING, TWO_MODELS, write

pytestmark = pytest.mark.django_db
FEW = "fewer than 60: what is found is true of these pictures"


def silent(stage: str, done: int, of: int) -> None:
    """No progress is shown."""


def run_of(path: Path, store_folder: Path) -> DryRun:
    return dry_run(load_study(path), path.parent, open_store(str(store_folder)), silent)


def with_items(run: DryRun, items: int) -> DryRun:
    """Plans enough of so many test items: scored trials go through their names in a ring."""
    names, made = (f"item-{n % items}" for n in count()), []
    for plan in run.plans * items:
        trials = [
            replace(t, item=next(names)) if t.phase == "test" and not t.check else t for t in plan.trials
        ]
        made.append(replace(plan, trials=tuple(trials)))
    return replace(run, plans=tuple(made))


def test_it_counts_the_distinct_pictures_on_which_people_are_tested(
    tmp_path: Path, store_folder: Path
) -> None:
    """Checks are no test, and training is none; the limit itself is enough."""
    run = run_of(world.write_study(tmp_path / "small", slots=1), store_folder)
    items = {t.item for plan in run.plans for t in plan.trials if t.phase == "test" and not t.check}
    assert 0 < len(items) < 60
    (warning,) = [said for said in warnings_of(run) if "what is found is true" in said]
    assert warning.startswith(f"people are tested on {len(items)} pictures, {FEW}")
    assert 'say "on these pictures" in every sentence about a method, or test more pictures' in warning
    assert few_items_warnings(with_items(run, 59))[0].startswith(f"people are tested on 59 pictures, {FEW}")
    assert few_items_warnings(with_items(run, 60)) == []


def test_fixed_items_are_told_however_many_they_are(tmp_path: Path, store_folder: Path) -> None:
    path = world.write_study(tmp_path / "small", slots=2, picture_px='picture_px = 64\nitems = "fixed"')
    run = run_of(path, store_folder)
    (warning,) = few_items_warnings(run)
    assert warning.startswith(f"all people are tested on the same 8 pictures, {FEW}")
    assert warning.endswith('leave out items = "fixed" and test more pictures')
    (many,) = few_items_warnings(with_items(run, 80))
    assert many.startswith("all people are tested on the same 80 pictures: what is found")
    assert many.endswith('a method, or leave out items = "fixed"')


def test_without_methods_and_of_ratings_it_says_nothing(tmp_path: Path, store_folder: Path) -> None:
    """Ratings have a warning of their own, of the pictures that conditions share."""
    run = run_of(world.write_study(tmp_path / "small", slots=1), store_folder)
    conditions = [c for c in run.definition.conditions if c.role != "method"]
    without = run.definition.model_copy(update={"conditions": conditions})
    assert few_items_warnings(run) and not few_items_warnings(replace(run, definition=without))
    rating = run_of(write(tmp_path / "r", "ratings", "rating", RATING, sources=TWO_MODELS), store_folder)
    said = " ".join(warnings_of(rating))
    assert "some conditions share only" in said and "what is found is true" not in said
