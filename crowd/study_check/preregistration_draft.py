"""The plan of a study that is not opened yet, as it would be stored, with what a dry run tells besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.planning.significance_levels import planned_levels
from crowd.study_check.dry_run import DryRun
from crowd.study_check.rating_dry_run import rated_lines
from experiments.errors import StudyError
from experiments.opening.opening import plan_json
from experiments.opening.preregistration import PlanFacts, document_of
from experiments.opening.preregistration_text import UNWITNESSED, as_markdown, as_osf
from experiments.opening.timestamps import stamp_request, stamped_text
from experiments.paradigms import get_paradigm
from stimuli.spec import content_key

if TYPE_CHECKING:
    from analysis.planning.study_power import PlannedPower


def document(run: DryRun) -> str:
    """The plan as Markdown, to be deposited before data are collected; then what follows from it."""
    parts = [
        as_markdown(_plan_document(run), (UNWITNESSED,)),
        "# Computed from the plan",
        *_plan_sections(run),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def osf_document(run: DryRun) -> str:
    """The plan as answers to the form of the Open Science Framework."""
    return as_osf(_plan_document(run), _power(run.power))


def write_request(run: DryRun, file: Path) -> str:
    """Writes the request for a time stamp over the plan; says what to do with it. Raises StudyError if it
    cannot be written."""
    plan = _plan_document(run)
    try:
        file.write_bytes(stamp_request(plan))
    except OSError as error:
        raise StudyError(f"{file} cannot be written ({error.strerror}): name another file.") from error
    digest = sha256(stamped_text(plan).encode()).hexdigest()
    return (
        f"{file}: a request over SHA-256 {digest} of the plan. Send it to an authority (Content-Type: "
        "application/timestamp-query), save its answer and its certificates beside study.toml, and name both "
        "in [preregistration] before study_open."
    )


def _plan_document(run: DryRun) -> Mapping[str, Any]:
    names = [(plan.condition or "") if run.is_between else plan.lane for plan in run.plans]
    # Plans of a paradigm that asks about equal pages once are known when the pages are rendered.
    is_final = not get_paradigm(run.definition.paradigm).merges_coinciding
    facts = PlanFacts(
        places=dict(sorted(Counter(names).items())),
        is_between=run.is_between,
        is_matched=run.unmatched() is not None,
        plan_digest=content_key([content_key(plan_json(plan)) for plan in run.plans]) if is_final else None,
        predictors=run.predictors,
        pictures=None,
    )
    return document_of(run.definition, facts)


def _plan_sections(run: DryRun) -> Iterator[str]:
    if run.explained:
        yield f"Explained is {run.explained}."
    yield "## Trials of one session"
    yield "\n".join(f"- {name}: {count}" for name, count in run.trials_rows())
    if lines := list(rated_lines(run.rated)):
        yield "## What is rated"
        yield "\n".join(f"- {line}" for line in lines)
    if (plan := run.definition.preregistration) and plan.looks:
        yield "## Levels of the planned contrasts at each look"
        levels = planned_levels(plan.as_met(), [c.slots for c in run.definition.conditions])
        places = (*(f"{people} people per condition" for people in plan.looks), "the end")
        yield "\n".join(f"- {name}: {100 * at:.4f} %" for name, at in zip(places, levels, strict=True))
    if run.power is not None:
        yield "## Power"
        title, *rows = _power(run.power)
        yield title
        yield "\n".join(f"- {row}" for row in rows)


def _power(power: PlannedPower | None) -> list[str]:
    """The title, and a line for each row; nothing if there is no power."""
    if power is None:
        return []
    # Shares have three digits, numbers of people none.
    rows = ((name, value if isinstance(value, int) else f"{value:.3f}") for name, value in power.rows)
    return [f"{power.title}.", *(f"{name}: {value}" for name, value in rows)]
