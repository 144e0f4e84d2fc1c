"""Concepts and parts that people marked in pictures: concepts.csv and parts.csv beside class folders."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stimuli.datasets.companion_tables import TableLine, read_lines
from stimuli.datasets.file_names import Names
from stimuli.errors import BadSpec
from stimuli.types import Part

CONCEPTS_FILE = "concepts.csv"
PARTS_FILE = "parts.csv"
CONCEPT_COLUMNS = ("image", "concept", "value")
PART_COLUMNS = ("image", "concept", "left", "top", "right", "bottom")
MAX_CONCEPTS = 512
MAX_NAME = 80
Size = tuple[int, int]


@dataclass(frozen=True)
class Annotations:
    """What is known of each picture: `values` float32 (concepts,) in 0-1 and `parts`, by key; and the keys
    of the pictures that no line of either file names.
    """

    concepts: tuple[str, ...] = ()
    values: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    unlisted: tuple[str, ...] = ()

    def values_of(self, key: str) -> NDArray[np.float32]:
        """The concept values of one picture, float32 (concepts,).

        0 for a concept that is not named for it although others are. Raises BadSpec for a picture that no
        line names: it was not annotated, so that zeros would be invented.
        """
        values = self.values.get(key)
        if values is not None:
            return values.copy()
        if self.concepts and key in self.unlisted:
            count = len(self.unlisted)
            raise BadSpec(
                f"{CONCEPTS_FILE}: {count} of {count + len(self.values)} pictures have "
                f'no line, the first is "{self.unlisted[0]}", but the concepts of "{key}" are needed; list '
                "every picture, with the value 0 where a concept is not shown"
            )
        return np.zeros(len(self.concepts), np.float32)

    def parts_of(self, key: str) -> tuple[Part, ...]:
        return self.parts.get(key, ())


def annotation_files(root: Path) -> tuple[Path, ...]:
    """Those of the two files that are there."""
    return tuple(path for path in (root / CONCEPTS_FILE, root / PARTS_FILE) if path.is_file())


def read_annotations(root: Path, keys: Sequence[str], size_of: Callable[[str], Size]) -> Annotations:
    """Read `concepts.csv` and `parts.csv` below `root`, as far as they are there.

    concepts.csv has the columns image (a key), concept, value (0-1); parts.csv image, concept, left, top,
    right, bottom in pixels of the upright picture, whose width and height `size_of` says. The concepts are
    those of both files in alphabetical order. A pair that concepts.csv does not list has the value 1 if
    parts.csv marks a part of it, else 0 if any line names the picture; a picture that none names has no
    values. Raises BadSpec with file, line and remedy for anything else.
    """
    known = Names(keys)
    listed: dict[tuple[str, str], float] = {}

    def read_concept(line: TableLine) -> None:
        pair = _pair(line, known)
        if pair in listed:
            raise line.fault(f'concept "{pair[1]}" of "{pair[0]}" is given twice; keep one line per pair')
        listed[pair] = _value(line)

    marked: dict[str, list[Part]] = {}

    def read_part(line: TableLine) -> None:
        key, concept = _pair(line, known)
        marked.setdefault(key, []).append(_part(line, concept, size_of(key)))

    read_lines(root / CONCEPTS_FILE, CONCEPT_COLUMNS, read_concept)
    read_lines(root / PARTS_FILE, PART_COLUMNS, read_part)
    shown = {(key, part.concept) for key, parts in marked.items() for part in parts}
    concepts = tuple(sorted({concept for _, concept in (*listed, *shown)}))
    if len(concepts) > MAX_CONCEPTS:
        raise BadSpec(f"{len(concepts)} concepts are named below {root}, the limit is {MAX_CONCEPTS}")
    values = {
        key: np.array(
            [listed.get((key, name), float((key, name) in shown)) for name in concepts], dtype=np.float32
        )
        for key in {key for key, _ in (*listed, *shown)}
    }
    unlisted = tuple(key for key in keys if key not in values)
    return Annotations(concepts, values, {key: tuple(parts) for key, parts in marked.items()}, unlisted)


def _pair(line: TableLine, known: Names) -> tuple[str, str]:
    key, concept = line.picture(known), line.cells["concept"]
    if not 0 < len(concept) <= MAX_NAME:
        raise line.fault(f'concept = "{concept[:MAX_NAME]}": a name of 1 to {MAX_NAME} characters is needed')
    return key, concept


def _number(line: TableLine, column: str) -> float:
    try:
        number = float(line.cells[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise line.fault(f'{column} = "{line.cells[column]}" is no number')
    return number


def _value(line: TableLine) -> float:
    value = _number(line, "value")
    if not 0 <= value <= 1:
        raise line.fault(f"value = {value:g}, but must lie between 0 (not shown) and 1 (fully shown)")
    return value


def _part(line: TableLine, concept: str, size: Size) -> Part:
    left, top, right, bottom = (_number(line, column) for column in PART_COLUMNS[2:])
    width, height = size
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise line.fault(
            f"the box ({left:g}, {top:g}, {right:g}, {bottom:g}) does not lie in the picture of {width} x "
            f"{height} pixels; 0 <= left < right <= {width} and 0 <= top < bottom <= {height} are needed"
        )
    return Part(concept, left / width, top / height, right / width, bottom / height)
