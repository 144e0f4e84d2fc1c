"""A folder of small pictures, a predictor in closed form, and the specs that come of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stimuli.errors import StimulusError
from stimuli.pipeline import Bench, RenderedStimulus, StimulusFailure, attempt
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import PredictedItem, Source, prepare, spec_for, survey
from stimuli.store import Store
from stimuli.store.files import read_attribution
from stimuli.types import PixelAttribution, Plane, Progress, Weights, silent

SIDE = 32
DATASET = Component("folder", {"path": "images", "people_share": 1.0})
PREDICTOR = Component("toy", {"kind": "quadrant", "input_px": SIDE})
SALIENCY = Component("saliency")
GRADIENT_X_INPUT = Component("gradient_x_input")


def strengths(values: Plane) -> PixelAttribution:
    """A map of a method without a sign."""
    return PixelAttribution(values, signed=False)


def values_of(store: Store, key: str) -> NDArray[np.float32]:
    """The values of a stored explanation that has some."""
    made = read_attribution(store, key)
    assert isinstance(made, Weights)
    return made.values


def write_images(folder: Path, per_class: int = 3) -> None:
    """Two classes of noise, 48 x 40 pixels: `left` is brighter in the top left, `right` in the top right."""
    for place, label in enumerate(("left", "right")):
        (folder / "images" / label).mkdir(parents=True)
        for index in range(per_class):
            picture = np.random.default_rng([place, index]).integers(0, 160, (40, 48, 3), dtype=np.uint8)
            picture[:20, 24 * place : 24 * (place + 1)] += 90
            Image.fromarray(picture).save(folder / "images" / label / f"{index}.png")


def toy_source(folder: Path, store: Store) -> tuple[Source, list[PredictedItem]]:
    write_images(folder)
    source = prepare(DATASET, PREDICTOR, folder, store)
    return source, survey(source, store)


def specs_for(
    source: Source, items: Sequence[PredictedItem], *explainers: Component | None, seed: int = 1
) -> list[StimulusSpec]:
    return [
        spec_for(item, source, explainer, RenderSpec(), seed) for explainer in explainers for item in items
    ]


def render(
    specs: Sequence[StimulusSpec], store: Store, progress: Progress = silent
) -> Iterator[RenderedStimulus]:
    """Make the pictures of `specs` and yield each as it is stored. Raises the first StimulusError."""
    for result in attempt(specs, Bench(store), progress=progress):
        if isinstance(result, StimulusFailure):
            raise StimulusError(result.error)
        yield result
