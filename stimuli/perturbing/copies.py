"""The changed copy of a picture: found by the search, seen by the model, stored as any other picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from PIL import Image

from stimuli.perturbing.search import Search, SearchResult, largest_light, smallest_strong
from stimuli.render import png
from stimuli.render.recipe import Canvas, Interpolation, View
from stimuli.spec_derivation import PredictedItem, Source, canvas_from, predicted_item
from stimuli.store.files import view_file
from stimuli.types import WHOLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stimuli.predictors.base import TorchPredictor
    from stimuli.store import Store
    from stimuli.types import Dataset, Pixels

Aim = Literal["light", "strong"]
"""Changed so little that the prediction stays, or so much that it becomes another one."""
Changes = Callable[["NDArray[np.float32]"], bool | None]
"""From the logits of a picture, (K,), to whether its answer is another than the original's; None if it is
none of those that people are asked about."""


@dataclass(frozen=True, slots=True)
class Display:
    """How people see the pictures: the longer side in pixels, the recipe's view and enlarging; `is_view` if
    they see the network's view itself."""

    longest_px: int
    view: View
    interpolation: Interpolation
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class SearchedCopy:
    """A search, and the copy that it found: its view, with what the model says of it, and the picture that
    people see of it. No view if it found none."""

    searched: SearchResult
    view: PredictedItem | None = None
    canvas: Canvas | None = None


def copy_of(
    item: PredictedItem,
    source: Source,
    store: Store,
    aim: Aim,
    search: Search,
    seed: int,
    changes: Changes,
    display: Display,
) -> SearchedCopy:
    """Look for the copy of a picture, and store its view and the picture that people see.

    Changed is the picture itself, at most at the size at which people see it; the network's view and the
    displayed picture are both made of the changed one, as they are of any. The draws follow from the item's
    key and the seed.
    """
    predictor, dataset = cast("TorchPredictor", source.predictor), cast("Dataset", source.dataset)
    picture = at_most(dataset.pixels(item.key), display.longest_px)

    def predicts(pictures: NDArray[np.uint8]) -> list[int]:
        views = [predictor.view(pixels) for pixels in pictures]
        told = [changes(logits) for logits in predictor.logits(views)]
        return [-1 if is_other is None else int(is_other) for is_other in told]

    look = largest_light if aim == "light" else smallest_strong
    result = look(picture, predicts, key=item.key, seed=seed, search=search, original=0)
    if result.view is None:
        return SearchedCopy(result)
    view = predictor.view(result.view)
    (logits,) = predictor.logits([view])
    image_key = png.pixel_key(view)
    store.put(view_file(image_key), png.encode(view))
    made = predicted_item(item, logits, predictor.labels, image_key, (view.shape[1], view.shape[0]))
    made = replace(made, box=predictor.box(result.view.shape))
    if display.is_view:
        return SearchedCopy(result, made)
    pixels, box = (view, WHOLE) if display.view == "network" else (result.view, made.box)
    canvas = canvas_from(pixels, box, store, display.longest_px, display.interpolation)
    return SearchedCopy(result, made, canvas)


def at_most(pixels: Pixels, longest_px: int) -> Pixels:
    """The picture, uint8 (H, W, 3), its longer side reduced to `longest_px` if it is longer."""
    height, width = pixels.shape[:2]
    scale = longest_px / max(height, width)
    if scale >= 1:
        return pixels
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC), np.uint8)
