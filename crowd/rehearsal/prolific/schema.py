"""The documented schema of every request: the operation of a path, and what its query and body may hold."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

BASE = "/api/v1/"
NOTHING: dict[str, Any] = {"type": "object", "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path, with its validators."""

    name: str
    method: str
    pattern: re.Pattern[str]
    query: Any
    body: Any


@cache
def operations() -> tuple[Operation, ...]:
    document = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))
    definitions = document["$defs"]

    def validator(schema: dict[str, Any]) -> Any:
        return Draft202012Validator({**schema, "$defs": definitions})

    return tuple(
        Operation(
            name,
            said["method"],
            re.compile(BASE + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", said["path"])),
            validator(said.get("query", NOTHING)),
            validator(said.get("body", NOTHING)),
        )
        for name, said in document["operations"].items()
    )


def find(method: str, path: str) -> tuple[Operation | None, dict[str, str], bool]:
    """The operation, its path's names, and whether the path exists at all (for another method).

    A fixed path wins over one with a name in it: submissions/bulk-approve/ is no submission.
    """
    matched = [(each, match.groupdict()) for each in operations() if (match := each.pattern.fullmatch(path))]
    matched.sort(key=lambda pair: len(pair[1]))
    for each, names in matched:
        if each.method == method and len(names) == len(matched[0][1]):
            return each, names, True
    return None, {}, bool(matched)


def violations(operation: Operation, query: Mapping[str, list[str]], body: Any) -> dict[str, list[str]]:
    """The violations of a request, by member; empty: none. Secrets are not repeated: names and rules only."""
    broken: dict[str, list[str]] = {}
    for name, values in query.items():
        if len(values) > 1:
            broken.setdefault(name, []).append("given more than once")
    flat = {name: values[-1] for name, values in query.items()}
    for where, validator, value in (("query", operation.query, flat), ("body", operation.body, body)):
        for error in validator.iter_errors(value):
            name = ".".join(str(part) for part in error.absolute_path) or where
            broken.setdefault(name, []).append(error.message[:300])
    return broken
