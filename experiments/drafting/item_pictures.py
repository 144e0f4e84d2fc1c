"""The pictures that people see of a study's items."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.definition.study import StudyDefinition
from experiments.drafting.material_set import MaterialSet
from experiments.paradigms import design_of
from experiments.paradigms.base import Source
from stimuli.render.recipe import Canvas
from stimuli.render.view_placement import PIXELS_PER_CSS

if TYPE_CHECKING:
    from stimuli.store import Store
    from stimuli.types import Pixels, Progress

PICTURE_PX = 320
"""The shown size of a paradigm that does not say."""


def longest_px_of(definition: StudyDefinition) -> int:
    """The longer side, in pixels, of the pictures that people see."""
    return PIXELS_PER_CSS * int(getattr(design_of(definition), "picture_px", PICTURE_PX))


def canvases_of(
    definition: StudyDefinition, gathered: MaterialSet, store: Store, progress: Progress
) -> dict[Source, dict[str, Canvas]]:
    """The pictures that people see of the chosen items, stored."""
    from stimuli.datasets.parallel_reading import side_by_side
    from stimuli.spec_derivation import canvas_of

    recipe, longest_px = definition.render, longest_px_of(definition)
    if recipe.absolute is not None:
        return {}
    made: dict[Source, dict[str, Canvas]] = {}
    for source, items in gathered.material.chosen.items():
        opened, views = gathered.opened[source], gathered.views[source]
        if opened.predictor.modality != "image":
            continue
        draw = partial(
            canvas_of,
            source=opened,
            store=store,
            view=recipe.view,
            longest_px=longest_px,
            interpolation=recipe.interpolation,
        )
        made[source] = {}
        drawn = side_by_side(draw, [views[item.key] for item in items])
        for item, canvas in zip(items, drawn, strict=True):
            made[source][item.key] = canvas
            progress("preparing pictures", len(made[source]), len(items))
    return made


def store_view(pixels: Pixels, store: Store) -> dict[str, Any]:
    """Keep a picture of a page; returns its file and size as pages name them."""
    from stimuli.render import png
    from stimuli.store.files import view_file

    file = view_file(png.pixel_key(pixels))
    store.put(file, png.encode(pixels))
    height, width = pixels.shape[:2]
    return {"file": file, "width_px": width, "height_px": height}
