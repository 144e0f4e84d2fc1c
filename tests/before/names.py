"""The names by which the outside holds on to Legible, collected from the running code: environment, commands,
addresses, the API, study.toml. The same file collected those of f38355e (names.json.xz) and collects today's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tests import services

ROOMS = ("stimuli", "experiments", "analysis", "crowd")
RECORD = """
import json, os, sys
root, seen = os.getcwd() + os.sep, set()
def is_ours(depth):
    file = sys._getframe(depth + 1).f_code.co_filename
    return file.startswith(root) and "site-packages" not in file
class Recording(type(os.environ)):
    def __getitem__(self, name):
        if is_ours(1) or is_ours(2):
            seen.add(name)
        return super().__getitem__(name)
os.environ.__class__ = Recording
import crowd.settings, crowd.celery  # a worker reads its name of the settings too
print(json.dumps(sorted(seen)))
"""


def collected() -> dict[str, Any]:
    return {
        "environment": environment(),
        "commands": commands(),
        "addresses": sorted(addresses()),
        "api": sorted(api()),
        "toml": toml(),
        "design": design(),
    }


def environment() -> list[str]:
    """Every variable that the settings ask for, seen while they are loaded."""
    done = subprocess.run(
        [sys.executable, "-c", RECORD],
        cwd=services.ROOT,
        env={**os.environ, "PYTHONPATH": str(services.ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [str(name) for name in json.loads(done.stdout.splitlines()[-1])]


def commands() -> dict[str, dict[str, Any]]:
    """Command -> its arguments, with what they take and their defaults."""
    from django.core.management import get_commands, load_command_class

    options = {}
    for name, app in sorted(get_commands().items()):
        if str(app).split(".")[0] not in ROOMS:
            continue
        parser = load_command_class(str(app), name).create_parser("manage.py", name)
        arguments = [action for action in parser._actions if action.dest not in BUILT_IN]
        options[name] = {
            " ".join(action.option_strings) or action.dest: {
                "default": plain(action.default),
                "choices": sorted(map(str, action.choices)) if action.choices else None,
                "values": plain(action.nargs),
                "required": action.required,
            }
            for action in arguments
        }
    return options


BUILT_IN = {
    *("help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color"),
    "skip_checks",
}


def plain(value: object) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def addresses() -> Iterator[str]:
    """Every address that is served, as its pattern, except those of the admin."""
    from django.urls import URLPattern, URLResolver, get_resolver

    def walk(resolver: URLResolver, before: str) -> Iterator[str]:
        for entry in resolver.url_patterns:
            here = before + str(entry.pattern)
            if isinstance(entry, URLResolver):
                if not here.startswith("admin/"):
                    yield from walk(entry, here)
            elif isinstance(entry, URLPattern):
                yield here

    yield from walk(get_resolver(), "")


def api() -> Iterator[str]:
    """What may be sent and what comes back, name by name: "POST /api/sessions/ request: query (string)".

    Unions are laid over each other, so a member that splits into kinds keeps its names.
    """
    from django.test import Client

    schema = Client().get("/api/schema/", {"format": "json"}).json()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path}"
            body = operation.get("requestBody", {}).get("content", {})
            for part in body.values():
                yield from (f"{where} request: {name}" for name in members(schema, part["schema"]))
            for status, reply in operation["responses"].items():
                for part in reply.get("content", {}).values():
                    yield from (f"{where} {status}: {name}" for name in members(schema, part["schema"]))


def members(schema: Mapping[str, Any], part: Mapping[str, Any], where: str = "") -> Iterator[str]:
    while "$ref" in part:
        part = schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]]
    for union in ("oneOf", "anyOf", "allOf"):
        for inner in part.get(union, ()):
            yield from members(schema, inner, where)
    for name, inner in part.get("properties", {}).items():
        yield f"{where}{name}"
        yield from members(schema, inner, f"{where}{name}.")
    if isinstance(part.get("items"), Mapping):
        yield from members(schema, part["items"], f"{where}[].")
    for value in part.get("enum", ()):
        yield f"{where}= {value}"


def toml() -> dict[str, Any]:
    """Key of study.toml -> its default; "required" if there is none."""
    from experiments.definition.study import StudyDefinition
    from experiments.definition.text_tables import TextFiles

    defaults = keys(StudyDefinition.model_json_schema())
    defaults = {name: default for name, default in defaults.items() if not name.startswith("texts.")}
    return defaults | {
        f"texts.{name}": default for name, default in keys(TextFiles.model_json_schema()).items()
    }


def design() -> dict[str, Any]:
    """Paradigm -> key of its [design] table -> default."""
    from experiments.paradigms import PARADIGMS, get_paradigm

    return {name: keys(get_paradigm(name).Design.model_json_schema()) for name in sorted(PARADIGMS)}


def keys(schema: Mapping[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {}

    def walk(part: Mapping[str, Any], where: str) -> None:
        if "$ref" in part:
            return walk(schema["$defs"][part["$ref"].rsplit("/", 1)[1]], where)
        for inner in (*part.get("anyOf", ()), *part.get("allOf", ())):
            walk(inner, where)
        if isinstance(part.get("items"), Mapping):
            walk(part["items"], where)
        if isinstance(part.get("additionalProperties"), Mapping):
            walk(part["additionalProperties"], f"{where}*.")
        for name, inner in part.get("properties", {}).items():
            is_required = name in part.get("required", ())
            defaults[where + name] = "required" if is_required else inner.get("default")
            walk(inner, f"{where}{name}.")

    walk(schema, "")
    return defaults


def paths(value: object, where: str = "") -> Iterator[str]:
    """Every key of a JSON value as a dotted path; the places of a list are all written []."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield f"{where}{name}"
            yield from paths(inner, f"{where}{name}.")
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{where}[].")
