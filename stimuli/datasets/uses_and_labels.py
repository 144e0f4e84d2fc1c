"""What pictures are for, and the labels of several annotators: uses.csv and annotations.csv beside class
folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from stimuli.datasets.companion_tables import IMAGE, TableLine, read_lines
from stimuli.datasets.file_names import Names
from stimuli.errors import BadSpec
from stimuli.registry import closest
from stimuli.types import Item, Use

USES_FILE = "uses.csv"
LABELS_FILE = "annotations.csv"
USES: tuple[Use, ...] = get_args(Use)
MAX_NAME = 80


def use_files(root: Path) -> tuple[Path, ...]:
    """Those of the two files that are there."""
    return tuple(path for path in (root / USES_FILE, root / LABELS_FILE) if path.is_file())


def with_uses(root: Path, items: Sequence[Item]) -> tuple[Item, ...]:
    """The items as uses.csv (image, use) and annotations.csv (image, annotator, label) below `root` say.

    A picture that uses.csv does not name is a task. One that it marks otherwise is shown to people; a blank
    one has no truth. Labels are classes of the folder; their annotators stand in alphabetical order. Raises
    BadSpec with file, line and remedy for anything else.
    """
    uses, marked = _uses(root, items), []
    for item in items:
        use = uses.get(item.key, "task")
        truth = "" if use == "blank" else item.truth
        marked.append(replace(item, use=use, truth=truth))
    labels = _labels(root, marked)
    return tuple(replace(item, annotated=labels.get(item.key, ())) for item in marked)


def _uses(root: Path, items: Sequence[Item]) -> dict[str, Use]:
    splits = {item.key: item.split for item in items}
    known = Names(splits)
    uses: dict[str, Use] = {}

    def read(line: TableLine) -> None:
        key, written = line.picture(known), line.cells["use"]
        if written not in USES:
            raise line.fault(
                f'use = "{written[:MAX_NAME]}"{closest(written, USES)}: write one of {", ".join(USES)}'
            )
        if key in uses:
            raise line.fault(f'"{key}" is named twice; keep one line per picture')
        uses[key] = next(use for use in USES if use == written)
        if uses[key] != "task" and splits[key] == "model":
            raise line.fault(
                f'"{key}" is {written}, but belongs to the model: only pictures for people are marked so; '
                "move it to people/"
            )

    read_lines(root / USES_FILE, (IMAGE, "use"), read)
    return uses


def _labels(root: Path, items: Sequence[Item]) -> dict[str, tuple[tuple[str, str], ...]]:
    known = Names(item.key for item in items)
    classes = sorted({item.truth for item in items} - {""})
    called = Names(classes)
    given: dict[str, dict[str, str]] = {}

    def read(line: TableLine) -> None:
        key, annotator, written = line.picture(known), line.cells["annotator"], line.cells["label"]
        if not 0 < len(annotator) <= MAX_NAME:
            raise line.fault(
                f'annotator = "{annotator[:MAX_NAME]}": a name of 1 to {MAX_NAME} characters is needed'
            )
        label = called.find(written)
        if label is None:
            raise line.fault(
                f'label = "{written[:MAX_NAME]}"{closest(written, classes)}: it must be one of the classes, '
                f"{', '.join(classes[:20])}"
            )
        if annotator in given.setdefault(key, {}):
            raise line.fault(f'"{annotator}" labels "{key}" twice; keep one line per annotator and picture')
        given[key][annotator] = label

    read_lines(root / LABELS_FILE, (IMAGE, "annotator", "label"), read)
    return {key: tuple(sorted(labels.items())) for key, labels in given.items()}


def check_uses(items: Sequence[Item]) -> None:
    """BadSpec if the tasks are of fewer than two classes: nothing could be asked of them."""
    classes = {item.truth for item in items if item.use == "task"}
    if len(classes) < 2:
        raise BadSpec(
            f"{USES_FILE} leaves tasks of {len(classes)} class(es), at least 2 are needed: "
            "mark fewer pictures"
        )
