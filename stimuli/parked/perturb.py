"""What raters compare for PASTA's questions 5 and 6: a picture and its perturbed copy, and both explanations.

The pictures are made at the network's own size; the single ones are returned too, so that a page may lay
them out itself. Whether the copy keeps or spoils the prediction is never drawn.
"""

from __future__ import annotations

from stimuli.parked.pair import Pair, PairSpec, pair
from stimuli.render.heatmap import overlay
from stimuli.render.recipe import RenderSpec
from stimuli.types import PixelAttribution, Pixels


def input_pair(view: Pixels, perturbed: Pixels, spec: PairSpec | None = None) -> Pair:
    """The picture and its perturbed copy, uint8 (H, W, 3) each."""
    return pair(view, perturbed, spec)


def overlay_pair(
    view: Pixels,
    made: PixelAttribution,
    perturbed: Pixels,
    made_perturbed: PixelAttribution,
    render: RenderSpec,
    spec: PairSpec | None = None,
) -> Pair:
    """The explanation of the picture and that of its perturbed copy, drawn by one recipe.

    Each map is drawn on the very view it belongs to and scaled by its own percentiles, as
    it would be alone.
    """
    return pair(overlay(view, made, render), overlay(perturbed, made_perturbed, render), spec)
