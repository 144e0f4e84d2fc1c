"""What a room offers is used: a command, task, address or table reaches every public function and class.

Read from the syntax trees: a definition is reached if code that is reached names it, by an import, by an
attribute of an imported module, as "module:attribute" in a table, or as "module.attribute" in the settings.
"""

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.house.test_architecture import ROOMS, SOURCES, TREES, absolute, nodes_of

pytestmark = pytest.mark.pure

ANYBODY = "analyses of any table, and power for each planned test (issue 16)"
ALLOWED: dict[str, str] = {
    "analysis.tables.missing_codes.code_of": "labs ask why a cell is empty (docs/data.md)",
    "analysis.tables.stimuli.spec_of": "reviewers make a picture again with it (docs/data.md)",
    "analysis.pasta_records.records_from": "a lab writes its table of answers as records (docs/data.md)",
    "analysis.stats.planning.anova_power.effect_size_f": ANYBODY,
    "analysis.stats.planning.sequential_looks.crossing_probability": ANYBODY,
    "analysis.stats.planning.anova_power.effect_size_f_from_eta_squared": ANYBODY,
}
"""What else nothing reaches, each with its reason."""
FOUND_BY_NAME = (
    "admin",
    "apps",
    "celery",
    "checks",
    "gunicorn",
    "models",
    "settings",
    "tasks",
    "urls",
    "wsgi",
)
"""Modules that Django, Celery and gunicorn look for."""
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
    for node in nodes_of(module):
        if isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            for alias in node.names:
                path = f"{base}.{alias.name}"
                origins[alias.asname or alias.name] = path if path in SOURCES else (base, alias.name)
        elif isinstance(node, ast.Import):
            origins |= {alias.asname or alias.name: alias.name for alias in node.names}
    return origins


@cache
def named_in(module: str, name: str) -> tuple[Node, ...]:
    """Every definition that the statements of this one name."""
    return tuple(_named_in(module, parts(module).get(name, [])))


def _named_in(module: str, nodes: list[ast.stmt]) -> Iterator[Node]:
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
            path, mark, name = node.value.partition(":")
            if not mark:
                path, mark, name = node.value.rpartition(".")
            if mark and path in SOURCES:
                yield path, name
            if node.value in SOURCES:
                yield from ((node.value, part) for part in parts(node.value))


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
        waiting += named_in(module, name)
    return done


def is_root(module: str) -> bool:
    """Whether it is run by a person, or found by its name."""
    words = module.split(".")
    return (
        bool({"management", "migrations", "scripts", "templatetags"} & set(words))
        or words[-1] in FOUND_BY_NAME
    )


def roots() -> list[Node]:
    starts = [module for module in SOURCES if is_root(module) or module in ("manage", "crowd.legible")]
    return [(module, part) for module in starts for part in parts(module)]


@cache
def unused() -> set[str]:
    """What nothing reaches today."""
    return unreached(roots())


def unreached(start: list[Node]) -> set[str]:
    used = reached(start)
    return {
        f"{module}.{name}"
        for module in SOURCES
        if module.split(".")[0] in ROOMS
        for name in parts(module)
        if name and not name.startswith("_") and (module, name) not in used
    }


def test_it_reaches_every_public_definition() -> None:
    left = unused() - ALLOWED.keys()
    assert not left, "\n".join(sorted(left))


def test_it_allows_nothing_that_is_reached() -> None:
    assert ALLOWED.keys() <= unused()


@pytest.mark.parametrize(
    ("module", "lost"),
    [
        ("analysis.management.commands.report", "analysis.exports.report_from_package.rebuilt"),
        ("experiments.management.commands.recheck_stimuli", "stimuli.recheck.recheck"),
    ],
)
def test_it_sees_what_nothing_reaches(module: str, lost: str) -> None:
    """If a command goes, what only it used must go with it."""
    assert lost not in unused()
    without = [(name, part) for name, part in roots() if name != module]
    assert lost in unreached(without)


def test_it_keeps_folders_small() -> None:
    """Beside their `__init__.py`, which is a table or a sentence."""
    folders = {path.parent for module, path in SOURCES.items() if module.startswith("stimuli")}
    counts = {folder.name: len([*folder.glob("*.py")]) - 1 for folder in folders}
    assert max(counts.values()) <= 15, counts
