"""What the check tells of a study of ratings before people are paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowd.study_check.dry_run import DryRun, dry_run, warnings_of
from crowd.study_check.preregistration_draft import document as preregistration
from crowd.study_check.rating_dry_run import rated_lines, rated_tables, rated_warnings
from experiments.study_files.load import load_study
from stimuli.store import open_store
from tests import world
from tests.experiments.protocols import RATING, TWO_MODELS, write
from tests.world import silent

pytestmark = pytest.mark.django_db
CONDITIONS = ("saliency-coarse", "saliency-fine")


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
    ((title, _, gaps),) = rated_tables(run.rated)
    left = sum(item in light for item, _ in _rated_pairs(run) - anchors)
    assert "the copy is missing" in title and sum(row[2] for row in gaps) == left > 0
    warnings = warnings_of(run)
    assert any("sittings_max = 1" in warning for warning in warnings)
    assert any(
        f"some conditions share only {shared_by_hand(run)} pictures" in warning for warning in warnings
    )


def shared_by_hand(run: DryRun) -> int:
    anchors = {(t.item, t.condition) for p in run.plans for t in p.trials if t.extra.get("anchor")}
    items = [{item for item, name in _rated_pairs(run) - anchors if name == at} for at in CONDITIONS]
    return len(items[0] & items[1])


def test_it_tells_the_power_of_the_planned_comparison_on_page_and_in_the_preregistration(
    tmp_path: Path, store_folder: Path
) -> None:
    """8 pictures that two models share: one pair of conditions, five raters each, ten lists."""
    tables = RATING.replace("raters_per_explanation = 2", "raters_per_explanation = 5")
    path = write(tmp_path / "r", "ratings", "rating", tables, sources=TWO_MODELS, sittings=2)
    run = dry_run(load_study(path), path.parent, open_store(str(store_folder)), silent)
    power = run.power
    assert power is not None
    assert "8 items that they share, 5 raters each, 5 people, Holm over 1 pair," in power.title
    shares = [value for _, value in power.rows[:-1]]
    assert shares == sorted(shares) and power.rows[-1][0].startswith("smallest difference found with power")
    document = preregistration(run)
    assert "## Power" in document and power.title in document
    assert (
        "## What is rated\n\n- 16 explanations, each asked about by 5 people; 10 lists in 5 rounds"
        in document
    )
    assert f"- 0.5 points: {power.rows[2][1]:.3f}" in document


def _rated_pairs(run: DryRun) -> set[tuple[str | None, str]]:
    return {(t.item, t.condition) for plan in run.plans for t in plan.trials if not t.check}


def test_it_says_nothing_of_ratings_to_other_studies(tmp_path: Path, store_folder: Path) -> None:
    path = world.write_study(tmp_path / "small")
    run = dry_run(load_study(path), path.parent, open_store(str(store_folder)), silent)
    assert not [*rated_lines(run.rated), *rated_tables(run.rated), *rated_warnings(run.rated)]
