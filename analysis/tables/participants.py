"""The rows of `participants`: one per session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from analysis.tables.missing_codes import Missing, missing_cell
from analysis.tables.session_batches import Batch, SessionCells, SlotAs, Try
from analysis.tables.trials import Named
from experiments.gates.consent import NAME as CONSENT
from experiments.gates.practice import NAME as PRACTICE
from experiments.gates.questions import KINDS as QUESTIONS
from experiments.gates.quiz import NAME as QUIZ
from experiments.gates.screen import NAME as SCREEN
from experiments.models import Session, Study
from stimuli.spec import canonical_json

DEVICE = ("width_px", "height_px", "pixel_ratio", "touch", "webdriver")
OF_SLOT = ("condition", "role", "arm", "slot", "plan", "claimed_at", "task_s", "lease_ends_at")
MEASURED = ("px_per_mm", "distance_mm")
AT_END = ("finished_at", "duration_s", "task_s")
COUNTED = {
    "focus_losses": "focus_lost",
    "reloads": "reload",
    "reservoir_openings": "reservoir_opened",
    "pastes": "paste",
    "fullscreen_entries": "fullscreen_entered",
    "fullscreen_exits": "fullscreen_left",
}
"""Columns that count events of a kind."""
SCREENED = ("verdict_at", "rules_digest")


def participant_rows(study: Study, batch: Batch, named: Named) -> Iterator[dict[str, object]]:
    """Rows by column name. `named` gives the name and the role of a condition."""
    asks = {question["when"] for question in study.definition.get("questions", [])}
    is_calibrated = study.definition.get("presentation", {}).get("calibration", "off") != "off"
    for session in batch.sessions:
        slot = batch.slots.get(session.slot_id or 0)
        tries = batch.tries.get(session.pk, [])
        row = (
            _person(study, session, batch.cells[session.pk], slot, named)
            | {"sitting": batch.of.later.get(session.pk, 0)}
            | _course(session, tries)
            | {"responses": batch.answered.get(session.pk, 0)}
            | _events(batch.events.get(session.pk, {}))
            | _device(session, batch.cells[session.pk])
            | {"refresh_hz": batch.refresh_rates.get(session.pk)}
            | _answer_cells(session, tries)
        )
        yield row | {"missing": missing_cell(_gaps(row, session, tries, asks, is_calibrated))}


def _person(
    study: Study, session: Session, cells: SessionCells, slot: SlotAs | None, named: Named
) -> dict[str, object]:
    condition, role = named(slot.condition_id if slot else None)
    return {
        "study": study.slug,
        "participant": cells.person,
        "session": cells.session,
        **_fields(session, "origin", "arrival", "simulated_kind", "simulated_digest"),
        "asked": canonical_json(session.asked) if session.asked else "",
        "lane": session.lane,
        "condition": condition,
        "role": role,
        **_fields(cells, "arm", "slot", "plan"),
    }


def _fields(of: object, *names: str) -> dict[str, object]:
    return {name: getattr(of, name) for name in names}


def _course(session: Session, tries: list[Try]) -> dict[str, object]:
    """How far it came, when, and what was decided."""
    counts = Counter(each.kind for each in tries)
    rules = [reason["rule"] for reason in session.reasons]
    return {
        "status": session.verdict or ("running" if session.state == "assigned" else session.state),
        "reasons": ";".join(rules),
        "reasons_detail": canonical_json(session.reasons),
        "excluded_by_hand": bool(session.excluded),
        "excluded_reason": session.excluded.get("reason", ""),
        "consented": any(each.kind == CONSENT and each.passed is not False for each in tries),
        "admitted": session.claimed_at is not None or session.state == "turned_away",
        **_fields(session, "started_at", "claimed_at", "finished_at"),
        "duration_s": _seconds(session.started_at, session.finished_at),
        "task_s": _seconds(session.claimed_at, session.finished_at),
        **_fields(session, "verdict_at", "rules_digest"),
        "quiz_attempts": counts[QUIZ],
        "practice_attempts": counts[PRACTICE],
        "lease_ends_at": session.lease_ends_at,
        "surplus": "surplus" in rules,
    }


def _events(counts: Mapping[str, int]) -> dict[str, object]:
    return {column: counts.get(kind, 0) for column, kind in COUNTED.items()}


def _device(session: Session, cells: SessionCells) -> dict[str, object]:
    return {
        **{key: session.device.get(key) for key in DEVICE},
        **_fields(cells, *MEASURED),
        "language": session.device.get("language", ""),
    }


def _answer_cells(session: Session, tries: list[Try]) -> dict[str, object]:
    given = {k: v for each in tries if each.kind in QUESTIONS for k, v in each.value.items()}
    return {"answers": canonical_json(given) if given else "", "comment": session.comment}


def _gaps(
    row: Mapping[str, object], session: Session, tries: list[Try], asks: set[str], is_calibrated: bool
) -> dict[str, Missing]:
    """Why cells of a row are empty, as far as they could have been filled."""
    codes: dict[str, Missing] = dict.fromkeys((*DEVICE, "language"), "not_recorded")
    met = {each.kind for each in tries}
    is_over = session.finished_at is not None
    if session.claimed_at is None:
        codes |= dict.fromkeys((*OF_SLOT, "refresh_hz"), "not_reached")
    else:
        codes["refresh_hz"] = "not_recorded"
        codes |= dict.fromkeys(AT_END, "not_recorded" if is_over else "not_reached")
    if not is_over:
        codes |= dict.fromkeys((*AT_END, *SCREENED, "comment"), "not_reached")
    if asks:
        codes["answers"] = "not_recorded" if met & QUESTIONS else "not_reached"
    if is_calibrated:
        codes |= dict.fromkeys(MEASURED, "not_recorded" if SCREEN in met else "not_reached")
    if session.origin in Session.PROGRAMS:
        codes |= dict.fromkeys((*MEASURED, "refresh_hz"), "not_applicable")
    if session.erased:
        codes |= dict.fromkeys((*DEVICE, "language", "comment"), "withdrawn")
        codes |= {column: "withdrawn" for column in ("refresh_hz",) if session.claimed_at}
        codes |= {"answers": "withdrawn"} if met & QUESTIONS else {}
        codes |= dict.fromkeys(MEASURED, "withdrawn") if SCREEN in met else {}
    return {
        column: code
        for column in row
        if (code := codes.get(column, "not_applicable")) != "not_applicable" and row[column] in (None, "")
    }


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None
