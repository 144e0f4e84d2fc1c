"""Labelled texts in a file of the study's folder: a table with a header, or the format of probing tasks.

A table (.csv, or .tsv without any quoting) has the columns `text` and `label`, or others that the study
names, and may have `split` and `group`. The probing format has no header and three fields: tr, va or te, TAB,
label, TAB, sentence [Conneau et al. 2018]. What the study calls a table without a header is read as .tsv
under any other name, such as SST's sentiment-train [Conneau and Kiela 2018]. A corpus of two files has the
texts that people read in the second. Files are UTF-8; texts become Unicode NFC.
"""

from __future__ import annotations

import csv
import hashlib
import io
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from stimuli.errors import BadSpec
from stimuli.registry import Params, read_params
from stimuli.spec import Component
from stimuli.types import Item, Split

PROBING: dict[str, Split] = {"tr": "model", "va": "model", "te": "people"}
SPLIT_NAMES: dict[str, Split] = {
    **PROBING,
    **dict.fromkeys(("model", "train", "training", "valid", "validation", "dev"), "model"),
    **dict.fromkeys(("people", "test", "eval", "evaluation"), "people"),
}
MIN_PER_CLASS = 2
MAX_BYTES = 200_000_000
MAX_CHARACTERS = 5_000
MAX_NAMED = 3


class LinesParams(Params):
    """`path` is the file, below the study's folder. Its own split is used if it has one; else `people_share`
    of the groups (0-1), drawn by `seed`, is kept for people; 1 suits a model that was trained elsewhere.
    With `people_path`, a second file of the same form, that one is people's and the first the model's.
    `names` gives labels of the file other names, for people to read. Tables: `text_column` and
    `label_column` are the names of columns, or their numbers from 1 if `header` is false.
    """

    path: str
    people_path: str = ""
    people_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    names: dict[str, str] = {}
    text_column: Annotated[str, Field(min_length=1)] = "text"
    label_column: Annotated[str, Field(min_length=1)] = "label"
    header: bool = True


@dataclass(frozen=True, slots=True)
class _Line:
    """One text as the file has it; `number` counts lines from 1, and `file` is empty for the first file."""

    number: int
    text: str
    label: str
    split: Split | None
    group: str
    file: str = ""

    @property
    def key(self) -> str:
        return f"{'people' if self.file else 'line'}-{self.number:06d}"

    @property
    def place(self) -> str:
        return f"{self.number} of {self.file}" if self.file else str(self.number)


@dataclass(frozen=True)
class LinesDataset:
    """Texts of a file. Labels stand in the order of their numbers if all are numbers, else of the alphabet,
    before `names` are given. `people_share` is None if the file has a split.

    A key is the line's number, with "people" before it in a second file. The group is the file's; texts that
    are equal but for case and spaces are of one group too, and no group stands on both sides.
    """

    labels: tuple[str, ...]
    all_items: tuple[Item, ...]
    texts: dict[str, str]
    people_share: float | None = None

    @property
    def told(self) -> tuple[str, ...]:
        """Which texts are whose, if the file does not say so."""
        return said_of_sides(self.all_items, "texts", self.people_share)

    @property
    def grouping(self) -> str:
        """What makes texts one group, in words."""
        return "texts of one `group` are one group; so are texts that are equal but for case and spaces"

    def items(self, split: Split) -> Sequence[Item]:
        return tuple(item for item in self.all_items if item.split == split)

    def text(self, key: str) -> str:
        """The text, Unicode NFC, without spaces around it."""
        if key not in self.texts:
            raise BadSpec(f'there is no item "{key}" in this file')
        return self.texts[key]

    def content_digest(self) -> str:
        """SHA-256 over the keys, labels, splits, groups and texts."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        total = hashlib.sha256("\0".join(self.labels).encode())
        for item in self.all_items:
            fields = (item.key, item.truth, item.split, item.group, self.texts[item.key])
            total.update(("\0".join(fields) + "\n").encode())
        return total.hexdigest()


def open_lines(component: Component, folder: Path) -> LinesDataset:
    """Read the file.

    Raises BadSpec, with the line's number, for what is no UTF-8, wrong columns, a text that is empty or
    longer than MAX_CHARACTERS, and a split that is not known or divides a group; for fewer than two classes,
    or a class with a single text; if the split leaves people without a class; and if people_share is below 1
    and leaves a class on one side alone.
    """
    params = read_params(component, LinesParams, "dataset")
    path = (folder / params.path).resolve()
    lines = _read_all(path, folder, params)
    labels, groups = _labels(path, lines), _groups(lines)
    is_split = any(line.split for line in lines)
    if is_split:
        splits = _by_file(path, lines, groups)
    else:
        splits = _by_share(lines, groups, params)
        check_sides(
            "dataset lines",
            zip((line.label for line in lines), groups, splits, strict=True),
            params.people_share,
            "put fewer texts into one group, add texts, or give another seed or a column split",
        )
    texts = {line.key: line.text for line in lines}
    items = tuple(
        Item(line.key, params.names.get(line.label, line.label), group, split)
        for line, group, split in zip(lines, groups, splits, strict=True)
    )
    for label in params.names:
        if label not in labels:
            raise BadSpec(f'names: there is no label "{label}" in "{path.name}"; it has {", ".join(labels)}')
    named = tuple(params.names.get(label, label) for label in labels)
    if len(set(named)) < len(named):
        raise BadSpec(f"names: two labels would be called the same ({', '.join(named)}); choose other names")
    return LinesDataset(named, items, texts, None if is_split else params.people_share)


def _read_all(path: Path, folder: Path, params: LinesParams) -> list[_Line]:
    """The lines of the file; of two files those of the model and then those of people."""
    lines = _read(path, params)
    if not params.people_path:
        return lines
    second = (folder / params.people_path).resolve()
    theirs = [replace(line, file=second.name) for line in _read(second, params)]
    if any(line.split for line in (*lines, *theirs)):
        raise BadSpec(
            f'dataset lines: "{path.name}" or "{second.name}" has a split of its own, but people_path says '
            "whose texts are whose; remove the column split, or people_path"
        )
    of_model: list[_Line] = [replace(line, split="model") for line in lines]
    return [*of_model, *(replace(line, split="people") for line in theirs)]


def _read(path: Path, params: LinesParams) -> list[_Line]:
    content = _content(path)
    first = content.partition("\n")[0].rstrip("\r").split("\t")
    if len(first) == 3 and first[0] in PROBING and set(first[1:]) != {"text", "label"}:
        lines = list(_probing(path, content))
    elif path.suffix in {".csv", ".tsv"} or not params.header:
        lines = list(_table(path, content, params))
    else:
        raise BadSpec(
            f'dataset lines: "{path.name}" is no .csv or .tsv, and its first line is not of the form '
            "tr TAB label TAB sentence; write one of them. A table of fields with tabs between them and no "
            'names of columns: header = false, text_column = "1", label_column = "2"'
        )
    if not lines:
        raise BadSpec(f'dataset lines: "{path.name}" holds no texts; write one per line')
    return lines


def _content(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadSpec(
                f'dataset lines: "{path}" has {path.stat().st_size:,} bytes, the limit is {MAX_BYTES:,}; '
                "keep the lines that you need"
            )
        data = path.read_bytes()
    except OSError as error:
        raise BadSpec(f'dataset lines: "{path}" cannot be read ({error.strerror}); check path') from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise _fault(path, number, "is not UTF-8; save the file as UTF-8") from None


def _fault(path: Path, number: int, what: str) -> BadSpec:
    return BadSpec(f'dataset lines: "{path.name}", line {number} {what}')


def _probing(path: Path, content: str) -> Iterator[_Line]:
    for number, raw in enumerate(io.StringIO(content), 1):
        line = raw.rstrip("\r\n")
        if not line:
            continue
        fields = line.split("\t")
        if len(fields) != 3:
            raise _fault(path, number, f"has {len(fields)} fields; three are needed: split, label, sentence")
        yield _checked(path, number, {"split": fields[0], "label": fields[1], "text": fields[2]})


def _table(path: Path, content: str, params: LinesParams) -> Iterator[_Line]:
    if path.suffix != ".csv":
        reader = csv.reader(io.StringIO(content, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    header: list[str] = []
    number = 1
    try:
        for fields in reader:
            if not header:
                header = _header(path, fields, params)
                if params.header:
                    number = reader.line_num + 1
                    continue
            if fields:
                if len(fields) != len(header):
                    raise _fault(path, number, f"has {len(fields)} fields; the header has {len(header)}")
                row = dict(zip(header, fields, strict=True))
                known: dict[str, str] = {name: row[name] for name in ("split", "group") if name in row}
                known |= {"text": row[params.text_column], "label": row[params.label_column]}
                yield _checked(path, number, known)
            number = reader.line_num + 1
    except csv.Error as error:
        raise _fault(path, number, f"cannot be read ({error}); check its quotation marks") from None


def _header(path: Path, fields: list[str], params: LinesParams) -> list[str]:
    """The names of the columns; their numbers from 1 if the file has no names."""
    header = (
        [name.strip() for name in fields] if params.header else [str(at + 1) for at in range(len(fields))]
    )
    wanted = (params.text_column, params.label_column)
    if wanted[0] == wanted[1] or set(wanted) - set(header) or len(set(header)) < len(header):
        has = f"names the columns {', '.join(header)}" if params.header else f"has {len(header)} columns"
        raise _fault(
            path,
            1,
            f"{has}; {wanted[0]} and {wanted[1]} are needed (text_column and label_column name others), "
            "split and group may be there, each once",
        )
    return header


def _checked(path: Path, number: int, fields: dict[str, str]) -> _Line:
    text = unicodedata.normalize("NFC", fields["text"]).strip()
    label = unicodedata.normalize("NFC", fields["label"]).strip()
    if not text or not label:
        raise _fault(path, number, f"has no {'label' if text else 'text'}; fill it in or remove the line")
    if len(text) > MAX_CHARACTERS:
        raise _fault(path, number, f"has {len(text)} characters, the limit is {MAX_CHARACTERS}; shorten it")
    if any(unicodedata.category(letter) == "Cc" and letter not in "\n\t\r" for letter in text):
        raise _fault(path, number, "has a control character; remove it")
    word = fields.get("split", "").strip()
    if "split" in fields and word not in SPLIT_NAMES:
        raise _fault(path, number, f'has the split "{word}"; known are {", ".join(SPLIT_NAMES)}')
    return _Line(number, text, label, SPLIT_NAMES.get(word), fields.get("group", "").strip())


def _groups(lines: Sequence[_Line]) -> list[str]:
    """The name of each line's group: lines that share a group or a text are together, also indirectly through
    others. A group is called after its first line.
    """
    marks = []
    for line in lines:
        line_marks = [("text", " ".join(line.text.casefold().split()))]
        marks.append([*line_marks, ("group", line.group)] if line.group else line_marks)
    return [lines[at].key for at in first_alike(marks)]


def first_alike(marks: Sequence[Iterable[Hashable]]) -> list[int]:
    """For each of several things the place of the first that it belongs with. Things that share a mark belong
    together, also indirectly through others.
    """
    leader = list(range(len(marks)))

    def lead(at: int) -> int:
        while leader[at] != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    first: dict[Hashable, int] = {}
    for at, item_marks in enumerate(marks):
        for mark in item_marks:
            earlier, later = sorted((lead(first.setdefault(mark, at)), lead(at)))
            leader[later] = earlier
    return [lead(at) for at in range(len(marks))]


def _by_file(path: Path, lines: Sequence[_Line], groups: Sequence[str]) -> list[Split]:
    """The file's own split. BadSpec if it divides a group, or leaves people without a class."""
    seen: dict[str, _Line] = {}
    torn = []
    for line, group in zip(lines, groups, strict=True):
        other = seen.setdefault(group, line)
        if other.split != line.split:
            torn.append(f"{other.place} and {line.place}")
    if torn:
        more = f" and {len(torn) - MAX_NAMED} more" if len(torn) > MAX_NAMED else ""
        raise BadSpec(
            f'dataset lines: "{path.name}" has the same text or group on both sides of its split (lines '
            f"{', '.join(torn[:MAX_NAMED])}{more}); remove one of each, or the column split or people_path"
        )
    of_people = {line.label for line in lines if line.split == "people"}
    if missing := sorted({line.label for line in lines} - of_people):
        raise BadSpec(
            f'dataset lines: the split of "{path.name}" has no text of class "{missing[0]}" for people '
            "(te, test or people); add some, or remove the column split or people_path"
        )
    return [line.split or "people" for line in lines]


def _by_share(lines: Sequence[_Line], groups: Sequence[str], params: LinesParams) -> list[Split]:
    """Per class, the groups with the smallest hashes go to the people, whole: at least one, and not all
    unless all are asked for. Groups of several classes can still empty a side: see `check_sides`.
    """
    people: set[str] = set()
    for label in sorted({line.label for line in lines}):
        class_groups = sorted(
            {group for line, group in zip(lines, groups, strict=True) if line.label == label},
            key=lambda group: hashlib.sha256(f"{params.seed}\0{group}".encode()).hexdigest(),
        )
        count = round(params.people_share * len(class_groups))
        people.update(
            class_groups[: max(1, count if params.people_share == 1 else min(count, len(class_groups) - 1))]
        )
    return ["people" if group in people else "model" for group in groups]


def check_sides(
    place: str, cases: Iterable[tuple[str, str, Split]], people_share: float, remedy: str
) -> None:
    """Refuse a division that leaves a class without a side, unless `people_share` is 1: then all is for
    people.

    `cases` are class, group and split of each item. Raises BadSpec with class, counts and `remedy`.
    """
    if people_share == 1:
        return
    by_class: dict[str, list[tuple[str, Split]]] = {}
    for truth, group, split in cases:
        by_class.setdefault(truth, []).append((group, split))
    for truth, members in by_class.items():
        sides = {split for _, split in members}
        if len(sides) == 1:
            has, lacks = ("people", "the model") if "people" in sides else ("the model", "people")
            raise BadSpec(
                f"{place}: people_share = {people_share:g} leaves all {len(members)} items of class "
                f'"{truth}", in {len({group for group, _ in members})} group(s), to {has} and none to '
                f"{lacks}; {remedy}, or set people_share to 1 if the model was trained elsewhere"
            )


def said_of_sides(items: Sequence[Item], words: str, people_share: float | None) -> tuple[str, ...]:
    """How many `items` are people's, if `people_share` was what divided them and left some to the model."""
    of_people = sum(item.split == "people" for item in items)
    if people_share is None or of_people == len(items):
        return ()
    return (
        f"{of_people} of {len(items)} {words} are people's, the other {len(items) - of_people} are kept for "
        f"training the model (people_share = {people_share:g}); "
        "if it was trained elsewhere, set people_share = 1.0",
    )


def _labels(path: Path, lines: Sequence[_Line]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.label] = counts.get(line.label, 0) + 1
    few = [label for label, count in counts.items() if count < MIN_PER_CLASS]
    if len(counts) < 2 or few:
        content = (
            f'a single text of class "{few[0]}"' if few and len(counts) > 1 else f"{len(counts)} class(es)"
        )
        raise BadSpec(
            f'dataset lines: "{path.name}" holds {content}; at least 2 classes with '
            f"{MIN_PER_CLASS} texts each are needed"
        )
    if all(label.isdecimal() for label in counts):
        return tuple(sorted(counts, key=int))
    return tuple(sorted(counts))
