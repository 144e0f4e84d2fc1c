"""Labelled texts in a file of the study's folder: a table with a header, or the format of probing tasks.

A table (.csv, or .tsv without any quoting) has the columns `text` and `label`, or others that the study
names, and may have `split` and `group`. The probing format has no header and three fields: tr, va or te, TAB,
label, TAB, sentence [Conneau et al. 2018]. What the study calls a table without a header is read as .tsv
under any other name, such as SST's sentiment-train [Conneau and Kiela 2018]. A corpus of two files has the
texts that people read in the second. Files are UTF-8; texts become Unicode NFC, C1 control characters spaces.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from stimuli.datasets.text_lines import TextLine, once_per_side, said_of_reading
from stimuli.errors import BadSpec, Faults, first_of
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
C1 = re.compile("[\x80-\x9f]")
"""No text means them: they are what is left of quotation marks that were decoded twice."""
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
BROKEN = re.compile("[\udc80-\udcff]")
"""What stands for bytes that are no UTF-8."""


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


@dataclass(frozen=True)
class LinesDataset:
    """Texts of a file. Labels stand in the order of their numbers if all are numbers, else of the alphabet,
    before `names` are given. `people_share` is None if the file has a split. `notes` tell what was left out
    or read otherwise than it stands there.

    A key is the line's number, with "people" before it in a second file. The group is the file's; texts that
    are equal but for case and spaces are of one group too, and no group stands on both sides.
    """

    labels: tuple[str, ...]
    all_items: tuple[Item, ...]
    texts: dict[str, str]
    people_share: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """Which texts are whose, if the file does not say so, and what was left out or read as spaces."""
        return (*said_of_sides(self.all_items, "texts", self.people_share), *self.notes)

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


def open_lines(component: Component, folder: Path, version: int = 1) -> LinesDataset:
    """Read the file. A text that stands on both sides of the file's split leaves the side of people, and both
    if its labels differ: `told` counts them. `version` is that of decoding (`stimuli.datasets.DECODING`).
    From 3 on a text with two labels leaves a file without a split too, and a single side.

    Raises BadSpec, with the number of lines and the first three, for what is no UTF-8, wrong columns, a text
    that is empty, longer than MAX_CHARACTERS or has control characters, and a split that is not known or
    divides a group; for fewer than two classes, or a class with a single text; if the split leaves people
    without a class; and if people_share is below 1 and leaves a class on one side alone.
    """
    params = read_params(component, LinesParams, "dataset")
    path = (folder / params.path).resolve()
    read = _read_all(path, folder, params)
    is_split = any(line.split for line in read)
    lines, left_out = once_per_side(read, version)
    labels, groups = _labels(path, lines, left_out), _groups(lines)
    if is_split:
        splits = _by_file(path, lines, groups, left_out)
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
    notes = (*left_out, *said_of_reading(read))
    share = None if is_split else params.people_share
    return LinesDataset(named, items, texts, share, notes)


def _read_all(path: Path, folder: Path, params: LinesParams) -> list[TextLine]:
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
    of_model: list[TextLine] = [replace(line, split="model") for line in lines]
    return [*of_model, *(replace(line, split="people") for line in theirs)]


def _read(path: Path, params: LinesParams) -> list[TextLine]:
    content = _content(path)
    faults = _faults(path)
    first = content.partition("\n")[0].rstrip("\r").split("\t")
    if len(first) == 3 and first[0] in PROBING and set(first[1:]) != {"text", "label"}:
        rows = _probing(content, faults)
    elif path.suffix in {".csv", ".tsv"} or not params.header:
        rows = _table(path, content, params, faults)
    else:
        raise BadSpec(
            f'dataset lines: "{path.name}" is no .csv or .tsv, and its first line is not of the form '
            "tr TAB label TAB sentence; write one of them. A table of fields with tabs between them and no "
            'names of columns: header = false, text_column = "1", label_column = "2"'
        )
    lines = [_check_line(number, fields, faults) for number, fields in rows]
    faults.refuse()
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
    content = data.decode("utf-8-sig", "surrogateescape")
    faults = _faults(path)
    if BROKEN.search(content):
        for number, line in enumerate(content.split("\n"), 1):
            if broken := BROKEN.search(line):
                byte = f"byte 0x{ord(broken[0]) - 0xDC00:02X}"
                faults.add("not in UTF-8", "save the file as UTF-8", str(number), byte)
    faults.refuse()
    return content


def _faults(path: Path) -> Faults:
    return Faults(f'dataset lines: "{path.name}" has', "line")


def _probing(content: str, faults: Faults) -> Iterator[tuple[int, dict[str, str]]]:
    for number, raw in enumerate(io.StringIO(content), 1):
        line = raw.rstrip("\r\n")
        if not line:
            continue
        fields = line.split("\t")
        if len(fields) == 3:
            yield number, {"split": fields[0], "label": fields[1], "text": fields[2]}
        else:
            faults.add(
                "without three fields (split, label, sentence)",
                "put one tab between them and none into the sentence",
                str(number),
                f"{len(fields)} field{'s' * (len(fields) != 1)}",
            )


def _table(
    path: Path, content: str, params: LinesParams, faults: Faults
) -> Iterator[tuple[int, dict[str, str]]]:
    is_quoted = path.suffix == ".csv"
    if not is_quoted:
        reader = csv.reader(io.StringIO(content, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    mark = "put quotation marks around a text with commas" if is_quoted else "take tabs out of the texts"
    columns: dict[str, int] = {}
    width, number = 0, 1
    try:
        for fields in reader:
            if not columns:
                columns, width = _columns(path, fields, params), len(fields)
                if params.header:
                    number = reader.line_num + 1
                    continue
            if len(fields) == width:
                row = {name: fields[at] for name, at in columns.items()}
                yield number, row | ({"folded": "yes"} if reader.line_num > number else {})
            elif fields:
                what = f"with another number of fields than the first line's {width}"
                faults.add(what, f"{mark}, or add what is missing", str(number), f"{len(fields)}")
            number = reader.line_num + 1
    except csv.Error as error:
        raise BadSpec(
            f'dataset lines: "{path.name}", line {number} cannot be read ({error}); check its quotation marks'
        ) from None


def _columns(path: Path, fields: list[str], params: LinesParams) -> dict[str, int]:
    """The places of the columns that are read, by what they hold. Other columns may be called anything."""
    header = (
        [name.strip() for name in fields] if params.header else [str(at + 1) for at in range(len(fields))]
    )
    counts = Counter(header)
    wanted = {"text": params.text_column, "label": params.label_column}
    more = {name: name for name in ("split", "group") if counts[name]}
    if wanted["text"] == wanted["label"] or any(counts[name] != 1 for name in (wanted | more).values()):
        unnamed = f" and {counts['']} without a name" if counts[""] else ""
        names = ", ".join(filter(None, header))
        has = f"names the columns {names}{unnamed}" if params.header else f"has {len(header)} columns"
        raise BadSpec(
            f'dataset lines: "{path.name}", line 1 {has}; {wanted["text"]} and {wanted["label"]} are needed '
            "(text_column and label_column name others), split and group may be there, each once"
        )
    return {what: header.index(name) for what, name in (wanted | more).items()}


def _check_line(number: int, fields: dict[str, str], faults: Faults) -> TextLine:
    text, spaced = C1.subn(" ", unicodedata.normalize("NFC", fields["text"]).strip())
    text = text.strip()
    label = unicodedata.normalize("NFC", fields["label"]).strip()
    for what, cell in (("text", text), ("label", label)):
        if not cell:
            faults.add(f"without a {what}", "fill it in or remove the line", str(number))
    if len(text) > MAX_CHARACTERS:
        what = f"with more than {MAX_CHARACTERS:,} characters"
        faults.add(what, "shorten it", str(number), f"{len(text):,}")
    if letters := sorted(set(FORBIDDEN.findall(text))):
        # Control characters have no names in Unicode but these labels.
        said = ", ".join(f"U+{ord(letter):04X} <control-{ord(letter):04X}>" for letter in letters)
        faults.add("with control characters", "put a space in the place of each", str(number), said)
    word = fields.get("split", "").strip()
    if "split" in fields and word not in SPLIT_NAMES:
        known = ", ".join(SPLIT_NAMES)
        faults.add("with a split that is not known", f"known are {known}", str(number), f'"{word}"')
    group = fields.get("group", "").strip()
    return TextLine(number, text, label, SPLIT_NAMES.get(word), group, spaced, "folded" in fields)


def _groups(lines: Sequence[TextLine]) -> list[str]:
    """The name of each line's group: lines that share a group or a text are together, also indirectly through
    others. A group is called after its first line.
    """
    marks = []
    for line in lines:
        line_marks = [("text", line.mark)]
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


def _by_file(
    path: Path, lines: Sequence[TextLine], groups: Sequence[str], left_out: Sequence[str]
) -> list[Split]:
    """The file's own split. BadSpec if it divides a group, or leaves people without a class."""
    seen: dict[str, TextLine] = {}
    torn: dict[str, str] = {}
    for line, group in zip(lines, groups, strict=True):
        other = seen.setdefault(group, line)
        if other.split != line.split:
            torn.setdefault(group, f"{other.place} and {line.place}")
    if torn:
        raise BadSpec(
            f'dataset lines: "{path.name}" has {len(torn)} group{"s" * (len(torn) > 1)} on both sides of its '
            f"split (lines {first_of(list(torn.values()))}); put each on one side, or remove the column "
            "group, split or people_path"
        )
    of_people = {line.label for line in lines if line.split == "people"}
    if missing := sorted({line.label for line in lines} - of_people):
        raise BadSpec(
            f'dataset lines: the split of "{path.name}" has no text of class "{missing[0]}" for people '
            f"(te, test or people){_after(left_out)}; add some, or remove the column split or people_path"
        )
    return [line.split or "people" for line in lines]


def _after(left_out: Sequence[str]) -> str:
    return f", because {'; '.join(left_out)}" if left_out else ""


def _by_share(lines: Sequence[TextLine], groups: Sequence[str], params: LinesParams) -> list[Split]:
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


def _labels(path: Path, lines: Sequence[TextLine], left_out: Sequence[str]) -> tuple[str, ...]:
    counts = Counter(line.label for line in lines)
    few = [label for label, count in counts.items() if count < MIN_PER_CLASS]
    if len(counts) < 2 or few:
        content = (
            f'a single text of class "{few[0]}"' if few and len(counts) > 1 else f"{len(counts)} class(es)"
        )
        raise BadSpec(
            f'dataset lines: "{path.name}" holds {content}; at least 2 classes with '
            f"{MIN_PER_CLASS} texts each are needed{_after(left_out)}"
        )
    if all(label.isdecimal() for label in counts):
        return tuple(sorted(counts, key=int))
    return tuple(sorted(counts))
