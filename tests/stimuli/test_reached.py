"""What stimuli offers is used: a command, task, address or table reaches every public function and class.

Read from the syntax trees: a definition is reached if code that is reached names it, by an import, by an
attribute of an imported module, or as "module:attribute" in a table.
"""

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.test_architecture import ROOMS, SOURCES, TREES, absolute

pytestmark = pytest.mark.pure

PARKED = "stimuli.parked."
"""The one place for what waits for its issue; it says for which."""
ALLOWED: dict[str, str] = {}
"""Other definitions that are not reached, each with its reason."""
DJANGO = ("stimuli.admin", "stimuli.apps", "stimuli.models")
Node = tuple[str, str]
"""A module and the name of a definition in it; "" is the module's own code, run when it is imported."""


def is_definition(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


@cache
def parts(module: str) -> dict[str, list[ast.stmt]]:
    """The module's statements by definition, the rest under ""."""
    nodes: dict[str, list[ast.stmt]] = {"": []}
    for node in TREES[module].body:
        nodes.setdefault(getattr(node, "name", "") if is_definition(node) else "", []).append(node)
    return nodes


@cache
def imported(module: str) -> dict[str, Node | str]:
    """Local name -> the definition or the module that it stands for."""
    origins: dict[str, Node | str] = {}
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            for alias in node.names:
                path = f"{base}.{alias.name}"
                origins[alias.asname or alias.name] = path if path in SOURCES else (base, alias.name)
        elif isinstance(node, ast.Import):
            origins |= {alias.asname or alias.name: alias.name for alias in node.names}
    return origins


def named_in(module: str, nodes: list[ast.stmt]) -> Iterator[Node]:
    """Every definition that these statements name."""
    known = imported(module)
    for node in (inner for statement in nodes for inner in ast.walk(statement)):
        if isinstance(node, ast.Name):
            target = known.get(node.id, (module, node.id))
            yield target if isinstance(target, tuple) else (target, "")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            base = known.get(node.value.id)
            if isinstance(base, str):
                yield base, node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            path, colon, name = node.value.partition(":")
            if colon and path in SOURCES:
                yield path, name


def reached(roots: list[Node]) -> set[Node]:
    done: set[Node] = set()
    waiting = list(roots)
    while waiting:
        module, name = node = waiting.pop()
        if node in done or module not in SOURCES:
            continue
        done.add(node)
        if name and name not in parts(module):  # passed on by a package's __init__, or a constant
            target = imported(module).get(name)
            waiting += [target] if isinstance(target, tuple) else []
        waiting += [(module, "")]
        waiting += named_in(module, parts(module).get(name, []))
    return done


def roots() -> list[Node]:
    """All code above stimuli, what Django finds by itself, and the tasks."""
    above = [name for name in SOURCES if name.split(".")[0] in ROOMS[1:] or name == "manage"]
    starts = [(name, part) for name in [*above, *DJANGO] for part in parts(name)]
    return starts + [("stimuli.tasks", name) for name in parts("stimuli.tasks")]


def unreached(start: list[Node]) -> set[str]:
    used = reached(start)
    return {
        f"{module}.{name}"
        for module in SOURCES
        if module.startswith("stimuli.") and not module.startswith((PARKED, "stimuli.migrations"))
        for name in parts(module)
        if name and not name.startswith("_") and (module, name) not in used
    }


def test_it_reaches_every_public_definition_of_stimuli() -> None:
    left = unreached(roots()) - ALLOWED.keys()
    assert not left, "\n".join(sorted(left))


def test_it_allows_nothing_that_is_reached() -> None:
    assert ALLOWED.keys() <= unreached(roots())


def test_it_sees_what_nothing_reaches() -> None:
    """Without its tasks, stimuli never sweeps: the test would say so."""
    without = [(module, name) for module, name in roots() if module != "stimuli.tasks"]
    assert "stimuli.tasks.sweep_stimuli" in unreached(without)


def test_it_keeps_folders_small() -> None:
    """Beside their `__init__.py`, which is a table or a sentence."""
    folders = {path.parent for module, path in SOURCES.items() if module.startswith("stimuli")}
    counts = {folder.name: len([*folder.glob("*.py")]) - 1 for folder in folders}
    assert max(counts.values()) <= 14, counts
