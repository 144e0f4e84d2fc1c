"""Which test files a run reads at all, and which of them are quick enough for the inner loop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import cache, partial
from itertools import product
from pathlib import Path

from _pytest.mark.expression import Expression

ROOT = Path(__file__).resolve().parent.parent
SECONDS = ROOT / "tests" / "seconds.txt"
FAST_MAX_S = 2.0
"""A file that takes longer is left out of `make test PARTS=fast`; a file that was never measured is not."""
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
def measured() -> dict[str, float]:
    """CPU seconds of each test file at the last measurement, by path from the root."""
    rows = (line.split() for line in SECONDS.read_text().splitlines() if line and line[0] != "#")
    return {path: float(seconds) for seconds, path in rows}


def write_measured(file: Path, spent: Mapping[str, float]) -> None:
    """Replace the measurements of these files; those of other files stay."""
    old = measured() if file.resolve() == SECONDS else {}
    known = {path: seconds for path, seconds in {**old, **spent}.items() if (ROOT / path).exists()}
    rows = [f"{seconds:.1f} {path}" for path, seconds in sorted(known.items())]
    file.write_text("\n".join(["# CPU seconds of each test file when last measured", *rows, ""]))


def is_fast(path: Path) -> bool:
    return measured().get(path.relative_to(ROOT).as_posix(), 0.0) <= FAST_MAX_S
