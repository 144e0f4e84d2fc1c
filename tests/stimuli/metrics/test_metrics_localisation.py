"""Localisation by hand, and the regions that a study stores."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from stimuli import pipeline
from stimuli.datasets.synthetic.cue_scenarios import SyntheticDataset
from stimuli.errors import NotApplicable
from stimuli.metrics import fill_parameters
from stimuli.metrics.base import Number
from stimuli.metrics.localisation import mass_inside, top_inside
from stimuli.pipeline import Bench, Order, explain, scorings
from stimuli.planner.values import Subject
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.spec_derivation import PredictedItem, Source, prepare, spec_for, survey
from stimuli.store import LocalStore
from stimuli.store.files import read_region
from stimuli.types import PixelAttribution
from tests.stimuli import material
from tests.stimuli.material import write_images
from tests.stimuli.measuring import number_of
from tests.stimuli.tiny import linear_net, pictures

pytestmark = pytest.mark.pure
Field = NDArray[Any]
REGION = np.zeros((24, 24), bool)
REGION[:6, :8] = True


def subject_of(**params: object) -> Subject:
    return replace(Subject(0, "a", 1, image=pictures(1)[0], region=REGION), **params)  # type: ignore[arg-type]


def share(field: Field, what: str, **params: object) -> float:
    made = PixelAttribution(field.astype(np.float32), False)
    return number_of(linear_net(), subject_of(), made, "localisation", share=what, **params).value


def test_it_counts_mass_and_places_by_hand() -> None:
    field = np.zeros((24, 24))
    field[0, :4], field[20, :2] = 0.5, (1.0, -0.25)
    assert share(field, "mass") == pytest.approx(2.0 / 3.25)
    assert share(field, "point") == 0.0
    assert share(field, "top", top_share=5 / 576) == pytest.approx(4 / 5)


def test_it_ranks_as_many_places_as_the_region_has() -> None:
    field = np.random.default_rng(1).random((24, 24)) * 0.5
    field[REGION] += 0.5
    assert share(field, "rank") == share(field, "point") == share(field, "top") == 1.0
    field[0, :12] = 0.0
    assert share(field, "rank") == pytest.approx(40 / 48)


@pytest.mark.parametrize("what", ["mass", "rank", "top", "point"])
def test_it_gives_the_share_of_the_region_to_a_field_that_knows_nothing(what: str) -> None:
    shares = [share(np.random.default_rng(seed).random((24, 24)), what, top_share=0.2) for seed in range(60)]
    assert np.mean(shares) == pytest.approx(REGION.mean(), abs=4 * np.std(shares) / 60**0.5 + 1e-9)


def test_it_does_not_rank_ties_by_their_place() -> None:
    """A field without structure: the region in the upper left gets no more than its share."""
    assert top_inside(np.zeros((24, 24)), REGION, 200) == pytest.approx(REGION.mean(), abs=0.06)


def test_it_says_that_an_empty_field_has_no_mass() -> None:
    made = PixelAttribution(np.zeros((24, 24), np.float32), False)
    number = number_of(linear_net(), subject_of(), made, "localisation")
    assert math.isnan(number.value) and "marks nothing" in number.details["undefined"]
    assert number.details["region"] == pytest.approx(48 / 576)
    assert math.isnan(mass_inside(np.zeros((2, 2)), np.ones((2, 2), bool)))


@pytest.mark.parametrize("region", [None, np.zeros((24, 24), bool)])
def test_it_asks_for_a_region(region: Field | None) -> None:
    made = PixelAttribution(torch.rand(24, 24).numpy(), False)
    with pytest.raises(NotApplicable, match="no region is known"):
        number_of(linear_net(), subject_of(region=region), made, "localisation")


Made = tuple[Source, PredictedItem, LocalStore, Number]


def explained(folder: Path, dataset: Component, input_px: int) -> Made:
    """The source, its first item, and how much of the item's saliency lies in its region, by the pipeline."""
    store = LocalStore(folder / "store")
    predictor = Component("toy", {"kind": "quadrant", "input_px": input_px})
    source = prepare(dataset, predictor, folder, store)
    item = survey(source, store)[0]
    spec = spec_for(item, source, Component("saliency"), RenderSpec(), 1)
    metric = fill_parameters(Component("localisation"), {"regions": source.regions})
    [made] = explain([Order((spec,), scorings([metric], spec))], Bench(store))
    pipeline._restored.clear()
    return source, item, store, made.numbers[0]


def test_it_stores_planted_regions_and_measures_by_them(tmp_path: Path) -> None:
    params = {"scenario": "biased", "count": 8, "model_count": 16, "size_px": 64}
    source, item, store, number = explained(tmp_path, Component("synthetic", params), 64)
    dataset = source.dataset
    assert isinstance(dataset, SyntheticDataset) and number.measured
    mask = dataset.mask(item.key)
    np.testing.assert_array_equal(read_region(store, source.regions, item.image_key), mask)
    # The saliency of a quadrant's mean is even within the quadrant, and 0 outside.
    rows, columns = divmod(item.index, 2)
    inside = mask[32 * rows : 32 * rows + 32, 32 * columns : 32 * columns + 32].mean()
    assert number.measured.value == pytest.approx(inside, abs=1e-6)


def test_it_stores_the_boxes_that_people_marked_as_the_network_sees_them(tmp_path: Path) -> None:
    """The pictures of 48 x 40 pixels become 38 x 32, and 3 columns go on the left, 3 on the right."""
    write_images(tmp_path)
    lines = ["image,concept,left,top,right,bottom", "left/0.png,eye,0,0,24,20", "left/0.png,ear,36,30,48,40"]
    (tmp_path / "images" / "parts.csv").write_text("\n".join(lines))
    source, item, store, number = explained(tmp_path, material.DATASET, 32)
    region = read_region(store, source.regions, item.image_key)
    assert item.key == "left/0.png" and region is not None and number.measured
    by_hand = np.zeros((32, 32), bool)
    by_hand[:16, :16], by_hand[24:, 26:] = True, True  # 24 * 32 / 40 - 3 = 16.2 and 36 * 32 / 40 - 3 = 25.8
    assert (region != by_hand).mean() < 0.03
    assert number.measured.value == pytest.approx(1.0)  # the upper left quadrant is the box
    assert read_region(store, source.regions, "0" * 64) is None
    lines[1] = "left/0.png,eye,0,0,24,10"
    (tmp_path / "images" / "parts.csv").write_text("\n".join(lines))
    again = prepare(material.DATASET, Component("toy", {"input_px": 32}), tmp_path, store)
    assert again.regions not in ("", source.regions)


def test_it_has_no_regions_where_nothing_is_marked(tmp_path: Path) -> None:
    write_images(tmp_path)
    source, _, store, number = explained(tmp_path, material.DATASET, 32)
    assert source.regions == "" and "no region is known" in number.error
    assert not list(store.keys("regions/"))
    assert fill_parameters(Component("deletion"), {"regions": "name"}) == Component("deletion")
