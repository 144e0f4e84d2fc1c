"""PASTA's record format: one record per explanation, with every rater's answers to its six questions.

A file is a JSON list of records: `img`, `explication` (names of files), `GTclass`, `predictedclass` and
`Annotation`, a list with Q1 to Q6 of each rater. Names are "{dataset}_{image id}_{class}.png" for pictures
and "{dataset}_{image id}_{explainer id}.png" for explanations, ids being whole numbers. Of a perturbed copy,
`img_light`, `explication_light`, `img_strong` and `explication_strong` name the files; these four keys are
ours, as the paper's are not published. A question that could not be asked, since there is no such copy, is
null: PASTA's own files have no null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

QUESTIONS = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6")
OF_PAIRS = ("Q5", "Q6")
"""Those that compare with a perturbed copy, and may be null."""
COPIES = ("img_light", "explication_light", "img_strong", "explication_strong")
TEXTS = ("img", "explication", "GTclass", "predictedclass")
LOWEST, HIGHEST = 1, 5
MAX_BYTES = 20 * 2**20
NAME = re.compile(r"^(?P<dataset>[A-Za-z0-9-]+)_(?P<image>\d+)_(?P<explainer>\d+)(?:_.*)?(?:\.\w+)?$")
HALF = re.compile("[\ud800-\udfff]")
"""Half of a pair of UTF-16, which no file in UTF-8 can hold."""
COLUMNS = (
    "explanation",
    *TEXTS,
    *COPIES,
    "dataset",
    "image",
    "explainer",
    "rater",
    "question",
    "value",
)


class BadRecords(ValueError):
    """A file is not in PASTA's format; the message names the record, the key, the value and what is asked."""


@dataclass(frozen=True, slots=True)
class Record:
    """One explanation: `answers` of each rater by question, 1-5, or None if it was not asked. `copies` names
    files of perturbed copies by key of `COPIES`."""

    img: str
    explication: str
    truth: str
    predicted: str
    answers: tuple[Mapping[str, int | None], ...]
    copies: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "img": self.img,
            "explication": self.explication,
            "GTclass": self.truth,
            "predictedclass": self.predicted,
            **{key: self.copies[key] for key in COPIES if key in self.copies},
            "Annotation": [{name: answer[name] for name in QUESTIONS} for answer in self.answers],
        }


def as_text(records: Sequence[Record]) -> str:
    """The whole file, one record a line; the same records give the same text."""
    lines = ",\n".join(json.dumps(record.as_json(), ensure_ascii=False) for record in records)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def read_records(path: Path) -> tuple[Record, ...]:
    """Every record of a file. Raises BadRecords for a file that is too large or not in the format; nothing is
    read by halves."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise BadRecords(
                f"{path.name}: has {size:,} bytes, the limit is {MAX_BYTES:,}: split the list into files."
            )
        # Some editors begin a file with a byte order mark.
        raw = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_each_key_once)
    except OSError as error:
        raise BadRecords(f"{path.name}: cannot be read ({error.strerror}); give a file of records.") from None
    except _RepeatedKey as error:
        raise BadRecords(f"{path.name}: {error}; keep one of them.") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadRecords):
            raise
        raise BadRecords(f"{path.name}: is no JSON ({error}); give a list of records.") from None
    return records_of(raw, path.name)


def records_of(raw: Any, name: str = "The records") -> tuple[Record, ...]:
    """The records of decoded JSON. Raises BadRecords as `read_records`."""
    if not isinstance(raw, list):
        raise BadRecords(f"{name}: is {_value_text(raw)}, not a list; give a list of records.")
    return tuple(_record(row, f"{name}: record {place}") for place, row in enumerate(raw))


def ratings_from(path: Path) -> pd.DataFrame:
    """A file as one row per single answer: the record's texts, `explanation` (its place in the file, from 0),
    `dataset`, `image` and `explainer` as the name of the explanation tells them, `rater` (place among the
    annotations, from 0: the format does not tell who it was), `question` and `value` (1-5; missing if it was
    not asked). Raises BadRecords as `read_records`."""
    return table_of(read_records(path))


def table_of(records: Sequence[Record]) -> pd.DataFrame:
    """The same of records."""
    rows: list[tuple[Any, ...]] = []
    for place, record in enumerate(records):
        told = NAME.match(record.explication)
        named = told.group("dataset", "image", "explainer") if told else ("", None, None)
        texts = record.img, record.explication, record.truth, record.predicted
        about = (place, *texts, *(record.copies.get(key, "") for key in COPIES), *named)
        for rater, answer in enumerate(record.answers):
            rows += [(*about, rater, name, answer[name]) for name in QUESTIONS]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.astype(dict.fromkeys(("explanation", "image", "explainer", "rater", "value"), "Int64"))


def records_from(table: pd.DataFrame) -> tuple[Record, ...]:
    """The records that `table_of` made this table of."""
    made = []
    for _, rows in table.groupby("explanation", sort=True):
        first = rows.iloc[0]
        answers = tuple(
            {
                str(q): None if pd.isna(v) else int(v)
                for q, v in zip(part["question"], part["value"], strict=True)
            }
            for _, part in rows.groupby("rater", sort=True)
        )
        copies = {key: str(first[key]) for key in COPIES if first[key]}
        img, explication, truth, predicted = (str(first[key]) for key in TEXTS)
        made.append(Record(img, explication, truth, predicted, answers, copies))
    return tuple(made)


class _RepeatedKey(ValueError):
    """An object names a key twice, so that one of the values would be lost."""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _RepeatedKey(
                f"an object has the key {key!r} twice, {_value_text(made[key])} and {_value_text(value)}"
            )
        made[key] = value
    return made


def _record(row: Any, where: str) -> Record:
    if not isinstance(row, dict):
        raise BadRecords(
            f"{where} is {_value_text(row)}, not an object; give {', '.join(TEXTS)} and Annotation."
        )
    if unknown := set(row) - {*TEXTS, *COPIES, "Annotation"}:
        raise BadRecords(f"{where} has the key {sorted(unknown)[0]!r}, which the format lacks; remove it.")
    for key in (*TEXTS, *(key for key in COPIES if key in row)):
        if not isinstance(row.get(key), str) or not row[key]:
            raise BadRecords(f"{where}: {key} is {_value_text(row.get(key))}; give a text that is not empty.")
        if HALF.search(row[key]):
            raise BadRecords(
                f"{where}: {key} is {_value_text(row[key])}, with half a character; write it anew."
            )
    given = row.get("Annotation")
    if not isinstance(given, list) or not given:
        raise BadRecords(
            f"{where}: Annotation is {_value_text(given)}; give a list with one object per rater."
        )
    answers = tuple(_answer(answer, f"{where}, annotation {rater}") for rater, answer in enumerate(given))
    copies = {key: row[key] for key in COPIES if key in row}
    return Record(row["img"], row["explication"], row["GTclass"], row["predictedclass"], answers, copies)


def _answer(given: Any, where: str) -> Mapping[str, int | None]:
    if not isinstance(given, dict):
        raise BadRecords(f"{where} is {_value_text(given)}, not an object; give Q1 to Q6.")
    if unknown := set(given) - set(QUESTIONS):
        raise BadRecords(f"{where} has the key {sorted(unknown)[0]!r}; give Q1 to Q6 and no other.")
    for question in QUESTIONS:
        if question not in given:
            raise BadRecords(f"{where}: {question} is missing; give all of Q1 to Q6, 1 to 5 each.")
        point = given[question]
        if point is None and question in OF_PAIRS:
            continue
        if type(point) is not int or not LOWEST <= point <= HIGHEST:
            raise BadRecords(f"{where}: {question} is {_value_text(point)}; give a whole number from 1 to 5.")
    return {question: given[question] for question in QUESTIONS}


def _value_text(value: Any) -> str:
    """A value for a message, cut short."""
    if isinstance(value, (list, dict)):
        kind = "a list" if isinstance(value, list) else "an object"
        return f"{kind} of {len(value)}" if value else f"{kind} without entries"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 40 else f"{text[:37]}..."
