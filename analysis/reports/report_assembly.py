"""A report from frames and facts, wherever both come from: the database, or a package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.facts import ReportError, StudyFacts
from analysis.frames import Frames
from analysis.reports import REPORTERS, get_reporter
from analysis.reports.base import Section
from analysis.reports.parts import model_raters
from analysis.reports.parts.preregistration import with_plan
from analysis.reports.report import Report
from experiments.paradigms.rating import Rating


def reporter_of(paradigm: str, named: str = "") -> str:
    """The full name of the paradigm's reporter, or of the one named. Raises ReportError if there is none."""
    if not named and paradigm not in REPORTERS:
        raise ReportError(
            f"Paradigm '{paradigm}' has no reporter; there are {', '.join(REPORTERS)}. "
            "Its data can be exported."
        )
    return REPORTERS.full_name(named) if named else paradigm


def report_of_origin(frames: Frames, facts: StudyFacts, name: str, origin: str, made_at: str) -> Report:
    """The report of one origin by the reporter of that full name. Raises ReportError if there are no
    sessions of the origin.
    """
    if origin not in frames.origins:
        there = ", ".join(frames.origins) or "none yet"
        raise ReportError(
            f"Study '{facts.slug}' has no sessions of origin '{origin}' (there are: {there}); "
            "choose with --origin."
        )
    report = with_plan(get_reporter(name)(frames.only(origin), facts, made_at=made_at))
    if origin == model_raters.ORIGIN and facts.paradigm == Rating.name:
        report = with_sections(report, model_raters.sections(frames, facts))
    if (package := REPORTERS.origin(name)) is None:
        return report
    named = {"name": REPORTERS.stored_name(name), "package": str(package)}
    return replace(report, sections=(*report.sections, Section("reporter", "", named)))


def with_sections(report: Report, more: Sequence[Section]) -> Report:
    """The report with sections that its own study's rows cannot give, such as those of another study."""
    return replace(report, sections=(*report.sections, *more)) if more else report
