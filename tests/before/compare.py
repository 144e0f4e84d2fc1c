"""What differs between a report of f38355e and today's, value by value. New values do not count."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROSE = {"sentence", "heading", "note"}
"""Sentences, which may be written more plainly."""
OF_ITS_MAKING = {"made_at", "code_version"}
LEAST_PEOPLE = 5
"""With fewer in a condition Utility has no interval any more: they held too seldom."""
MADE_OTHERWISE = {"utility", "utility_k", "utility_simultaneous"}
"""Intervals that were bootstraps and are Fieller's. `utility_fieller` was Fieller's then, and is the same."""
BLOCK = re.compile(r"^(B|K=)\d+$")
OF_TRIALS = re.compile(r"\.as_assigned\.conditions\[\d+\]\.(utility|intervals\.utility_fieller\[\d\])$")
"""Of people who left within a block: by all their trials now, by the mean over their blocks then."""


def differences(before: object, after: object, where: str = "") -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _tables(before, after, where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{where}[{place}]")
    elif not _equal(before, after) and not OF_TRIALS.fullmatch(where):
        yield f"{where}: {before!r:.80} became {after!r:.80}"


def _tables(before: Mapping[str, object], after: Mapping[str, object], where: str) -> Iterator[str]:
    for name, old in before.items():
        if name in OF_ITS_MAKING:
            continue
        if name not in after:
            yield f"{where}.{name} is gone"
        elif name in PROSE:
            if not isinstance(after[name], str):
                yield f"{where}.{name} is no text any more"
        elif name == "intervals":
            yield from differences(_believed(before), _believed(after), f"{where}.{name}")
        else:
            yield from differences(old, after[name], f"{where}.{name}")


def _believed(row: Mapping[str, object]) -> object:
    """The intervals of a condition that are what they were, of Utility only with enough people."""
    intervals, people = row["intervals"], row.get("n", 0)
    if not isinstance(intervals, Mapping):
        return intervals
    is_few = isinstance(people, int) and people < LEAST_PEOPLE
    gone = MADE_OTHERWISE | ({"utility_fieller"} if is_few else set())
    return {name: value for name, value in intervals.items() if name not in gone}


def _equal(before: object, after: object) -> bool:
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    if isinstance(before, int | float) and isinstance(after, int | float):
        return math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12)
    return before == after


def table_of(printed: str, *first: str) -> list[list[str]]:
    """The rows of the printed main table that begin with these words, without the interval of Utility, p and
    the star, which are those of other methods now; the star stands at accuracy, which it tests. Blocks were
    named by their number then, and by the examples seen so far now."""
    lines = (line.strip() for line in printed.splitlines() if line.startswith(first))
    rows = [re.split(r"\s{2,}", line) for line in lines]
    return [
        [BLOCK.sub("block", cell).rstrip("*") for cell in (row[:-2] if len(row) > 6 else row)]
        for row in rows
        if row[1] == "n" or row[1].isdigit()
    ]


def as_drawn_then(path: Path) -> dict[str, Any]:
    """The recipe of a stored study.toml as it was read then, when every study had `absolute`."""
    render = tomllib.loads(path.read_text(encoding="utf-8")).get("render", {})
    return {"render": {"absolute": True, **render}}
