"""Planted differences between methods, and between saliency and concepts, are found again in the tables of
ratings at a stated power, and none is found without one at a stated rate: by a pair, by the whole family of
pairs, by the ordinal model and by the association with a metric. In `make test` over 20 studies, in full over
500.

In each study 16 raters give points from 1 to 5 of 24 pictures under every method, five raters per
explanation, drawn anew; people, pictures and pictures by method vary (`tests.analysis.rated.planted`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
from scipy.stats import nct, t

from analysis.ratings import rating_rows
from analysis.reports.rating import method_means
from analysis.reports.rating.method_means import associations, ordinal_tests, pairs, saliency_and_concepts
from tests.analysis.rated import planted, rating_facts
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
STUDIES, STUDIES_FULL = 20, 500
ALPHA = 0.05
RATERS, PICTURES, PER_EXPLANATION = 16, 24, 5
DIFFERENCE = 0.55
"""Points of the scale."""
Tested = tuple[list[float], float]
"""The corrected p of each pair of methods, and the p of the ordinal model."""


@pytest.fixture(autouse=True)
def _without_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profile intervals take most of the time, and no p depends on them."""
    monkeypatch.setattr(method_means, "CHEAP_ROWS", 0)


def results_of(effects: Mapping[str, float], seed: int, scale: Scale) -> Iterator[Tested]:
    """One result per study, as the report has it."""
    facts = rating_facts(tuple(effects), asked=("q1",))
    for number in range(scale.of(STUDIES, STUDIES_FULL)):
        frames = planted(
            effects,
            raters=RATERS,
            items=PICTURES,
            per_item=PER_EXPLANATION,
            seed=1_000_000 * scale.seed + 10_000 * seed + number,
        )
        rows = rating_rows(frames)
        (test,) = ordinal_tests(rows, facts, ("q1",))
        assert test.p is not None
        yield [pair.p_holm or 0.0 for pair in pairs(rows, facts, ("q1",))], test.p


def shares_below(results: Sequence[Tested]) -> dict[str, float]:
    """How often each test of the only pair is significant."""
    return {
        "pairs": float(np.mean([corrected[0] < ALPHA for corrected, _ in results])),
        "model": float(np.mean([p < ALPHA for _, p in results])),
    }


def stated_power() -> float:
    """Of the paired t test over pictures, raters counting as independent: SDs as `planted` draws them."""
    deviation = np.sqrt(2 * (0.4**2 + (0.5**2 + 0.8**2) / PER_EXPLANATION))
    far, df = DIFFERENCE / deviation * np.sqrt(PICTURES), PICTURES - 1
    edge = t.isf(ALPHA / 2, df)
    return float(nct.sf(edge, df, far) + nct.cdf(-edge, df, far))


def test_a_planted_difference_is_found_with_the_stated_power(scale: Scale) -> None:
    results = list(results_of({"grad_cam": DIFFERENCE / 2, "random": -DIFFERENCE / 2}, 1, scale))
    assert stated_power() == pytest.approx(0.88, abs=0.01)
    least = likely_share(0.8, len(results)).low
    shares = shares_below(results)
    print(f"{DIFFERENCE} points found in a share of {shares} of {len(results)} studies")
    assert min(shares.values()) >= least, shares


@pytest.mark.long(stays="test_a_planted_difference_is_found_with_the_stated_power")
def test_no_difference_is_found_at_the_rate_of_alpha(scale: Scale) -> None:
    results = list(results_of({"grad_cam": 0.0, "random": 0.0}, 2, scale))
    limits = likely_share(ALPHA, len(results))
    shares = shares_below(results)
    print(f"nothing planted, found in a share of {shares} of {len(results)} studies")
    assert limits.holds(shares["model"]), shares
    # Two-way clustered errors are never below the larger of two variances, so that they err less often.
    assert shares["pairs"] <= limits.high, shares


FAMILY = ("grad_cam", "rise", "clip_linear", "random")
"""Two of saliency, one of concepts and a control: six pairs."""


def shares_of_family(effects: Mapping[str, float], seed: int, scale: Scale) -> dict[str, float]:
    """How often any pair is significant after Holm's correction, how often saliency against concepts is, and
    how often the interval of the association with a metric leaves out 0. The metric is noise with a part of
    the picture's, as ratings have one, so that the two are independent and each goes with pictures."""
    facts = rating_facts(FAMILY, asked=("q1",))
    hits: dict[str, list[bool]] = {"any pair": [], "forms": [], "metric": []}
    for number in range(scale.of(STUDIES, STUDIES_FULL)):
        at = 1_000_000 * scale.seed + 10_000 * seed + number
        frames = planted(effects, raters=RATERS, items=PICTURES, per_item=PER_EXPLANATION, seed=at)
        rows = rating_rows(frames)
        hits["any pair"].append(any((p.p_holm or 0.0) < ALPHA for p in pairs(rows, facts, ("q1",))))
        (form,) = saliency_and_concepts(rows, facts, ("q1",))
        hits["forms"].append((form.p_holm or 0.0) < ALPHA)
        rng = np.random.default_rng(at)
        by_picture = dict(zip((f"i{i}" for i in range(PICTURES)), rng.normal(0, 1, PICTURES), strict=True))
        cells = [
            json.dumps([{"metric": "noise", "parameters": {}, "version": 1, "scores": "drawn",
                         "value": float(by_picture[item] + rng.normal())}])
            for item in frames.stimuli["item"]
        ]  # fmt: skip
        (told,) = associations(rows, frames.stimuli.assign(metrics=cells), ("q1",))
        low, high = told["seen"]["interval"]
        hits["metric"].append(not low <= 0 <= high)
    return {name: float(np.mean(marks)) for name, marks in hits.items()}


def test_concepts_that_are_rated_lower_are_found_with_the_stated_power(scale: Scale) -> None:
    """Both methods of saliency lie by the difference above that of concepts."""
    half = DIFFERENCE / 2
    effects = {"grad_cam": half, "rise": half, "clip_linear": -half, "random": -half}
    shares = shares_of_family(effects, 3, scale)
    print(f"saliency {DIFFERENCE} points above concepts found in a share of {shares['forms']}")
    assert shares["forms"] >= likely_share(0.8, scale.of(STUDIES, STUDIES_FULL)).low, shares


def test_a_family_without_differences_errs_at_the_rate_of_alpha(scale: Scale) -> None:
    limits = likely_share(ALPHA, scale.of(STUDIES, STUDIES_FULL))
    shares = shares_of_family(dict.fromkeys(FAMILY, 0.0), 4, scale)
    print(f"nothing planted in a family of four, found in a share of {shares}")
    assert limits.holds(shares["metric"]) and limits.holds(shares["forms"]), shares
    assert shares["any pair"] <= limits.high, shares
