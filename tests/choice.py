"""Which test files a run reads at all, and which of them are quick enough for the inner loop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import cache, partial
from itertools import product
from pathlib import Path

from _pytest.mark.expression import Expression

from tests import budget

ROOT = Path(__file__).resolve().parent.parent
FAST_MAX_S = 0.5
"""A file that takes longer, or was never measured, is left out of `make test PARTS=fast`."""
_MARK = re.compile(r"\bmark\.(\w+)")
_WHOLE_FILE = re.compile(r"^pytestmark = (.*)$", re.MULTILINE)


def may_hold(text: str, expression: str) -> bool:
    """Say whether a test file may hold a test that `-m expression` chooses.

    The source is read, not imported, which is a thousand times faster: a mark of the whole file is certain,
    any other mark in it is possible, and no test has a mark that the file never mentions.
    """
    if not expression:
        return True
    compiled = Expression.compile(expression)
    certain = {name for marks in _WHOLE_FILE.findall(text) for name in _MARK.findall(marks)}
    possible = sorted((set(_MARK.findall(text)) & set(re.findall(r"\w+", expression))) - certain)
    for choice in product((False, True), repeat=len(possible)):
        present = certain | {name for name, is_there in zip(possible, choice, strict=True) if is_there}
        if compiled.evaluate(partial(_is_among, present)):
            return True
    return False


def _is_among(present: Set[str], name: str, /, **_: str | int | bool | None) -> bool:
    return name in present


@cache
def measured() -> Mapping[str, float]:
    """CPU seconds of each test file at the last measurement, by path from the root."""
    return budget.Measurement.read(budget.SECONDS.read_text()).seconds


def is_fast(path: Path) -> bool:
    """Whether the file was measured, and was quick."""
    return measured().get(path.relative_to(ROOT).as_posix(), float("inf")) <= FAST_MAX_S
