"""A study and its extensions, read together: a section of the extension's report, the list of methods."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.any_table.result_tables import Table
from analysis.frames import Frames
from analysis.reports import READ
from analysis.reports.base import Section
from analysis.reports.utility.study_extensions import (
    Member,
    extension_section,
    ranking_of,
    ranking_table,
    sealed_section,
)
from analysis.seal import seal_of
from analysis.tables.response_reader import read_frames, study_facts
from experiments.models import Study


def family_of(study: Study) -> list[Study]:
    """The parent, then its opened extensions in the order of opening; the study alone if it has neither."""
    parent_slug = study.definition.get("extends") or study.slug
    opened = Study.objects.exclude(state=Study.State.DRAFT)
    parent = list(opened.filter(slug=parent_slug))
    return [*parent, *opened.filter(definition__extends=parent_slug).order_by("opened_at")]


def has_family(study: Study) -> bool:
    """Whether a study extends another one, or is extended."""
    return len(family_of(study)) > 1


def member_of(study: Study, origin: str, frames: Frames | None = None) -> Member:
    frames = frames if frames is not None else read_frames(study, held=READ).only(origin)
    opened_on = f"{study.opened_at:%Y-%m-%d}" if study.opened_at else ""
    return Member.of(frames, study_facts(study, origin), opened_on)


def extension_sections(study: Study, origin: str, frames: Frames) -> tuple[Section, ...]:
    """What an extension's report says of its parent; nothing for others. `frames` are of the origin."""
    slug = study.definition.get("extends")
    parent = Study.objects.filter(slug=slug).exclude(state=Study.State.DRAFT).first() if slug else None
    if parent is None:
        return ()
    for each in (study, parent):
        seal = seal_of(study_facts(each, origin), origin)
        if seal.sealed:
            return (sealed_section(parent.slug, f"{each.slug}: {seal.sentence}"),)
    members = member_of(parent, origin), member_of(study, origin, frames)
    return (extension_section(*members, study.definition["extension"]),)


@dataclass(frozen=True, slots=True)
class Methods:
    """The methods of a family: a table, and sentences. `sealed`: why nothing is told yet."""

    table: Table | None
    sentences: tuple[str, ...]
    sealed: str = ""


def methods_of(study: Study, origin: str) -> Methods:
    """The methods of a study and its extensions in order, once the results of all of them are open."""
    family = family_of(study)
    for each in family:
        seal = seal_of(study_facts(each, origin), origin)
        if seal.sealed:
            return Methods(None, (), f"{each.slug}: {seal.sentence}")
    members = [member_of(each, origin) for each in family]
    ranking = ranking_of(members)
    table = ranking_table(ranking, members) if ranking.ranks else None
    studies = ", ".join(f"{m.slug} (opened on {m.opened_on})" for m in members)
    return Methods(table, (f"People were recruited apart for each study: {studies}.", *ranking.left_out))
