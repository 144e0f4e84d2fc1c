"""Recorded tables: token spans (JSON), concept weights, pictures with captions, and sentences (CSV, text)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np

from stimuli.datasets.picture_reader import read_picture
from stimuli.errors import BadSpec, Faults
from stimuli.explainers.base import Kind
from stimuli.explainers.recorded.base import (
    MAX_TABLE_BYTES,
    Files,
    ItemView,
    Readers,
    by_key,
    check_bytes,
    name_file_faults,
)
from stimuli.predictors.text.units import join_units
from stimuli.render.bars import NAME_CHARS
from stimuli.render.picture_explanation import PICTURES_MAX, shrunk
from stimuli.render.sentences import check_fits
from stimuli.render.text_draw import legible_text
from stimuli.table_reader import TableError, read_table
from stimuli.types import ConceptAttribution, PictureExplanation, Span, TextExplanation, TokenAttribution

COLUMNS: Mapping[Kind, tuple[str, ...]] = {
    "concept": ("item", "concept", "value"),
    "pictures": ("item", "picture", "caption"),
    "sentence": ("item", "sentence"),
}
MAX_CONCEPTS = 512
SPAN = {"start", "end", "weight"}
MAX_TEXT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table, with what a message about it needs."""

    where: str
    cells: Mapping[str, str]

    def fault(self, text: str) -> BadSpec:
        return BadSpec(f"recorded {self.where}: {text}")


def table(path: Path, files: Files) -> tuple[Kind, Readers]:
    """What a CSV file holds; its first line says which form."""
    heading, lines = _read(path)
    kind = next((kind for kind, columns in COLUMNS.items() if sorted(heading) == sorted(columns)), None)
    if kind is None:
        forms = "; ".join(", ".join(columns) for columns in COLUMNS.values())
        raise BadSpec(
            f'recorded "{path.name}": the first line names {", ".join(heading) or "nothing"}; the columns '
            f"must be one of: {forms}"
        )
    by_item: dict[str, list[Line]] = {}
    for line in lines:
        by_item.setdefault(line.cells["item"], []).append(line)
    if kind == "concept":
        return kind, {key: partial(_concepts, rows) for key, rows in by_item.items()}
    if kind == "pictures":
        return kind, {key: partial(_pictures, rows, path, files) for key, rows in by_item.items()}
    return kind, {key: partial(_only_sentence, rows) for key, rows in by_item.items()}


def folder_of_sentences(names: list[Path], root: Path) -> Readers:
    """One text file per item."""
    return {key: partial(_sentence_file, path) for key, path in by_key(names, root, (".txt",)).items()}


def token_spans(path: Path) -> Readers:
    """A JSON object: by item key, a list of {"start", "end", "weight"}, in characters of the item's text.

    With "text" as well, that piece is compared with the item's.
    """
    check_bytes(path, MAX_TABLE_BYTES)
    with name_file_faults(f'"{path.name}"', "save it by json.dump", ValueError, RecursionError):
        held = json.loads(path.read_bytes(), object_pairs_hook=_once, parse_constant=_no_number)
    if not isinstance(held, dict):
        raise BadSpec(f'recorded "{path.name}" is no JSON object: write one list of spans per item key')
    return {key: partial(_spans, spans, f'"{path.name}", item "{key}"') for key, spans in held.items()}


def _read(path: Path) -> tuple[list[str], Iterator[Line]]:
    """The heading of a table and its lines."""
    check_bytes(path, MAX_TABLE_BYTES)
    try:
        held = read_table(path)
    except TableError as error:
        raise BadSpec(f"recorded {str(error).removesuffix('.')}") from None
    heading = [name.strip() for name in held.names]
    rows = ((number, [cell.strip() for cell in row]) for number, row in held.rows())
    return heading, (
        Line(f"{path.name}, line {number}", dict(zip(heading, cells, strict=True)))
        for number, cells in rows
        if any(cells)
    )


def _concepts(rows: list[Line], view: ItemView) -> ConceptAttribution:
    weights: dict[str, float] = {}
    for line in rows:
        name = _legible(line, "concept", NAME_CHARS)
        if name in weights:
            raise line.fault(
                f'concept "{name}" of "{line.cells["item"]}" is given twice; keep one line per pair'
            )
        try:
            weights[name] = float(line.cells["value"])
        except ValueError:
            weights[name] = math.nan
        if not _is_finite(weights[name]):
            raise line.fault(f'value = "{line.cells["value"]}" is no finite number')
    if len(weights) > MAX_CONCEPTS:
        raise rows[0].fault(f"{len(weights)} concepts explain one item, the limit is {MAX_CONCEPTS}")
    return ConceptAttribution(tuple(weights), np.array(list(weights.values()), np.float32))


def _pictures(rows: list[Line], path: Path, files: Files, view: ItemView) -> PictureExplanation:
    if len(rows) > PICTURES_MAX:
        item = rows[0].cells["item"]
        raise rows[0].fault(f'"{item}" has {len(rows)} pictures, the limit is {PICTURES_MAX}: keep the first')
    pictures = []
    for line in rows:
        name = line.cells["picture"]
        file = files.inside(name, f'{line.where}, picture = "{name}"', below=path.parent)
        if not file.is_file():
            raise line.fault(f'picture = "{name}" is no file')
        pictures.append(shrunk(read_picture(file)))
    captions = (_legible(row, "caption", NAME_CHARS) if row.cells["caption"] else "" for row in rows)
    return PictureExplanation(tuple(pictures), tuple(captions))


def _only_sentence(rows: list[Line], view: ItemView) -> TextExplanation:
    if len(rows) > 1:
        item = rows[1].cells["item"]
        raise rows[1].fault(f'"{item}" has a second line; write all its sentences into one')
    return _sentence(rows[0].cells["sentence"], f"recorded {rows[0].where}")


def _sentence_file(path: Path, view: ItemView) -> TextExplanation:
    check_bytes(path, MAX_TEXT_BYTES)
    with name_file_faults(f'"{path.name}"', "save it as text in UTF-8", UnicodeDecodeError):
        return _sentence(path.read_text("utf-8-sig"), f'recorded "{path.name}"')


def _sentence(text: str, where: str) -> TextExplanation:
    try:
        return TextExplanation(check_fits(" ".join(normalize("NFC", text).split())))
    except BadSpec as error:
        raise BadSpec(f"{where}: {error}") from None


def _legible(line: Line, column: str, longest: int) -> str:
    try:
        return legible_text(line.cells[column], f"the {column}", longest)
    except BadSpec as error:
        raise line.fault(str(error)) from None


def _spans(spans: Any, where: str, view: ItemView) -> TokenAttribution:
    """The spans and their weights. BadSpec that names all spans with a fault, by kind."""
    if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
        raise BadSpec(f'recorded {where}: a list of {{"start", "end", "weight"}} is needed')
    faults = Faults(f"recorded {where} has", "span")
    read = [made for at, span in enumerate(spans, 1) if (made := _span(span, at, faults, view))]
    for (start, end, _), (begin, stop, _) in zip(read, read[1:], strict=False):
        if begin < start:
            what, remedy = "before the one in front of it", "write spans in the order of the text"
            faults.add(what, remedy, f"({begin}, {stop})")
        elif begin < end:
            what = "with characters of the one in front of it"
            faults.add(what, "add up the weights of tokens that share characters", f"({begin}, {stop})")
    faults.refuse()
    if view.units is not None:
        return _summed(read, view.units)
    values = np.array([weight for _, _, weight in read], np.float32)
    return TokenAttribution(tuple((start, end) for start, end, _ in read), values)


def _summed(read: list[tuple[int, int, float]], units: tuple[Span, ...]) -> TokenAttribution:
    """The weights of the spans, added up by unit; what belongs to none is the check `left_out`. Units that
    one span covers are one: the study joins them under all conditions before (`join_item_units`).
    """
    units = join_units(units, [(start, end) for start, end, _ in read])
    values, left_out = np.zeros(len(units)), 0.0
    for start, end, weight in read:
        touched = next((at for at, unit in enumerate(units) if start < unit[1] and unit[0] < end), None)
        if touched is None:
            left_out += weight
        else:
            values[touched] += weight
    return TokenAttribution(units, values.astype(np.float32), {"left_out": left_out})


def _span(
    span: Mapping[str, Any], number: int, faults: Faults, view: ItemView
) -> tuple[int, int, float] | None:
    """Start, end and weight of the span at place `number`, from 1; None, and a fault, if they are none."""
    if not SPAN <= set(span) <= SPAN | {"text"}:
        has = ", ".join(sorted(map(str, span)))
        what = "with other keys than start, end, weight, and text if you like"
        faults.add(what, "write these", f"the {number}.", has)
        return None
    start, end, weight = span["start"], span["end"], span["weight"]
    place = f"({start}, {end})"
    if not all(type(at) is int for at in (start, end)) or not 0 <= start <= end <= len(view.text):
        remedy = "count characters of the text in Unicode NFC, from 0, the end excluded"
        faults.add(f"outside a text of {len(view.text):,} characters", remedy, place)
        return None
    if start == end:
        remedy = "leave out the marks of start and end, and tokens of no width"
        faults.add("without characters", remedy, place)
        return None
    if type(weight) not in (int, float) or not _is_finite(weight):
        faults.add("whose weight is no finite number", "give it one", place, f"{weight!r}")
        return None
    piece = view.text[start:end]
    if normalize("NFC", str(span.get("text", piece))) != piece:
        remedy = "count characters of the text in Unicode NFC"
        faults.add("with another text than the item's", remedy, place, f"{span['text']!r}, not {piece!r}")
    return start, end, float(weight)


def _is_finite(value: float) -> bool:
    """Whether it is a number in single precision."""
    return abs(value) <= float(np.finfo(np.float32).max)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, each of whose keys stands once."""
    held = dict(pairs)
    if len(held) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice")
    return held


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")
