"""What the check tells of a study of ratings before people are paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowd.recruiting.checking import DryRun, dry_run, warnings_of
from crowd.recruiting.rated import rated_lines, rated_tables, rated_warnings
from experiments.study_file import load_study
from stimuli.store import open_store
from tests import world
from tests.experiments.protocols import RATING, TWO_MODELS, write
from tests.world import silent

pytestmark = pytest.mark.django_db


def test_it_tells_of_a_study_of_ratings_what_is_rated_and_what_is_not_asked(
    tmp_path: Path, store_folder: Path
) -> None:
    """8 pictures and 2 models: 16 explanations, 2 of them anchors, the others by 2 people in 2 lists each."""
    asked = """asked = ["q1", "q5"]
anchors = 2
[design.perturbations]
light_requires = "kept_and_correct"
"""
    tables = RATING.replace('asked = ["q1", "q2"]\n', asked)
    path = write(tmp_path / "r", "ratings", "rating", tables, sources=TWO_MODELS)
    run = dry_run(load_study(path), path.parent, open_store(str(store_folder)), silent)
    told = " ".join(rated_lines(run.rated))
    assert "14 explanations, each asked about by 2 people; 4 lists in 2 rounds" in told
    assert "4 to 4 people are needed" in told and "2 further explanations stand in every list" in told
    assert told.count("4 of 8 pictures have a small change that keeps the prediction of") == 2
    assert "4: the model is wrong about the picture itself" in told
    light = {key for *_, key, _ in run.copies["missing"]}
    anchors = {(t.item, t.condition) for p in run.plans for t in p.trials if t.extra.get("anchor")}
    (title, _, gaps), (power, _, rows) = rated_tables(run.rated)
    left = sum(item in light for item, _ in _rated_pairs(run) - anchors)
    assert "the copy is missing" in title and sum(row[2] for row in gaps) == left > 0
    assert "paired t test" in power and rows[-1][1] > 0
    assert any("sittings_max = 1" in warning for warning in warnings_of(run))


def _rated_pairs(run: DryRun) -> set[tuple[str | None, str]]:
    return {(t.item, t.condition) for plan in run.plans for t in plan.trials if not t.check}


def test_it_says_nothing_of_ratings_to_other_studies(tmp_path: Path, store_folder: Path) -> None:
    path = world.write_study(tmp_path / "small")
    run = dry_run(load_study(path), path.parent, open_store(str(store_folder)), silent)
    assert not [*rated_lines(run.rated), *rated_tables(run.rated), *rated_warnings(run.rated)]
