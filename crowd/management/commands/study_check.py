"""The dry plan of a study: printed, never stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.dashboard.study_check_page import page_of
from crowd.study_check.colour_screening_cost import COLUMNS, screened_in, screened_rows, screened_title
from crowd.study_check.dry_run import DryRun, dry_run, rows_of_blind, warnings_of
from crowd.study_check.item_export import list_items
from crowd.study_check.model_lines import print_models
from crowd.study_check.prediction_cells import CELLS
from crowd.study_check.preregistration_draft import document, osf_document, write_request
from crowd.study_check.quality_record import print_quality
from crowd.study_check.rating_dry_run import rated_lines, rated_tables
from experiments.drafting.dropped_items import print_dropped
from experiments.errors import sentence
from experiments.management.base import StudyCommand
from experiments.study_files.load import find_study, load_study, material_folder
from experiments.terminal import Terminal
from stimuli.store import open_store


class Command(StudyCommand):
    help = "Print what a study would be: trials, exposures, balance, power, cost. Stores no study."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument("--pairs", action="store_true", help="also list the most confused class pairs")
        parser.add_argument(
            "--pictures",
            type=int,
            default=3,
            metavar="N",
            help="items that are rendered to see which conditions look alike (3; 0 leaves it out)",
        )
        parser.add_argument(
            "--quality",
            type=int,
            default=20,
            metavar="N",
            help="items that are explained for both answers to see what is wrong with the stimuli (20; 0 "
            "leaves it out)",
        )
        parser.add_argument(
            "--page",
            type=Path,
            metavar="FILE",
            help="where the page with what was looked at is written (var/checks/SLUG.html)",
        )
        parser.add_argument(
            "--items",
            type=Path,
            metavar="FOLDER",
            help="only write the study's items there as the model sees them, to be explained elsewhere",
        )
        parser.add_argument(
            "--preregistration", action="store_true", help="print the plan as Markdown instead"
        )
        parser.add_argument(
            "--osf",
            action="store_true",
            help="print the plan as answers to the OSF Preregistration form, as Markdown, instead",
        )

        parser.add_argument(
            "--timestamp-request",
            type=Path,
            metavar="FILE",
            help="write a request for a time stamp (RFC 3161) over the plan's SHA-256 there, instead",
        )

    def handle(
        self,
        *args: Any,
        study: str,
        pairs: bool,
        pictures: int,
        preregistration: bool,
        osf: bool,
        **options: Any,
    ) -> None:
        path, request = find_study(study, tuple(settings.STUDY_DIRS)), options["timestamp_request"]
        is_document = preregistration or osf or request is not None
        with Terminal() as terminal:
            store = open_store(settings.STORAGE_URL)
            if options["items"] is not None:
                folder = material_folder(path)
                count = list_items(load_study(path), folder, store, options["items"], terminal.progress)
                terminal.line(f"{options['items']}: {count} items, listed in items.csv.")
                return
            run = dry_run(
                load_study(path),
                material_folder(path),
                store,
                terminal.progress,
                pictures,
                options["quality"],
                lambda models: None if is_document else print_models(models, terminal),
                drawn=not is_document,
            )
            if request is not None:
                self.stdout.write(write_request(run, request))
            elif is_document:
                self.stdout.write(osf_document(run) if osf else document(run))
            else:
                _print(run, terminal, pairs)
                if run.quality:
                    terminal.line(f"Look at what people would see: {_write_page(run, options['page'])}")
        if faults := _faults(run):
            raise CommandError(sentence(f"{study}: {'; '.join(faults)}"))


def _write_page(run: DryRun, page: Path | None) -> Path:
    path = page or settings.VAR_DIR / "checks" / f"{run.definition.slug}.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_of(run), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written ({error.strerror}): name another --page.") from error
    return path


def _faults(run: DryRun) -> list[str]:
    """Why people should not be paid for this study as it is."""
    unmatched = run.unmatched()
    faults = [f"{unmatched} plans are not matched with the first condition's"] if unmatched else []
    return [*faults, *([run.imbalance] if run.imbalance else []), *run.unfit]


def _print(run: DryRun, terminal: Terminal, pairs: bool) -> None:
    definition = run.definition
    if run.explained:
        terminal.line(f"Explained is {run.explained}.")
    if run.showing is not None:
        terminal.line(run.showing.words)
    if (said := definition.interface) is not None:
        terminal.line(f"Sentences of the pages: {len(said.words)}, translated by {said.translator}.")
    for line in run.texts.lines:
        terminal.line(line)
    print_dropped(run.dropped, terminal)
    terminal.table("Trials of one session", ("phase", "trials"), run.trials_rows())
    exposures = ("condition", "stimuli", "in training", "in test", "tested", "least tests of one", "most")
    terminal.table("Exposures", exposures, run.exposure_rows())
    if run.cells:
        terminal.table("Items by what the model says and whether it is right", CELLS, run.cells)
    columns = ("strategy", "pooled", "lowest plan", "highest plan")
    if run.blind:
        terminal.table("Blind strategies: share of test answers right", columns, rows_of_blind(run.blind))
    unmatched = run.unmatched()
    if unmatched is None:
        terminal.line(f"{len(run.plans)} plans; this design has no plans that differ in the condition alone.")
    else:
        terminal.line(
            f"{len(run.plans) - unmatched} of {len(run.plans)} plans are matched: slot j of every condition "
            "has the same items, order, sides and checks."
        )
    for line in rated_lines(run.rated):
        terminal.line(line)
    for name, header, rows in rated_tables(run.rated):
        terminal.table(name, header, rows)
    terminal.table("Chance to pass all screening rules", ("who", "probability"), run.pass_rows())
    if power := run.power:
        terminal.table(power.title, ("effect", "power"), power.rows)
    cost, people = run.cost_cents() / 100, "sessions" if run.rated else "participants"
    terminal.line(
        f"{len(run.plans)} {people}, {definition.reward.expected_minutes:g} minutes each as declared "
        f"(about {run.minutes_estimate():.1f} by the plan); rewards at most "
        f"{cost:,.2f} {definition.reward.currency}, without platform fees and people screened out."
    )
    if screened := screened_in(definition, run.plans):
        rows = screened_rows(screened, definition.reward.currency)
        terminal.table(screened_title(definition), COLUMNS, rows)
    if run.quality:
        print_quality(run.quality, terminal)
    if run.signs:
        terminal.line(run.signs_words)
    if pairs:
        rows = run.confused_pairs()[:20]
        terminal.table("Most confused classes", ("a", "b", "a taken for b", "b taken for a"), rows)
    for warning in warnings_of(run):
        terminal.line(sentence(f"Warning: {warning}"))
