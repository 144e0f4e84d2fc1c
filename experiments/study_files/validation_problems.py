"""What pydantic says of a study's tables, as problems with key, value, limit and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic import BaseModel, ValidationError

from experiments.definition.study import Stimuli, StudyDefinition
from experiments.errors import Problem
from experiments.study_files.toml_lines import KeyPath, cut, key_of
from stimuli.registry import TOO_FEW, closest, faults_of, parts_of

KEYS_MAX = 12
"""Up to here, the keys of a table are listed for one that is like none of them."""
STAND_INS: Mapping[KeyPath, Any] = {
    ("slug",): "study",
    ("title",): "Study",
    ("seed",): 0,
    ("ethics",): {"contact": "lab@example.org"},
    ("ethics", "contact"): "lab@example.org",
    ("reward",): {"expected_minutes": 5},
    ("reward", "expected_minutes"): 5,
}
"""What stands for required keys that are missing or wrong, to check the rest of a file that is refused."""


def problems_of(
    error: ValidationError, table: type[BaseModel], raw: object, prefix: str = ""
) -> Iterator[Problem]:
    """Each mistake of the value `raw` of a table, which is called `prefix`, once."""
    told = set()
    for detail in faults_of(error):
        path = _path_in(raw, detail)
        if path in told or _is_echo(detail, raw):
            continue
        told.add(path)
        yield _problem_of(detail, table, key_of((*([prefix] if prefix else []), *path)) or "study")


def likely_definition(raw: Mapping[str, Any]) -> tuple[StudyDefinition | None, set[KeyPath]]:
    """The definition with each wrong value at its default or a stand-in, and where; None if that is none
    either."""
    guess, replaced = deepcopy(dict(raw)), set[KeyPath]()
    for _ in range(4):
        try:
            return StudyDefinition.model_validate(guess), replaced
        except ValidationError as error:
            wrong = dict.fromkeys(_path_in(guess, detail) for detail in faults_of(error))
            replaced |= set(wrong)
            for path in wrong:
                if not _replace(guess, path):
                    return None, replaced
    return None, replaced


def _replace(guess: dict[str, Any], path: KeyPath) -> bool:
    """Puts the stand-in of a key there, or leaves the key out, or that key of a required table without which
    the table is in order. False if none of it can be done."""
    table: Any = guess
    for part in path[:-1]:
        table = table[part]
    if not path or not isinstance(table, dict):
        return False
    if path == ("stimuli",) and isinstance(guess["stimuli"], dict):
        whole = guess["stimuli"]
        less = ({k: v for k, v in whole.items() if k != key} for key in reversed(whole))
        guess["stimuli"] = next(filter(_is_stimuli, less), None)
        return guess["stimuli"] is not None
    if path in STAND_INS:
        table[path[-1]] = deepcopy(STAND_INS[path])
        return True
    return table.pop(path[-1], None) is not None


def _is_stimuli(table: object) -> bool:
    try:
        return bool(Stimuli.model_validate(table))
    except ValidationError:
        return False


def _path_in(raw: object, detail: Any) -> KeyPath:
    """The place of a mistake by keys that the file has, without the names of alternatives that were tried."""
    path: list[str | int] = []
    value = raw
    for part in detail["loc"]:
        if (
            isinstance(value, Mapping)
            and part in value
            or isinstance(value, Sequence)
            and isinstance(part, int)
            and part < len(value)
        ):
            value = value[part]
        elif detail["type"] == "missing" and isinstance(value, Mapping):
            return (*path, part)
        else:
            break
        path.append(part)
    return tuple(path)


def _is_echo(detail: Any, raw: object) -> bool:
    """A tuple whose parts are wrong counts as too short as well; the parts' own mistakes say more. The rules
    of screening are read by the module that knows them."""
    rows = raw.get("conditions") if isinstance(raw, Mapping) else None
    if len(detail["loc"]) > 1 and detail["loc"][0] == "screening":
        return True
    return detail["type"] == "too_short" and detail["loc"] == ("conditions",) and bool(rows)


def _problem_of(detail: Any, table: type[BaseModel], key: str) -> Problem:
    kind, value = detail["type"], _written(detail["input"])
    if kind == "missing":
        return Problem(key, "", "is missing", "Add it.")
    if kind == TOO_FEW:
        return Problem(key, value, str(detail["msg"]), "Add what is missing.")
    if kind == "extra_forbidden":
        hint = _near(str(detail["loc"][-1]), _table_at(table, detail["loc"][:-1]))
        return Problem(key, value, f"is not a key of this table{hint}", "Remove it, or mend its spelling.")
    message = re.sub(r"^(Value error, |\w+ should (?=(be|have|match)\b))", _must, str(detail["msg"]))
    limit, colon, remedy = message.rpartition(": ")
    if kind == "value_error" and colon:
        return Problem(key, value, limit, f"{remedy[:1].upper()}{remedy[1:]}.")
    return Problem(key, value, message[:1].lower() + message[1:], "Change the value.")


def _must(match: re.Match[str]) -> str:
    return "must " if match[2] else ""


def _written(value: object) -> str:
    """A value as its file has it, as far as a message repeats it; "" for a table, whose key says enough."""
    if isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(v, Mapping) for v in value)):
        return ""
    return cut(str(value).lower() if isinstance(value, bool) else repr(value))


def _table_at(table: type[BaseModel], path: Iterable[object]) -> type[BaseModel]:
    """The innermost table that a path leads through; names and numbers of rows lead to no other."""
    for part in path:
        declared = table.model_fields.get(str(part))
        inner = parts_of(declared.annotation) if declared is not None else ()
        table = next((t for t in inner if isinstance(t, type) and issubclass(t, BaseModel)), table)
    return table


def _near(key: str, table: type[BaseModel]) -> str:
    """The key of the table that was meant, or what keys there are; "" if they are many and none is near."""
    known = list(table.model_fields)
    few = f"; its keys are {', '.join(known)}" if known and len(known) <= KEYS_MAX else ""
    return closest(key, known) or few
