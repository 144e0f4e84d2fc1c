"""Pictures in Chromium: enough pixels for fine displays, in their own proportions, in a place that stays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from tests import open_world
from tests.journeys.conftest import Site
from tests.journeys.sessions.visitor import Visitor
from tests.world import draw_images

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
PICTURE_PX = 320
PAGE = (236, 236, 236)
WIDE = 'dataset = { name = "folder", path = "wide/images", people_share = 1.0 }'


@pytest.fixture
def opened(rows: None, tmp_path: Path) -> dict[str, Any]:
    """The small study with pictures three wide and two high, whose sides the network does not see."""
    draw_images(tmp_path / "small" / "wide", per_cell=6)
    for file in (tmp_path / "small" / "wide").rglob("*.png"):
        with Image.open(file) as square:
            wide = np.pad(np.asarray(square), ((0, 0), (8, 8), (0, 0)), mode="reflect")
        Image.fromarray(wide).resize((960, 640), Image.Resampling.BICUBIC).save(file)
    return open_world.opened(tmp_path / "small", WIDE, "blocks = 1", "gap_ms = 0")


def test_a_wide_picture_is_sharp_and_undistorted_on_every_display(
    site: Site, opened: dict[str, Any], browser: Browser
) -> None:
    for ratio in (1, 2):
        context = browser.new_context(viewport={"width": 1280, "height": 800}, device_scale_factor=ratio)
        visitor = Visitor(context.new_page(), opened["practice"], opened["quiz"])
        try:
            visitor.arrive(f"{site.url}/join/small/?person=ada{ratio}&submission=s{ratio}")
            while visitor.settle() != "trial" or visitor.practised < len(visitor.practice):
                visitor.step()
            pictures = visitor.page.locator(".board .picture img").all()
            assert pictures
            for picture in pictures:
                size = picture.evaluate("i => [i.naturalWidth, i.naturalHeight]")
                assert size == [2 * PICTURE_PX, round(2 * PICTURE_PX * 2 / 3)]
                check_place(picture, ratio)
        finally:
            context.close()


def check_place(picture: Any, ratio: int) -> None:
    """The square is kept; the picture fills its width, and the page shows above and below."""
    box = picture.bounding_box()
    assert (box["width"], box["height"]) == (PICTURE_PX, PICTURE_PX)
    with Image.open(io.BytesIO(picture.screenshot())) as image:
        seen = np.asarray(image.convert("RGB"))
    side = PICTURE_PX * ratio
    assert seen.shape == (side, side, 3)
    is_page = (seen == PAGE).all(axis=2).all(axis=1)
    bar = (side - round(side * 2 / 3)) / 2
    assert np.abs(is_page[: side // 2].sum() - bar) <= 1 and np.abs(is_page[side // 2 :].sum() - bar) <= 1
    assert not is_page[int(bar) + 2 : side - int(bar) - 2].any()
