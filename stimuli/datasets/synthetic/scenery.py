"""Backgrounds: a winter landscape, a green one, and a plain on which foxes stand."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stimuli.datasets.synthetic.drawing import (
    Colour,
    Plane,
    Sheet,
    fineness_of,
    mix,
    noise,
    over,
    ramp,
    smooth,
    vary,
)


@dataclass(frozen=True, slots=True)
class Season:
    """The colours of a landscape: sky above and at the horizon, hills, trees, ground near and far."""

    sky: Colour
    haze: Colour
    hills: Colour
    trees: Colour
    ground_far: Colour
    ground_near: Colour


def _seasons(rows: list[dict[str, list[float]]]) -> tuple[Season, ...]:
    colours = ({name: (red, green, blue) for name, (red, green, blue) in row.items()} for row in rows)
    return tuple(Season(**named) for named in colours)


_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
WINTERS, SUMMERS, STEPPES = (_seasons(_READ[name]) for name in ("winters", "summers", "steppes"))


def winter(rng: np.random.Generator, size_px: int) -> Plane:
    """Snow: hazy hills, pines, drifts with blue shadows, flakes. Float32 (S, S, 3) in 0-1."""
    season = WINTERS[rng.integers(len(WINTERS))]
    picture, horizon = _land(season, rng, size_px)
    pines = Sheet(size_px, fineness=2)
    for _ in range(int(rng.integers(5, 11))):
        _pine(pines, season, rng, horizon, snowy=True)
    picture = over(picture, pines.layer())
    picture = _ground(picture, season, rng, horizon, ripple=0.030)
    flakes = Sheet(size_px, fineness=2)
    for x, y, radius in zip(rng.random(36), rng.random(36), rng.uniform(0.0025, 0.009, 36), strict=True):
        flakes.ellipse(float(x), float(y), float(radius), float(radius), (1.0, 1.0, 1.0))
    return over(picture, flakes.layer(), 0.8)


def summer(rng: np.random.Generator, size_px: int) -> Plane:
    """Green: hazy woods, trunks and crowns, a meadow with blades and flowers. Float32 (S, S, 3) in 0-1."""
    season = SUMMERS[rng.integers(len(SUMMERS))]
    picture, horizon = _land(season, rng, size_px)
    woods = Sheet(size_px, fineness=2)
    for _ in range(int(rng.integers(6, 12))):
        if rng.random() < 0.35:
            _pine(woods, season, rng, horizon, snowy=False)
        else:
            _crown(woods, season, rng, horizon)
    picture = over(picture, woods.layer())
    picture = _ground(picture, season, rng, horizon, ripple=0.045)
    return over(picture, _blades(season, rng, size_px, horizon, flowers=int(rng.integers(0, 26))).layer())


def steppe(rng: np.random.Generator, size_px: int) -> Plane:
    """Dry open land: soft hills, shrubs, stones and straw. Float32 (S, S, 3) in 0-1."""
    season = STEPPES[rng.integers(len(STEPPES))]
    picture, horizon = _land(season, rng, size_px)
    picture = _ground(picture, season, rng, horizon, ripple=0.05)
    shrubs = Sheet(size_px, fineness=2)
    for _ in range(int(rng.integers(3, 8))):
        x, y = float(rng.random()), float(horizon + rng.uniform(0.0, 0.3))
        _tuft(shrubs, vary(rng, season.trees, 0.04), rng, x, y, float(rng.uniform(0.03, 0.09)))
    picture = over(picture, shrubs.layer())
    return over(picture, _blades(season, rng, size_px, horizon, flowers=0).layer(), 0.8)


def _land(season: Season, rng: np.random.Generator, size_px: int) -> tuple[Plane, float]:
    """Sky with clouds and two ranges of hills; also the height of the horizon (0-1, from the top)."""
    horizon = float(rng.uniform(0.40, 0.62))
    picture = ramp(size_px, [(0, vary(rng, season.sky)), (horizon, season.haze), (1, season.haze)])
    clouds = np.clip(noise(rng, size_px, 3, stretch=2) - 0.3, 0, 1.5)[..., None] * 0.09
    picture = np.asarray(picture + clouds * (1 - picture), dtype=np.float32)
    hills = Sheet(size_px, fineness=2)
    for depth, height in ((0.55, 0.17), (0.15, 0.09)):
        x = np.linspace(-0.1, 1.1, 26)
        bumps = sum(np.sin(x * f + rng.uniform(0, 6.3)) * a for f, a in ((4, 0.5), (9, 0.3), (21, 0.12)))
        y = horizon - height * float(rng.uniform(0.5, 1.2)) * (0.6 + 0.5 * np.asarray(bumps))
        ridge = [*zip(x.tolist(), y.tolist(), strict=True), (1.1, 1.0), (-0.1, 1.0)]
        hills.shape(ridge, mix(season.hills, season.haze, depth))
    return over(picture, hills.layer()), horizon


def _ground(picture: Plane, season: Season, rng: np.random.Generator, horizon: float, ripple: float) -> Plane:
    """The near ground over the lower part, with a soft edge, drifts and grain."""
    size = picture.shape[0]
    near = ramp(
        size, [(0, season.ground_far), (horizon, season.ground_far), (1, vary(rng, season.ground_near, 0.02))]
    )
    drift = noise(rng, size, 5, octaves=4, stretch=3)[..., None] * ripple
    cool = np.asarray((1.1, 1.0, 0.75), dtype=np.float32)
    line = horizon + 0.02 * noise(rng, size, 3, octaves=2)[size // 2][None, :]
    height = np.linspace(0, 1, size, dtype=np.float32)[:, None]
    cover = np.clip((height - line) * size / (3 * fineness_of(size)), 0, 1)[..., None]
    return np.asarray(picture * (1 - cover) + (near + drift * cool) * cover, dtype=np.float32)


def _pine(sheet: Sheet, season: Season, rng: np.random.Generator, horizon: float, *, snowy: bool) -> None:
    x, tall = float(rng.uniform(-0.05, 1.05)), float(rng.uniform(0.16, 0.42))
    foot = horizon + 0.05 * tall
    colour = vary(rng, mix(season.trees, season.haze, 0.45 * (1 - tall / 0.42)), 0.02)
    for tier in range(5):
        top, width = foot - tall * (1 - tier * 0.17), tall * (0.09 + 0.055 * tier)
        low = top + tall * 0.30
        sheet.shape(
            [
                (x, top),
                (x + width, low),
                (x + width * 0.3, low - 0.01),
                (x - width * 0.4, low),
                (x - width, low),
            ],
            colour,
        )
        if snowy:
            sheet.shape(
                [
                    (x, top),
                    (x + width * 0.62, low - tall * 0.10),
                    (x + width * 0.1, low - tall * 0.14),
                    (x - width * 0.55, low - tall * 0.11),
                ],
                mix(season.ground_near, season.haze, 0.3),
            )


def _crown(sheet: Sheet, season: Season, rng: np.random.Generator, horizon: float) -> None:
    x, tall = float(rng.uniform(-0.05, 1.05)), float(rng.uniform(0.14, 0.36))
    colour = vary(rng, mix(season.trees, season.haze, 0.40 * (1 - tall / 0.36)), 0.03)
    trunk = mix(colour, (0.28, 0.20, 0.13), 0.6)
    foot = horizon + 0.03
    sheet.shape(
        [(x - 0.012, foot), (x - 0.008, foot - tall), (x + 0.008, foot - tall), (x + 0.012, foot)], trunk
    )
    for lobe in range(9):
        dx, dy = rng.normal(0, tall * 0.2), rng.normal(0, tall * 0.16)
        radius = tall * float(rng.uniform(0.14, 0.24))
        light = mix(colour, season.ground_far, 0.08 * lobe)
        sheet.ellipse(
            x + float(dx), foot - tall * 0.72 + float(dy) - lobe * 0.004, radius, radius * 0.85, light
        )


def _tuft(sheet: Sheet, colour: Colour, rng: np.random.Generator, x: float, y: float, radius: float) -> None:
    angle = np.linspace(0, 2 * np.pi, 14, endpoint=False)
    reach = radius * rng.uniform(0.75, 1.15, 14)
    lift = np.where(np.sin(angle) > 0, 0.12, 1.0)  # flat below, domed above
    dome = np.stack([x + 1.3 * reach * np.cos(angle), y + lift * reach * np.sin(angle)], axis=1)
    sheet.shape(smooth(dome), colour)


def _blades(season: Season, rng: np.random.Generator, size_px: int, horizon: float, flowers: int) -> Sheet:
    """Grass in front: fine and pale far away, long and dark near."""
    sheet = Sheet(size_px, fineness=2)
    count = 260
    y = np.sort(horizon + (1.03 - horizon) * rng.random(count) ** 0.7)
    near = (y - horizon) / (1.03 - horizon)
    x, lean = rng.random(count), rng.normal(0, 0.02, count)
    tall = (0.02 + 0.07 * near) * rng.uniform(0.6, 1.3, count)
    far, deep, dark, straw = (
        np.asarray(c) for c in (season.ground_far, season.ground_near, season.trees, (0.95, 0.95, 0.6))
    )
    colours = far + (deep - far) * near[:, None]
    colours += (dark - colours) * rng.uniform(0, 0.45, (count, 1))
    colours += (straw - colours) * rng.uniform(0, 0.25, (count, 1))
    feet, tips = np.stack([x, y], axis=1), np.stack([x + lean, y - tall], axis=1)
    sheet.strokes(feet, tips, colours, 0.003 + 0.004 * near)
    palette = ((0.98, 0.95, 0.90), (0.96, 0.80, 0.30), (0.75, 0.55, 0.80))
    petal = palette[rng.integers(len(palette))]
    for i in rng.integers(0, count, flowers):
        radius = 0.004 + 0.008 * float(near[i])
        sheet.ellipse(float(x[i]), float(y[i] - tall[i]), radius, radius * 0.8, petal)
    return sheet
