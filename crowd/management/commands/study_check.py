"""The dry plan of a study: printed, never stored."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.dry_run import DryRun, dry_run, preregistration, rows_of_blind, warnings_of
from experiments.definition import find_study, load_study
from experiments.management.base import StudyCommand
from experiments.models import Study
from experiments.terminal import Terminal
from stimuli.requests import identical_pictures
from stimuli.store import open_store


class Command(StudyCommand):
    help = "Print what a study would be: trials, exposures, balance, power, cost. Stores nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument("--pairs", action="store_true", help="also list the most confused class pairs")
        parser.add_argument(
            "--preregistration", action="store_true", help="print the plan as Markdown instead"
        )

    def handle(self, *args: Any, study: str, pairs: bool, preregistration: bool, **options: Any) -> None:
        path = find_study(study, tuple(settings.STUDY_DIRS))
        with Terminal() as terminal:
            store = open_store(settings.STORAGE_URL)
            run = dry_run(load_study(path), path.parent, store, terminal.progress)
            if preregistration:
                self.stdout.write(_document(run))
            else:
                _print(run, terminal, pairs)
        if run.unmatched():
            raise CommandError(
                f"{study}: {run.unmatched()} plans are not matched with the first condition's."
            )
        if run.imbalance:
            raise CommandError(f"{study}: {run.imbalance}")


def _document(run: DryRun) -> str:
    return preregistration(run)


def _print(run: DryRun, terminal: Terminal, pairs: bool) -> None:
    definition = run.definition
    terminal.line(f"{definition.slug}: {definition.title} (definition {definition.digest[:12]})")
    if run.held_out_accuracy is not None:
        terminal.line(
            f"The network that is trained for it has held-out accuracy {run.held_out_accuracy:.2f}."
        )
    terminal.table("Trials of one session", ("phase", "trials"), run.trials_rows())
    terminal.table("Pool of items", ("the model says", "and is", "items"), run.pool_cells)
    exposures = ("condition", "stimuli", "in training", "in test", "least tests of one", "most")
    terminal.table("Exposures", exposures, run.exposure_rows())
    columns = ("strategy", "pooled", "lowest plan", "highest plan")
    terminal.table("Blind strategies: share of test answers right", columns, rows_of_blind(run.blind))
    unmatched = run.unmatched()
    terminal.line(
        f"{len(run.plans) - unmatched} of {len(run.plans)} plans are matched: slot j of every condition has "
        "the same items, order, sides and checks."
    )
    terminal.table("Chance to pass all screening rules", ("who", "probability"), run.pass_rows())
    sizes = ", ".join(sorted({str(c.slots) for c in definition.conditions}))
    title = f"Power of the ANOVA over {len(definition.conditions)} conditions of {sizes}"
    terminal.table(title, ("effect", "power"), run.power_rows())
    cost = run.cost_cents() / 100
    terminal.line(
        f"{len(run.plans)} participants, {definition.reward.expected_minutes:g} minutes each as declared "
        f"(about {run.minutes_estimate():.1f} by the plan); rewards at most "
        f"{cost:,.2f} {definition.reward.currency}, without platform fees and people screened out."
    )
    if pairs:
        rows = run.confused_pairs()[:20]
        terminal.table("Most confused classes", ("a", "b", "a taken for b", "b taken for a"), rows)
    for group in _same_pictures(definition.slug):
        terminal.line(f"Same picture: {group}.")
    for warning in warnings_of(run):
        terminal.line(f"Warning: {warning}.")


def _same_pictures(slug: str) -> list[str]:
    """Conditions that would show people the same picture of the same item, counted over the rendered
    draft."""
    from experiments.models import Rendering

    study = Study.objects.filter(slug=slug).first()
    if study is None:
        return []
    rows = list(
        Rendering.objects.filter(item__study=study).values_list(
            "stimulus__key", "condition__name", "item__key"
        )
    )
    names = {key: (condition, item) for key, condition, item in rows}
    counts: dict[tuple[str, ...], int] = {}
    for group in identical_pictures([key for key, _, _ in rows]):
        conditions = tuple(sorted({names[key][0] for key in group}))
        if len(conditions) > 1:
            counts[conditions] = counts.get(conditions, 0) + 1
    return [f"{' = '.join(conditions)} for {count} items" for conditions, count in sorted(counts.items())]
