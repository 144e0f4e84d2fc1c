"""The floors of the upper packages, read from the syntax trees: who imports whom; and in crowd/ who knows a
platform by its name, who writes to one, who may keep what.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from crowd.platforms import PLATFORMS, traits_of
from tests.house.test_architecture import ROOT, SOURCES, imports_of, nodes_of

pytestmark = pytest.mark.pure

FLOORS = {
    "experiments": (
        ("apps", "design", "errors", "models", "terminal", "tokens"),
        ("admin", "definition", "kinds"),
        ("paradigms", "selectors"),
        ("stages", "wording"),
        ("gates", "study_files"),
        ("drafting", "simulation"),
        ("opening", "sessions"),
        ("api", "management"),
        ("asking",),
    ),
    "analysis": (
        (
            "apps",
            "models",
            "pasta_records",
            "rater_review",
            "spreadsheet_cells",
            "stats",
            "timing_and_visual_angle",
        ),
        ("admin", "any_table", "columns", "planning"),
        ("facts", "frames"),
        ("seal",),
        ("ratings",),
        ("reports",),
        ("slot_counts",),
        ("tables",),
        ("stored_reports",),
        ("exports", "tasks"),
        ("preference",),
        ("management",),
    ),
    "crowd": (
        ("platforms",),
        ("models",),
        ("ground",),
        ("study_check",),
        ("new_study", "recruiting"),
        ("money",),
        ("joining", "people", "alerts"),
        ("tasks",),
        ("dashboard",),
        ("rehearsal",),
        ("management",),
    ),
}
"""From the ground up: a unit imports those below it; two of the same floor do not import each other."""
TOP = {"legible", "urls", "checks", "apps", "admin", "celery", "settings", "wsgi", "gunicorn"}
"""What Django and the servers start from; nothing in crowd imports it, but the app its Celery."""
TOPS = {"experiments": set[str](), "analysis": set[str](), "crowd": TOP}
CROWD = [name for name in SOURCES if name.startswith("crowd.") and ".migrations" not in name]
NAMED = ("platforms", "rehearsal")
"""The folders in which a platform is known by its name."""
SPEAKS = {
    "crowd.recruiting.publishing": {"publish", "pause", "resume", "close"},
    "crowd.recruiting.places": {"revise"},
    "crowd.money.sending": {"approve", "prepare", "pay"},
    "crowd.people.decisions": {"reject", "request_return"},
    "crowd.people.messages": {"message"},
    "crowd.management.commands.subscribe": {"subscribe"},
}
"""The modules that change something on a platform, and by which verbs."""
VERBS = {verb for verbs in SPEAKS.values() for verb in verbs}
WRITES = {
    "update",
    "create",
    "save",
    "delete",
    "bulk_create",
    "bulk_update",
    "get_or_create",
    "update_or_create",
}
KEEPS_FACTS = {"crowd.ground.platform_accounts", "crowd.recruiting.places"}
"""They hand the adapter's memory back and forth; they do not read it."""


def unit_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def floor_of(package: str, unit: str) -> int | None:
    return next((level for level, units in enumerate(FLOORS[package]) if unit in units), None)


def modules_of(package: str) -> list[str]:
    return [name for name in SOURCES if name.startswith(f"{package}.") and ".migrations" not in name]


@pytest.mark.parametrize("package", FLOORS)
def test_it_has_a_floor_for_every_unit(package: str) -> None:
    units = {unit_of(name) for name in modules_of(package)}
    assert units == {unit for units in FLOORS[package] for unit in units} | TOPS[package]


@pytest.mark.parametrize("package", FLOORS)
def test_it_climbs_no_stairs(package: str) -> None:
    wrong = []
    for name in modules_of(package):
        unit = unit_of(name)
        level = floor_of(package, unit)
        for statement in imports_of(name):
            other = unit_of(statement.imported)
            if not statement.imported.startswith(f"{package}.") or other == unit or level is None:
                continue
            above = floor_of(package, other)
            if above is None or above >= level:
                wrong.append(str(statement))
    assert not wrong, "\n".join(wrong)


def test_it_imports_the_simulators_from_the_commands_alone() -> None:
    users = {
        unit_of(name)
        for name in CROWD
        for statement in imports_of(name)
        if unit_of(statement.imported) == "rehearsal" and statement.imported.startswith("crowd.")
    }
    assert users <= {"rehearsal", "management"}


def test_it_knows_a_platform_by_its_traits_alone() -> None:
    """No name or title of a platform stands in code or page outside its folder and its simulator. Plain words
    ("local", "link") are names only if they are the whole text."""
    plain = {name for name in PLATFORMS if not traits_of(name).account}
    words = set(PLATFORMS) - plain
    titles = {word.lower() for name in words for word in (name, traits_of(name).title)}
    pattern = re.compile("|".join(map(re.escape, titles)), re.IGNORECASE)
    wrong = []
    for name in CROWD:
        if unit_of(name) in NAMED:
            continue
        texts = {id(node) for node in docstrings(name)}
        for node in nodes_of(name):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in texts else None
            if isinstance(text, str) and (text in plain or pattern.search(text)):
                wrong.append(f"{name} (line {getattr(node, 'lineno', 0)}): {text[:60]!r}")
            if isinstance(node, ast.Name | ast.Attribute | ast.alias):
                word = (
                    node.id
                    if isinstance(node, ast.Name)
                    else getattr(node, "attr", getattr(node, "name", ""))
                )
                if re.search(r"prolific|mturk", str(word), re.IGNORECASE):
                    wrong.append(f"{name} (line {getattr(node, 'lineno', 0)}): {word}")
    for path in sorted((ROOT / "crowd").rglob("*.html")):
        wrong += [f"{path.name}: {name}" for name in pattern.findall(path.read_text())]
    assert not wrong, "\n".join(wrong)


def docstrings(module: str) -> Iterator[ast.AST]:
    """Texts that stand by themselves: of modules, classes, functions and names."""
    for node in nodes_of(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def test_it_leaves_the_adapters_memory_to_the_adapters() -> None:
    wrong = [
        f"{name} (line {node.lineno})"
        for name in CROWD
        if unit_of(name) not in NAMED and name not in KEEPS_FACTS
        for node in nodes_of(name)
        if isinstance(node, ast.Attribute) and node.attr == "facts"
    ]
    assert not wrong, "\n".join(wrong)


def test_it_changes_a_platform_in_few_named_modules() -> None:
    """A call of a verb on a service, if the service is a name, or comes from `service_of(…)`."""
    speakers: dict[str, set[str]] = {}
    for name in CROWD:
        if unit_of(name) in NAMED:
            continue
        for node in nodes_of(name):
            if isinstance(node, ast.Attribute) and node.attr in VERBS and is_service(node.value):
                speakers.setdefault(name, set()).add(node.attr)
    assert speakers == SPEAKS


def is_service(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return is_service(node.func)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in {"service", "service_of", "open_service"}


def test_it_makes_rows_on_the_pages_and_nothing_else() -> None:
    """The dashboard neither writes nor speaks with a platform; a login link is used up where it is opened."""
    wrong = []
    for name in CROWD:
        if unit_of(name) != "dashboard" or name == "crowd.dashboard.login_links":
            continue
        for node in nodes_of(name):
            called = node.func if isinstance(node, ast.Call) else None
            if not isinstance(called, ast.Attribute) or called.attr not in WRITES:
                continue
            is_table = called.attr == "update" and isinstance(called.value, ast.Dict | ast.Name)
            if not is_table:
                wrong.append(f"{name} (line {called.lineno}) writes")
        wrong += [
            str(statement)
            for statement in imports_of(name)
            if statement.imported
            in {"crowd.ground.platform_accounts", "crowd.recruiting.sync", "crowd.money.sending"}
        ]
    assert not wrong, "\n".join(wrong)
