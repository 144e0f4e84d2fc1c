"""The twelve perturbations of PASTA by name, and one magnitude for all of them.

A magnitude lies in 0-10; 0 leaves the picture as it is, and each function says what a strength of a tenth of
the magnitude means for it. The mean change of the pixels grows with the magnitude; if pixels move (crop,
perspective) their displacement grows, and the change only as a rule. What is random about one (where, which
way) is drawn from the picture's key, the seed and the perturbation's name, and does not depend on the
magnitude: a greater one goes further the same way. The list is PASTA's [Kazmierczak et al. 2026], and so is
the blur's window; which strengths its magnitudes stand for is not known to us, so the strengths are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from stimuli.errors import BadSpec
from stimuli.perturbing import colour, spatial
from stimuli.planner.values import counted_generator
from stimuli.render.png import check_picture
from stimuli.types import Pixels

__all__ = ["DEFAULT_MAGNITUDE", "LARGEST_MAGNITUDE", "PERTURBATIONS", "perturb_picture"]

Perturbation = Callable[[Pixels, float, np.random.Generator], Pixels]
"""From a picture uint8 (H, W, 3), a strength in 0-1 and its own generator to a picture of the same size."""

PERTURBATIONS: MappingProxyType[str, Perturbation] = MappingProxyType(
    {
        "brightness_jitter": colour.brightness_jitter,
        "contrast_jitter": colour.contrast_jitter,
        "random_resized_crop": spatial.random_resized_crop,
        "gaussian_blur": spatial.gaussian_blur,
        "random_perspective": spatial.random_perspective,
        "brightness": colour.brightness,
        "saturation": colour.saturation,
        "contrast": colour.contrast,
        "sharpness": spatial.sharpness,
        "posterise": colour.posterise,
        "solarise": colour.solarise,
        "random_rectangles": spatial.random_rectangles,
    }
)
DEFAULT_MAGNITUDE = 7.0
LARGEST_MAGNITUDE = 10.0


def perturb_picture(
    picture: Pixels, name: str, magnitude: float = DEFAULT_MAGNITUDE, *, key: str, seed: int
) -> Pixels:
    """The picture, uint8 (H, W, 3), under one perturbation; the same size. The given array is not changed.

    BadSpec for an unknown name or a magnitude outside 0-10, ShapeMismatch for what is no picture.
    """
    if not 0 <= magnitude <= LARGEST_MAGNITUDE:
        raise BadSpec(f"perturbation magnitude is {magnitude!r}, but must lie between 0 and 10")
    if name not in PERTURBATIONS:
        known = ", ".join(PERTURBATIONS)
        raise BadSpec(f"there is no perturbation {name!r}: known are {known}")
    check_picture(picture)
    if magnitude == 0:
        return picture.copy()
    draws = counted_generator(f"perturbation\x1f{name}\x1f{key}\x1f{seed}")
    return PERTURBATIONS[name](picture, magnitude / LARGEST_MAGNITUDE, draws)
