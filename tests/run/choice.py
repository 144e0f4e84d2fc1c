"""Which test files a run reads at all, which of them are quick enough for the inner loop, and which tests are
left to `make prove PARTS=long`.

The rule of `long`, for a test function and all its long cases together: it costs at least LONG_MIN_UNITS, and
a shorter test of the same code stays in `make test`, which the mark names: `long(stays="test_it_is_drawn")`
in the same file, or `long(stays="tests/crowd/dashboard/test_sheet.py::test_x")`. What has no shorter test
stays itself; what a proof of its own runs (setup/prove.py) is marked `full` instead. tests/long.txt says what
each costs; all of them together keep to a budget (tests/budget.toml).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from functools import cache, partial
from itertools import product
from pathlib import Path

from _pytest.mark.expression import Expression

from tests import trees
from tests.run import budget

ROOT = Path(__file__).resolve().parents[2]
FAST_MAX_S = 0.5
"""A file that takes longer, or was never measured, is left out of `make test PARTS=fast`."""
LONG = ROOT / "tests" / "long.txt"
"""What each long test cost when it was last measured (`make prove PARTS=long`, `make seconds`)."""
LONG_MIN_UNITS = 12.0
"""In loops of tests/run/budget.py: about a second."""
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


def long_marks(source: str) -> Iterator[tuple[str, ast.Call | ast.Attribute, bool]]:
    """Each mark `long` in a test file: the function, the mark, and whether all cases of the function have it.

    A mark may stand in a list of cases that the file names; it then belongs to each function that takes them.
    """
    tree = trees.parsed(source)
    values = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for function in _functions(tree):
        for decorator in function.decorator_list:
            is_whole = _is_long(decorator)
            for mark in _longs(decorator, values):
                yield function.name, mark, is_whole


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef):
                yield function


def _longs(tree: ast.AST, values: Mapping[str, ast.expr]) -> Iterator[ast.Call | ast.Attribute]:
    """The marks in a piece of code, and in the `values` of the module's names that it uses."""
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_long(node):
            called.add(node.func)
            yield node
        elif isinstance(node, ast.Attribute) and _is_long(node) and node not in called:
            yield node
        elif isinstance(node, ast.Name) and node.id in values:
            # Without its own name, which the value may hold again.
            yield from _longs(values[node.id], {k: v for k, v in values.items() if k != node.id})


def _is_long(node: ast.AST) -> bool:
    named = node.func if isinstance(node, ast.Call) else node
    return isinstance(named, ast.Attribute) and ast.unparse(named).endswith("mark.long")


def stays(path: str, mark: ast.Call | ast.Attribute) -> str:
    """The test that a mark in the file names, with its path; empty if it names none."""
    words = mark.keywords if isinstance(mark, ast.Call) else []
    [name] = [ast.literal_eval(word.value) for word in words if word.arg == "stays"] or [""]
    return name if "::" in name or not name else f"{path}::{name}"
