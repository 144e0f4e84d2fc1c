"""Heads of huskies, wolves and foxes, frontal, in one anatomy with different coats."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stimuli.datasets.synthetic.drawing import (
    Box,
    Colour,
    Layer,
    Points,
    Pose,
    Sheet,
    box_around,
    mix,
    ruffle,
    smooth,
    vary,
)


@dataclass(frozen=True, slots=True)
class Breed:
    """Anatomy in units of half a head's width, colours in 0-1.

    `ear_*`: length, half width at the base, distance from the middle; `cheek` half width at the cheeks,
    `muzzle` half width of the snout, `chin` how far down it reaches; `mask` 0-1 how much of the face is
    pale; `blaze` half width of the dark stripe on the forehead (0: none).
    """

    coat: Colour
    back: Colour
    pale: Colour
    ear_in: Colour
    ear_tip: Colour
    eye: Colour
    ear_long: float
    ear_wide: float
    ear_apart: float
    cheek: float
    muzzle: float
    chin: float
    mask: float
    blaze: float


def _breed(row: dict[str, Any]) -> Breed:
    tones = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return Breed(**(row | tones))


_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
HUSKY, WOLF, RED_FOX = (_breed(_READ[name]) for name in ("husky", "wolf", "red_fox"))
KIT_FOX = replace(
    RED_FOX, ear_in=(0.90, 0.76, 0.68), ear_long=1.18, ear_wide=0.38, ear_apart=0.56, cheek=0.86, chin=0.84
)
EAR_SPREAD = (0.93, 1.07)
CHEEK_SPREAD = (0.96, 1.04)
"""How individuals differ from their breed, as factors."""
RUSSET: tuple[Colour, Colour] = ((0.82, 0.42, 0.16), (0.64, 0.31, 0.13))
SANDY: tuple[Colour, Colour] = ((0.76, 0.65, 0.50), (0.58, 0.50, 0.40))


@dataclass(frozen=True, slots=True)
class Bearing:
    """The posture of an animal: `gaze` turns the head (-1 to 1), `mouth` 0 closed to 1 open with tongue."""

    pose: Pose
    gaze: float
    mouth: float


def draw_bearing(rng: np.random.Generator) -> Bearing:
    """A place, size, tilt and expression; the head stays within the picture."""
    pose = Pose(
        x=float(rng.uniform(0.38, 0.62)),
        y=float(rng.uniform(0.50, 0.58)),
        scale=float(rng.uniform(0.20, 0.26)),
        turn=float(rng.normal(0, 0.10)),
    )
    return Bearing(pose, float(rng.uniform(-1, 1)), float(rng.choice([0.0, 0.0, 0.7, 1.0])))


def individual(breed: Breed, rng: np.random.Generator) -> Breed:
    """One animal of the breed: its shades, the length of its ears and the width of its cheeks. It takes the
    first draws of the generator that its head is drawn with.
    """
    return replace(
        breed,
        coat=vary(rng, breed.coat, 0.035),
        back=vary(rng, breed.back, 0.03),
        pale=vary(rng, breed.pale, 0.015),
        ear_long=breed.ear_long * float(rng.uniform(*EAR_SPREAD)),
        cheek=breed.cheek * float(rng.uniform(*CHEEK_SPREAD)),
    )


def draw_head(breed: Breed, bearing: Bearing, rng: np.random.Generator, size_px: int) -> Layer:
    """The animal's head and chest on a transparent layer."""
    tinted = individual(breed, rng)
    sheet = Sheet(size_px, bearing.pose)
    _chest(sheet, tinted, rng)
    for side in (-1, 1):
        _ear(sheet, tinted, rng, side, bearing.gaze)
    skull = _skull(tinted, rng)
    sheet.shape(skull, tinted.coat)
    _markings(sheet, tinted, bearing.gaze)
    _fur(sheet, rng)
    _muzzle(sheet, tinted, bearing)
    for side in (-1, 1):
        _eye(sheet, tinted, side, bearing.gaze)
    return _shade_layer(sheet.layer(), bearing.pose)


def ear_boxes(animal: Breed, bearing: Bearing) -> tuple[Box, Box]:
    """The boxes of the two ears of an individual, in shares of the picture."""
    left, right = (_ear_outline(animal, side, bearing.gaze) for side in (-1, 1))
    return box_around(bearing.pose, left), box_around(bearing.pose, right)


def face_box(animal: Breed, bearing: Bearing) -> Box:
    """The box of the face, from the crown to the chin and over both cheeks, in shares of the picture."""
    half = animal.cheek * 1.1
    return box_around(bearing.pose, [(-half, -0.8), (half, -0.8), (half, animal.chin), (-half, animal.chin)])


def mouth_box(animal: Breed, bearing: Bearing) -> Box:
    """The box of an open mouth, in shares of the picture."""
    wide, top = animal.muzzle, animal.chin * 0.7
    low = animal.chin + 0.16 * bearing.mouth + 0.08
    shift = 0.10 * bearing.gaze
    left, right = min(0.0, shift) - wide, max(0.0, shift) + wide
    return box_around(bearing.pose, [(left, top), (right, top), (right, low), (left, low)])


def _mirror(points: list[tuple[float, float]], side: int, shift: float = 0.0) -> list[tuple[float, float]]:
    return [(side * x + shift, y) for x, y in points]


def _both_sides(left: list[tuple[float, float]], *low: tuple[float, float]) -> list[tuple[float, float]]:
    """A symmetric outline: down on the left, over the points `low`, up on the right."""
    return [*left, *low, *_mirror(left[::-1], -1)]


def _chest(sheet: Sheet, breed: Breed, rng: np.random.Generator) -> None:
    body = _both_sides([(-0.62, 0.2), (-0.98, 1.1), (-1.12, 2.0), (-1.2, 3.2)])
    sheet.shape(ruffle(smooth(body), rng, 0.09), breed.back)
    bib = _both_sides([(-0.46, 0.6), (-0.60, 1.3), (-0.46, 2.2), (-0.3, 3.2)])
    sheet.shape(ruffle(smooth(bib), rng, 0.10), mix(breed.pale, breed.coat, 0.12))


def _ear_shape(breed: Breed, side: int, gaze: float) -> tuple[float, float, tuple[float, float]]:
    """Half width at the base, shift to the side and tip of an ear."""
    wide = breed.ear_wide * (1 + 0.14 * side * gaze)
    lean = 0.10 + 0.12 * (breed.ear_apart - 0.4)
    return wide, -0.04 * gaze, (breed.ear_apart + lean, -0.52 - breed.ear_long)


def _ear_outline(breed: Breed, side: int, gaze: float) -> Points:
    apart, long = breed.ear_apart, breed.ear_long
    wide, shift, tip = _ear_shape(breed, side, gaze)
    outer = [
        (apart - wide, -0.50),
        (apart - wide * 0.55, -0.55 - long * 0.55),
        (tip[0] - 0.05, tip[1]),
        (tip[0] + 0.03, tip[1]),
    ]
    outer += [(apart + wide * 0.9 + 0.06, -0.45 - long * 0.45), (apart + wide + 0.04, -0.22)]
    return smooth(_mirror(outer, side, shift))


def _ear(sheet: Sheet, breed: Breed, rng: np.random.Generator, side: int, gaze: float) -> None:
    apart, long = breed.ear_apart, breed.ear_long
    wide, shift, tip = _ear_shape(breed, side, gaze)
    sheet.shape(ruffle(_ear_outline(breed, side, gaze), rng, 0.02), breed.back)
    cap = [
        (apart - wide * 0.42, -0.60 - long * 0.60),
        tip,
        (apart + wide * 0.70 + 0.06, -0.52 - long * 0.52),
        (apart + 0.1, -0.5 - long * 0.6),
    ]
    sheet.blob(_mirror(cap, side, shift), breed.ear_tip)
    centre = apart + 0.03
    inner = [
        (centre - wide * 0.52, -0.46),
        (centre - wide * 0.25, -0.5 - long * 0.42),
        (tip[0] - 0.03, tip[1] + long * 0.20),
    ]
    inner += [(centre + wide * 0.58, -0.42 - long * 0.36), (centre + wide * 0.55, -0.34)]
    sheet.blob(_mirror(inner, side, shift), breed.ear_in)
    tuft = [
        (centre - wide * 0.40, -0.44),
        (centre - wide * 0.10, -0.5 - long * 0.30),
        (centre + wide * 0.1, -0.40),
    ]
    sheet.shape(_mirror(tuft, side, shift), mix(breed.pale, breed.ear_in, 0.3))


def _skull(breed: Breed, rng: np.random.Generator) -> Points:
    half = [
        (0.40, -0.74),
        (0.74, -0.44),
        (breed.cheek * 0.93, -0.02),
        (breed.cheek, 0.26),
        (0.74, 0.54),
        (0.40, breed.chin * 0.86),
    ]
    outline = [(0.0, -0.80), *half, (0.0, breed.chin), *[(-x, y) for x, y in reversed(half)]]
    curve = smooth(outline)
    depth = (
        0.10 * breed.cheek * np.clip((curve[:, 1:2] + 0.35) * 1.4, 0.12, 1)
    )  # tufts on the cheeks, not the crown
    return np.asarray(curve + (ruffle(curve, rng, 1.0) - curve) * depth)


def _markings(sheet: Sheet, breed: Breed, gaze: float) -> None:
    shift = 0.05 * gaze
    reach = 0.35 + 0.55 * breed.mask
    pale = mix(breed.coat, breed.pale, 0.45 + 0.55 * breed.mask)
    for side in (-1, 1):
        cheek = [
            (0.05, 0.02),
            (0.22, -0.10 * reach),
            (0.50, 0.05),
            (0.62 + 0.16 * breed.mask, 0.18),
            (0.62, 0.44),
            (0.36, breed.chin * 0.82),
            (0.0, breed.chin * 0.95),
            (0.0, 0.3),
        ]
        sheet.blob(_mirror(cheek, side, shift), pale)
        brow = [(0.20, -0.26), (0.30, -0.42 - 0.08 * breed.mask), (0.46, -0.36), (0.42, -0.22), (0.30, -0.18)]
        sheet.blob(_mirror(brow, side, shift), mix(breed.coat, breed.pale, 0.25 + 0.70 * breed.mask))
    if breed.blaze:
        for side in (-1, 1):
            slip = [(0.04, 0.05), (breed.blaze, -0.20), (0.12, -0.52), (0.26, -0.30), (0.24, 0.02)]
            sheet.blob(_mirror(slip, side, shift), breed.pale)
        w = breed.blaze * 0.5
        sheet.blob(
            [(-w, -0.7), (w, -0.7), (w * 0.8, -0.2), (0.02, 0.12), (-0.02, 0.12), (-w * 0.8, -0.2)],
            breed.back,
        )


def _fur(sheet: Sheet, rng: np.random.Generator) -> None:
    """Short strokes that run away from the nose, lighter and darker than the coat."""
    count = 420
    x = rng.uniform(-1.2, 1.2, count)
    y = rng.uniform(-1.2, 2.2, count)
    away = np.stack([x * 0.8, y - 0.30], axis=1)
    away /= np.linalg.norm(away, axis=1, keepdims=True) + 1e-9
    starts = np.stack([x, y], axis=1)
    ends = starts + away * rng.uniform(0.06, 0.16, (count, 1)) + rng.normal(0, 0.015, (count, 2))
    light = (rng.random(count) < 0.5).astype(float)
    colours = np.stack([light, light, light * 0.96, rng.uniform(0.05, 0.16, count)], axis=1)
    sheet.hairs(starts, ends, colours)


def _muzzle(sheet: Sheet, breed: Breed, bearing: Bearing) -> None:
    shift, wide, chin = 0.10 * bearing.gaze, breed.muzzle, breed.chin
    half = [(-wide * 0.62, 0.05), (-wide, chin * 0.52), (-wide * 0.80, chin * 0.86)]
    snout = [*_both_sides(half, (0, chin * 0.98)), (0, -0.06)]
    if bearing.mouth:
        _jaw(sheet, wide, chin, chin + 0.16 * bearing.mouth)
    sheet.blob(
        [(x + shift * (0.3 + 0.7 * max(y, 0)), y) for x, y in snout], mix(breed.pale, breed.coat, 0.10)
    )
    bridge = _both_sides([(-wide * 0.34, -0.10), (-wide * 0.30, chin * 0.40)])
    sheet.blob(
        [(x + shift * (0.3 + 0.7 * max(y, 0)), y) for x, y in bridge],
        mix(breed.pale, breed.coat, 0.30 if breed.mask > 0.9 else 0.62),
    )
    nose_y, dark = chin * 0.50, (0.10, 0.09, 0.10)
    nose = [
        (-0.19, nose_y - 0.07),
        (-0.10, nose_y - 0.12),
        (0.10, nose_y - 0.12),
        (0.19, nose_y - 0.07),
        (0.10, nose_y + 0.08),
        (0, nose_y + 0.12),
        (-0.10, nose_y + 0.08),
    ]
    sheet.blob([(x * (0.65 + breed.muzzle) + shift, y) for x, y in nose], dark)
    sheet.ellipse(shift - 0.05, nose_y - 0.07, 0.05, 0.022, (0.55, 0.55, 0.58))
    mouth_y = chin * 0.78
    sheet.stroke([(shift, nose_y + 0.1), (shift, mouth_y)], dark, 0.025)
    for side in (-1, 1):
        sheet.stroke(
            [
                (shift, mouth_y),
                (shift + side * wide * 0.35, mouth_y + 0.06),
                (shift + side * wide * 0.72, mouth_y - 0.03),
            ],
            dark,
            0.025,
        )


def _jaw(sheet: Sheet, wide: float, chin: float, jaw: float) -> None:
    lips = _both_sides([(-wide * 0.6, chin * 0.8), (-wide * 0.42, jaw)], (0, jaw + 0.05))
    sheet.blob(lips, (0.24, 0.12, 0.12))
    tongue = _both_sides([(-wide * 0.3, chin * 0.9), (-wide * 0.26, jaw)], (0, jaw + 0.06))
    sheet.blob(tongue, (0.86, 0.48, 0.48))


def _eye(sheet: Sheet, breed: Breed, side: int, gaze: float) -> None:
    x, y = side * 0.36 + 0.06 * gaze, -0.09
    tilt = -0.38 * side
    sheet.ellipse(x, y, 0.165, 0.105, (0.08, 0.07, 0.08), tilt)
    sheet.ellipse(x, y, 0.115, 0.082, breed.eye, tilt)
    look = x + 0.02 * gaze
    sheet.ellipse(look, y, 0.052, 0.060, (0.03, 0.03, 0.04))
    sheet.ellipse(look - 0.03, y - 0.035, 0.022, 0.022, (1.0, 1.0, 1.0))


def _shade_layer(layer: Layer, pose: Pose) -> Layer:
    """Light from above: brighter crown, darker chest."""
    size = layer.alpha.shape[0]
    y, x = np.mgrid[0 : 1 : size * 1j, 0 : 1 : size * 1j].astype(np.float32)
    fall = (
        1.08
        - 0.34 * np.clip((y - pose.y) / (4 * pose.scale) + 0.25, 0, 1)
        - 0.10 * (x - pose.x) / (2 * pose.scale)
    )
    return Layer(np.asarray(np.clip(layer.rgb * fall[..., None], 0, 1), dtype=np.float32), layer.alpha)
