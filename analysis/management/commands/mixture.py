"""Of each image the method that people would rate highest, by prediction."""

from __future__ import annotations

from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from analysis.exports.delimited import guarded, write_rows
from analysis.preference.applying import (
    ToScore,
    add_scorer,
    at_ends,
    heads_of,
    of_study,
    opened,
    predicted_of,
    question_of,
)
from analysis.preference.figures import winners, write_figure
from analysis.reports.faithfulness import newest
from analysis.tables import read_frames
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal
from stimuli.errors import StimulusError
from stimuli.preference.mixture import Mixture, means, mixture
from stimuli.preference.scorer_file import LIMITS

PUBLISHED = (
    "Published by PASTA, not recomputed: faithfulness correlation of the chosen .0627, of all methods .0579; "
    "FullGrad was chosen for nearly half of the images."
)


class Command(StudyCommand):
    help = (
        "Choose for each image of a study the method with the highest predicted rating; winners, ties, and "
        "the faithfulness of the chosen beside the mean of all."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_scorer(parser)
        parser.add_argument("study", metavar="SLUG", help="whose explanations are rendered")
        parser.add_argument("--question", default="", help="of the scorer (its first)")
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="figure and tables")

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        study = study_of(options["study"])
        with Terminal() as terminal:
            try:
                saved, encoder = opened(options)
                question = question_of(saved.card, options["question"])
                rows = of_study(study.slug, saved.card)
                answers = predicted_of(rows, saved, encoder, partial(terminal.progress, "embedding"))
                scores = answers[:, heads_of(saved.card, question)].mean(axis=1)
                made = mixture(
                    [row.name for row in rows],
                    [row.condition for row in rows],
                    scores.tolist(),
                    [row.shown.digest for row in rows],
                )
            except StimulusError as error:
                raise CommandError(str(error)) from error
            table = [(name, f"{count:g}", f"{count / made.images:.1%}") for name, count in made.wins.items()]
            terminal.table(
                f"Images with the highest predicted {question}", ("method", "images", "share"), table
            )
            terminal.line(
                f"{made.tied} of {made.images} images have several best methods, which share the image; in "
                f"{made.coinciding} of them because their pictures are the same."
            )
            beside = faithfulness(made, read_frames(study).stimuli)
            if beside:
                columns = ("metric", "scores", "chosen", "mean of all", "images")
                terminal.table(
                    "The chosen beside all methods", columns, [tuple(map(_short, row)) for row in beside]
                )
            else:
                terminal.line("No metric was measured of these explanations; name some in [[metrics]].")
            if told := at_ends(scores):
                terminal.line(told, "yellow")
            terminal.line(PUBLISHED)
            terminal.line(LIMITS)
            _write(out, rows, scores.tolist(), made, beside)
            terminal.line(f"{out}: winners.svg, winners.pdf, predicted.csv, beside.csv.")


def faithfulness(made: Mixture, stimuli: Any) -> list[tuple[Any, ...]]:
    """Of every metric that was measured of all: its name and parameters, what it scores, the mean of the
    chosen, the mean of all methods, and the images that count."""
    rows = []
    for (metric, parameters), columns in newest(stimuli).items():
        for column, values in columns.items():
            try:
                told = means(made, values)
            except StimulusError:
                continue
            rows.append((f"{metric} {parameters}", column, *told))
    return rows


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value).partition(" ")[0]


def _write(out: Path, rows: list[ToScore], scores: list[float], made: Mixture, beside: list[Any]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_figure(winners(made.wins, made.images), out, "winners")
        chosen = (
            (row.name, row.condition, repr(score), str(row.condition in made.chosen[row.name]).lower())
            for row, score in zip(rows, scores, strict=True)
        )
        cells = ([guarded(cell) for cell in line] for line in chosen)
        write_rows(out / "predicted.csv", ["item", "condition", "predicted", "is_chosen"], cells)
        columns = ["metric", "scores", "chosen", "all", "images"]
        write_rows(out / "beside.csv", columns, ([guarded(str(cell)) for cell in line] for line in beside))
    except OSError as error:
        raise CommandError(f"{out} cannot be written ({error.strerror}): name another --out.") from error
