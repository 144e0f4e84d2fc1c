"""The rule of what is left to `make prove PARTS=long` (tests/run/choice.py): each test is long, a shorter one
of the same code stays, and all together keep to their budget."""

from __future__ import annotations

import ast
import tomllib

import pytest
from _pytest.mark.expression import Expression

from setup.prove import PROOFS
from tests import trees
from tests.run import budget, choice
from tests.run.budget import Measurement

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


def functions(path: str) -> dict[str, str]:
    """Each function of a file, with the text of its decorators."""
    tree = trees.walked((budget.ROOT / path).read_text())
    defined = [node for node in tree if isinstance(node, ast.FunctionDef)]
    return {node.name: " ".join(map(ast.unparse, node.decorator_list)) for node in defined}


def full() -> dict[str, str]:
    """The functions of which a proof of its own runs all or some cases, with name and decorators."""
    marked = ((path, functions(path)) for path in files())
    return {
        f"{path}::{name}": f"{name} {text}"
        for path, each in marked
        for name, text in each.items()
        if "mark.full" in text
    }


def is_run(command: tuple[str, ...], test: str, text: str) -> bool:
    """Whether a unit of a proof runs the test; `text`: its name and decorators, which name cases."""
    named = [word for word in command if word.startswith("tests/")]
    words = command[command.index("-k") + 1] if "-k" in command else ""
    is_chosen = not words or Expression.compile(words).evaluate(lambda name, /, **_: name in text)
    is_named = any(word.partition("[")[0] in (test, test.partition("::")[0]) for word in named)
    return "--full" in command and is_named and is_chosen


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
    gone, left_out = [], whole() | full().keys()
    for function, named in longs().items():
        for stays in named:
            path, _, name = stays.partition("::")
            is_there = path in files() and name.partition("[")[0] in functions(path)
            if not is_there or stays.partition("[")[0] in left_out:
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


def test_each_full_test_is_run_by_a_proof() -> None:
    commands = [unit.command for proof in PROOFS for unit in proof.units]
    idle = [test for test, text in full().items() if not any(is_run(each, test, text) for each in commands)]
    assert full() and not idle, "nothing runs these: name them in setup/proofs.toml, or mark them long"
    command, test = ("--full", "tests/a/test_x.py", "-k", "covers"), "tests/a/test_x.py::test_it"
    assert is_run(command, test, "test_it_covers") and not is_run(command, test, "test_it_differs")
    assert not is_run(command[1:], test, "test_it_covers")
    assert not is_run(command, "tests/a/test_y.py::test_it", "test_it_covers")
