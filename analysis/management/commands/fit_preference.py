"""Fits a scorer that predicts how people would rate an explanation."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from analysis.preference.fit_summary import tell, write
from analysis.preference.fitting import FitPlan, fit
from analysis.preference.rated_explanations import RatedExplanations, from_records, from_study, from_twin
from analysis.preference.splits import SPLITS
from experiments.management.base import StudyCommand, study_of
from experiments.paradigms.rating import AIMS
from experiments.terminal import Terminal
from stimuli.preference.encoders import EMBEDDED, open_encoder
from stimuli.preference.prediction_agreement import TARGETS
from stimuli.preference.scorer_file import save
from stimuli.preference.synthetic_twin import PLANTS
from stimuli.render.sentences import PASTA, SentenceSpec
from stimuli.store.media_access import current_store

SCORER_FILE = "scorer.safetensors"


class Fitting(StudyCommand):
    """The options of commands that fit: where ratings come from, and how they are learned."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", nargs="?", default="", help='a study of the paradigm "rating"')
        parser.add_argument("--records", type=Path, metavar="FILE", help="ratings in PASTA's record format")
        parser.add_argument(
            "--explanations", type=Path, metavar="DIR", help="the pictures that the records name"
        )
        parser.add_argument("--twin", choices=PLANTS, help="a synthetic twin of PASTA, to try the pipeline")
        parser.add_argument("--images", type=int, default=1000, help="of the twin (1000)")
        parser.add_argument(
            "--encoder",
            default=EMBEDDED,
            metavar="DIR",
            help=f'folder of a CLIP, SigLIP or BLIP model; without it "{EMBEDDED}", which was never trained',
        )
        parser.add_argument("--device", default="cpu", help="where the encoder runs (cpu)")
        parser.add_argument(
            "--split", choices=SPLITS, default="strict", help="what is kept from what (strict)"
        )
        parser.add_argument("--runs", type=int, default=5, help="splits and seeds (5)")
        parser.add_argument("--seed", type=int, default=0, help="the first of them (0)")
        parser.add_argument(
            "--target", choices=TARGETS, default="mode", help="what several ratings become (mode)"
        )
        parser.add_argument(
            "--label",
            choices=("none", "truth", "predicted"),
            default="none",
            help="the class beside the embedding",
        )
        parser.add_argument(
            "--pair",
            choices=AIMS,
            default="",
            help="learn a study's questions that compare with this copy, from both pictures",
        )
        parser.add_argument("--epochs", type=int, default=24, help="passes through the ratings, at most (24)")
        parser.add_argument("--origin", default="human", help="whose ratings of the study (human)")
        parser.add_argument(
            "--licence", default="", help="of the ratings, for the card that goes with the scorer"
        )
        parser.add_argument(
            "--out", type=Path, required=True, metavar="DIR", help="where scorer and scores are written"
        )

    def plan(self, options: dict[str, Any]) -> FitPlan:
        """Raises CommandError for a number of runs that cannot be."""
        if not 1 <= options["runs"] <= 50:
            raise CommandError(f"--runs is {options['runs']}; take 1 to 50.")
        names = ("split", "runs", "seed", "target", "label", "pair", "licence")
        return FitPlan(**{name: options[name] for name in names}, options=(("epochs", options["epochs"]),))

    def rated(
        self, options: dict[str, Any], terminal: Terminal, spec: SentenceSpec = PASTA
    ) -> RatedExplanations:
        """What is learned from; concepts as the sentence of `spec`."""
        given = [name for name in ("study", "records", "twin") if options[name]]
        if len(given) != 1:
            raise CommandError(
                f"{' and '.join(given) or 'Nothing'} given; name one source: a study, --records, or --twin."
            )
        if options["pair"] and not options["study"]:
            raise CommandError("--pair needs the copies of a study: name the study, or leave --pair out.")
        if options["twin"]:
            return from_twin(options["twin"], options["images"], options["seed"])
        if options["records"]:
            if options["explanations"] is None:
                raise CommandError("--records names pictures: give their folder by --explanations.")
            files = options["records"], options["explanations"]
            return from_records(*files, label=options["label"], spec=spec)
        chosen = {name: options[name] for name in ("origin", "label", "pair")}
        study = study_of(options["study"])
        return from_study(study, current_store(), **chosen, spec=spec, progress=terminal.progress)


class Command(Fitting):
    help = (
        "Fit a scorer that predicts people's ratings of explanations, from a finished study of ratings or "
        "from files in PASTA's format. Interrupted, it goes on where it was."
    )

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        if (out / SCORER_FILE).exists():
            raise CommandError(f"{out} already holds a scorer; name another --out.")
        plan = self.plan(options)
        with Terminal() as terminal:
            try:
                rated = self.rated(options, terminal)
                encoder = open_encoder(options["encoder"], options["device"])
                out.mkdir(parents=True, exist_ok=True)
                made = fit(rated, encoder, plan, out, terminal.progress)
            except OSError as error:
                raise CommandError(f"{error.filename or out}: {error.strerror}.") from error
            write(out, made.splits, made.evaluation)
            save(out / SCORER_FILE, made.scorer, made.card)
            tell(terminal, rated, made.splits, made.evaluation, encoder.name)
            terminal.line(f"{out / SCORER_FILE}: for score, with its card beside it.")
