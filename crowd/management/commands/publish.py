"""Offers an open study on a platform, so that people can arrive."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.models import Posting
from crowd.platforms import PLATFORMS
from experiments.enrolment import free_rehearsed_slots
from experiments.management.base import StudyCommand, study_of
from experiments.models import Study


class Command(StudyCommand):
    help = "Offer an open study on a platform. Repeating it changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--platform", choices=list(PLATFORMS), default="local")
        parser.add_argument(
            "--live", action="store_true", help="for people: simulated ones are refused from now on"
        )

    def handle(self, *args: Any, slug: str, platform: str, live: bool, **options: Any) -> None:
        study = study_of(slug)
        if study.state != Study.State.OPEN:
            remedy = (
                f"Open it first: study_open {slug}"
                if study.state == Study.State.DRAFT
                else "Choose a new slug."
            )
            raise CommandError(f"{slug!r} is {study.state}, and only an open study can be offered. {remedy}")
        posting = Posting.objects.filter(study=study, platform=platform, state=Posting.State.OPEN).first()
        posting = posting or Posting.objects.create(study=study, platform=platform)
        address = f"{settings.BASE_URL}/join/{slug}/"
        if live:
            Posting.objects.filter(id=posting.pk).update(mode=Posting.Mode.LIVE)
            freed = free_rehearsed_slots(study)
            self.stdout.write(
                f"{slug} is live on {platform}: {address} ({freed} places of simulated people are free again)"
            )
            return
        self.stdout.write(
            f"{slug} is offered on {platform}, for rehearsal until it is published --live: {address}"
        )
