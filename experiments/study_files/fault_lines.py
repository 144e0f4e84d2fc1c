"""In which line of a study.toml a fault stands."""

from __future__ import annotations

import re
from collections import Counter

from experiments.errors import Problem

HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"\s*([\w.\"' -]+?)\s*=")
UNREADABLE = re.compile(r"\(at line (\d+), column \d+\)")
Path = tuple[str, ...]


def line_of(text: str, problem: Problem) -> int | None:
    """The line, from 1, of the key that the problem names, or of the innermost table around it that is
    written; of a file that is not TOML, where reading it stopped. None if nothing of it is written."""
    if stopped := UNREADABLE.search(problem.limit):
        return int(stopped[1])
    lines = written_lines(text)
    path = tuple(problem.key.split("."))
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def written_lines(text: str) -> dict[Path, int]:
    """The line of each table and key; the rows of a list of tables are counted from 0."""
    lines: dict[Path, int] = {}
    rows: Counter[Path] = Counter()
    table: Path = ()
    is_quoted = False
    for number, line in enumerate(text.splitlines(), 1):
        was_quoted = is_quoted
        is_quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
        if was_quoted:
            continue
        if header := HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                lines.setdefault(table, number)
                rows[table] += 1
                table = (*table, str(rows[table] - 1))
            lines.setdefault(table, number)
        elif key := KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(name: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in name.split("."))
