"""Neutral pictures and sentences for practice, each sorted by a simple rule that is easy to see."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from stimuli.types import Pixels

EXAMPLES = 3
QUESTIONS = 4
SIZE_PX = 640
"""Twice the usual size on the page."""
SUPERSAMPLING = 2
SENTENCE_EXAMPLES = 2
GROUND = (242, 240, 235)
WARM = (208, 96, 54)
COOL = (38, 104, 156)
SENTENCES: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
"""Sentences by language and answer: an animal is A, a plant is B. All are of one tense, none holds an
opinion."""


def practice_pictures(seed: int) -> list[tuple[str, Pixels, str]]:
    """Three examples, then four questions, as (name, uint8 (640, 640, 3), answer "A" or "B").

    The rule is simple and visible: warm shapes are A, cool shapes are B; circle or triangle, place and size
    do not matter. Both answers occur among the examples and twice each among the questions. The two colours
    also differ in lightness and stay apart under colour deficiency.
    """
    rng = np.random.default_rng([seed, 71])
    answers = ["A", "B", str(rng.choice(["A", "B"])), *rng.permutation(["A", "A", "B", "B"])]
    shapes = ["circle", "triangle", "triangle" if answers[2] == "A" else "circle"]
    shapes += [str(shape) for shape in rng.permutation(["circle", "circle", "triangle", "triangle"])]
    names = [f"example-{i + 1}" for i in range(EXAMPLES)] + [f"question-{i + 1}" for i in range(QUESTIONS)]
    return [
        (name, _draw(shape, WARM if answer == "A" else COOL, rng), str(answer))
        for name, shape, answer in zip(names, shapes, answers, strict=True)
    ]


def practice_sentences(
    seed: int, by_answer: Mapping[str, Sequence[str]] = SENTENCES["en"]
) -> list[tuple[str, str, str]]:
    """Two examples, one of each answer, then four questions, two of each, as (name, text, answer "A" or "B").

    The order and which sentences are the examples follow from the seed. `by_answer` are at least three of A
    and of B; the rule is in SENTENCES.
    """
    rng = np.random.default_rng([seed, 72])
    shuffled = {
        answer: [str(text) for text in rng.permutation(list(texts))] for answer, texts in by_answer.items()
    }
    answers = [str(answer) for answer in rng.permutation(["A", "B"])]
    answers += [str(answer) for answer in rng.permutation(["A", "A", "B", "B"])]
    names = [f"example-{i + 1}" for i in range(SENTENCE_EXAMPLES)]
    names += [f"question-{i + 1}" for i in range(QUESTIONS)]
    return [(name, shuffled[answer].pop(), answer) for name, answer in zip(names, answers, strict=True)]


def _draw(shape: str, colour: tuple[int, int, int], rng: np.random.Generator) -> Pixels:
    side = SIZE_PX * SUPERSAMPLING
    canvas = Image.new("RGB", (side, side), GROUND)
    pen = ImageDraw.Draw(canvas)
    radius = side * rng.uniform(0.2, 0.3)
    x, y = side * rng.uniform(0.36, 0.64, size=2)
    turn = rng.uniform(0, 2 * np.pi) if shape == "triangle" else 0.0
    mark_shape(pen, shape, (float(x), float(y)), radius, turn, colour)
    return np.asarray(canvas.resize((SIZE_PX, SIZE_PX), Image.Resampling.LANCZOS), dtype=np.uint8).copy()


def mark_shape(
    pen: ImageDraw.ImageDraw,
    shape: str,
    middle: tuple[float, float],
    radius: float,
    turn: float,
    fill: tuple[int, int, int] | int,
) -> None:
    """Fills a circle, or a triangle of about its area turned by `turn` radians, around `middle` in pixels."""
    x, y = middle
    if shape == "circle":
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
        return
    angles = turn + np.arange(3) * 2 * np.pi / 3
    corners = np.stack([x + 1.15 * radius * np.cos(angles), y + 1.15 * radius * np.sin(angles)], axis=1)
    pen.polygon([(float(a), float(b)) for a, b in corners], fill=fill)
