"""How an explainer's predicted ratings change with the network that it explains."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.any_table.formats import interval, number
from analysis.exports.delimited import write_rows, writing
from analysis.preference.backbone_comparison import Mean, Sweep, sweeps
from analysis.preference.figures import by_backbone, write_figure
from analysis.preference.scorer_commands import (
    add_scorer,
    add_study,
    at_ends,
    heads_of,
    of_study,
    open_scorer,
    predicted_of,
    question_of,
)
from analysis.spreadsheet_cells import escape_cell
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal
from stimuli.preference.scorer_file import LIMITS

COLUMNS = ["explainer", "predictor", "predicted", "low", "high", "images"]


class Command(StudyCommand):
    help = (
        "Compare the predicted ratings of each explainer between the predictors of a study, such as small "
        "and large backbones, over the same images."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_scorer(parser)
        add_study(parser)
        parser.add_argument(
            "--order",
            default="",
            metavar="A,B,...",
            help="predictors from small to large (all, in the order of the study's conditions)",
        )
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="figure and table")

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        study = study_of(options["study"])
        with Terminal() as terminal:
            saved, encoder = open_scorer(options)
            question = question_of(saved.card, options["question"])
            rows = of_study(study.slug, saved.card)
            order = [name.strip() for name in options["order"].split(",") if name.strip()]
            order = order or list(dict.fromkeys(row.predictor for row in rows))
            table = pd.DataFrame([(row.name, row.explainer, row.predictor) for row in rows])
            table = table.set_axis(["item", "explainer", "predictor"], axis=1).assign(predicted=0.0)
            sweeps(table, order)  # before hours of embedding
            answers = predicted_of(rows, saved, encoder, partial(terminal.progress, "embedding"))
            table["predicted"] = answers[:, heads_of(saved.card, question)].mean(axis=1)
            made = sweeps(table, order)
            terminal.table(
                f"Predicted {question}, mean over images; no person was asked",
                ("explainer", *order, f"{order[-1]} less {order[0]}", "images"),
                [_line(each) for each in made],
            )
            terminal.line("Intervals of 95 % by resampling images, which are the same for all predictors.")
            left = set(table["explainer"]) - {each.explainer for each in made}
            if left:
                terminal.line(f"Not on all of these predictors: {', '.join(sorted(left))}.")
            if told := at_ends(table["predicted"]):
                terminal.line(told, "yellow")
            terminal.line(LIMITS)
            with writing(out):
                out.mkdir(parents=True, exist_ok=True)
                write_figure(by_backbone(made), out, "backbones")
                write_rows(out / "backbones.csv", COLUMNS, _cells(made))
            terminal.line(f"{out}: backbones.svg, backbones.pdf, backbones.csv.")


def _line(sweep: Sweep) -> tuple[str, ...]:
    means = map(_mean, (*sweep.means.values(), sweep.change))
    return sweep.explainer, *means, str(sweep.change.images)


def _mean(each: Mean) -> str:
    return number(each.mean) if each.interval is None else f"{number(each.mean)} {interval(each.interval)}"


def _cells(made: Sequence[Sweep]) -> Iterator[list[str]]:
    for sweep in made:
        for name, each in [*sweep.means.items(), ("last less first", sweep.change)]:
            ends = [repr(each.interval.low), repr(each.interval.high)] if each.interval else ["", ""]
            yield [escape_cell(sweep.explainer), escape_cell(name), repr(each.mean), *ends, str(each.images)]
