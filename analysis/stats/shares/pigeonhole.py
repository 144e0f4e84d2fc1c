"""Shares of yes, and contrasts of them, if both people and items are drawn at random.

The pigeonhole bootstrap: people and items are drawn with replacement, each for themselves, and an answer
counts as often as its person was drawn times its item (Owen 2007, The pigeonhole bootstrap). The spread of
the draws counts three times what is left between single answers: a percentile interval is too wide, above all
of a difference. So each draw is divided by its own two-way clustered error (see `clustered`), and the
interval is made of these t values (bootstrap-t, Efron and Tibshirani 1993, section 12.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Names, StatsError, finite, json_of

Scale = Literal["share", "logit", "log", "probit"]
DRAWS, DRAWS_MAX = 2000, 100_000
CHUNK = 500
"""Draws that are computed together, which bounds the memory."""
PAIRS_MAX = 4_000_000
"""People times items: their tables are dense."""
UNDEFINED_MAX = 0.1
"""With more draws without a value the others say too little of the ends."""
SPREAD_MIN = 1e-9


@dataclass(frozen=True, slots=True)
class CrossedEstimate:
    """A contrast of shares: the sum of weight times share (`scale` "share"); one share, with its interval
    made on the scale of log odds ("logit"); the product of share to the power of the weight ("log", so that
    weights 1 and -1 give a ratio); or the sum of weight times the normal quantile of the share ("probit").
    For log odds and quantiles one half is added to yes and one to all, the log-linear correction.

    `at` is the value on the scale itself, and `se` its two-way clustered error. `cells` holds yes and all of
    each cell. `undefined` counts draws without a value. `problem` says why there is no interval.
    """

    estimate: float
    at: float
    se: float
    people: int
    items: int
    answers: int
    cells: dict[str, tuple[int, int]]
    scale: Scale
    draws: int
    undefined: int
    problem: str
    limits: tuple[float, float] | None
    drawn: Floats = field(repr=False, compare=False)

    def interval(self, level: float = 0.95) -> Interval | None:
        """The interval by the t values of the draws, cut at what the contrast can be. None with a problem."""
        tail = (1 - check.level(level)) / 2
        if self.problem:
            return None
        low_t, high_t = (float(q) for q in np.quantile(self.drawn, [tail, 1 - tail]))
        low, high = (_from_scale(self.at - t * self.se, self.scale) for t in (high_t, low_t))
        if self.limits is not None:
            low, high = max(low, self.limits[0]), min(high, self.limits[1])
        return Interval(low, high, level)

    def p(self) -> float | None:
        """Two-sided, of no contrast (a ratio of 1): it goes below .05 just when the 95 % interval leaves it
        out. At least 2 / (draws + 1). None with a problem, and for a share by itself."""
        if self.problem or self.scale == "logit":
            return None
        below = int((self.drawn <= self.at / self.se).sum())
        above = int((self.drawn >= self.at / self.se).sum())
        return min(1.0, 2 * (1 + min(below, above)) / (self.drawn.size + 1))

    def table(self, level: float = 0.95) -> list[dict[str, object]]:
        """One row with everything that may be printed."""
        ends = self.interval(level)
        return [
            {
                "estimate": self.estimate,
                "interval": ends.as_json() if ends else None,
                "p": self.p(),
                **json_of(self, "se", "people", "items", "answers"),
                "cells": {name: list(counts) for name, counts in self.cells.items()},
                "problem": self.problem,
            }
        ]


def _from_scale(value: float, scale: Scale) -> float:
    """What is printed for a value on the scale."""
    if scale == "log":
        return float(np.exp(np.clip(value, -100, 100)))
    return float(expit(value)) if scale == "logit" else finite(value, "The contrast")


def pigeonhole(
    yes: ArrayLike,
    cells: Sequence[str],
    people: Names,
    items: Names,
    weights: Mapping[str, float],
    *,
    scale: Scale = "share",
    draws: int = DRAWS,
    seed: int = 0,
) -> CrossedEstimate:
    """A contrast of the shares of `yes` (n,), 0 or 1, of the cells that `weights` names.

    `cells`, `people` and `items` are given per row, and rows of other cells are left out. People and items
    are those of the rows that remain. A person meets an item once; further answers to it count as if they
    were of other pairs.

    Raises StatsError for an empty cell, rows that do not match, values other than 0 and 1, a "log" of a share
    of 0, a "logit" of more than one cell with the weight 1, or more than PAIRS_MAX pairs of a person and an
    item.
    """
    check.count(draws, "The number of draws", least=20)
    check.count(seed, "The seed")
    if draws > DRAWS_MAX or scale not in get_args(Scale):
        raise StatsError(
            f"Scale {scale!r} with {draws} draws; use {', '.join(get_args(Scale))}, and at most {DRAWS_MAX}."
        )
    if scale == "logit" and list(weights.values()) != [1]:
        raise StatsError(f"The weights are {dict(weights)}; on log odds give one cell with the weight 1.")
    made = _tables(yes, cells, people, items, weights)
    everybody = np.ones((1, made.people)), np.ones((1, made.items))
    at, errors = made.contrast(*everybody, scale)
    if not np.isfinite(at[0]):
        empty = [name for name, (count, _) in made.counts.items() if not count]
        raise StatsError(
            f"Nobody said yes in {', '.join(empty)}, so a ratio is not defined; print the shares."
        )
    value, se = float(at[0]), float(errors[0])
    drawn: Floats = np.empty(0)
    if made.people > 1 and made.items > 1 and se > SPREAD_MIN:
        parts = [(tried - value) / error for tried, error in _draw_contrasts(made, scale, draws, seed)]
        drawn = np.concatenate(parts)
    undefined = draws - drawn.size if drawn.size else 0
    yes_of, of = next(iter(made.counts.values()))
    return CrossedEstimate(
        estimate=yes_of / of if scale == "logit" else _from_scale(value, scale),
        at=value,
        se=finite(se, "The error"),
        people=made.people,
        items=made.items,
        answers=made.answers,
        cells=made.counts,
        scale=scale,
        draws=draws,
        undefined=undefined,
        problem=_problem(made, se, undefined / draws),
        limits=made.limits if scale == "share" else None,
        drawn=drawn,
    )


def _problem(made: _Tables, se: float, undefined_share: float) -> str:
    if min(made.people, made.items) < 2:
        return f"an interval needs 2 people and 2 items, there are {made.people} and {made.items}"
    if not se > SPREAD_MIN:
        return "the answers do not vary, so there is no interval"
    if undefined_share > UNDEFINED_MAX:
        return f"in {100 * undefined_share:.0f} % of the draws there is no value, so there is no interval"
    return ""


def _draw_contrasts(made: _Tables, scale: Scale, draws: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """The contrast and its error in every draw that has them, some draws at a time."""
    people, items = _copies(made.people, draws, seed, 0), _copies(made.items, draws, seed, 1)
    for start in range(0, draws, CHUNK):
        part = slice(start, start + CHUNK)
        at, errors = made.contrast(people[part], items[part], scale)
        is_defined = np.isfinite(at) & (errors > SPREAD_MIN)
        yield at[is_defined], errors[is_defined]


@lru_cache(maxsize=8)
def _copies(count: int, draws: int, seed: int, stream: int) -> Floats:
    """How often each of `count` was drawn (draws, count). Contrasts of one study share their draws."""
    rng = np.random.default_rng([seed, stream, count])
    chosen = rng.integers(0, count, (draws, count)) + count * np.arange(draws)[:, None]
    return np.bincount(chosen.ravel(), minlength=draws * count).reshape(draws, count).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Of each cell the yes and the answers by person and item, (people, items), with the cell's weight."""

    yes: tuple[Floats, ...]
    all: tuple[Floats, ...]
    weights: tuple[float, ...]
    counts: dict[str, tuple[int, int]]

    @property
    def people(self) -> int:
        return int(self.all[0].shape[0])

    @property
    def items(self) -> int:
        return int(self.all[0].shape[1])

    @property
    def answers(self) -> int:
        return sum(total for _, total in self.counts.values())

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value that the contrast of shares can have."""
        return sum(min(w, 0.0) for w in self.weights), sum(max(w, 0.0) for w in self.weights)

    def contrast(self, people: Floats, items: Floats, scale: Scale) -> tuple[Floats, Floats]:
        """The contrast (draws,) and its two-way clustered error; NaN if there is none. `people` (draws,
        people) and `items` (draws, items) say how often each was drawn.
        """
        value, inside = np.zeros(len(people)), np.zeros(len(people))
        of_people, of_items = np.zeros_like(people), np.zeros_like(items)
        answers = np.zeros(len(people))
        with np.errstate(divide="ignore", invalid="ignore"):
            for yes, everything, weight in zip(self.yes, self.all, self.weights, strict=True):
                yes_of_people, all_of_people = items @ yes.T, items @ everything.T
                count, total = (people * yes_of_people).sum(1), (people * all_of_people).sum(1)
                at, slope = _scale_share(count, total, scale)
                value += weight * at
                # What a yes and what an answer add to the deviation of the contrast.
                by_yes = weight * slope / total
                by_all = -by_yes * count / total
                of_people += by_yes[:, None] * yes_of_people + by_all[:, None] * all_of_people
                of_items += by_yes[:, None] * (people @ yes) + by_all[:, None] * (people @ everything)
                inside += (by_yes**2 + 2 * by_yes * by_all) * count + by_all**2 * total
                answers += total
            by_person = (people * of_people**2).sum(1) * _factor(people.sum(1))
            by_item = (items * of_items**2).sum(1) * _factor(items.sum(1))
            both = by_person + by_item - inside * _factor(answers)
            error = np.sqrt(np.maximum(both, np.maximum(by_person, by_item)))
        return value, error


def _factor(clusters: Floats) -> Floats:
    return np.asarray(clusters / np.maximum(clusters - 1, 1))


def _scale_share(count: Floats, total: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """The share on its scale, and the slope by the share."""
    if scale == "share":
        return count / total, np.ones_like(count)
    if scale == "log":
        share = np.where(count > 0, count / total, np.nan)
        return np.log(share), 1 / share
    # An empty cell has no share, though the correction would give it one half.
    corrected = np.where(total > 0, (count + 0.5) / (total + 1), np.nan)
    if scale == "logit":
        return np.log(corrected / (1 - corrected)), total / (total + 1) / (corrected * (1 - corrected))
    z = ndtri(corrected)
    return z, total / (total + 1) * np.sqrt(2 * np.pi) * np.exp(z**2 / 2)


def _tables(
    yes: ArrayLike, cells: Sequence[str], people: Names, items: Names, weights: Mapping[str, float]
) -> _Tables:
    values = check.array(yes, "The answers")
    for what, names in (("cells", cells), ("people", people), ("items", items)):
        check.sequence(names, f"The {what}")
    if not values.size or not values.size == len(cells) == len(people) == len(items):
        raise StatsError(
            f"There are {values.size} answers, {len(cells)} cells, {len(people)} people and {len(items)} "
            "items; give one of each per row, and at least one row."
        )
    if not np.isin(values, (0, 1)).all():
        raise StatsError("The answers must be 0 or 1; leave the others out.")
    told = {
        name: check.number(weight, f"The weight of {name!r}")
        for name, weight in check.mapping(weights, "The weights").items()
    }
    named = np.asarray(cells, dtype=object)
    inside = np.array([str(name) in told for name in named])
    empty = [name for name in told if not any(str(other) == name for other in named[inside])]
    if empty or not told:
        raise StatsError(
            f"No answer is in {', '.join(empty) or 'any cell'}; leave the contrast out, or wait for answers."
        )
    person = check.codes(np.asarray(people, dtype=str)[inside], "people")
    item = check.codes(np.asarray(items, dtype=str)[inside], "items")
    shape = int(person.max()) + 1, int(item.max()) + 1
    if shape[0] * shape[1] > PAIRS_MAX:
        raise StatsError(
            f"{shape[0]} people times {shape[1]} items is more than {PAIRS_MAX:,}; look at a part of them."
        )
    kept, chosen = values[inside], np.array([str(name) for name in named[inside]])
    tables = []
    for name in told:
        rows = chosen == name
        both = np.zeros((2, *shape))
        np.add.at(both[0], (person[rows], item[rows]), kept[rows])
        np.add.at(both[1], (person[rows], item[rows]), 1.0)
        tables.append(both)
    counts = {name: (int(both[0].sum()), int(both[1].sum())) for name, both in zip(told, tables, strict=True)}
    return _Tables(
        tuple(both[0] for both in tables), tuple(both[1] for both in tables), tuple(told.values()), counts
    )
