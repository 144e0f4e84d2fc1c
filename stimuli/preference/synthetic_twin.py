"""A synthetic twin of PASTA: explanations whose ratings follow from what is planted, by simulated raters.

A picture holds four discs of equal size, whose four colours are shuffled over their places. Each method has
its own size, number and aim of marks. What is planted is either plain properties of the map, or the colours
that the map covers: the shuffling makes these independent of all plain properties. Nothing here is a result
on people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from stimuli.errors import BadRatings
from stimuli.preference.embedding import ShownExplanation
from stimuli.preference.map_property_baseline import properties_of
from stimuli.preference.prediction_agreement import HIGHEST, LOWEST, Floats
from stimuli.render.heatmap import overlay
from stimuli.render.png import encode
from stimuli.render.recipe import RenderSpec
from stimuli.types import PixelAttribution, Pixels, Plane

Plant = Literal["properties", "content"]
PLANTS: tuple[Plant, ...] = get_args(Plant)
QUESTIONS = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6")
SIDE, RADIUS, PARTS = 48, 7, 4
COLOURS = np.array([[215, 60, 50], [60, 130, 215], [70, 175, 80], [205, 130, 210]], np.float64)
RECIPE = RenderSpec(alpha=0.5, clip_low=0.0, clip_high=100.0)
MARKS_MAX = 5
BIAS_SD, NOISE_SD = 0.25, 0.6
"""Of raters: how far each lies from the others throughout, and how far each answer."""


@dataclass(frozen=True, eq=False)
class Twin:
    """`subjects` (n,) with their `images` and `methods`; `properties` float64 (n, 5) as in properties.py;
    `covered` float64 (n, 4), the share of each colour in what the map covers of the discs; `values` (n, Q),
    the planted ratings without noise; `ratings` (n, Q, R) of the raters, 1..5."""

    subjects: tuple[ShownExplanation, ...]
    images: tuple[str, ...]
    methods: tuple[str, ...]
    properties: Floats
    covered: Floats
    values: Floats
    ratings: Floats


@dataclass(frozen=True, slots=True)
class _Style:
    spread: float
    marks: int
    aim: float


def draw_twin(
    plant: Plant = "properties", *, images: int = 1000, methods: int = 21, raters: int = 5, seed: int = 0
) -> Twin:
    """The same arguments give the same twin, and more images the same first ones. Raises BadRatings for an
    unknown plant, and fewer than 10 images or 6 methods, or no rater."""
    if plant not in PLANTS:
        raise BadRatings(f"there is no twin {plant!r}: known are {', '.join(PLANTS)}")
    if images < 10 or methods < 6 or raters < 1:
        raise BadRatings(
            f"a twin of {images} images, {methods} methods and {raters} raters cannot be split: take "
            "at least 10 images, 6 methods and a rater"
        )
    styles = [_style(np.random.default_rng([seed, 1, method])) for method in range(methods)]
    subjects, properties, covered = [], [], []
    for image in range(images):
        rng = np.random.default_rng([seed, 2, image])
        picture, discs = _picture(rng)
        for style in styles:
            values = _map(style, discs, rng)
            drawn = overlay(picture, PixelAttribution(values, signed=False), RECIPE)
            subjects.append(ShownExplanation(encode(drawn)))
            properties.append(properties_of(values, np.asarray(discs.any(axis=0))))
            under = np.array([values[disc].sum() for disc in discs])
            covered.append(under / under.sum() if under.sum() > 0 else np.full(PARTS, 1 / PARTS))
    plain, shares = np.array(properties), np.array(covered)
    wanted = _planted_ratings(plain if plant == "properties" else shares, plant, seed)
    rng = np.random.default_rng([seed, 3])
    answers = wanted[..., None] + rng.normal(0, BIAS_SD, (len(wanted), 1, raters))
    answers += rng.normal(0, NOISE_SD, answers.shape)
    names = [(f"image {image}", f"method {method}") for image in range(images) for method in range(methods)]
    return Twin(
        tuple(subjects),
        tuple(image for image, _ in names),
        tuple(method for _, method in names),
        plain,
        shares,
        wanted,
        np.clip(np.rint(answers), LOWEST, HIGHEST),
    )


def _style(rng: np.random.Generator) -> _Style:
    return _Style(rng.uniform(3, 9), int(rng.integers(1, MARKS_MAX + 1)), rng.uniform(0.5, 1))


def _picture(rng: np.random.Generator) -> tuple[Pixels, NDArray[np.bool_]]:
    """The picture, and the disc of each colour, bool (PARTS, SIDE, SIDE)."""
    ground = gaussian_filter(rng.normal(size=(SIDE, SIDE)), 4)
    picture = np.repeat((150 + 25 * ground / ground.std())[..., None], 3, axis=2)
    centre = rng.integers(2 * RADIUS + 1, SIDE - 2 * RADIUS, 2)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    discs = np.zeros((PARTS, SIDE, SIDE), np.bool_)
    places = [(down * RADIUS, right * RADIUS) for down in (-1, 1) for right in (-1, 1)]
    for colour, place in enumerate(rng.permutation(PARTS)):
        row, column = centre + places[place]
        discs[colour] = (rows - row) ** 2 + (columns - column) ** 2 < RADIUS**2
        picture[discs[colour]] = COLOURS[colour]
    picture += rng.normal(0, 6, picture.shape)
    return np.clip(picture, 0, 255).astype(np.uint8), discs


def _map(style: _Style, discs: NDArray[np.bool_], rng: np.random.Generator) -> Plane:
    """Marks about one disc, or, as the style's aim has it, about places of no meaning."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    target = np.argwhere(discs[rng.integers(PARTS)])
    values = np.zeros((SIDE, SIDE))
    for _ in range(style.marks):
        is_aimed = rng.random() < style.aim
        row, column = target[rng.integers(len(target))] if is_aimed else rng.integers(0, SIDE, 2)
        spread = style.spread * rng.uniform(0.7, 1.4)
        values = np.maximum(values, np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * spread**2)))
    return np.asarray(values, np.float32)


def _planted_ratings(features: Floats, plant: Plant, seed: int) -> Floats:
    """Ratings without noise (n, Q): a weighted sum of the features per question, spread over the scale."""
    rng = np.random.default_rng([seed, 4])
    if plant == "properties":
        standard = (features - features.mean(axis=0)) / features.std(axis=0)
        wanted = standard @ rng.normal(size=(features.shape[1], len(QUESTIONS)))
    else:
        # Weights in pairs about 0: however much a map covers, ratings lie evenly about the middle, so that
        # neither their mean nor the ends of the scale tell how much is covered.
        pairs = [(1.0, -1.0, b, -b) for b in rng.uniform(0.2, 0.8, len(QUESTIONS))]
        wanted = features @ np.array([rng.permutation(pair) for pair in pairs]).T
    spread = 3 + 1.2 * wanted / wanted.std(axis=0)
    return np.asarray(np.clip(spread, LOWEST, HIGHEST))
