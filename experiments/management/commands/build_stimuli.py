"""Makes or replaces a draft and renders the missing stimuli."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from experiments.drafting.automatic_metrics import measure_study, want_metrics
from experiments.drafting.draft import build_draft
from experiments.drafting.draft_rows import picture_keys
from experiments.drafting.dropped_items import print_dropped
from experiments.drafting.perturbed_copies import copies_sentences
from experiments.errors import StudyError
from experiments.management.base import StudyCommand
from experiments.opening.identical_pages import coinciding, coinciding_sentences
from experiments.paradigms import get_paradigm
from experiments.study_files.load import find_study, load_study, material_folder
from experiments.terminal import Terminal
from stimuli.build import build


class Command(StudyCommand):
    help = "Render the stimuli of a study: items chosen, predictions made, missing pictures drawn."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument(
            "--processes", type=int, default=1, help="that render at the same time without a broker (1)"
        )

    def handle(self, *args: Any, study: str, processes: int, **options: Any) -> None:
        if processes < 1:
            raise StudyError(f"--processes {processes}: at least 1 is needed.")
        with Terminal() as terminal:
            build_study(find_study(study, tuple(settings.STUDY_DIRS)), terminal, processes=processes)


def build_study(
    path: Path, terminal: Terminal, changes: dict[str, Any] | None = None, processes: int = 1
) -> str:
    """The command's work for callers that hold a terminal; returns the slug."""
    definition = load_study(path, changes=changes)
    draft = build_draft(definition, material_folder(path), terminal.progress)
    accuracy = draft.predictor.get("provenance", {}).get("held_out_accuracy")
    if accuracy is not None:
        terminal.line(f"The network trained for it has accuracy {accuracy:.2f} on items held out of its own.")
    print_dropped(draft.dropped, terminal)
    for line in copies_sentences(draft.copies):
        terminal.line(line)
    keys = picture_keys(draft)
    want_metrics(definition, draft)
    rendered = build(keys, terminal.progress, processes)
    measure_study(definition, draft, terminal.progress)
    if get_paradigm(definition.paradigm).merges_coinciding:
        for line in coinciding_sentences(coinciding(draft), draft.items.filter(copy_of=None).count()):
            terminal.line(line)
    terminal.line(
        f"{draft.slug}: {len(keys)} stimuli, {rendered} rendered now (definition {draft.digest[:12]})."
    )
    return draft.slug
