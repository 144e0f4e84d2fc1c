"""A TOML file read line by line: where each key stands, and every line that cannot be read. `tomllib` tells
the first fault alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.errors import Problem

KeyPath = tuple[str | int, ...]
SHOWN = 60
"""Characters of a value that a message repeats."""
NAME = re.compile(r"""\s*\[*\s*["']?([A-Za-z0-9_.\-]+?)(?:["']?\s*[=\]]|(?<=[A-Za-z_])\s*$)""")
"""What a line that cannot be read is about: the key before its sign, or the table in its brackets."""
NO_KEY = "file"
"""What a mistake is about if it is about no key."""
MEND = "Mend that line."
PLACE = re.compile(r" \(at [^)]*\)$")


@dataclass(slots=True)
class TomlText:
    """`tables` are those of all lines that can be read. `lines` maps the path of a key, with the numbers of
    rows, to its line from 1; `unread` are the paths that other lines were about."""

    tables: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unread: set[KeyPath] = field(default_factory=set)

    def add(self, path: KeyPath, line: int, value: str, limit: str, remedy: str) -> None:
        self.problems.append(Problem(key_of(path) or NO_KEY, cut(value), limit, remedy, f"line {line}"))

    def line_of(self, path: KeyPath) -> int | None:
        """The line of the key, or of the innermost table around it that the file has."""
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), None)

    def is_unread(self, path: KeyPath) -> bool:
        """Whether a fault at this path may only follow from a line that could not be read."""
        return any(path[: len(other)] == other[: len(path)] for other in self.unread)


def read_toml(text: str) -> TomlText:
    """Reads what can be read; a line that cannot is a problem, and so is a key that is given twice."""
    read, table, rows = TomlText(), KeyPath(), dict[KeyPath, int]()
    kept, is_lost, fault = "", False, ""
    try:
        read.tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        fault = str(error)
    for number, statement, parsed in _statements(text.replace("\r\n", "\n").split("\n")):
        is_header = statement.lstrip().startswith("[")
        if is_lost and not is_header:  # It belongs to a table whose head cannot be read.
            continue
        if parsed is None:
            path = _named(statement) if is_header else (*table, *_named(statement))
            read.unread.add(path)
            read.add(path, number, _value(statement), f"is not TOML: {_reason(statement)}", MEND)
            is_lost = is_header
            continue
        paths = list(_paths(parsed))
        path = _with_rows(paths[-1], rows) if is_header else (*table, *paths[0])
        kept += f"{statement}\n"
        if fault:
            try:
                read.tables = tomllib.loads(kept)
            except tomllib.TOMLDecodeError:
                kept = kept.removesuffix(f"{statement}\n")
                first = f" on line {read.lines[path]}" if path in read.lines else ""
                read.add(path, number, "", f"is given already{first}", "Keep one of them.")
                is_lost = is_header
                read.unread |= {path} if is_header else set()
                continue
        is_lost = False
        if is_header:
            table = _with_rows(paths[-1], rows, is_row=statement.lstrip().startswith("[["))
            read.lines.setdefault(paths[-1], number)
            read.lines.setdefault(table, number)
        for path in () if is_header else paths:
            read.lines.setdefault((*table, *path), number)
    if fault and not read.problems:
        read.problems.append(Problem(NO_KEY, "", f"is not TOML: {fault}", MEND))
    return read


def _statements(lines: list[str]) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Each head of a table and each key with its value, with its line from 1 and what it says alone; None if
    that cannot be read, however many of the lines below are taken with it."""
    start = 0
    while start < len(lines):
        for end in range(start + 1, len(lines) + 1):
            statement = "\n".join(lines[start:end])
            try:
                parsed = tomllib.loads(statement)
            except tomllib.TOMLDecodeError:
                continue
            if parsed:
                yield start + 1, statement, parsed
            break
        else:
            end = start + 1
            # The rest of a value over several lines says nothing that the line with its key does not.
            if NAME.match(lines[start]):
                yield end, lines[start], None
        start = end


def _named(statement: str) -> KeyPath:
    match = NAME.match(statement)
    return tuple(match[1].split(".")) if match else ()


def _value(statement: str) -> str:
    """What stands behind the sign, or the whole head of a table."""
    return statement.strip() if statement.lstrip().startswith("[") else statement.partition("=")[2].strip()


def _reason(statement: str) -> str:
    if statement.count("[") > statement.count("]"):
        return "a bracket is not closed"
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError as error:
        said = PLACE.sub("", str(error))
        return said[:1].lower() + said[1:]
    return "it cannot be read"


def _paths(parsed: Mapping[str, Any]) -> Iterator[KeyPath]:
    """Every path in the tables of one statement, outer ones first."""
    for key, value in parsed.items():
        yield (key,)
        inner = value[0] if isinstance(value, list) and value == [{}] else value
        if isinstance(inner, Mapping):
            yield from ((key, *path) for path in _paths(inner))


def _with_rows(head: KeyPath, rows: dict[KeyPath, int], *, is_row: bool = False) -> KeyPath:
    """The path of the table with this head, with the number of the row that each of its lists has come to;
    `is_row` begins the next one."""
    path: KeyPath = ()
    for at, key in enumerate(head, 1):
        path = (*path, key)
        if is_row and at == len(head):
            rows[path] = rows.get(path, -1) + 1
        if path in rows:
            path = (*path, rows[path])
    return path


def key_of(path: KeyPath) -> str:
    """As messages name a key: checks.repeat, conditions.0.role."""
    return ".".join(map(str, path))


def cut(value: str) -> str:
    """The value as far as a message repeats it."""
    return value if len(value) <= SHOWN else f"{value[: SHOWN - 1]}…"
