"""Predicts with a fitted scorer how people would rate explanations."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from django.core.management.base import BaseCommand, CommandError

from analysis.exports.delimited import guarded, write_rows
from analysis.preference.rated import explained
from experiments.models import Rendering, Study
from experiments.terminal import Terminal
from stimuli.errors import StimulusError
from stimuli.models import Stimulus
from stimuli.preference.embedding import ShownExplanation, embed
from stimuli.preference.encoders import EMBEDDED, open_encoder
from stimuli.preference.scorer_file import LIMITS, ScorerCard, load
from stimuli.store.media import current_store

COLUMNS = ("explanation", "condition", "label", "question", "predicted", "sd", "heads")


@dataclass(frozen=True, slots=True)
class Scored:
    """What is scored: its name, the condition of the study if it has one, and what people would see."""

    name: str
    condition: str
    subject: ShownExplanation


class Command(BaseCommand):
    help = (
        "Predict with a scorer how people would rate explanations: of a folder of pictures, or of a study. "
        "No person was asked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("scorer", type=Path, help="the file that fit_preference wrote")
        parser.add_argument("--pictures", type=Path, metavar="DIR", help="PNG files of drawn explanations")
        parser.add_argument(
            "--labels",
            type=Path,
            metavar="FILE",
            help="CSV with the columns file and label, if it takes labels",
        )
        parser.add_argument("--study", default="", help="all explained pictures of a study that are rendered")
        parser.add_argument(
            "--encoder", default=EMBEDDED, metavar="DIR", help="the one that it was fitted with"
        )
        parser.add_argument("--device", default="cpu", help="where the encoder runs (cpu)")
        parser.add_argument("--out", type=Path, metavar="FILE", help="write every predicted rating, as CSV")

    def handle(self, *args: Any, scorer: Path, out: Path | None, **options: Any) -> None:
        if bool(options["pictures"]) == bool(options["study"]):
            raise CommandError("Name what is to be scored: a folder by --pictures, or a study by --study.")
        if out is not None and out.exists():
            raise CommandError(f"{out} exists; name another --out.")
        with Terminal() as terminal:
            try:
                saved = load(scorer)
                rows = self._rows(saved.card, options)
                encoder = open_encoder(options["encoder"], options["device"])
                vectors = embed(
                    [row.subject for row in rows],
                    encoder,
                    saved.card.labels,
                    progress=lambda done, total: terminal.progress("embedding", done, total),
                )
                answers = saved.predict(vectors, encoder).reshape(len(rows), -1)
            except StimulusError as error:
                raise CommandError(str(error)) from error
            except OSError as error:
                raise CommandError(f"{error.filename}: {error.strerror}.") from error
            table = predicted(rows, saved.card, answers)
            groups = "condition" if options["study"] else "explanation"
            shown = table.groupby([groups, "question"], sort=False)["predicted"].mean().unstack("question")
            shown = shown.sort_values(shown.columns[0], ascending=False)
            cells = [(str(name), *(f"{value:.2f}" for value in row)) for name, row in zip(
                shown.index, shown.to_numpy(), strict=True
            )]  # fmt: skip
            terminal.table("Predicted ratings, 1 to 5; no person was asked", (groups, *shown.columns), cells)
            terminal.line(LIMITS)
            if out is not None:
                _write(table, out)
                terminal.line(f"{out}: {len(table):,} predicted ratings.")

    def _rows(self, card: ScorerCard, options: dict[str, Any]) -> list[Scored]:
        if options["study"]:
            return _of_study(options["study"], card)
        folder: Path = options["pictures"]
        files = sorted(folder.glob("*.png"))
        if not files:
            raise CommandError(f"{folder} holds no .png file; name a folder with drawn explanations.")
        labels = _labels(options["labels"]) if options["labels"] else {}
        if card.labels and (missing := [file.name for file in files if file.name not in labels]):
            raise CommandError(
                f"This scorer takes a label with each explanation, and {missing[0]} has none: give --labels."
            )
        return [
            Scored(
                file.name, "", ShownExplanation(picture=file.read_bytes(), label=labels.get(file.name, ""))
            )
            for file in files
        ]


def _labels(file: Path) -> dict[str, str]:
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    if lacking := {"file", "label"} - set(table.columns):
        raise CommandError(f"{file.name} lacks the column {sorted(lacking)[0]}; give file and label.")
    return dict(zip(table["file"], table["label"], strict=True))


def _of_study(slug: str, card: ScorerCard) -> list[Scored]:
    study = Study.objects.filter(slug=slug).first()
    if study is None:
        raise CommandError(f'There is no study "{slug}" here.')
    rows = Rendering.objects.filter(item__study=study, item__copy_of=None)
    rows = rows.select_related("item", "condition", "stimulus").order_by("condition__ordinal", "item__key")
    store, made = current_store(), []
    for row in rows:
        if not row.stimulus.explainer or row.stimulus.state != Stimulus.State.DONE:
            continue
        label = {"truth": row.item.truth, "predicted": row.item.predicted}.get(card.label, "")
        made.append(Scored(row.item.key, row.condition.name, explained(row.stimulus, store, label)[0]))
    if not made:
        raise CommandError(f'"{slug}" has no explanation that is rendered; run build_stimuli {slug}.')
    return made


def predicted(rows: Sequence[Scored], card: ScorerCard, answers: np.ndarray[Any, Any]) -> pd.DataFrame:
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
            "label": [row.subject.label for row in rows],
        }
        parts.append(pd.DataFrame({**about, **told}))
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def _write(table: pd.DataFrame, out: Path) -> None:
    cells = (["" if pd.isna(cell) else guarded(str(cell)) for cell in row] for row in table.to_numpy(object))
    write_rows(out, list(COLUMNS), cells)
