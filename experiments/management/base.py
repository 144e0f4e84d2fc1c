"""What all commands share: an empty database or a mistake in a study ends in one sentence."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError, connection

from experiments.errors import StudyError
from experiments.models import Study
from stimuli.errors import StimulusError


class StudyCommand(BaseCommand):
    """A command that works on studies; `handle` may let StudyError, StimulusError and ValueError through."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (StudyError, StimulusError, ValueError) as error:
            raise CommandError(str(error)) from error
        except (OperationalError, ProgrammingError) as error:
            if "experiments_study" in connection.introspection.table_names():
                raise
            raise CommandError("The database has no tables yet. Run first: manage.py migrate") from error


def study_of(slug: str) -> Study:
    """The study of that slug. Raises StudyError that names what there is."""
    study = Study.objects.filter(slug=slug).first()
    if study is None:
        known = ", ".join(Study.objects.order_by("slug").values_list("slug", flat=True)) or "none yet"
        raise StudyError(f"There is no study {slug!r} in this database (there are: {known}). Open it first.")
    return study
