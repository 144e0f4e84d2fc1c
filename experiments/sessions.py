"""A sitting from arrival to end: which step is next, gates, finish, withdrawal. Every call may be
repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from experiments.definition import StudyDefinition
from experiments.enrolment import claim_slot, keep_slot, release_slot
from experiments.errors import (
    Incomplete,
    InvalidRequest,
    NoSession,
    OutOfTurn,
    SessionFinished,
    StudyFull,
    TextChanged,
)
from experiments.gates import GateKind, Judged, gate_plan, judge, page_digest
from experiments.models import Gate, Participant, Response, Session, Slot, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Answer, GateTry, Reason, Verdict
from experiments.selectors import cards_of, definition_of, next_position, views_of
from experiments.tokens import hash_token, new_media_id, new_token
from stimuli.spec import content_key

ENDED = {Session.State.FINISHED, Session.State.WITHDRAWN, Session.State.DECLINED, Session.State.TURNED_AWAY}


@dataclass(frozen=True, slots=True)
class Step:
    """Where a session stands: the wire's step, the gate behind it, tries so far and left, trials answered."""

    name: str
    gate: GateKind | None = None
    attempt: int = 0
    attempts_left: int | None = None
    next: int = 0


def start_session(
    study: Study,
    participant: Participant,
    *,
    origin: str,
    simulated_kind: str = "",
    lane: str = "participant",
) -> tuple[Session, str]:
    """A new sitting without a slot, and its token."""
    token = new_token()
    session = Session.objects.create(
        study=study,
        participant=participant,
        origin=origin,
        simulated_kind=simulated_kind,
        lane=lane,
        token_hash=hash_token(token),
        media_id=new_media_id(),
    )
    return session, token


def renew_token(session: Session) -> str:
    """A new token; the older one ends, so that only one tab goes on."""
    token = new_token()
    Session.objects.filter(id=session.pk).update(token_hash=hash_token(token))
    return token


def session_of(token: str) -> Session:
    """The session that a bearer token opens."""
    session = (
        Session.objects.filter(token_hash=hash_token(token))
        .select_related("study", "slot", "slot__condition")
        .first()
    )
    if session is None:
        raise NoSession("This page's session is unknown, or it was continued in another tab.")
    return session


def step_of(session: Session) -> Step:
    """What comes next, from the rows alone: true after any reload."""
    if session.state in ENDED:
        return Step("finish", next=next_position(session))
    definition = definition_of(session.study)
    tries = _tries(session)
    arm_role = session.slot.condition.role if session.slot and session.slot.condition else ""
    for gate in gate_plan(definition, arm_role):
        if gate.place == "end":
            continue
        if gate.place == "arm" and session.slot_id is None:
            break
        done, attempts = _state_of(gate, tries)
        if not done:
            return _gate_step(gate, definition, attempts)
    if session.slot is None or session.state != Session.State.RUNNING:
        # The last gate is passed and the slot is not claimed: the claim met a full study, or was cut off.
        return Step("practice" if session.slot is None else "instructions")
    total, stored = len(cards_of(session.slot, session.study)), next_position(session)
    if stored < total:
        return Step("trials", next=stored)
    for gate in gate_plan(definition, arm_role):
        done, attempts = _state_of(gate, tries)
        if gate.place == "end" and not done:
            return _gate_step(gate, definition, attempts, stored)
    return Step("comment", next=stored)


def _tries(session: Session) -> list[GateTry]:
    rows = session.gates.order_by("id").values_list("kind", "attempt", "passed")
    return [GateTry(kind, attempt, passed) for kind, attempt, passed in rows]


def _state_of(gate: GateKind, tries: Sequence[GateTry]) -> tuple[bool, int]:
    own = [t for t in tries if t.kind == gate.kind]
    return any(t.passed is not False for t in own), len(own)


def _gate_step(gate: GateKind, definition: StudyDefinition, attempts: int, stored: int = 0) -> Step:
    left = None if gate.attempts_max is None else gate.attempts_max - attempts
    return Step(gate.step, gate, attempts, left, stored)


def pass_gate(session: Session, step_name: str, digest: str, value: Mapping[str, Any]) -> Session:
    """Records one try at the gate that is next, and what follows from it.

    A repeat of a try that was stored (a lost answer) changes nothing; a try for an older page is refused.
    """
    step = step_of(session)
    if step.name != step_name or step.gate is None:
        if _was_stored(session, step_name, digest, value):
            return claim_if_due(session)
        _refuse_ended(session)
        raise OutOfTurn(f"The next step is {step.name!r}, not {step_name!r}.", next_position=step.next)
    if digest != page_digest(session, step.gate, step.attempt):
        if _was_stored(session, step_name, digest, value):
            return session
        raise TextChanged("This page is not the one that is asked now.", next_position=step.next)
    judged = judge(session, step.gate, value)
    try:
        with transaction.atomic():
            # The lock keeps a try from slipping in behind a withdrawal that erases.
            _refuse_ended(Session.objects.select_for_update().get(id=session.pk))
            Gate.objects.create(
                session=session,
                kind=step.gate.kind,
                attempt=step.attempt,
                value=judged.value,
                passed=judged.passed,
                text_digest=digest,
            )
            _follow(session, step, judged)
    except IntegrityError:
        # The same try arrived twice at the same moment; the other one was stored.
        pass
    session = _fresh(session)
    return claim_if_due(session)


def _fresh(session: Session) -> Session:
    return Session.objects.select_related("study", "slot", "slot__condition").get(id=session.pk)


def _was_stored(session: Session, step_name: str, digest: str, value: Mapping[str, Any]) -> bool:
    for gate in session.gates.filter(text_digest=digest):
        # What is stored may be less than what was sent (a device is described, only its fit is kept).
        same = step_name == "device" or all(value.get(name) == kept for name, kept in gate.value.items())
        if gate.kind.split("_")[0] == step_name and same:
            return True
    return False


def _follow(session: Session, step: Step, judged: Judged) -> None:
    """What a try changes beyond its row."""
    gate = step.gate
    assert gate is not None
    if judged.device is not None:
        Session.objects.filter(id=session.pk).update(device=judged.device)
    if gate.kind == "consent" and judged.passed is False:
        _end(session, Session.State.DECLINED, Verdict("declined"))
    elif judged.passed is False and step.attempts_left is not None and step.attempts_left <= 1:
        reason = Reason(
            rule=f"{gate.kind}_attempts_max",
            timing="before",
            found=float(step.attempt + 1),
            limit=float(gate.attempts_max or 0),
            evidence=f"{step.attempt + 1} tries at the {gate.kind}, none passed.",
        )
        _end(session, Session.State.FINISHED, Verdict("screened", (reason,)))
    elif gate.place == "arm" and judged.passed is not False:
        Session.objects.filter(id=session.pk, state=Session.State.ASSIGNED).update(
            state=Session.State.RUNNING
        )


def claim_if_due(session: Session) -> Session:
    """Claims a slot once every gate before it is passed; a session without instructions of its arm runs at
    once."""
    if session.state == Session.State.GATES and session.slot_id is None:
        if session.origin == Session.Origin.PREVIEW:
            return session
        tries = _tries(session)
        before = [g for g in gate_plan(definition_of(session.study), "") if g.place == "start"]
        if not all(_state_of(gate, tries)[0] for gate in before):
            return session
        try:
            claim_slot(session)
        except StudyFull:
            # Only from the gates: another request of this session may have got a slot freed meanwhile.
            waiting = Session.objects.filter(id=session.pk, state=Session.State.GATES)
            waiting.update(state=Session.State.TURNED_AWAY, finished_at=timezone.now())
            raise
        session = _fresh(session)
    if session.state == Session.State.ASSIGNED:
        role = session.slot.condition.role if session.slot and session.slot.condition else ""
        arm_gates = [g for g in gate_plan(definition_of(session.study), role) if g.place == "arm"]
        if not arm_gates:
            Session.objects.filter(id=session.pk, state=Session.State.ASSIGNED).update(
                state=Session.State.RUNNING
            )
            session = _fresh(session)
    return session


def _refuse_ended(session: Session) -> None:
    if session.state in ENDED:
        raise SessionFinished("This session has ended.")


def _end(session: Session, state: str, verdict: Verdict | None, comment: str = "") -> bool:
    """Closes a session once; a second call finds it closed and changes nothing."""
    now = timezone.now()
    definition = definition_of(session.study)
    return (
        Session.objects.filter(id=session.pk)
        .exclude(state__in=ENDED)
        .update(
            state=state,
            finished_at=now,
            comment=comment,
            verdict=verdict.status if verdict else "",
            reasons=[reason.as_json() for reason in verdict.reasons] if verdict else [],
            rules_digest=content_key(definition.rules) if verdict else "",
            verdict_at=now if verdict else None,
        )
        == 1
    )


def finish(session: Session, comment: str) -> Session:
    """Ends a session that has answered everything, screens it, and keeps or frees its slot. Repeatable."""
    if session.state in ENDED:
        return session
    step = step_of(session)
    if step.name != "comment":
        raise Incomplete(f"The step {step.name!r} is still to be done.", next_position=step.next)
    verdict = screen(session)
    with transaction.atomic():
        if _end(session, Session.State.FINISHED, verdict, comment):
            if session.origin == Session.Origin.PREVIEW:
                pass
            elif verdict.status != "passed":
                release_slot(session)
            elif not keep_slot(session):
                surplus = Reason(
                    "surplus", "after", 1.0, 0.0, "The lease was over and the slot went on to somebody else."
                )
                reasons = [*verdict.reasons, surplus]
                Session.objects.filter(id=session.pk).update(reasons=[reason.as_json() for reason in reasons])
    return _fresh(session)


def screen(session: Session) -> Verdict:
    """Applies the study's rules to what is stored."""
    assert session.slot is not None
    definition = definition_of(session.study)
    answers = [
        Answer(row.position, row.value, row.rt_ms, row.shown_ms)
        for row in Response.objects.filter(session=session).order_by("position")
    ]
    return get_paradigm(session.study.paradigm).screen(
        views_of(cards_of(session.slot, session.study)),
        _tries(session),
        answers,
        total_minutes(session, answers),
        definition.rules,
    )


def skip_to(session: Session, position: int) -> None:
    """Lets a preview begin with one trial: every page and answer before it is filled in. Previews only."""
    assert session.origin == Session.Origin.PREVIEW and session.slot is not None
    role = session.slot.condition.role if session.slot.condition else ""
    gates = [gate for gate in gate_plan(definition_of(session.study), role) if gate.place != "end"]
    Gate.objects.bulk_create(
        Gate(session=session, kind=gate.kind, attempt=0, value={}, passed=True) for gate in gates
    )
    cards = cards_of(session.slot, session.study)
    Response.objects.bulk_create(
        Response(
            session=session,
            trial_id=card.id,
            position=card.view.position,
            remaining=len(cards) - card.view.position - 1,
            value={"seen": True} if card.view.kind == "learn" else {"choice": card.view.choices[0]},
            rt_ms=0,
            shown_ms=0,
            late=False,
            received_at=timezone.now(),
        )
        for card in cards[:position]
    )


def total_minutes(session: Session, answers: Sequence[Answer]) -> float:
    """From arrival to now by the server's clock; for simulated people the time they say they took, since they
    answer faster than they claim to."""
    if session.origin == Session.Origin.SIMULATED:
        return sum(answer.shown_ms for answer in answers) / 60_000
    return (timezone.now() - session.started_at).total_seconds() / 60


def withdraw(session: Session, reason: str, erase: bool) -> Session:
    """Leaves the study; with `erase` the answers are removed and only their number remains. Repeatable.

    Somebody who has finished may still have the answers removed (after a debrief that disclosed something):
    the session stays finished, so that it is paid, but it no longer counts and its slot is free again.
    """
    with transaction.atomic():
        Session.objects.select_for_update().get(id=session.pk)
        verdict = Verdict("withdrawn", (Reason("withdrawn", "after", 1.0, 0.0, reason[:500]),))
        if _end(session, Session.State.WITHDRAWN, verdict):
            release_slot(session)
        session = _fresh(session)
        if (
            erase
            and not session.erased
            and session.state in {Session.State.WITHDRAWN, Session.State.FINISHED}
        ):
            _erase(session, verdict)
    return _fresh(session)


def _erase(session: Session, verdict: Verdict) -> None:
    """Removes what was answered and leaves a counted tombstone; consent stays: it says what was allowed."""
    erased = {
        "responses": session.responses.count(),
        "events": session.events.count(),
        "at": timezone.now().isoformat(),
    }
    session.responses.all().delete()
    session.events.all().delete()
    session.gates.exclude(kind="consent").update(value={})
    Slot.objects.filter(holder=session).update(holder=None, lease_ends_at=None, kept=False)
    Session.objects.filter(id=session.pk).update(erased=erased, device={}, comment="")
    if session.verdict not in {verdict.status, "incomplete"}:
        # Somebody who left stays somebody who left: a withdrawn verdict on a finished session says that all
        # the work was done.
        Session.objects.filter(id=session.pk).update(
            verdict=verdict.status,
            reasons=[reason.as_json() for reason in verdict.reasons],
            verdict_at=timezone.now(),
        )


def mark_left(session: Session) -> bool:
    """The platform says that this person will not come back: the slot is free again."""
    with transaction.atomic():
        ended = _end(session, Session.State.FINISHED, Verdict("incomplete"))
        if ended:
            release_slot(session)
    return ended


def check_comment(comment: object) -> str:
    """Free text, at most 5,000 characters; stored as it is, escaped wherever it is shown."""
    if comment is None:
        return ""
    if not isinstance(comment, str) or len(comment) > 5000:
        raise InvalidRequest(
            "The comment must be text of at most 5,000 characters.",
            fields={"comment": "at most 5,000 characters"},
        )
    return comment
