"""The rule of what is left to `make prove PARTS=long` (tests/choice.py): each test is long, a shorter one of
the same code stays, and all together keep to their budget."""

from __future__ import annotations

import ast
import tomllib

import pytest

from tests import budget, choice, trees
from tests.budget import Measurement

pytestmark = pytest.mark.pure

TOLD = """
import pytest
MORE = pytest.mark.long(stays="test_short")
MANY = ["a", pytest.param("b", marks=MORE)]

@pytest.mark.long(stays="tests/test_y.py::test_other")
def test_whole(): ...

@pytest.mark.parametrize("name", MANY)
def test_some(name): ...

@pytest.mark.parametrize("name", ["a", pytest.param("b", marks=pytest.mark.long)])
def test_short(name): ...
"""


def longs() -> dict[str, list[str]]:
    """The tests that stay, by the function of which all or some cases are long."""
    named: dict[str, list[str]] = {}
    for path in files():
        for function, mark, _ in choice.long_marks((budget.ROOT / path).read_text()):
            named.setdefault(f"{path}::{function}", []).append(choice.stays(path, mark))
    return named


def files() -> list[str]:
    tests = budget.ROOT / "tests"
    shared = (path.relative_to(budget.ROOT).as_posix() for path in tests.rglob("conftest.py"))
    return [*budget.files_of_tests(), *shared]


def whole() -> set[str]:
    """The functions whose every case is long."""
    marks = ((path, choice.long_marks((budget.ROOT / path).read_text())) for path in files())
    return {f"{path}::{function}" for path, read in marks for function, _, is_whole in read if is_whole}


def functions(path: str) -> set[str]:
    tree = trees.walked((budget.ROOT / path).read_text())
    return {node.name for node in tree if isinstance(node, ast.FunctionDef)}


def test_marks_are_read_where_they_stand() -> None:
    read = [
        (name, choice.stays("tests/test_x.py", mark), all_of_it)
        for name, mark, all_of_it in choice.long_marks(TOLD)
    ]
    assert read == [
        ("test_whole", "tests/test_y.py::test_other", True),
        ("test_some", "tests/test_x.py::test_short", False),
        ("test_short", "", False),
    ]


def test_each_long_test_names_a_shorter_one_that_stays() -> None:
    gone, long = [], whole()
    for function, named in longs().items():
        for stays in named:
            path, _, name = stays.partition("::")
            is_there = path in files() and name.partition("[")[0] in functions(path)
            if not is_there or stays in long:
                gone.append(f"{function} is long, and {stays or 'no test'} does not stay for it")
    assert not gone


def test_each_long_test_takes_long() -> None:
    measured = Measurement.read(choice.LONG.read_text())
    short = {
        test: spent
        for test, spent in measured.seconds.items()
        if spent / measured.loop_s < choice.LONG_MIN_UNITS and test in longs()
    }
    assert not short, "these are no longer long: let make test run them"
    assert len(set(longs()) - set(measured.seconds)) <= budget.UNMEASURED_MAX, "measure, make seconds"


def test_all_long_tests_keep_their_budget() -> None:
    measured = Measurement.read(choice.LONG.read_text())
    [most] = [tomllib.loads(budget.BUDGET.read_text())["long"]["units"]]
    assert 0 < sum(measured.seconds.values()) / measured.loop_s <= most
