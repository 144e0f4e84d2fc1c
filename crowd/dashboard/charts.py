"""Small figures of the pages: bars in percent of their box, drawn by a template, and their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BINS = 24
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """`left`, `width`, `height` in percent of the box; `tone` names its colour, `word` what it says."""

    left: float
    width: float
    height: float
    word: str
    tone: str = "passed"

    @property
    def top(self) -> float:
        return 100 - self.height


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across the figure, such as a limit."""

    left: float
    word: str
    tone: str = "limit"


@dataclass(frozen=True, slots=True)
class Chart:
    """`ends` stand under the box, left and right. `rows` are the values, under `head`."""

    key: str
    title: str
    bars: Sequence[Bar]
    ends: tuple[str, str]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    marks: Sequence[Mark] = ()
    note: str = ""
    top: str = ""
    """What the highest bar stands for."""
    tells_marks: bool = True
    """Whether the marks are told below; many of few kinds have a legend instead."""


def histogram(
    key: str, title: str, values: Sequence[float], unit: str, limits: Sequence[tuple[float, str, str]] = ()
) -> Chart:
    """How many values lie in each of at most 24 equal steps from 0; the last counts what lies beyond it too.
    `limits` are drawn in: value, words and tone."""
    most = max([_reach(values), *(limit for limit, _, _ in limits if math.isfinite(limit))], default=0.0)
    step = _step(most)
    count = max(1, math.ceil(round(most / step, 9)) or 1)
    counts = [0] * count
    for value in values:
        counts[min(count - 1, int(value // step))] += 1
    highest = max(counts) or 1
    spans = [(place * step, (place + 1) * step) for place in range(count)]
    bars = [
        Bar(100 * place / count, 92 / count, 100 * n / highest, f"{low:g} to {high:g} {unit}: {n}")
        for place, (n, (low, high)) in enumerate(zip(counts, spans, strict=True))
    ]
    end = count * step
    marks = [
        Mark(min(100.0, 100 * limit / end), word, tone)
        for limit, word, tone in limits
        if math.isfinite(limit)
    ]
    rows = [(f"{low:g}", f"{high:g}", str(n)) for n, (low, high) in zip(counts, spans, strict=True)]
    beyond = sum(value > end for value in values)
    note = f"The last bar counts {beyond} beyond {end:g} {unit} too." if beyond else ""
    ends, head = ("0", f"{end:g} {unit}"), ("from", "to", "people")
    return Chart(key, title, bars, ends, head, rows, marks, note, f"up to {max(counts)} people")


def _reach(values: Sequence[float]) -> float:
    """The largest value, or of many the value that 2 % lie beyond: one long break hides no picture."""
    ordered = sorted(values)
    return ordered[int(0.98 * (len(ordered) - 1))] if ordered else 0.0


def _step(most: float) -> float:
    """A round step of which at most BINS reach `most`."""
    if most <= 0:
        return 1.0
    rough = most / BINS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in STEPS if power * step >= rough * (1 - 1e-9))


def columns(
    key: str,
    title: str,
    rows: Sequence[tuple[str, float, str]],
    head: Sequence[str],
    *,
    most: float | None = None,
    behind: Sequence[float] = (),
    note: str = "",
    top: str = "",
) -> Chart:
    """A bar per row of (name, height, what it says), as high as its share of `most` (the highest); `behind`
    are the heights of paler bars behind them."""
    full = most or max([height for _, height, _ in rows] + list(behind), default=0.0) or 1.0
    count = len(rows) or 1
    pale = [
        Bar(100 * place / count, 92 / count, 100 * height / full, rows[place][2], "free")
        for place, height in enumerate(behind)
    ]
    bars = [
        Bar(100 * place / count, 92 / count, 100 * height / full, f"{name}: {word}")
        for place, (name, height, word) in enumerate(rows)
    ]
    ends = (rows[0][0], rows[-1][0] if len(rows) > 1 else "") if rows else ("", "")
    return Chart(
        key, title, [*pale, *bars], ends, head, [(name, word) for name, _, word in rows], (), note, top
    )
