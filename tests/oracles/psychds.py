"""The rules of Psych-DS that its schema calls errors, applied to a folder: written from the schema, since the
official validator is in no registry of packages. The values of the rules stand in psychds.json.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

RULES = json.loads((Path(__file__).parent / "psychds.json").read_text())


def problems(folder: Path) -> list[str]:
    """Codes of the schema's errors, each with what it is about; none if the folder is a Psych-DS data set."""
    path = folder / RULES["description"]
    if not path.is_file():
        return ["MISSING_DATASET_DESCRIPTION"]
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return ["JSON_INVALID"]
    data = folder / RULES["data_folder"]
    tables = sorted(data.rglob("*_data.?sv"))
    wrong = [f"JSON_KEY_REQUIRED {key}" for key in RULES["required_fields"] if not description.get(key)]
    if description.get("@context") != RULES["context"] or description.get("@type") != RULES["type"]:
        wrong.append("INCORRECT_DATASET_TYPE")
    if not data.is_dir():
        wrong.append("MISSING_DATA_DIRECTORY")
    if not tables:
        wrong.append("MISSING_DATAFILE")
    measured = {entry["name"] for entry in description.get("variableMeasured", [])}
    heads: set[str] = set()
    for table in tables:
        wrong += _of_table(table, measured)
        heads |= set(_rows(table)[0])
    return wrong + [f"VARIABLE_MISSING_FROM_CSV_COLUMNS {name}" for name in sorted(measured - heads)]


def _of_table(path: Path, measured: set[str]) -> Iterator[str]:
    if not re.fullmatch(RULES["file_regex"], path.name):
        yield f"FILENAME_KEYWORD_FORMATTING_ERROR {path.name}"
    words = {part.partition("-")[0] for part in path.stem.split("_")[:-1]}
    if words - set(RULES["keywords"]):
        yield f"FILENAME_UNOFFICIAL_KEYWORD_WARNING {path.name}"
    head, *rows = _rows(path)
    if not head:
        yield f"CSV_HEADER_MISSING {path.name}"
    if len(set(head)) < len(head):
        yield f"CSV_HEADER_REPEATED {path.name}"
    if any(len(row) != len(head) for row in rows):
        yield f"CSV_HEADER_LENGTH_MISMATCH {path.name}"
    for name in sorted(set(head) - measured):
        yield f"CSV_COLUMN_MISSING_FROM_METADATA {path.name} {name}"
    if "row_id" in head:
        ids = [row[head.index("row_id")] for row in rows]
        if len(set(ids)) < len(ids):
            yield f"ROWID_VALUES_NOT_UNIQUE {path.name}"


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.reader(handle)) or [[]]
