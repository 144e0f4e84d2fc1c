"""RISE steered towards what people would say: the predicted rating, and what it costs in faithfulness."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.core.management.base import CommandError

from analysis.exports.delimited import write_rows
from analysis.preference.figures import steering as figure_of
from analysis.preference.figures import write_figure
from analysis.preference.scorer_commands import add_scorer, at_ends, open_scorer, question_of
from analysis.spreadsheet_cells import escape_cell
from experiments.definition.study import StudyDefinition
from experiments.drafting.decoding import decoding_of
from experiments.management.base import StudyCommand
from experiments.study_files.load import find_study, load_study, material_folder
from experiments.terminal import Terminal
from stimuli.datasets import open_dataset
from stimuli.library.explanations import draw, explain, measure, open_model, sheet, with_maps
from stimuli.preference.scorer_file import LIMITS
from stimuli.preference.steering import Predicts, Steering, steered_maps

METRICS = ("deletion", "insertion")


class Command(StudyCommand):
    help = (
        "Steer RISE by a scorer on pictures of a study: weight = lambda x predicted rating + (1 - lambda) x "
        "probability; the predicted rating of each map, and its faithfulness beside it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_scorer(parser)
        parser.add_argument("study", metavar="STUDY", help="whose pictures and model are taken; path or slug")
        parser.add_argument("--question", default="", help="of the scorer (its first)")
        parser.add_argument(
            "--pictures", type=int, default=4, metavar="N", help="the first of its people's (4)"
        )
        parser.add_argument("--masks", type=int, default=500, help="shared by all lambda (500)")
        parser.add_argument("--seed", type=int, default=0, help="of the masks (0)")
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="figure, sheet and table")

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        if not 1 <= options["pictures"] <= 50 or not 8 <= options["masks"] <= 20_000:
            raise CommandError("--pictures takes 1 to 50, and --masks 8 to 20000.")
        path = find_study(options["study"], tuple(settings.STUDY_DIRS))
        definition = load_study(path)
        with Terminal() as terminal:
            try:
                rows = self._steer_pictures(definition, path, options, out, terminal)
            except OSError as error:
                raise CommandError(f"{error.filename or out}: {error.strerror}.") from error
            shares = sorted({row["lambda"] for row in rows})
            cells = [
                (f"{share:g}", *(_mean(rows, share, name) for name in ("predicted", *METRICS)))
                for share in shares
            ]
            terminal.table(
                "Steered RISE, mean over pictures", ("lambda", "predicted rating", *METRICS), cells
            )
            terminal.line("Lower deletion and higher insertion are more faithful to the network.")
            if said := at_ends([row["predicted"] for row in rows]):
                terminal.line(said, "yellow")
            terminal.line(LIMITS)
            terminal.line(f"{out}: steering.svg, steering.pdf, sheet.png, steering.csv.")

    def _steer_pictures(
        self, definition: StudyDefinition, path: Path, options: dict[str, Any], out: Path, terminal: Terminal
    ) -> list[dict[str, Any]]:
        saved, encoder = open_scorer(options)
        question = question_of(saved.card, options["question"])
        predicts = Predicts(saved, encoder, question)
        dataset, predictor = (table.component() for table in next(iter(definition.stimuli.sources.values())))
        folder = material_folder(path)
        source = open_dataset(dataset, folder, decoding_of(definition))
        model = open_model(predictor.as_json(), folder, source, terminal.progress)
        items = source.items("people")[: options["pictures"]]
        pictures = [source.pixels(item.key) for item in items]
        base = explain(model, pictures, ["random"], progress=terminal.progress)
        plan = Steering(
            question, masks=options["masks"], seed=options["seed"], recipe=definition.render.spec()
        )
        known = {"truth": [item.truth for item in items], "predicted": list(base.predicted)}
        labels = known.get(saved.card.label, [""] * len(items))
        maps: dict[str, list[Any]] = {}
        for place, view in enumerate(base.views):
            target = model.labels.index(base.predicted[place])
            made = steered_maps(
                model, view, target, predicts, plan, labels[place],
                partial(terminal.progress, f"picture {place + 1}"),
            )  # fmt: skip
            for share, values in made.items():
                maps.setdefault(f"lambda {share:g}", []).append(values)
        base = replace(base, names=tuple(item.key for item in items))
        result = with_maps(base, {title: np.stack(values) for title, values in maps.items()})
        table = measure(result, METRICS, plan.recipe, terminal.progress).set_index(
            ["picture", "method", "metric"]
        )
        drawn = draw(result, plan.recipe)
        rows = []
        for place, name in enumerate(result.names):
            for title in result.methods:
                told = {metric: float(table.loc[(name, title, metric), "value"]) for metric in METRICS}
                score = float(predicts.of([drawn[title][place]], labels[place])[0])
                share = float(title.partition(" ")[2])
                rows.append({"picture": name, "lambda": share, "predicted": score, **told})
        out.mkdir(parents=True, exist_ok=True)
        write_figure(figure_of(rows, METRICS), out, "steering")
        sheet(result, plan.recipe).save(out / "sheet.png")
        columns = list(rows[0])
        write_rows(
            out / "steering.csv", columns, ([escape_cell(str(row[c])) for c in columns] for row in rows)
        )
        return rows


def _mean(rows: list[dict[str, Any]], share: float, name: str) -> str:
    return f"{np.mean([row[name] for row in rows if row['lambda'] == share]):.3f}"
