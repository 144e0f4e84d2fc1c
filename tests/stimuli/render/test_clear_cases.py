"""Planted cases for raters: what is marked lies on the object that is meant, and nothing else does."""

import hashlib

import numpy as np
import pytest

from stimuli.datasets.practice import COOL, GROUND, SIZE_PX, WARM, practice_pictures
from stimuli.render.attribution_field import drawn_field
from stimuli.render.rater_training_cases import (
    SHAPES,
    Case,
    PlantedScene,
    beside,
    copy_picture,
    draw_scene,
    planted_concepts,
    planted_map,
)
from stimuli.render.recipe import RenderSpec
from stimuli.types import Mask

pytestmark = pytest.mark.pure
SEEDS = range(20)


def scene_of(seed: int, answer: str = "circle") -> PlantedScene:
    return draw_scene(answer, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_regions_are_the_two_shapes_as_they_are_drawn(seed: int) -> None:
    """Witnesses: the colours in the picture, and the area of each shape by its closed form."""
    scene = scene_of(seed)
    regions = scene.regions
    assert not (regions["circle"] & regions["triangle"]).any()
    near = {
        name: np.abs(scene.picture.astype(int) - np.array(colour)).sum(axis=2) < 30
        for name, colour in (("warm", WARM), ("cool", COOL), ("ground", GROUND))
    }
    for region in regions.values():
        inside = max(near["warm"][region].mean(), near["cool"][region].mean())
        assert inside > 0.97
    assert near["ground"][~(regions["circle"] | regions["triangle"])].mean() > 0.98
    rows, columns = (np.ptp(axis) + 1 for axis in np.nonzero(regions["circle"]))
    assert regions["circle"].sum() == pytest.approx(np.pi * rows * columns / 4, rel=0.02)
    radius = (rows + columns) / 4
    assert 0.14 * SIZE_PX < radius < 0.2 * SIZE_PX
    # An equilateral triangle around a circle of radius R has the area 3 * sqrt(3) / 4 * R**2.
    assert regions["triangle"].sum() > 3 * 3**0.5 / 4 * (1.15 * 0.15 * SIZE_PX) ** 2 * 0.97
    assert regions["triangle"].sum() < 3 * 3**0.5 / 4 * (1.15 * 0.19 * SIZE_PX) ** 2 * 1.03


def test_sides_and_colours_do_not_tell_the_shapes() -> None:
    lefts, warm = [], []
    for seed in range(60):
        scene = scene_of(seed)
        lefts.append(np.nonzero(scene.regions["circle"])[1].mean() < SIZE_PX / 2)
        warm.append(scene.picture[scene.regions["circle"]].mean(axis=0)[0] > 150)
    assert 0.25 < np.mean(lefts) < 0.75 and 0.25 < np.mean(warm) < 0.75


@pytest.mark.parametrize("answer", SHAPES)
@pytest.mark.parametrize("seed", SEEDS[:5])
def test_a_map_marks_what_its_case_says(answer: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = draw_scene(answer, rng)
    mine, other = scene.regions[answer], scene.regions[scene.other]

    def share(case: Case, region: Mask) -> float:
        values = planted_map(scene, case, rng).values
        return float(values[region].sum() / values.sum())

    assert share("object", mine) > 0.8 and share("object", other) < 1e-3
    assert share("elsewhere", other) > 0.8 and share("elsewhere", mine) < 1e-3
    assert share("noise", mine) == pytest.approx(float(mine.mean()), rel=0.25)


@pytest.mark.parametrize("sign", ["positive", "magnitude", "diverging", "signed_range"])
def test_an_empty_map_is_drawn_flat_under_every_sign(sign: str) -> None:
    palette = "PuOr_r" if sign == "diverging" else "viridis"
    recipe = RenderSpec(sign=sign, colormap=palette)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    scene = draw_scene("circle", rng)
    assert not drawn_field(planted_map(scene, "empty", rng), recipe).any()
    field = drawn_field(planted_map(scene, "object", rng), recipe)
    assert field[scene.regions["circle"]].mean() > field[~scene.regions["circle"]].mean() + 0.5


def test_concepts_are_those_of_the_shape_that_is_meant() -> None:
    names = {"circle": ["round"], "triangle": ["three corners", "straight"]}
    scene = scene_of(3, "triangle")
    assert planted_concepts(scene, "object", names).concepts == ("three corners", "straight")
    assert planted_concepts(scene, "elsewhere", names).concepts == ("round",)
    assert (planted_concepts(scene, "object", names).values > 0).all()


def test_a_copy_differs_little_or_much_and_moves_nothing() -> None:
    picture = scene_of(4).picture
    light, strong = copy_picture(picture, "light"), copy_picture(picture, "strong")
    little, much = (np.abs(copy.astype(float) - picture).mean() for copy in (light, strong))
    assert 5 < little < 30 and much > 3 * little
    coarse = [
        copy.mean(axis=2).reshape(64, 10, 64, 10).mean(axis=(1, 3)).ravel()
        for copy in (picture, light, strong)
    ]
    assert np.corrcoef(coarse)[0].min() > 0.9


def test_two_pictures_stand_beside_each_other_in_one_of_the_same_size() -> None:
    black, white = (np.full((SIZE_PX, SIZE_PX, 3), level, np.uint8) for level in (0, 255))
    both = beside(black, white)
    assert both.shape == (SIZE_PX, SIZE_PX, 3)
    middle = both[SIZE_PX // 2 - 20]
    assert (middle[: SIZE_PX // 2 - 10] == 0).all() and (middle[SIZE_PX // 2 + 10 :] == 255).all()
    below = both[-180:]
    for half in (below[:, : SIZE_PX // 2], below[:, SIZE_PX // 2 :]):
        assert (half.max(axis=2) < 60).any(), "each has its letter below"


def test_the_pictures_of_the_practice_are_those_of_opened_studies() -> None:
    """Their pixels before triangles and circles were drawn by a function of their own."""
    digest = hashlib.sha256(b"".join(pixels.tobytes() for _, pixels, _ in practice_pictures(2022)))
    assert digest.hexdigest() == "6e6a9079d93b941007d9fbaaac0158773f8e96e31e54ebf4fef3d048b6481567"
