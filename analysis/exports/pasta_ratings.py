"""Ratings in PASTA's record format, with a table of what its whole numbers stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.exports.base import ExportError
from analysis.exports.delimited import write_rows
from analysis.frames import Frames, MixedOrigins, Tables
from analysis.pasta_records import MAX_BYTES, OF_PAIRS, QUESTIONS, Record, as_text, read_records
from analysis.ratings import EXPLANATION, rated_once, rating_rows
from analysis.spreadsheet_cells import escape_cell

RECORDS = "records.json"
INDEX = "index.csv"
HEADS = ("explication", "dataset", "image_id", "item", "xai_id", "condition", "copy_of", "stimulus_key",
         "picture_digest")  # fmt: skip
ASKED = {name.lower(): name for name in QUESTIONS}
"""Our ids of the six questions, and the format's."""


def write(tables: Tables, folder: Path) -> Mapping[str, int]:
    """records.json and index.csv; returns rows per file. Raises ExportError for ratings that a record cannot
    hold: of several origins, of other questions than the six, or with the questions of an explanation asked
    of different people."""
    frames = tables.frames()
    rows = _ratings(frames)
    names = _Names(frames.stimuli)
    records = list(_records(rows, names))
    text = as_text(records)
    if len(text.encode()) > MAX_BYTES:
        raise ExportError(
            f"{RECORDS}: would have {len(text.encode()):,} bytes, and readers take at most {MAX_BYTES:,}; "
            "export as csv."
        )
    (folder / RECORDS).write_text(text, encoding="utf-8")
    if list(read_records(folder / RECORDS)) != records:
        raise ExportError(f"{RECORDS}: does not read back as it was written; export as csv, and report this.")
    index = list(names.index(rows))
    write_rows(folder / INDEX, list(HEADS), index)
    return {RECORDS: len(records), INDEX: len(index)}


def _ratings(frames: Frames) -> pd.DataFrame:
    """The ratings of the lists, without anchors; refused if a record cannot hold them."""
    try:
        frames.one_origin()
    except MixedOrigins as error:
        raise ExportError(f"{error} For example --origin human.") from None
    rows = rated_once(rating_rows(frames))
    if rows.empty:
        raise ExportError("There are no ratings of explanations, and the format holds nothing else; use csv.")
    if other := sorted(set(rows["question"]) - set(ASKED)):
        raise ExportError(
            f"The study asks {', '.join(other)}; the format holds {', '.join(ASKED)} alone: export as csv."
        )
    needed = {name for name in ASKED if ASKED[name] not in OF_PAIRS}
    asked = rows.groupby(["session", *EXPLANATION])["question"].agg(set)
    if lacking := [given for given in asked if needed - given]:
        missing = sorted(needed - lacking[0])
        raise ExportError(
            f"Some ratings lack {', '.join(missing)}: a record holds all answers of one rater, so a study "
            'with questions = "split", or with fewer questions, has none; export as csv.'
        )
    return rows


class _Names:
    """Whole numbers for items and conditions, in the order of the tables, as the format's names need them."""

    def __init__(self, stimuli: pd.DataFrame) -> None:
        is_copy = stimuli["copy_of"].fillna("") != "" if "copy_of" in stimuli else stimuli["item"].isna()
        self.own_rows = stimuli[~is_copy]
        self.copies = stimuli[is_copy]
        self.images = {str(key): at for at, key in enumerate(sorted(set(self.own_rows["item"])))}
        self.methods = {str(key): at for at, key in enumerate(dict.fromkeys(self.own_rows["condition"]))}
        self.about: dict[tuple[str, str], dict[str, Any]] = {
            (str(row["item"]), str(row["condition"])): row for row in self.own_rows.to_dict("records")
        }
        self.pairs = {
            (str(row["copy_of"]), str(row["condition"]), str(json.loads(row["perturbation"])["aim"])): row
            for row in self.copies.to_dict("records")
        }

    def image(self, item: str, row: Mapping[str, Any]) -> str:
        return f"{_plain(row['dataset'] or row['study'])}_{self.images[item]}"

    def explanation(self, item: str, condition: str) -> str:
        return f"{self.image(item, self.about[item, condition])}_{self.methods[condition]}"

    def copies_of(self, item: str, condition: str) -> dict[str, str]:
        """Names of the copies' files; a copy's picture depends on the model, so it is named by the
        explanation too."""
        stem = self.explanation(item, condition)
        named = {}
        for aim in ("light", "strong"):
            if (item, condition, aim) in self.pairs:
                named[f"img_{aim}"] = f"{stem}_{aim}_image.png"
                named[f"explication_{aim}"] = f"{stem}_{aim}.png"
        return named

    def index(self, rows: pd.DataFrame) -> Iterator[Sequence[str]]:
        """What each name stands for: keys of the study, and digests of the pictures that were shown."""
        for item, condition in sorted(set(zip(rows["item"], rows["condition"], strict=True))):
            stem = self.explanation(item, condition)
            yield self._line(f"{stem}.png", item, condition, self.about[item, condition])
            for aim in ("light", "strong"):
                if copy := self.pairs.get((item, condition, aim)):
                    yield self._line(f"{stem}_{aim}.png", item, condition, copy)

    def _line(self, name: str, item: str, condition: str, row: Mapping[str, Any]) -> list[str]:
        dataset, numbers = row["dataset"] or row["study"], (self.images[item], self.methods[condition])
        of = item if row["item"] != item else ""
        cells = (name, dataset, numbers[0], row["item"], numbers[1], condition, of, row["stimulus_key"],
                 row["picture_digest"])  # fmt: skip
        return [escape_cell(str(cell)) for cell in cells]


def _records(rows: pd.DataFrame, names: _Names) -> Iterator[Record]:
    """One per rated explanation, in the order of items and conditions; raters by pseudonym."""
    for (item, condition), given in rows.groupby(EXPLANATION, sort=True):
        row = names.about[item, condition]
        answers = tuple(
            {ASKED[q]: None for q in ASKED}
            | {ASKED[q]: int(p) for q, p in zip(mine["question"], mine["asked"], strict=True)}
            for _, mine in given.groupby(["participant", "session"], sort=True)
        )
        picture = f"{names.image(item, row)}_{_plain(str(row['truth']))}.png"
        explication = f"{names.explanation(item, condition)}.png"
        copies = names.copies_of(item, condition)
        yield Record(picture, explication, str(row["truth"]), str(row["predicted"]), answers, copies)


def _plain(name: Any) -> str:
    """A name that may stand between the underscores of a file's name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", str(name)).strip("-") or "x"
