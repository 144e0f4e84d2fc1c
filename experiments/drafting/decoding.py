"""The version of how a study's files become items: what opened keeps its own, and drafts have today's."""

from __future__ import annotations

from collections.abc import Collection

from django.db import Error as AnyDatabaseError

from experiments.definition.study import StudyDefinition
from experiments.drafting.model_answers import notes_of
from experiments.models import Study
from experiments.stages.solution_freeze import source_of
from stimuli.datasets import DECODING

NOTE = "decoding"
"""Under which it is noted beside each model of a study."""


def decoding_of(definition: StudyDefinition) -> int:
    """That of the study if it is open or closed, else of the one that it extends or whose solutions it starts
    from; today's for any other."""
    slugs = {definition.slug, definition.extends, source_of(definition)}
    return min(map(decoding_noted, opened_studies(slugs)), default=DECODING)


def opened_studies(slugs: Collection[str]) -> list[Study]:
    """Those that are open or closed. None without a database or its tables, which a check and first
    questions to a model do without; what stores a study asks for rows itself, and fails there."""
    try:
        return list(Study.objects.filter(slug__in=slugs).exclude(state=Study.State.DRAFT))
    except AnyDatabaseError:
        return []


def decoding_noted(study: Study) -> int:
    """The version under which a study was drafted: 1 if it was before there were versions."""
    return min(int(noted.get(NOTE, 1)) for noted in notes_of(study))
