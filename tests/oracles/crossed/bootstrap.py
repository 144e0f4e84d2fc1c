"""How often chance alone reaches a likelihood ratio of few people: python -m tests.oracles.crossed.bootstrap.

Written once, as `bootstrap.json`. New answers are drawn from the fit without the condition (parametric
bootstrap: Davison and Hinkley 1997, chapter 4) and both models are fitted to them; no reference distribution
enters.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from analysis.stats.crossed import CrossedFit, fit_crossed
from analysis.stats.results import StatsError

STORED = Path(__file__).resolve().parent / "bootstrap.json"
PEOPLE, ITEMS, DRAWS, SEED = 10, 12, 1000, 5
PERSON = np.repeat(np.arange(PEOPLE), ITEMS)
ITEM = np.tile(np.arange(ITEMS), PEOPLE)
FIXED = {"condition": (PERSON >= PEOPLE // 2).astype(float)}
"""The second half of the people has the other condition."""
Answers = NDArray[np.float64]


def fits(answers: Answers) -> tuple[CrossedFit, CrossedFit]:
    factors = {"person": PERSON.tolist(), "item": ITEM.tolist()}
    return fit_crossed(answers, FIXED, factors), fit_crossed(answers, {}, factors)


def drawn(rng: np.random.Generator, centre: float, person: float, item: float) -> Answers:
    eta = centre + rng.normal(0, person, PEOPLE)[PERSON] + rng.normal(0, item, ITEMS)[ITEM]
    return (rng.random(eta.size) < expit(eta)).astype(np.float64)


def ratio(answers: Answers) -> float:
    whole, part = fits(answers)
    return 2 * (whole.log_likelihood - part.log_likelihood)


if __name__ == "__main__":
    rng = np.random.default_rng(SEED)
    # A study of a ratio that is near the limit, so that it matters which distribution judges it.
    while not 4 < ratio(answers := drawn(rng, 0.3, 1.2, 0.6)) < 5:
        pass
    seen, part = ratio(answers), fits(answers)[1]
    ratios: list[float] = []
    while len(ratios) < DRAWS:
        try:
            ratios.append(ratio(drawn(rng, -part.thresholds[0], part.sds["person"], part.sds["item"])))
        except StatsError:
            continue
    told = {"answers": answers.astype(int).tolist(), "draws": DRAWS, "beyond": sum(r >= seen for r in ratios)}
    STORED.write_text(json.dumps(told) + "\n", encoding="utf-8")
