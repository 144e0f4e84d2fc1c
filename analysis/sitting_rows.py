"""The rows of `participants`: one per session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from analysis.answer_rows import Named
from analysis.batches import Batch, SittingAs, SlotAs, Try
from analysis.missing import Missing, written
from experiments.gates.consent import NAME as CONSENT
from experiments.gates.practice import NAME as PRACTICE
from experiments.gates.questions import KINDS as QUESTIONS
from experiments.gates.quiz import NAME as QUIZ
from experiments.gates.screen import NAME as SCREEN
from experiments.models import Session, Study
from stimuli.spec import canonical_json

DEVICE = ("width_px", "height_px", "pixel_ratio", "touch", "webdriver")
OF_SLOT = ("condition", "role", "arm", "slot", "plan", "claimed_at", "task_s", "lease_ends_at")
AT_END = ("finished_at", "duration_s", "task_s")
SCREENED = ("verdict_at", "rules_digest")


def sitting_rows(study: Study, batch: Batch, named: Named) -> Iterator[dict[str, object]]:
    """Rows by column name. `named` gives the name and the role of a condition."""
    asks = {question["when"] for question in study.definition.get("questions", [])}
    is_calibrated = study.definition.get("presentation", {}).get("calibration", "off") != "off"
    for session in batch.sessions:
        slot = batch.slots.get(session.slot_id or 0)
        tries = batch.tries.get(session.pk, [])
        row = (
            _person(study, session, batch.sittings[session.pk], slot, named)
            | {"sitting": batch.of.later.get(session.pk, 0)}
            | _course(session, tries)
            | {"responses": batch.answered.get(session.pk, 0)}
            | _events(batch.events.get(session.pk, {}))
            | _device(session, batch.sittings[session.pk])
            | {"refresh_hz": batch.refresh_rates.get(session.pk)}
            | _told(session, tries)
        )
        yield row | {"missing": written(_gaps(row, session, tries, asks, is_calibrated))}


def _person(
    study: Study, session: Session, sitting: SittingAs, slot: SlotAs | None, named: Named
) -> dict[str, object]:
    condition, role = named(slot.condition_id if slot else None)
    return {
        "study": study.slug,
        "participant": sitting.person,
        "session": sitting.session,
        "origin": session.origin,
        "arrival": session.arrival,
        "simulated_kind": session.simulated_kind,
        "simulated_digest": session.simulated_digest,
        "asked": canonical_json(session.asked) if session.asked else "",
        "lane": session.lane,
        "condition": condition,
        "role": role,
        "arm": sitting.arm,
        "slot": sitting.slot,
        "plan": sitting.plan,
    }


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
        "started_at": session.started_at,
        "claimed_at": session.claimed_at,
        "finished_at": session.finished_at,
        "duration_s": _seconds(session.started_at, session.finished_at),
        "task_s": _seconds(session.claimed_at, session.finished_at),
        "verdict_at": session.verdict_at,
        "rules_digest": session.rules_digest,
        "quiz_attempts": counts[QUIZ],
        "practice_attempts": counts[PRACTICE],
        "lease_ends_at": session.lease_ends_at,
        "surplus": "surplus" in rules,
    }


def _events(counts: Mapping[str, int]) -> dict[str, object]:
    return {
        "focus_losses": counts.get("focus_lost", 0),
        "reloads": counts.get("reload", 0),
        "reservoir_openings": counts.get("reservoir_opened", 0),
        "pastes": counts.get("paste", 0),
        "fullscreen_entries": counts.get("fullscreen_entered", 0),
        "fullscreen_exits": counts.get("fullscreen_left", 0),
    }


def _device(session: Session, sitting: SittingAs) -> dict[str, object]:
    return {
        **{key: session.device.get(key) for key in DEVICE},
        "px_per_mm": sitting.px_per_mm,
        "distance_mm": sitting.distance_mm,
        "language": session.device.get("language", ""),
    }


def _told(session: Session, tries: list[Try]) -> dict[str, object]:
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
        codes |= dict.fromkeys(
            ("px_per_mm", "distance_mm"), "not_recorded" if SCREEN in met else "not_reached"
        )
    if session.origin in Session.PROGRAMS:
        codes |= dict.fromkeys(("px_per_mm", "distance_mm", "refresh_hz"), "not_applicable")
    if session.erased:
        codes |= dict.fromkeys((*DEVICE, "language", "comment"), "withdrawn")
        codes |= {column: "withdrawn" for column in ("refresh_hz",) if session.claimed_at}
        codes |= {"answers": "withdrawn"} if met & QUESTIONS else {}
        codes |= dict.fromkeys(("px_per_mm", "distance_mm"), "withdrawn") if SCREEN in met else {}
    return {
        column: code
        for column in row
        if (code := codes.get(column, "not_applicable")) != "not_applicable" and row[column] in (None, "")
    }


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None
