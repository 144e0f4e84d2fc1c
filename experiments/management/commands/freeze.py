"""Turns the answers of a closed study into solutions that a later stage starts from."""

from __future__ import annotations

from itertools import product
from typing import Any

from django.core.management.base import CommandParser

from experiments.errors import StudyError
from experiments.management.base import StudyCommand, study_of
from experiments.models import Solution, Study
from experiments.paradigms.solution_numbers import SourceNumbers
from experiments.paradigms.solutions import Settings
from experiments.stages.solution_freeze import SettingsPreview, freeze, look
from experiments.terminal import Terminal
from stimuli.regions.mark_smoothing import KINDS

SMOOTH_MAX = 5
TRIED_CELLS = (0, 1, 2)
"""Radii of smoothing that --look compares, for each kind of region."""
COLUMNS = ("Source", "Solutions", "Cannot say", "Cells marked", "Cells shown", "Flat maps")
LOOK_COLUMNS = ("Region", "Smoothed by", "Source", "Cannot say", "Cells marked", "Cells shown", "Overlap")


class Command(StudyCommand):
    help = "Freeze the answers of a closed study, and what its models say and mark, as solutions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--region", choices=sorted(KINDS), help="what is shown of a mark (hull)")
        parser.add_argument("--smooth-cells", type=int, metavar="N", help="radius of the smoothing (1)")
        parser.add_argument(
            "--abstain-below",
            type=float,
            metavar="P",
            help="the confidence, 0 to 1, below which a model says that it cannot say (0: it always answers)",
        )
        parser.add_argument(
            "--look",
            action="store_true",
            help="compare settings on the tuning tasks alone, and store nothing",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        study = study_of(options["study"])
        settings = _settings(options)
        with Terminal() as terminal:
            if options["look"]:
                print_looked(look(study, _settings_to_try(settings), terminal.progress), terminal)
                return
            digest = freeze(study, settings, terminal.progress)
            print_frozen(study, terminal)
            count = Solution.objects.filter(study=study).count()
            terminal.line(f"{study.slug}: {count} solutions, digest {digest}.")


def _settings(options: Any) -> Settings | None:
    """The settings that were asked for; None if none was named. Raises StudyError for impossible ones."""
    named = {name: options[name] for name in ("region", "smooth_cells", "abstain_below")}
    named = {name: value for name, value in named.items() if value is not None}
    if not 0 <= named.get("smooth_cells", 0) <= SMOOTH_MAX:
        raise StudyError(
            f"--smooth-cells is {named['smooth_cells']} and must lie between 0 and {SMOOTH_MAX}."
        )
    if not 0 <= named.get("abstain_below", 0.0) <= 1:
        raise StudyError(f"--abstain-below is {named['abstain_below']:g} and must lie between 0 and 1.")
    return Settings(**named) if named else None


def _settings_to_try(settings: Settings | None) -> list[Settings]:
    below = settings.abstain_below if settings else Settings().abstain_below
    return [Settings(region, cells, below) for region, cells in product(KINDS, TRIED_CELLS)]


def print_looked(looked: tuple[SettingsPreview, ...], terminal: Terminal) -> None:
    rows = []
    for each in looked:
        for numbers in each.numbers:
            _, _, abstained, marked, shown, _ = _cells(numbers)
            share = each.overlaps.get(numbers.source)
            rows.append(
                (
                    each.settings.region,
                    f"{each.settings.smooth_cells} cells",
                    numbers.source,
                    abstained,
                    marked,
                    shown,
                    "-" if share is None else f"{share:.2f}",
                )
            )
    terminal.table("Tuning tasks alone; nothing is stored", LOOK_COLUMNS, rows)
    terminal.line(
        "Cells are medians, those shown with their quartiles. Overlap: mean intersection over union with the "
        "regions that other people marked for the same answer."
    )


def print_frozen(study: Study, terminal: Terminal) -> None:
    """What was frozen, as it is stored."""
    kept = study.frozen
    if not kept:
        return
    numbers = [
        SourceNumbers(**{**row, "areas": tuple(row["areas"]) if row["areas"] else None})
        for row in kept["sources"]
    ]
    settings = ", ".join(f"{name} = {value}" for name, value in kept["settings"].items())
    terminal.table(f"Solutions frozen with {settings}", COLUMNS, [_cells(row) for row in numbers])
    print_left_out(kept.get("left_out", {"not_kept": 0, "sources": {}}), terminal)
    for source, told in kept["told"].items():
        if told is None:
            terminal.line(
                f"Whether the form of a region tells {source} from people is unknown: too few items have "
                "regions of both."
            )
            continue
        terminal.line(
            f"The form of a region tells {source} from people with AUC {told['auc']:.2f} (95 % interval "
            f"{told['low']:.2f} to {told['high']:.2f}, p = {told['p']:.3f}, {told['pictures']} items)."
        )


def print_left_out(counts: dict[str, Any], terminal: Terminal) -> None:
    """What people and models gave that no lead will meet, with the reason."""
    terminal.line(
        f"{counts['not_kept']} answers are no solutions, for their people were screened or excluded, or left."
    )
    for source, reasons in counts["sources"].items():
        terminal.line(
            f"Of {source}, no lead meets {reasons['tuning']} solutions of tuning tasks and "
            f"{reasons['unmatched']} of tasks that not every source has solved."
        )


def _cells(row: SourceNumbers) -> tuple[str, str, str, str, str, str]:
    shown = "-" if row.areas is None else f"{row.areas[1]:g} ({row.areas[0]:g} to {row.areas[2]:g})"
    marked = "-" if row.marked is None else f"{row.marked:g}"
    return row.source, str(row.solutions), str(row.abstained), marked, shown, str(row.flat)
