"""Lines of a file of texts, as read, and what is said of those that stand there twice or read otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stimuli.errors import first_of
from stimuli.types import Split


@dataclass(frozen=True, slots=True)
class TextLine:
    """One text as the file has it; `number` counts lines from 1, and `file` is empty for the first file.
    `spaced` counts its C1 control characters, `folded` says that a cell goes on over lines.
    """

    number: int
    text: str
    label: str
    split: Split | None
    group: str
    spaced: int = 0
    folded: bool = False
    file: str = ""

    @property
    def key(self) -> str:
        return f"{'people' if self.file else 'line'}-{self.number:06d}"

    @property
    def place(self) -> str:
        return f"{self.number} of {self.file}" if self.file else str(self.number)

    @property
    def mark(self) -> str:
        """What is the same of texts that are equal but for case and spaces."""
        return " ".join(self.text.casefold().split())


def once_per_side(read: Sequence[TextLine], version: int) -> tuple[list[TextLine], tuple[str, ...]]:
    """The lines without those of people whose text is the model's too, and without all of a text that has two
    labels; and what is said of it. Before `version` 3 such a text stays if all of it is on one side.
    """
    by_mark: dict[str, list[TextLine]] = {}
    for line in read:
        by_mark.setdefault(line.mark, []).append(line)
    both = {mark for mark, alike in by_mark.items() if len({line.split for line in alike}) > 1}
    torn = {mark for mark, alike in by_mark.items() if len({line.label for line in alike}) > 1}
    doubled = [line for line in read if line.split == "people" and line.mark in both]
    of_model = [line for line in read if line.split == "model" and line.mark in torn & both]
    of_one = [line for line in read if line.mark in torn - both]
    of_people = sum(line.split == "people" for line in read)
    said = []
    if doubled:
        said.append(
            f"{len(doubled):,} of {of_people:,} texts of people are the model's too, but for case and "
            f"spaces, and were left out ({_lines(doubled)})"
        )
    if of_model:
        said.append(
            f"{len(of_model):,} of {len(read) - of_people:,} texts of the model have another label among "
            f"people's and were left out too ({_lines(of_model)})"
        )
    if of_one:
        said.append(
            f"{len(of_one):,} of {len(read):,} texts have two labels, but for case and spaces, and "
            f"{'were left out' if version > 2 else 'stay, as when this study was opened'} ({_lines(of_one)})"
        )
    gone = {line.key for line in (*doubled, *of_model, *(of_one if version > 2 else ()))}
    return [line for line in read if line.key not in gone], tuple(said)


def said_of_reading(read: Sequence[TextLine]) -> tuple[str, ...]:
    """How many lines were read otherwise than they stand there."""
    said = []
    if spaced := [line for line in read if line.spaced]:
        said.append(
            f"{sum(line.spaced for line in spaced):,} control characters between U+0080 and U+009F in "
            f"{len(spaced):,} of {len(read):,} texts were read as spaces ({_lines(spaced)})"
        )
    if folded := [line for line in read if line.folded]:
        said.append(
            f"{len(folded):,} of {len(read):,} rows go on over several lines, within quotation marks ("
            f"{_lines(folded)})"
        )
    return tuple(said)


def _lines(lines: Sequence[TextLine]) -> str:
    return f"line{'s' * (len(lines) > 1)} {first_of([line.place for line in lines])}"
