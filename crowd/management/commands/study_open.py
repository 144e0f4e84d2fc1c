"""Builds what is missing, plans every slot, freezes the study."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.study_check.quality_record import MEASURED_MAX, measure_and_print
from experiments.management.base import StudyCommand
from experiments.management.commands.build_stimuli import build_study
from experiments.models import Slot, Study, Trial
from experiments.opening.opening import open_study
from experiments.opening.preregistration import name_registry, plan_sentence
from experiments.opening.timestamps import stamp_files
from experiments.study_files.load import find_study, load_study, material_folder
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Open a study: render what is missing, plan all slots, freeze the definition under its digest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument(
            "--quality",
            type=int,
            metavar="N",
            help="how many items are explained for both answers to measure the stimuli; given, they are "
            f"measured again ({MEASURED_MAX}, and only once; 0 leaves it out)",
        )

    def handle(self, *args: Any, study: str, quality: int | None, **options: Any) -> None:
        if quality is not None and quality < 0:
            raise CommandError(f"--quality is {quality} and must be 0 or more.")
        path = find_study(study, tuple(settings.STUDY_DIRS))
        with Terminal() as terminal:
            slug = build_study(path, terminal)
            declared = load_study(path).preregistration
            stamp = stamp_files(path.parent, declared)
            opened = open_study(Study.objects.get(slug=slug), terminal.progress, stamp)
            name_registry(opened, declared)
            slots = Slot.objects.filter(study=opened, pilot=False)
            terminal.line(
                f"{slug} is open: {slots.count()} slots, "
                f"{Trial.objects.filter(slot__in=slots).count():,} trials, "
                f"plans {opened.plan_digest[:12]}."
            )
            terminal.line(plan_sentence(opened))
            measure_and_print(opened, material_folder(path), terminal, quality)
