"""A session from arrival to end: which step is next, gates, finish, withdrawal. Every call may be
repeated."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from experiments.errors import (
    Incomplete,
    InvalidRequest,
    NoSession,
    OutOfTurn,
    SessionFinished,
    StudyFull,
    TextChanged,
)
from experiments.gates import get_gate, told
from experiments.gates.base import AnswerFeedback, Arm, JudgedTry, Stop, answers_to
from experiments.gates.consent import NAME as CONSENT
from experiments.gates.pages import page_digest
from experiments.gates.plan import gate_plan
from experiments.models import Event, Gate, Participant, Session, Slot, Study
from experiments.paradigms.base import GateTry, Reason, Verdict
from experiments.paradigms.screening import tries_evidence
from experiments.selectors import arm_of, cards_of, definition_of, next_position
from experiments.sessions import unverified_places
from experiments.sessions.slot_assignment import (
    await_listing,
    claim_slot,
    keep_slot,
    lease_of,
    regain_slot,
    release_slot,
    route,
)
from experiments.sessions.verdicts import measures_of, screen, tries_of
from experiments.simulation.versions import digest_here
from experiments.tokens import hash_token, new_media_id, new_token
from stimuli.spec import content_key

CANNOT_SEE = "cannot_see"
"""The reason of a person who leaves because the pictures cannot be seen well enough."""
LANE_RULE = "lane"
"""The rule by which people are screened for whom the study has no slot, if pages find out their lane."""
ENDED = {Session.State.FINISHED, Session.State.WITHDRAWN, Session.State.DECLINED, Session.State.TURNED_AWAY}


@dataclass(frozen=True, slots=True)
class Step:
    """The state of a session: the wire's step, its page, tries used and left, trials answered."""

    name: str
    stop: Stop | None = None
    attempt: int = 0
    attempts_left: int | None = None
    next: int = 0


def start_session(
    study: Study,
    participant: Participant,
    *,
    origin: str,
    simulated_kind: str = "",
    arrival: str = "",
    lease_s: int | None = None,
) -> tuple[Session, str]:
    """A new session without a slot, and its token; its lane is known once it claims one. `lease_s` if it
    holds a slot for another time than the study says."""
    token = new_token()
    session = Session.objects.create(
        study=study,
        participant=participant,
        origin=origin,
        simulated_kind=simulated_kind,
        simulated_digest=digest_here(simulated_kind),
        arrival=arrival,
        lease_s=lease_s,
        token_hash=hash_token(token),
        media_id=new_media_id(),
    )
    return session, token


def renew_token(session: Session) -> str:
    """A new token; the older one becomes invalid, so that only one tab can continue."""
    token = new_token()
    Session.objects.filter(id=session.pk).update(token_hash=hash_token(token))
    return token


def note_opened_again(session: Session, is_elsewhere: bool) -> None:
    """Keeps that a session that goes on was opened anew: by a reload, or by another person who knows its
    address. The page cannot report it, for it may be that person's."""
    if session.state not in ENDED:
        kind = "opened_elsewhere" if is_elsewhere else "opened_again"
        Event.objects.create(session=session, uuid=uuid.uuid4(), kind=kind, at_ms=0)


def session_of(token: str) -> Session:
    """The session that a bearer token opens."""
    session = (
        Session.objects.filter(token_hash=hash_token(token))
        .select_related("study", "participant", "slot", "slot__condition")
        .first()
    )
    if session is None:
        raise NoSession("This page's session is unknown, or it was continued in another tab.")
    return session


def step_of(session: Session) -> Step:
    """The next step, from the rows alone: correct after any reload."""
    if session.state in ENDED:
        return Step("finish", next=next_position(session))
    tries = tries_of(session)
    stops = gate_plan(session.study, _arm(session))
    for stop in stops:
        if stop.place in {"start", "arm"} and not _is_done(stop, tries):
            return _gate_step(stop, tries)
    if session.slot is None or session.state != Session.State.RUNNING:
        # The last gate is passed and the slot is not claimed: the claim met a full study, or was cut off.
        return Step(_last_step(stops, "start" if session.slot is None else "arm"))
    cards, stored = cards_of(session.slot, session.study), next_position(session)
    block = cards[stored].view.block if stored < len(cards) else None
    for stop in stops:
        is_due = stop.place == "end" if block is None else stop.place == "block" and stop.block == block
        if is_due and not _is_done(stop, tries):
            return _gate_step(stop, tries, stored)
    return Step("comment" if block is None else "trials", next=stored)


def _arm(session: Session) -> Arm | None:
    return arm_of(session.slot, session.study) if session.slot is not None else None


def _last_step(stops: Sequence[Stop], place: str) -> str:
    """The step of the last page at that place; of the last before it if there is none."""
    names = [stop.gate for stop in stops if stop.place in {"start", place}]
    return names[-1] if names else "trials"


def _is_done(stop: Stop, tries: Sequence[GateTry]) -> bool:
    return any(t.kind == stop.kind and t.passed is not False for t in tries)


def _gate_step(stop: Stop, tries: Sequence[GateTry], stored: int = 0) -> Step:
    attempts = sum(t.kind == stop.kind for t in tries)
    left = None if stop.attempts_max is None else stop.attempts_max - attempts
    return Step(stop.gate, stop, attempts, left, stored)


def pass_gate(session: Session, step_name: str, digest: str, value: Mapping[str, Any]) -> Session:
    """Records one try at the gate that is next, and what follows from it.

    A repeat of a try that was stored (a lost answer) changes nothing; a try for an older page is refused.
    """
    try:
        step, stop = _require_page(session, step_name, digest)
    except OutOfTurn:
        if _was_stored(session, step_name, digest, value):
            return claim_if_due(session)
        _refuse_ended(session)
        raise
    except TextChanged:
        if _was_stored(session, step_name, digest, value):
            return session
        raise
    judged = get_gate(stop.gate).judge(session, stop, value)
    told.check(session, stop, step.attempt, judged.value)
    try:
        with transaction.atomic():
            # Without the lock, a try could be stored after a withdrawal has erased the others.
            _refuse_ended(Session.objects.select_for_update().get(id=session.pk))
            if session.slot_id is None and not judged.ends:
                unverified_places.renew(session)
            Gate.objects.create(
                session=session,
                kind=stop.kind,
                attempt=step.attempt,
                value=judged.value,
                passed=judged.passed,
                text_digest=digest,
            )
            if not judged.value:
                told.drop_kept(session, stop)
            Gate.objects.bulk_create(
                Gate(session=session, kind=kind, attempt=0, value={}) for kind in judged.skips
            )
            _follow(session, step, judged)
    except IntegrityError:
        # The same try arrived twice at the same moment; the other one was stored.
        pass
    session = _fresh(session)
    return claim_if_due(session)


def _require_page(session: Session, step_name: str, digest: str) -> tuple[Step, Stop]:
    """The step that is next and its page, if they are those that are named."""
    step = step_of(session)
    if step.name != step_name or step.stop is None:
        raise OutOfTurn(f"The next step is {step.name!r}, not {step_name!r}.", next_position=step.next)
    if digest != page_digest(session, step.stop, step.attempt):
        raise TextChanged("This page is not the one that is asked now.", next_position=step.next)
    return step, step.stop


def tell(session: Session, step_name: str, digest: str, question: str, choice: object) -> AnswerFeedback:
    """Stores the answer to one question of a page and says whether it is right; the first answer stands."""
    _refuse_ended(session)
    step, stop = _require_page(session, step_name, digest)
    gate = get_gate(stop.gate)
    given = gate.tell(session.study, question, choice)
    with transaction.atomic():
        _refuse_ended(Session.objects.select_for_update().get(id=session.pk))
        first = told.store(session, told.kind_of(stop), step.attempt, question, given.choice)
    return gate.tell(session.study, question, first)


def keep(session: Session, step_name: str, digest: str, question: str, choice: object) -> str:
    """Stores the answer to one question of a page that is sent as a whole later, and tells nothing of it; the
    first answer stands, and is returned."""
    with transaction.atomic():
        # The whole page may be on its way too: what comes after it is out of turn.
        _refuse_ended(Session.objects.select_for_update().get(id=session.pk))
        step, stop = _require_page(session, step_name, digest)
        gate = get_gate(stop.gate)
        if not gate.keeps:
            fields = {"question": "no single answers are kept"}
            raise InvalidRequest(f"{step_name!r} is sent as a whole.", fields=fields)
        asked = [row for row in gate.questions(session.study, stop) if row["id"] == question]
        given = str(answers_to(asked, {question: choice})[question])
        return told.store(session, told.kept_kind(stop.kind), step.attempt, question, given)


def _fresh(session: Session) -> Session:
    return Session.objects.select_related("study", "participant", "slot", "slot__condition").get(
        id=session.pk
    )


def _was_stored(session: Session, step_name: str, digest: str, value: Mapping[str, Any]) -> bool:
    stored = session.gates.filter(text_digest=digest)
    kinds = {stop.kind for stop in gate_plan(session.study, _arm(session)) if stop.gate == step_name}
    return any(row.kind in kinds and get_gate(step_name).is_same(value, row.value) for row in stored)


def _follow(session: Session, step: Step, judged: JudgedTry) -> None:
    """What a try changes beyond its row."""
    stop = step.stop
    assert stop is not None
    if judged.device is not None:
        Session.objects.filter(id=session.pk).update(device=judged.device)
    if judged.ends:
        _end(session, Session.State.DECLINED, Verdict("declined"))
    elif judged.passed is False and step.attempts_left is not None and step.attempts_left <= 1:
        reason = Reason(
            rule=f"{stop.kind}_attempts_max",
            timing="before",
            found=float(step.attempt + 1),
            limit=float(stop.attempts_max or 0),
            evidence=tries_evidence(
                stop.kind, step.attempt + 1, step.attempt + 1, float(stop.attempts_max or 0)
            ),
        )
        _end(session, Session.State.FINISHED, Verdict("screened", (reason,)))
    elif stop.place == "arm" and judged.passed is not False:
        Session.objects.filter(id=session.pk, state=Session.State.ASSIGNED).update(
            state=Session.State.RUNNING
        )
    elif _is_routed(session, {stop.kind, *judged.skips}) and route(session) is None:
        _end_unplaced(session)


def _is_routed(session: Session, kinds: Collection[str]) -> bool:
    """Whether pages of these kinds decide from which lane this session gets its slot."""
    if session.slot_id is not None or session.origin in Session.UNPLACED:
        return False
    return any(stop.routes and stop.kind in kinds for stop in gate_plan(session.study, None))


def _end_unplaced(session: Session) -> bool:
    """Ends the session of a person for whom the study has no slot. All of them are told and paid the same, be
    it for their lane or because all slots are taken: the one ending must not be told from the other."""
    reason = Reason(LANE_RULE, "before", 0.0, 1.0, "No place that is free now is for this person.")
    return _end(session, Session.State.FINISHED, Verdict("screened", (reason,)))


def claim_if_due(session: Session) -> Session:
    """Claims a slot once every gate before it is passed; a session without instructions for its arm starts
    its trials at once."""
    if session.state == Session.State.GATES and session.slot_id is None:
        if session.origin in Session.UNPLACED:
            return session
        tries = tries_of(session)
        before = [stop for stop in gate_plan(session.study, None) if stop.place == "start"]
        if not all(_is_done(stop, tries) for stop in before):
            return session
        try:
            claim_slot(session)
        except StudyFull:
            if _is_routed(session, {stop.kind for stop in before}):
                _end_unplaced(session)
                return _fresh(session)
            # Only from the gates: another request of this session may have got a slot freed meanwhile.
            waiting = Session.objects.filter(id=session.pk, state=Session.State.GATES)
            if waiting.update(state=Session.State.TURNED_AWAY, finished_at=timezone.now()):
                unverified_places.give_up(session)
            raise
        session = _fresh(session)
    is_assigned = session.state == Session.State.ASSIGNED
    if is_assigned and not any(stop.place == "arm" for stop in gate_plan(session.study, _arm(session))):
        assigned = Session.objects.filter(id=session.pk, state=Session.State.ASSIGNED)
        assigned.update(state=Session.State.RUNNING)
        session = _fresh(session)
    return session


def _refuse_ended(session: Session) -> None:
    if session.state in ENDED:
        raise SessionFinished("This session has ended.")


def _end(session: Session, state: str, verdict: Verdict | None, comment: str = "") -> bool:
    """Closes a session once; a second call finds it closed and changes nothing."""
    now = timezone.now()
    definition = definition_of(session.study)
    has_ended = (
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
    if has_ended and (verdict is None or verdict.status != "passed"):
        unverified_places.give_up(session)
    return has_ended


def finish(session: Session, comment: str) -> Session:
    """Ends a session that has answered everything, screens it, and keeps or frees its slot. Repeatable."""
    if session.state in ENDED:
        return session
    step = step_of(session)
    if step.name != "comment":
        raise Incomplete(f"The step {step.name!r} is still to be done.", next_position=step.next)
    verdict, measures = screen(session), measures_of(session)
    with transaction.atomic():
        if _end(session, Session.State.FINISHED, verdict, comment):
            Session.objects.filter(id=session.pk).update(measures=measures)
            if session.origin in Session.UNPLACED:
                pass
            elif verdict.status != "passed":
                release_slot(session)
            elif not _settle_slot(session):
                _add_surplus(session)
    return _fresh(session)


def _settle_slot(session: Session) -> bool:
    """What becomes of the slot of a session that passed. False if another session has it."""
    # The platform may list the person at this moment (`verify`): one of the two keeps the slot.
    now = Session.objects.select_for_update().get(id=session.pk)
    is_awaited = now.arrival == Session.Arrival.UNVERIFIED
    return await_listing(now) if is_awaited else keep_slot(now)


def _add_surplus(session: Session) -> None:
    row = Session.objects.get(id=session.pk)
    if not any(reason["rule"] == "surplus" for reason in row.reasons):
        why = "The lease was over and the slot went on to somebody else."
        row.reasons = [*row.reasons, Reason("surplus", "after", 1.0, 0.0, why).as_json()]
        row.save(update_fields=["reasons"])


def verify(session: Session, lease_s: int | None) -> bool:
    """The platform lists this person: from now on the lease is the ordinary one (`lease_s`, null as the study
    says), counted from the claim, and a slot that was passed is kept. False if there was nothing to verify.
    """
    with transaction.atomic():
        # Against the end of the session, which decides by `arrival` whether the slot is kept.
        row = Session.objects.select_for_update().select_related("study").get(id=session.pk)
        if row.arrival != Session.Arrival.UNVERIFIED:
            return False
        row.arrival, row.lease_s = Session.Arrival.VERIFIED, lease_s
        if row.claimed_at is not None:
            row.lease_ends_at = row.claimed_at + lease_of(row)
        row.save(update_fields=["arrival", "lease_s", "lease_ends_at"])
        unverified_places.give_up(row)
        is_open = row.state in {Session.State.ASSIGNED, Session.State.RUNNING}
        has_passed = row.verdict == "passed" and not row.erased
        if row.lease_ends_at is not None and (is_open or has_passed):
            regain_slot(row, row.lease_ends_at)
            if has_passed and not keep_slot(row):
                _add_surplus(row)
    return True


def withdraw(session: Session, reason: str, erase: bool) -> Session:
    """Leaves the study; with `erase` the answers are removed and only their number remains. Repeatable.

    A person who has finished may still have the answers removed (after a debrief that disclosed something):
    the session stays finished, so that it is paid, but it no longer counts and its slot is free again.
    """
    with transaction.atomic():
        # Answers, tries and events are stored under this lock: none arrives after they were erased.
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
    session.gates.exclude(kind=CONSENT).update(value={})
    Slot.objects.filter(holder=session).update(holder=None, lease_ends_at=None, kept=False)
    Session.objects.filter(id=session.pk).update(erased=erased, device={}, comment="", measures={})
    if session.verdict not in {verdict.status, "incomplete"}:
        # A session that was left keeps that state: a withdrawn verdict on a finished session means that every
        # trial was answered.
        Session.objects.filter(id=session.pk).update(
            verdict=verdict.status,
            reasons=[reason.as_json() for reason in verdict.reasons],
            verdict_at=timezone.now(),
        )


def mark_left(session: Session, *reasons: Reason) -> bool:
    """This person will not come back, as the platform says or for these reasons: the slot is free again."""
    with transaction.atomic():
        ended = _end(session, Session.State.FINISHED, Verdict("incomplete", reasons))
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
