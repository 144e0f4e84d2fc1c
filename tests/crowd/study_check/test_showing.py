"""The dry plan says what people would see, and warns if its sources have too few pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crowd.study_check.dry_run import dry_run, warnings_of
from crowd.study_check.picture_resolution import Showing
from experiments.drafting import explanation_look_alikes
from experiments.drafting.item_pictures import longest_px_of
from experiments.study_files.load import load_study
from stimuli.metrics.method_similarity import near_identical
from stimuli.models import Stimulus
from stimuli.render.recipe import Canvas, RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.store import LocalStore
from stimuli.store.files import keep_picture, view_file
from stimuli.store.media_access import current_store
from tests import world

SMALL = Showing("original", 640, (640, 320, 700), (0.0, 0.25, 0.5))


@pytest.mark.pure
def test_it_counts_what_is_cut_off_and_what_is_too_small() -> None:
    assert "2 of 3 have parts that the network does not see (at most 50% of a picture)" in SMALL.words
    assert "320 CSS pixels, drawn with 640" in SMALL.words
    assert SMALL.warning is not None
    assert "1 of 3 pictures have only 320 pixels" in SMALL.warning and "enlarged to 640" in SMALL.warning
    assert Showing("original", 640, (640, 900), (0.0, 0.0)).warning is None
    assert "sees all of them" in Showing("original", 640, (640,), (0.0,)).words


@pytest.mark.pure
def test_it_does_not_warn_of_what_a_study_asks_for() -> None:
    view = Showing("network", 640, (64, 64), (0.3, 0.3))
    assert view.warning is None and "the network's view, 64 pixels wide, at 320 CSS pixels" in view.words


@pytest.mark.pure
def test_it_compares_conditions_on_what_the_network_sees(tmp_path: Path) -> None:
    """Two pictures that differ in the view only slightly, beside much that is the same in both."""
    store = LocalStore(tmp_path)
    box = (0.375, 0.0, 0.625, 1.0)
    ground = np.full((160, 640, 3), 120, np.uint8)
    specs, files = {}, {}
    for name, level in (("a", 0), ("b", 8)):
        picture = ground.copy()
        picture[:, 240:400] += np.uint8(level)
        specs[name] = StimulusSpec(
            "i" * 64,
            "p" * 64,
            "",
            0,
            Component(name="saliency"),
            1,
            level,
            RenderSpec(),
            canvas=Canvas("c", box),
        )
        files[specs[name].picture_key] = keep_picture(store, "pictures", f"{level:064x}", picture)
    compared = explanation_look_alikes._pictures(specs, files, store)
    assert {picture.shape for picture in compared.values()} == {(160, 160, 3)}
    # Eight levels are seen; over the whole pictures their mean would be two.
    assert near_identical(compared) == []


@pytest.mark.django_db
def test_the_dry_plan_knows_the_files(tmp_path: Path, store_folder: Path) -> None:
    """Files of 48 x 32 pixels, of which the network sees the middle 32 columns; shown 64 wide, so 128."""
    path = world.write_study(tmp_path / "small", slots=1)
    for file in (tmp_path / "small" / "images").rglob("*.png"):
        with Image.open(file) as square:
            wide = np.pad(np.asarray(square), ((0, 0), (8, 8), (0, 0)), mode="reflect")
        Image.fromarray(wide).save(file)
    definition = load_study(path)
    run = dry_run(definition, path.parent, current_store(), world.silent)
    assert run.showing is not None and longest_px_of(definition) == run.showing.longest_px == 128
    assert set(run.showing.sources_px) == {48}
    assert run.showing.cropped == pytest.approx([1 / 3] * len(run.showing.cropped))
    assert any("have only 48 pixels on their longer side" in warning for warning in warnings_of(run))


@pytest.mark.django_db
def test_a_study_of_before_shows_the_network_s_view_as_it_is(tmp_path: Path, store_folder: Path) -> None:
    path = world.write_study(tmp_path / "small", slots=1)
    path.write_text(path.read_text().replace("[texts]", "[render]\nabsolute = true\n[texts]"))
    world.draft_study(path)
    rows = list(Stimulus.objects.all())
    assert rows and all(row.image_file == view_file(row.image_key) for row in rows)
    assert {(row.width_px, row.height_px) for row in rows} == {(world.SIZE_PX, world.SIZE_PX)}
    assert not any("canvas" in row.spec for row in rows)
    assert dry_run(load_study(path), path.parent, current_store(), world.silent).showing is None


@pytest.mark.django_db
def test_a_study_draws_on_what_it_asks_for(tmp_path: Path, store_folder: Path) -> None:
    path = world.write_study(tmp_path / "small", slots=1)
    path.write_text(path.read_text().replace("[texts]", '[render]\nview = "network"\n[texts]'))
    world.draft_study(path)
    assert {(row.width_px, row.height_px) for row in Stimulus.objects.all()} == {(128, 128)}
