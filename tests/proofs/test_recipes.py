"""The short form of the proof `recipes`: strengths drawn by the default recipe are read off photographs."""

from __future__ import annotations

import pytest

from stimuli.render.recipe import RenderSpec
from tests.proofs.recipes import ENOUGH, FIRST, SECOND, read

pytestmark = pytest.mark.pure
PHOTOGRAPHS = (FIRST[0], SECOND[0])


def test_strengths_of_the_default_recipe_are_read_off_photographs() -> None:
    assert read(RenderSpec(), PHOTOGRAPHS, 0).worst >= ENOUGH


@pytest.mark.parametrize(
    "hidden",
    [
        RenderSpec(alpha=0.55, sign="magnitude", opacity="rising"),  # the recipe of before
        RenderSpec(colormap="jet", alpha=0.5),  # of published figures
        RenderSpec(alpha=0.3),
    ],
    ids=["rising", "jet", "faint"],
)
def test_it_notices_a_recipe_that_cannot_be_read(hidden: RenderSpec) -> None:
    assert read(hidden, PHOTOGRAPHS, 0).worst < ENOUGH
