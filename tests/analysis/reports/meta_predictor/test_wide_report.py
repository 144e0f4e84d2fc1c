"""Twelve conditions with long names: no table of the report is wider than its page or its sheet."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.reports.output.html import page as report_page
from tests.analysis.reports.test_reports import report_of, with_status
from tests.analysis.worlds import facts, frames_of
from tests.journeys.pages.geometry import axe_findings

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
METHODS = ("saliency", "gradient_x_input", "integrated_gradients", "smooth_grad", "smooth_grad_squared")
MORE = ("grad_cam", "guided_grad_cam", "occlusion_sensitivity", "kernel_shap_of_superpixels", "var_grad")
NAMES = ("baseline", "control", *METHODS, *MORE)
RULES = ("instructed_share_min", "total_minutes", "straight_share_max")
A4_INSIDE_MARGINS_PX = int((210 - 2 * 16) / 25.4 * 96)
TOO_WIDE = """() => [...document.querySelectorAll('.table')]
    .filter(box => box.scrollWidth > box.clientWidth || box.scrollWidth > innerWidth)
    .map(box => box.getAttribute('aria-label'))"""


@cache
def written() -> str:
    rng = np.random.default_rng(12)
    frames = frames_of({name: rng.binomial(7, 0.6, (12, 3)) for name in NAMES})
    for number, name in enumerate(NAMES):
        reason = {"rule": RULES[number % 3], "timing": "after", "found": 1, "limit": 2, "evidence": "x"}
        frames = with_status(frames, f"{name}-0", "screened", [reason])
    return report_page(report_of(frames, facts(NAMES, 12)))


@pytest.mark.parametrize(("width_px", "media"), [(1280, "screen"), (A4_INSIDE_MARGINS_PX, "print")])
def test_no_table_is_wider_than_the_page(page: Page, width_px: int, media: str) -> None:
    page.set_viewport_size({"width": width_px, "height": 900})
    page.emulate_media(media="print" if media == "print" else "screen")
    page.set_content(written())
    assert page.locator(".table").count() > 10
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width_px
    # A heading along its column stays whole: not one of its letters is cut off or laid over another row.
    heads = page.locator(".many thead .n")
    assert heads.count() > 12
    assert page.evaluate(
        "[...document.querySelectorAll('.many thead .n')].every(h => h.scrollHeight <= h.clientHeight + 1)"
    )


def test_a_phone_scrolls_tables_not_the_page(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.set_content(written())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert axe_findings(page) == []
