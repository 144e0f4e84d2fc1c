"""Names the explanations about which a scorer is least sure, for a follow-up study of ratings."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import CommandError

from analysis.preference.scorer_commands import add_scorer, of_study, open_scorer, predicted_of
from analysis.ratings import rated_once, rating_rows
from analysis.tables.response_reader import read_frames
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal
from stimuli.preference.active_annotation import disagreement, rated_next

SHOWN = 10


class Command(StudyCommand):
    help = (
        "Name the explanations of a study of ratings that have none yet and about which a scorer's runs "
        "differ most, for the [design] of a follow-up study."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_scorer(parser)
        parser.add_argument("study", metavar="SLUG", help="whose explanations are rendered")
        parser.add_argument("--count", type=int, default=100, help="how many are named (100)")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the lines for [design]")

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        study = study_of(options["study"])
        if options["count"] < 1:
            raise CommandError(f"--count is {options['count']}; take at least 1.")
        with Terminal() as terminal:
            saved, encoder = open_scorer(options)
            rows = of_study(study.slug, saved.card)
            answers = predicted_of(rows, saved, encoder)
            spread = disagreement(answers, [head.question for head in saved.card.heads])
            given = rated_once(rating_rows(read_frames(study).confirmed().kept()))
            rated = set(zip(given["item"], given["condition"], strict=True))
            is_rated = np.array([(row.name, row.condition) in rated for row in rows])
            chosen = [rows[place] for place in rated_next(spread, is_rated, options["count"])]
            if not chosen:
                raise CommandError(
                    f"All {len(rows)} explanations of {study.slug} have ratings: none is left."
                )
            lines = ",\n".join(f"  {json.dumps([row.name, row.condition])}" for row in chosen)
            try:
                with out.open("x", encoding="utf-8") as file:
                    file.write(f"explanations = [\n{lines},\n]\n")
            except OSError as error:
                raise CommandError(f"{out} cannot be written ({error.strerror}): name another.") from error
            by_name = {(row.name, row.condition): value for row, value in zip(rows, spread, strict=True)}
            cells = [(r.name, r.condition, f"{by_name[r.name, r.condition]:.2f}") for r in chosen[:SHOWN]]
            terminal.table("Rated next", ("item", "condition", "sd of the runs"), cells)
            terminal.line(
                f"{out}: {len(chosen)} of {len(rows) - int(is_rated.sum())} explanations without ratings. "
                f"Put it into [design] of a copy of the study, and {study.slug} into [recruitment] excludes."
            )
