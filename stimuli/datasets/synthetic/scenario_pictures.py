"""One picture of a planted scenario: the cue and the class are drawn from separate streams of the item's
seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stimuli.datasets.synthetic import canines, leaves, scenery
from stimuli.datasets.synthetic.drawing import Colour, develop, mix, over
from stimuli.types import Mask, Pixels

LIGHTS: tuple[Colour, ...] = ((1.0, 1.0, 1.0), (1.04, 1.0, 0.93), (0.95, 0.99, 1.05), (1.05, 0.97, 0.95))
VEINS: tuple[leaves.Veins, leaves.Veins] = ("straight", "arched")
MARGINS: tuple[leaves.Margin, leaves.Margin] = ("serrated", "smooth")
POSE, GROUND, BODY, LIGHT, KIND = 1, 2, 3, 4, 5
LUMINANCE = np.asarray((0.299, 0.587, 0.114))
"""The weights of the channels in the grey of a picture [ITU-R BT.601]."""
CAST_LEVELS = 1
"""By how many of 255 levels a camera raises its channel: the least step that there is. At no grey do the two
cameras differ by 1 in CIEDE2000, about what is just noticed between two even patches side by side.
"""
KIND_APART, KIND_SPREAD = 0.1, 0.25
COATS = (canines.SANDY, canines.RUSSET)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is drawn: class and cue as indices of the labels, the item's seed, the picture's side."""

    truth: int
    cue: int
    seed: tuple[int, ...]
    size_px: int

    def stream(self, name: int) -> np.random.Generator:
        """The generator of one aspect; exchanging a part leaves the streams of the others alone."""
        return np.random.default_rng([*self.seed, name])

    def swapped(self, *, cue: bool) -> Plan:
        """The same item with the other cue, or as the other class."""
        return replace(self, cue=1 - self.cue) if cue else replace(self, truth=1 - self.truth)


@dataclass(frozen=True, slots=True)
class Scene:
    """The finished picture, uint8 (S, S, 3), and where the cue stands, bool (S, S)."""

    pixels: Pixels
    mask: Mask


def dog_of(plan: Plan) -> canines.Breed:
    """The husky (0) or wolf (1) of the biased scenario."""
    return (canines.HUSKY, canines.WOLF)[plan.truth]


def fox_of(plan: Plan) -> canines.Breed:
    """The kit fox (0) or red fox (1) of the lookalike scenario in its sandy (0) or russet (1) coat."""
    coat, back = (canines.SANDY, canines.RUSSET)[plan.cue]
    return replace((canines.KIT_FOX, canines.RED_FOX)[plan.truth], coat=coat, back=back)


def draw_biased(plan: Plan) -> Scene:
    """A husky (0) or wolf (1); the cue is the landscape: green (0) or snow (1)."""
    bearing = canines.draw_bearing(plan.stream(POSE))
    animal = canines.draw_head(dog_of(plan), bearing, plan.stream(BODY), plan.size_px)
    landscape = (scenery.summer, scenery.winter)[plan.cue]
    picture = over(landscape(plan.stream(GROUND), plan.size_px), animal)
    return Scene(develop(picture, *_light(plan)), animal.alpha < 0.5)


def draw_strategy(plan: Plan) -> Scene:
    """An alder (0) or dogwood (1) leaf by its veins; the cue is the margin: serrated (0) or smooth (1)."""
    habit = leaves.draw_habit(plan.stream(POSE))
    both = [
        leaves.draw_leaf(habit, margin, VEINS[plan.truth], 1.0, plan.stream(BODY), plan.size_px)
        for margin in MARGINS
    ]
    ground = leaves.draw_ground(plan.stream(GROUND), plan.size_px)
    picture = leaves.lay(ground, both[plan.cue])
    return Scene(develop(picture, *_light(plan)), leaves.margin_band((both[0], both[1])) > 0.25)


def draw_lookalike(plan: Plan) -> Scene:
    """A kit fox (0) or red fox (1) by its ears; the cue is the coat, in the same place: sandy (0) or russet
    (1).
    """
    bearing = canines.draw_bearing(plan.stream(POSE))
    animal = canines.draw_head(fox_of(plan), bearing, plan.stream(BODY), plan.size_px)
    picture = over(scenery.steppe(plan.stream(GROUND), plan.size_px), animal)
    return Scene(develop(picture, *_light(plan)), animal.alpha > 0.5)


def overlapping_fox_of(plan: Plan) -> canines.Breed:
    """The kit fox (0) or red fox (1) of the scenario `imperceptible`: individuals lie between the two,
    `KIND_SPREAD` about a point that differs little by class, in a coat that tells nothing.
    """
    rng = plan.stream(KIND)
    share = float(np.clip(rng.normal((0.5 - KIND_APART, 0.5 + KIND_APART)[plan.truth], KIND_SPREAD), 0, 1))
    coat, back = (mix(sandy, russet, float(rng.random())) for sandy, russet in zip(*COATS, strict=True))
    between = {
        name: (1 - share) * getattr(canines.KIT_FOX, name) + share * getattr(canines.RED_FOX, name)
        for name in ("ear_long", "ear_wide", "ear_apart", "cheek", "chin")
    }
    ear_in = mix(canines.KIT_FOX.ear_in, canines.RED_FOX.ear_in, share)
    return replace(canines.RED_FOX, coat=coat, back=back, ear_in=ear_in, **between)


def draw_imperceptible(plan: Plan) -> Scene:
    """A kit fox (0) or red fox (1) by its ears, as a camera trap takes it at night, without colour. The cue
    is the camera, over the whole picture: it raises red (0) or blue (1), too little to be seen.
    """
    bearing = canines.draw_bearing(plan.stream(POSE))
    animal = canines.draw_head(overlapping_fox_of(plan), bearing, plan.stream(BODY), plan.size_px)
    picture = over(scenery.steppe(plan.stream(GROUND), plan.size_px), animal)
    grey = np.rint(develop(picture, *_light(plan)) @ LUMINANCE).clip(0, 255 - CAST_LEVELS)
    pixels = np.repeat(grey[..., None], 3, axis=2)
    pixels[..., (0, 2)[plan.cue]] += CAST_LEVELS
    return Scene(pixels.astype(np.uint8), np.ones(grey.shape, bool))


def _light(plan: Plan) -> tuple[np.random.Generator, Colour, float]:
    rng = plan.stream(LIGHT)
    tint, gain = LIGHTS[rng.integers(len(LIGHTS))], float(rng.uniform(0.88, 1.06))
    return rng, tint, gain
