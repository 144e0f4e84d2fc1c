"""Pens, paper and light for the synthetic pictures: smooth shapes at three times the size, noise,
compositing.

Shapes are given in the units of the thing that is drawn (x to the right, y down) and placed by a Pose.
Layers are float32 in 0-1, colours triples in 0-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from stimuli.types import Pixels

Colour = tuple[float, float, float]
Points = NDArray[np.float64]
Outline = Sequence[tuple[float, float]] | Points
Plane = NDArray[np.float32]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom in shares (0-1) of the picture."""
CURVE_STEPS = 8
_ANGLE = np.linspace(0, 2 * np.pi, 28, endpoint=False)
CIRCLE = np.stack([np.cos(_ANGLE), np.sin(_ANGLE)], axis=1)


@dataclass(frozen=True, slots=True)
class Pose:
    """The place of a thing: centre in shares of the picture (0-1), `scale` in shares per unit, turn in
    radians.
    """

    x: float
    y: float
    scale: float
    turn: float = 0.0


WHOLE = Pose(0, 0, 1)
"""The picture itself: 0-1 from edge to edge."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A drawn thing: `rgb` (S, S, 3) and its opacity `alpha` (S, S), float32 in 0-1."""

    rgb: Plane
    alpha: Plane


def box_around(pose: Pose, points: Outline) -> Box:
    """The smallest upright box around points in units of the thing, cut off at the picture's edges."""
    sin, cos = np.sin(pose.turn), np.cos(pose.turn)
    turned = np.asarray(points, dtype=np.float64) @ np.array([[cos, sin], [-sin, cos]])
    placed = np.clip(turned * pose.scale + (pose.x, pose.y), 0, 1)
    (left, top), (right, bottom) = placed.min(axis=0).tolist(), placed.max(axis=0).tolist()
    return left, top, right, bottom


class Sheet:
    """A transparent sheet of `size_px` that is drawn on at three times the size."""

    def __init__(self, size_px: int, pose: Pose = WHOLE, fineness: int = 3) -> None:
        self.size_px = size_px
        self.side = size_px * fineness
        self.image = Image.new("RGBA", (self.side, self.side), (0, 0, 0, 0))
        self.pen = ImageDraw.Draw(self.image, "RGBA")
        self.unit_px = pose.scale * self.side
        sin, cos = np.sin(pose.turn), np.cos(pose.turn)
        self._turn = np.array([[cos, sin], [-sin, cos]]) * self.unit_px
        self._origin = np.array([pose.x, pose.y]) * self.side

    def place(self, points: Outline) -> Points:
        """Units of the thing -> pixels of the sheet, float64 (N, 2)."""
        return np.asarray(np.asarray(points, dtype=np.float64) @ self._turn + self._origin)

    def shape(self, points: Outline, colour: Colour) -> None:
        """A filled polygon."""
        self.pen.polygon(self.place(points).ravel().tolist(), fill=ink(colour))

    def blob(self, points: Outline, colour: Colour) -> None:
        """A smooth closed shape through the points."""
        self.shape(smooth(points), colour)

    def ellipse(self, x: float, y: float, rx: float, ry: float, colour: Colour, tilt: float = 0.0) -> None:
        """A filled ellipse, tilted by `tilt` radians."""
        sin, cos = np.sin(tilt), np.cos(tilt)
        ring = CIRCLE * (rx, ry) @ np.array([[cos, sin], [-sin, cos]]) + (x, y)
        self.shape(ring, colour)

    def stroke(self, points: Outline, colour: Colour, width: float) -> None:
        """An open line, `width` in units of the thing."""
        line = self.place(points).ravel().tolist()
        self.pen.line(line, fill=ink(colour), width=max(1, round(width * self.unit_px)), joint="curve")

    def strokes(self, starts: Points, ends: Points, colours: Points, widths: Points) -> None:
        """Many straight lines at once: points (N, 2), colours (N, 3), widths (N,) in units of the thing."""
        ends_px = np.concatenate([self.place(starts), self.place(ends)], axis=1).tolist()
        fills = np.clip(np.rint(colours * 255), 0, 255).astype(int).tolist()
        thick = np.maximum(1, np.rint(widths * self.unit_px)).astype(int).tolist()
        for line, fill, width in zip(ends_px, fills, thick, strict=True):
            self.pen.line(line, fill=(*fill, 255), width=width)

    def hairs(self, starts: Points, ends: Points, colours: Points) -> None:
        """Many short strokes that stay within what is already drawn; `colours` (N, 4) with their opacity."""
        width_px = round(2 * fineness_of(self.size_px))
        inside = self.image.getchannel("A")
        coat = self.image.convert("RGB")  # only on RGB does Pillow blend what is drawn
        pen = ImageDraw.Draw(coat, "RGBA")
        lines = np.concatenate([self.place(starts), self.place(ends)], axis=1).tolist()
        fills = np.clip(colours * 255, 0, 255).astype(int).tolist()
        for line, fill in zip(lines, fills, strict=True):
            pen.line(line, fill=tuple(fill), width=width_px)
        coat.putalpha(inside)
        self.image, self.pen = coat, ImageDraw.Draw(coat, "RGBA")

    def layer(self) -> Layer:
        """The sheet at its own size; colours under transparent pixels are meaningless."""
        # Averaging premultiplied colours keeps dark fringes away from the edges.
        small = (
            self.image.convert("RGBa")
            .resize((self.size_px, self.size_px), Image.Resampling.BOX)
            .convert("RGBA")
        )
        values: Plane = np.multiply(np.asarray(small), 1 / 255, dtype=np.float32)
        return Layer(values[..., :3], values[..., 3])


def fineness_of(size_px: int) -> float:
    """The factor of what is drawn in pixels and not in shares: 1 up to 320 pixels, then in proportion."""
    return max(1.0, size_px / 320)


def ink(colour: Colour, alpha: float = 1.0) -> tuple[int, int, int, int]:
    """A Pillow fill."""
    red, green, blue = (round(255 * min(1.0, max(0.0, channel))) for channel in colour)
    return red, green, blue, round(255 * alpha)


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """The mixture of `first` with a `share` (0-1) of `second`."""
    a, b, c = (p + (q - p) * share for p, q in zip(first, second, strict=True))
    return a, b, c


def vary(rng: np.random.Generator, colour: Colour, amount: float = 0.03) -> Colour:
    """The colour, lighter or darker and a little shifted."""
    shift = rng.normal(0, amount) + rng.normal(0, amount / 3, size=3)
    red, green, blue = (float(np.clip(c + s, 0, 1)) for c, s in zip(colour, shift, strict=True))
    return red, green, blue


def smooth(points: Outline) -> Points:
    """A closed Catmull-Rom curve through the points, float64 (N * CURVE_STEPS, 2)."""
    knots = np.asarray(points, dtype=np.float64)
    before, after, beyond = (np.roll(knots, shift, axis=0) for shift in (1, -1, -2))
    t = np.linspace(0, 1, CURVE_STEPS, endpoint=False)[None, :, None]
    p0, p1, p2, p3 = (part[:, None, :] for part in (before, knots, after, beyond))
    curve = 0.5 * (
        2 * p1 + (p2 - p0) * t + (2 * p0 - 5 * p1 + 4 * p2 - p3) * t**2 + (3 * p1 - p0 - 3 * p2 + p3) * t**3
    )
    return np.asarray(curve.reshape(-1, 2))


def ruffle(outline: Points, rng: np.random.Generator, depth: float) -> Points:
    """The outline with tufts: about half of the points pushed outwards by up to `depth` units."""
    along = np.roll(outline, -1, axis=0) - np.roll(outline, 1, axis=0)
    normal = np.stack([along[:, 1], -along[:, 0]], axis=1)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-9
    push = depth * rng.uniform(0.2, 1, size=(len(outline), 1)) * (rng.random((len(outline), 1)) < 0.55)
    return outline + normal * push


def noise(rng: np.random.Generator, size_px: int, cells: int, octaves: int = 3, stretch: int = 1) -> Plane:
    """Smooth noise, float32 (S, S), mean 0 and deviation about 1; `stretch` > 1 draws it out sideways."""
    total = np.zeros((size_px, size_px), dtype=np.float32)
    for octave in range(octaves):
        count = cells * 2**octave
        grid = rng.standard_normal((min(count, size_px), max(2, min(count, size_px) // stretch))).astype(
            np.float32
        )
        total += (
            np.asarray(
                Image.fromarray(grid).resize((size_px, size_px), Image.Resampling.BICUBIC), dtype=np.float32
            )
            / 1.7**octave
        )
    return total / (float(total.std()) + 1e-6)


def blur_plane(plane: Plane, radius_px: float) -> Plane:
    """A Gaussian blur of values in 0-1."""
    picture = Image.fromarray(np.clip(plane * 255, 0, 255).astype(np.uint8))
    soft = np.asarray(picture.filter(ImageFilter.GaussianBlur(radius_px)))
    return np.asarray(soft / 255, dtype=np.float32)


def over(ground: Plane, layer: Layer, softness: float = 1.0) -> Plane:
    """The layer laid on the ground, (S, S, 3)."""
    alpha = (layer.alpha * softness)[..., None]
    return np.asarray(ground * (1 - alpha) + layer.rgb * alpha, dtype=np.float32)


def ramp(size_px: int, stops: Sequence[tuple[float, Colour]]) -> Plane:
    """A vertical gradient through (height 0-1, colour) stops, (S, S, 3)."""
    heights = np.linspace(0, 1, size_px)
    places = [place for place, _ in stops]
    columns = [np.interp(heights, places, [colour[channel] for _, colour in stops]) for channel in range(3)]
    return np.repeat(np.stack(columns, axis=-1)[:, None, :], size_px, axis=1).astype(np.float32)


def develop(picture: Plane, rng: np.random.Generator, tint: Colour, gain: float) -> Pixels:
    """Light, vignette and film grain on the finished picture, uint8 (S, S, 3)."""
    size = picture.shape[0]
    y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    vignette = 1 - 0.16 * np.clip(x**2 + y**2 - 0.35, 0, None)
    grain = rng.normal(0, 0.012, size=(size, size, 1))
    lit = picture * np.asarray(tint) * gain * vignette[..., None] + grain
    return np.asarray(np.clip(lit * 255 + 0.5, 0, 255), dtype=np.uint8)
