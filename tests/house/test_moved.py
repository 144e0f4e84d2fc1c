"""docs/moved.md is true: everything that it names is there; documented paths that moved are still served."""

from __future__ import annotations

import ast
import importlib
import re
import sys

import pytest

from tests.house.test_architecture import ROOT

pytestmark = pytest.mark.pure

MOVED = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", (ROOT / "docs/moved.md").read_text(), re.MULTILINE)
DOCUMENTED = (
    ("experiments.definition", "StudyDefinition", "experiments.definition.study"),
    ("analysis.reports.flow", "flow_section", "analysis.reports.parts.flow"),
    ("analysis.stats.proportions", "wilson", "analysis.stats.shares.proportions"),
)
"""What docs/adding.md and the toys imported before: the old module, a name in it, and its new module."""


def names_in(path: str) -> set[str]:
    """The classes and functions of a file, methods with their class: `Report.main`."""
    tree = ast.parse((ROOT / path).read_text())
    named: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            named |= {
                f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)
            }
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            named.add(node.name)
    return named


def test_every_new_place_is_there() -> None:
    assert len(MOVED) > 700
    for before, now in MOVED:
        path, _, name = now.partition(":")
        assert (ROOT / path).is_file(), now
        assert not name or name in names_in(path), now
        old_path, _, old_name = before.partition(":")
        if name and (ROOT / old_path).is_file():
            assert old_name not in names_in(old_path), before


@pytest.mark.parametrize(("old", "name", "new"), DOCUMENTED)
def test_a_documented_path_that_moved_is_served_and_says_so(old: str, name: str, new: str) -> None:
    if old != new.rpartition(".")[0]:
        sys.modules.pop(old, None)  # A file that warns when it is imported first.
    with pytest.warns(DeprecationWarning, match=re.escape(new)):
        served = getattr(importlib.import_module(old), name)
    assert served is getattr(importlib.import_module(new), name)


def test_an_old_address_serves_no_more_than_it_did() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        importlib.import_module("experiments.definition").Nonsense  # noqa: B018
