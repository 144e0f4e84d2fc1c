"""Explains a sample of a study's stimuli once more and compares with what is stored."""

from __future__ import annotations

import random
import secrets
from collections import defaultdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management.base import StudyCommand, study_of
from experiments.models import Study
from experiments.terminal import Terminal
from stimuli.models import Stimulus
from stimuli.recheck import RecheckResult, recheck
from stimuli.spec import StimulusSpec
from stimuli.store.media_access import current_store
from stimuli.worker_claims import State, device

LISTED = 10


class Command(StudyCommand):
    help = "Explain some of a study's stimuli again and compare with the stored maps; changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--sample", type=int, default=50, help="how many explanations; 0 = all")
        parser.add_argument("--seed", type=int, help="of the sample; drawn and printed unless given")
        parser.add_argument(
            "--tolerance", type=float, default=1e-3, help="as a share of a map's largest magnitude"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        study, tolerance = study_of(options["study"]), options["tolerance"]
        if options["sample"] < 0 or not 0 <= tolerance < 1:
            raise CommandError(
                f"--sample is {options['sample']} and must be 0 or more; --tolerance is {tolerance} and must "
                "be at least 0 and less than 1"
            )
        seed = secrets.randbelow(2**31) if options["seed"] is None else options["seed"]
        specs = _specs(study)
        if not specs:
            raise CommandError(f"{study.slug} has no explanation yet: run build_stimuli first")
        if options["sample"]:
            specs = random.Random(seed).sample(specs, min(options["sample"], len(specs)))
        with Terminal() as terminal:
            results = list(recheck(specs, current_store(), device(), terminal.progress))
            terminal.table(
                f"{study.slug}: {len(results)} explanations once more, sample seed {seed}",
                ("Method", "Explanations", "Equal to the bit", "Largest difference"),
                _rows(results),
            )
        tied = [result for result in results if result.is_tied(tolerance)]
        if tied:
            self.stdout.write("\n".join(_ties(tied, tolerance)))
        beyond = [result for result in results if result.is_beyond(tolerance) and result not in tied]
        if beyond:
            raise CommandError("\n".join(_complaints(beyond, tolerance)))
        others = "No other" if tied else "None"
        self.stdout.write(
            f"{others} is further from the stored one than {tolerance:g} of its largest magnitude."
        )


def _specs(study: Study) -> list[StimulusSpec]:
    """One spec per stored explanation, in the order of their keys."""
    rows = Stimulus.objects.filter(renderings__item__study=study, state=State.DONE)
    specs = (StimulusSpec.from_json(spec) for spec in rows.order_by("key").values_list("spec", flat=True))
    return list({spec.attribution_key: spec for spec in specs if spec.explainer is not None}.values())


def _rows(results: list[RecheckResult]) -> list[tuple[str, int, int, str]]:
    methods: dict[str, list[RecheckResult]] = defaultdict(list)
    for result in results:
        assert result.spec.explainer is not None
        methods[result.spec.explainer.name].append(result)
    rows = []
    for name, of_method in sorted(methods.items()):
        apart = [result.difference for result in of_method if result.difference is not None]
        rows.append((name, len(of_method), apart.count(0.0), f"{max(apart):.1e}" if apart else "–"))
    return rows


def _ties(tied: list[RecheckResult], tolerance: float) -> list[str]:
    """What is said of explanations that differ in areas of one colour only."""
    head = (
        f"{len(tied)} differ by more than {tolerance:g}, but only where the picture has one colour. So do "
        "ties of max pooling, which another device or memory layout decides otherwise:"
    )
    return [head, *_listing(tied)]


def _complaints(beyond: list[RecheckResult], tolerance: float) -> list[str]:
    head = (
        f"{len(beyond)} differ by more than {tolerance:g} of their largest magnitude, or cannot be compared:"
    )
    return [head, *_listing(beyond)]


def _listing(results: list[RecheckResult]) -> list[str]:
    """The first of them, each with what is wrong, and how many more there are."""
    lines = []
    for result in results[:LISTED]:
        said = result.error
        if result.difference is not None:
            said = f"differs by {result.difference:.1e}, at {result.share:.0%} of its values"
        lines.append(f"  {result.spec.picture_key}: {said}")
    return lines + ([f"  and {len(results) - LISTED} more"] if len(results) > LISTED else [])
