"""Predicts with a fitted scorer how people would rate explanations."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from django.core.management.base import CommandError

from analysis.exports.delimited import write_frame
from analysis.preference.scorer_commands import (
    ToScore,
    add_scorer,
    at_ends,
    keep,
    of_study,
    open_scorer,
    predicted_of,
)
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal
from stimuli.errors import first_of
from stimuli.preference.embedding import ShownExplanation
from stimuli.preference.scorer_file import LIMITS, ScorerCard
from stimuli.table_reader import read_table

COLUMNS = ("explanation", "condition", "label", "question", "predicted", "sd", "heads")


class Command(StudyCommand):
    help = (
        "Predict with a scorer how people would rate explanations: of a folder of pictures, or of a study. "
        "No person was asked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_scorer(parser)
        parser.add_argument("--pictures", type=Path, metavar="DIR", help="PNG files of drawn explanations")
        parser.add_argument(
            "--labels",
            type=Path,
            metavar="FILE",
            help="CSV with the columns file and label, if it takes labels",
        )
        parser.add_argument("--study", default="", help="all explained pictures of a study that are rendered")
        parser.add_argument(
            "--keep", action="store_true", help="store them with the study, whose reports call them predicted"
        )
        parser.add_argument("--out", type=Path, metavar="FILE", help="write every predicted rating, as CSV")

    def handle(self, *args: Any, out: Path | None, **options: Any) -> None:
        if bool(options["pictures"]) == bool(options["study"]):
            raise CommandError("Name what is to be scored: a folder by --pictures, or a study by --study.")
        if options["keep"] and not options["study"]:
            raise CommandError("--keep stores predictions with a study: name it by --study.")
        if out is not None and out.exists():
            raise CommandError(f"{out} exists; name another --out.")
        with Terminal() as terminal:
            try:
                saved, encoder = open_scorer(options)
                if options["keep"] and f'the study "{options["study"]}"' in str(saved.card.split.get("of")):
                    raise CommandError(
                        f"The scorer learned from {options['study']} itself, and beside its ratings would "
                        "look better than it is: --keep it with a study that it has not seen."
                    )
                rows = self._rows(saved.card, options)
                answers = predicted_of(rows, saved, encoder, partial(terminal.progress, "embedding"))
            except OSError as error:
                raise CommandError(f"{error.filename}: {error.strerror}.") from error
            table = predicted_ratings(rows, saved.card, answers)
            groups = "condition" if options["study"] else "explanation"
            shown = table.groupby([groups, "question"], sort=False)["predicted"].mean().unstack("question")
            shown = shown.sort_values(shown.columns[0], ascending=False)
            cells = [(str(name), *(f"{value:.2f}" for value in row)) for name, row in zip(
                shown.index, shown.to_numpy(), strict=True
            )]  # fmt: skip
            terminal.table("Predicted ratings, 1 to 5; no person was asked", (groups, *shown.columns), cells)
            if told := at_ends(table["predicted"]):
                terminal.line(told, "yellow")
            if options["keep"]:
                count = keep(rows, table, options["scorer"], encoder.name)
                terminal.line(f"{count:,} predicted ratings stored; reports show them beside other metrics.")
            terminal.line(LIMITS)
            if out is not None:
                write_frame(out, table)
                terminal.line(f"{out}: {len(table):,} predicted ratings.")

    def _rows(self, card: ScorerCard, options: dict[str, Any]) -> list[ToScore]:
        if options["study"]:
            return of_study(options["study"], card)
        if card.inputs != "single":
            raise CommandError(
                f"This scorer compares a picture with its {card.inputs} copy, which a folder does not hold: "
                "name a study by --study, or a scorer of single pictures."
            )
        folder: Path = options["pictures"]
        files = sorted(folder.glob("*.png"))
        if not files:
            raise CommandError(f"{folder} holds no .png file; name a folder with drawn explanations.")
        labels = _labels(options["labels"]) if options["labels"] else {}
        if card.labels and (missing := [file.name for file in files if file.name not in labels]):
            raise CommandError(
                f"This scorer takes a label with each explanation, and {missing[0]} has none: give --labels."
            )
        shown = {
            file.name: ShownExplanation(picture=file.read_bytes(), label=labels.get(file.name, ""))
            for file in files
        }
        return [ToScore(name, "", picture) for name, picture in shown.items()]


def _labels(file: Path) -> dict[str, str]:
    table = read_table(file)
    if lacking := {"file", "label"} - set(table.names):
        raise CommandError(f"{file.name} lacks the column {sorted(lacking)[0]}; give file and label.")
    files, labels = (table.columns[table.names.index(name)] for name in ("file", "label"))
    if len(set(files)) < len(files):
        twice = [f'"{name}" ({count})' for name, count in Counter(files).items() if count > 1]
        raise CommandError(
            f"{file.name} names files more than once: {first_of(twice)}; keep one line for each."
        )
    return dict(zip(files, labels, strict=True))


def predicted_ratings(
    rows: Sequence[ToScore], card: ScorerCard, answers: np.ndarray[Any, Any]
) -> pd.DataFrame:
    """One row per explanation and question: mean and sd over the heads, which are the seeds of the fit."""
    questions = [head.question for head in card.heads]
    parts = []
    for question in dict.fromkeys(questions):
        heads = answers[:, [name == question for name in questions]]
        sd = heads.std(axis=1, ddof=1) if heads.shape[1] > 1 else np.full(len(heads), np.nan)
        told = {"question": question, "predicted": heads.mean(axis=1), "sd": sd, "heads": heads.shape[1]}
        about = {
            "explanation": [row.name for row in rows],
            "condition": [row.condition for row in rows],
            "label": [row.shown.label for row in rows],
        }
        parts.append(pd.DataFrame({**about, **told}))
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]
