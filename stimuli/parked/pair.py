"""Two pictures of one size beside each other, as one picture."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from PIL import ImageDraw

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.render.png import check_picture
from stimuli.render.text_draw import INK, canvas, font, legible_text, line_px, wrapped
from stimuli.spec import JsonValue
from stimuli.types import Pixels

CAPTION_CHARS = 60
PAGE = (236, 236, 236)
"""The ground of a stimulus page, so that the gap is seen as page."""


@dataclass(frozen=True, slots=True)
class PairSpec:
    """How two pictures stand beside each other: `gap_share` of their width between them (0 to 0.5).

    `left` and `right` are captions below, in the middle of their picture; both empty for none. The default
    letters belong to no language. They never name a class, a method or what was done to the picture.
    """

    gap_share: float = 0.06
    left: str = "A"
    right: str = "B"

    def as_json(self) -> dict[str, JsonValue]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pictures uint8 (H, W, 3), and both beside each other with captions, uint8 (H', W', 3)."""

    left: Pixels
    right: Pixels
    together: Pixels


def pair(left: Pixels, right: Pixels, spec: PairSpec | None = None) -> Pair:
    """Set two pictures of one size beside each other on the page's grey; neither is resized.

    ShapeMismatch for pictures of different sizes, BadSpec for captions that cannot be drawn.
    """
    spec = check_pair(spec or PairSpec())
    check_picture(left)
    check_picture(right)
    if left.shape != right.shape:
        raise ShapeMismatch(
            f"the pictures have {left.shape[:2]} and {right.shape[:2]} pixels: only equal sizes are compared"
        )
    height, width = left.shape[:2]
    gap = round(spec.gap_share * width)
    captions = (spec.left, spec.right)
    size = max(12, width // 16)
    room = line_px(size) + size // 3 if any(captions) else 0
    picture, draw = canvas(2 * width + gap, height + room, PAGE)
    for place, caption in enumerate(captions):
        if caption:
            _draw_caption(draw, caption, place * (width + gap), height + size // 4, width, size)
    together = np.asarray(picture, np.uint8).copy()
    together[:height, :width] = left
    together[:height, width + gap :] = right
    return Pair(left, right, together)


def check_pair(spec: PairSpec) -> PairSpec:
    """Return `spec` if it can be drawn; BadSpec names the value and its limits."""
    if not 0 <= spec.gap_share <= 0.5:
        raise BadSpec(f"pair gap_share is {spec.gap_share!r}, but must lie between 0 and 0.5")
    for caption in (spec.left, spec.right):
        if caption:
            legible_text(caption, "a caption", CAPTION_CHARS)
    return spec


def _draw_caption(
    draw: ImageDraw.ImageDraw, caption: str, left: int, top: int, width: int, size: int
) -> None:
    (line,) = wrapped(legible_text(caption, "a caption", CAPTION_CHARS), size, width, 1)
    draw.text((left + width // 2, top), line, INK, font(size), "ma")
