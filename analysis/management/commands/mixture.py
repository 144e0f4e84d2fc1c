"""Of each image the method that people would rate highest, by prediction."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.exports.delimited import write_rows, writing
from analysis.preference.backbone_comparison import MethodPlace, places
from analysis.preference.figures import draw_places, winners, write_figure
from analysis.preference.scorer_commands import (
    ToScore,
    add_scorer,
    add_study,
    at_ends,
    heads_of,
    of_study,
    open_scorer,
    predicted_of,
    question_of,
)
from analysis.reports.utility.faithfulness import newest
from analysis.reports.utility.metric_correlation import PREDICTED
from analysis.spreadsheet_cells import escape_cell
from analysis.tables.response_reader import read_frames
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal
from stimuli.errors import BadRatings
from stimuli.metrics import METRICS, SET_METRICS
from stimuli.preference.method_mixture import Mixture, means, mixture
from stimuli.preference.scorer_file import LIMITS
from stimuli.render.png import decode

PUBLISHED = (
    "Published by PASTA, not recomputed: faithfulness correlation of the chosen .0627, of all methods .0579; "
    "FullGrad was chosen for nearly half of the images."
)
USUAL = "faithfulness_correlation"
Values = Mapping[tuple[str, str], float]


class Command(StudyCommand):
    help = (
        "Choose for each image of a study the method with the highest predicted rating; winners, ties, and "
        "the faithfulness of the chosen beside the mean of all."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_scorer(parser)
        add_study(parser)
        parser.add_argument(
            "--metric", default="", help=f"beside the predicted ratings, if it was measured ({USUAL}, or any)"
        )
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="figures and tables")

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        study = study_of(options["study"])
        with Terminal() as terminal:
            saved, encoder = open_scorer(options)
            question = question_of(saved.card, options["question"])
            rows = of_study(study.slug, saved.card)
            measured = _metric_values(read_frames(study).stimuli)
            beside_metric = _choose_metric(measured, options["metric"])
            answers = predicted_of(rows, saved, encoder, partial(terminal.progress, "embedding"))
            scores = answers[:, heads_of(saved.card, question)].mean(axis=1)
            table = pd.DataFrame({
                "dataset": [row.dataset for row in rows],
                "item": [row.name for row in rows],
                "condition": [row.condition for row in rows],
                "predicted": scores,
                "digest": [row.shown.digest for row in rows],
            })  # fmt: skip
            made = dict(_mixtures(table))
            for dataset, each in made.items():
                _tell(terminal, dataset, each, question)
            beside = [
                (dataset, *row) for dataset, each in made.items() for row in faithfulness(each, measured)
            ]
            if beside:
                columns = ("dataset", "metric", "scores", "chosen", "mean of all", "images")
                lines = [tuple(map(_short, row)) for row in beside]
                terminal.table("The chosen beside all methods", columns, lines)
            else:
                terminal.line("No metric was measured of these explanations; name some in [[metrics]].")
            if told := at_ends(scores):
                terminal.line(told, "yellow")
            terminal.line(PUBLISHED)
            terminal.line(LIMITS)
            with writing(out):
                drawn = _write(out, table, rows, made, beside, beside_metric)
            terminal.line(f"{out}: {', '.join(drawn)}.")


def _mixtures(table: pd.DataFrame) -> Iterator[tuple[str, Mixture]]:
    """One of each dataset, since its images have methods of their own."""
    for dataset, part in table.groupby("dataset", sort=False):
        columns = [part[name].tolist() for name in ("item", "condition", "predicted", "digest")]
        yield str(dataset), mixture(*columns)


def _tell(terminal: Terminal, dataset: str, made: Mixture, question: str) -> None:
    table = [(name, f"{count:g}", f"{count / made.images:.1%}") for name, count in made.wins.items()]
    of = f" of {dataset}" if dataset else ""
    terminal.table(f"Images{of} with the highest predicted {question}", ("method", "images", "share"), table)
    terminal.line(
        f"{made.tied} of {made.images} images have several best methods, which share the image; in "
        f"{made.coinciding} of them because their pictures are the same."
    )


def _metric_values(stimuli: pd.DataFrame) -> dict[tuple[str, str], dict[str, Values]]:
    """Every metric; what a scorer predicted is none."""
    made = newest(stimuli).items()
    return {key: dict(columns) for key, columns in made if not key[0].startswith(PREDICTED)}


def _choose_metric(
    measured: Mapping[tuple[str, str], Mapping[str, Values]], asked: str
) -> tuple[str, Values] | None:
    """The words of the metric that stands beside the predicted ratings, and its values: that of the method's
    own map if it was measured, or of what was seen. None if nothing was measured."""
    names = list(dict.fromkeys(name for name, _ in measured))
    if asked and asked not in names:
        known = f"known are {', '.join(names)}" if names else "nothing was measured"
        raise BadRatings(f"these explanations have no metric {asked!r}; {known}")
    if not names:
        return None
    name = asked or (USUAL if USUAL in names else names[0])
    columns = next(columns for (metric, _), columns in measured.items() if metric == name)
    column = "method" if "method" in columns else next(iter(columns))
    known_metrics = METRICS | SET_METRICS
    way = f" ({known_metrics.load(name).better} is better)" if name in known_metrics else ""
    whose = "of the method's map" if column == "method" else "of what was seen"
    return f"{name.replace('_', ' ').capitalize()}, {whose}{way}", columns[column]


def faithfulness(
    made: Mixture, measured: Mapping[tuple[str, str], Mapping[str, Values]]
) -> list[tuple[Any, ...]]:
    """Of every metric that was measured of all: its name and parameters, what it scores, the mean of the
    chosen, the mean of all methods, and the images that count."""
    rows = []
    for (metric, parameters), columns in measured.items():
        for column, values in columns.items():
            try:
                told = means(made, values)
            except BadRatings:
                continue
            rows.append((f"{metric} {parameters}", column, *told))
    return rows


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value).partition(" ")[0]


def _write(
    out: Path, table: pd.DataFrame, rows: Sequence[ToScore], made: Mapping[str, Mixture],
    beside: Sequence[tuple[Any, ...]], metric: tuple[str, Values] | None,
) -> list[str]:  # fmt: skip
    """The names of the files."""
    out.mkdir(parents=True, exist_ok=True)
    write_figure(winners(made), out, "winners")
    chosen = [
        str(condition in made[dataset].chosen[item]).lower()
        for dataset, item, condition in zip(table["dataset"], table["item"], table["condition"], strict=True)
    ]
    whole = table.drop(columns="digest").assign(is_chosen=chosen)
    cells = (
        [escape_cell(repr(v) if isinstance(v, float) else v) for v in line]
        for line in whole.to_numpy().tolist()
    )
    write_rows(out / "predicted.csv", list(whole.columns), cells)
    columns = ["dataset", "metric", "scores", "chosen", "all", "images"]
    write_rows(out / "beside.csv", columns, ([escape_cell(str(cell)) for cell in line] for line in beside))
    files = ["winners.svg", "winners.pdf", "predicted.csv", "beside.csv"]
    for dataset, part in table.groupby("dataset", sort=False):
        if metric is not None and (where := places(part, metric[1])):
            name = f"placed-{dataset}" if dataset else "placed"
            write_figure(_figure(where, part, rows, metric), out, name)
            files += [f"{name}.svg", f"{name}.pdf"]
    return files


def _figure(
    where: Sequence[MethodPlace], part: pd.DataFrame, rows: Sequence[ToScore], metric: tuple[str, Values]
) -> Any:
    """Of the first image that has the metric under every method, so that none is picked."""
    words, values = metric
    conditions = [row.method for row in where]
    item = next(item for item in part["item"] if all((item, condition) in values for condition in conditions))
    example = {}
    for place in part.index[part["item"] == item]:
        row = rows[place]
        shown = row.shown.text or decode(row.shown.picture)
        example[row.condition] = values[item, row.condition], float(part.loc[place, "predicted"]), shown
    return draw_places(where, example, words)
