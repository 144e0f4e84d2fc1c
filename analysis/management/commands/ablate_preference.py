"""What each part of a scorer of preferences is worth: fitted without it, on the same splits."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from analysis.management.commands.fit_preference import Fitting
from analysis.preference.ablation import (
    SENTENCES,
    VariationSummary,
    figure_of,
    summarise_variation,
    variations,
    write,
)
from analysis.preference.figures import write_figure
from analysis.preference.fitting import FitPlan, fit
from analysis.preference.rated_explanations import RatedExplanations
from experiments.terminal import Terminal
from stimuli.preference.encoders import PreferenceEncoder, open_encoder
from stimuli.render.sentences import PASTA, SentenceSpec


class Command(Fitting):
    help = (
        "Fit a scorer without each of its parts, on the same splits and seeds, with other sentences of "
        "concepts and with several encoders: weighted kappa and Spearman's correlation of each beside those "
        "of the whole."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--also", action="append", default=[], metavar="DIR", help="a further encoder; several times"
        )

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        if (out / "ablation.csv").exists():
            raise CommandError(f"{out} already holds an ablation; name another --out.")
        plan = self.plan(options)
        with Terminal() as terminal:
            rated = self.rated(options, terminal)
            rows = list(self._rows(rated, plan, out, options, terminal))
            terminal.table(
                f"Mean over {len(rated.questions)} questions and their runs",
                ("fitted", "QWK", "Spearman"),
                [(row.name, f"{row.kappa:.3f}", _or_none(row.ranks)) for row in rows],
            )
            write(out, rows)
            write_figure(figure_of(rows), out, "ablation")
            terminal.line(f"{out}: ablation.csv, ablation.svg, ablation.pdf; {rated.origin}.")

    def _rows(
        self, rated: RatedExplanations, plan: FitPlan, out: Path, options: dict[str, Any], terminal: Terminal
    ) -> Iterator[VariationSummary]:
        whole = open_encoder(options["encoder"], options["device"])
        others = [open_encoder(named, options["device"]) for named in options["also"]]
        jobs: list[tuple[str, PreferenceEncoder, FitPlan, SentenceSpec]] = [
            (name, whole, changed, PASTA) for name, changed in variations(plan).items()
        ]
        if any(shown.text for shown in rated.subjects):
            jobs += [(name, whole, plan, spec) for name, spec in SENTENCES.items()]
        jobs += [(f"encoder {encoder.name}", encoder, plan, PASTA) for encoder in others]
        for place, (name, encoder, changed, spec) in enumerate(jobs):
            terminal.progress(f"{len(jobs)} fits", place, len(jobs))
            data = rated if spec == PASTA else self.rated(options, terminal, spec)
            made = fit(data, encoder, changed, out / f"fit-{place}", lambda *_: None, out / "embeddings")
            yield summarise_variation(name, made.evaluation)
        terminal.progress(f"{len(jobs)} fits", len(jobs), len(jobs))


def _or_none(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
