"""The calls that speak with a platform: join, finish, withdraw. Each may be repeated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.conf import settings
from django.core import signing
from django.db import IntegrityError, transaction
from django.utils import timezone

from crowd.ground.audit import record
from crowd.ground.identity_hashes import is_same_person, person_hash, submission_hash
from crowd.joining import rate_limits, unlisted_arrival_quota
from crowd.joining.admission import (
    Visitor,
    admit,
    check_sessions,
    exit_of,
    fields_of,
    origin_of,
    posting_of,
    read_arrival,
    say,
    visitor_of,
)
from crowd.joining.ending import ending_for
from crowd.joining.model_entry import FIELD, join_model
from crowd.joining.pay import pay_if_left
from crowd.joining.platform_arrival_lookup import ASKED_PER_MINUTE, ask_platform, ask_soon
from crowd.joining.rate_limits import Sender
from crowd.joining.signed_entry import check_replay, is_signed, read_resume_query, resume_query, ticket_of
from crowd.models import Identity, PersonNote, Posting, Submission
from crowd.money.ledger import decide_for
from crowd.platforms.base import Arrival, Exit
from crowd.recruiting.arrival_confirmation import arrival_of, is_listed, is_told_at_join, lease_s_of
from experiments.errors import (
    InvalidRequest,
    NoStudy,
    NotAdmitted,
    StudyError,
    StudyFull,
    TakenPart,
    TooMany,
)
from experiments.models import Participant, Session, Study
from experiments.selectors import definition_of
from experiments.sessions import lifecycle, unverified_places
from experiments.sessions.colour_check_debriefing import has_check, invites
from experiments.sessions.last_page import last_page_of
from experiments.sessions.previews import skip_to, skip_to_page
from experiments.sessions.pseudonyms import namer
from experiments.sessions.slot_assignment import peek_slot
from experiments.tokens import keyed_hash
from experiments.wording.sentences import text_html

PREVIEW_MAX_AGE_S = 8 * 3600
TRIES = 3
RETRY_S = 30


@dataclass(frozen=True, slots=True)
class JoinResult:
    """A session with its token; `created` is False if the same submission came again. `query` replaces the
    query string in the address bar (empty: it stays)."""

    session: Session
    token: str
    created: bool
    query: str = ""

    @property
    def sitting(self) -> str:
        """A name for what the page keeps of this session; the same after every reload."""
        return keyed_hash("sitting", str(self.session.pk))[:22]


def preview_query(study: Study, ordinal: int, position: int | None = None, page: str = "") -> str:
    """The query string of a researcher's preview, signed and good for a working day.

    It begins at the first page, with the `page` of that kind, or with the trial at `position` of the slot's
    plan.
    """
    fields = {"study": study.pk, "slot": ordinal, "position": position, "page": page}
    # The page itself goes straight to the trial then.
    at = "" if position is None else "&at=trial"
    return "preview=" + signing.dumps(fields, salt="legible.preview") + at


def join(slug: str, platform: str, query: str, attempt: str = "", sender: Sender | None = None) -> JoinResult:
    """Makes or finds the session of an arrival. Raises a SessionError that the wire knows.

    `attempt` names the page load: what was signed for one browser opens in no other. `sender` is the address
    that asks; the machine itself has none.
    """
    study = Study.objects.filter(slug=slug).exclude(state=Study.State.DRAFT).first()
    counted = rate_limits.count(study, sender)
    if study is None:
        raise (
            counted.refuse() if counted.is_over else NoStudy(f"There is no open study called {slug[:64]!r}.")
        )
    fields = fields_of(query)
    if "preview" in fields:
        return _join_preview(study, fields["preview"])
    if FIELD in fields:
        return JoinResult(*join_model(study, fields[FIELD]))
    posting = posting_of(study, fields, platform)
    if "resume" in fields:
        row = read_resume_query(posting, fields["resume"])
        assert row.session is not None
        return _join_result(posting, row.session, created=False)
    visitor = visitor_of(posting, query)
    ticket = ticket_of(visitor, fields, attempt) if is_signed(posting) else ""
    is_known = bool(ticket) or is_listed(posting, visitor.person, visitor.submission)
    if counted.is_over and not is_known:
        _ask_for_list(posting)
        raise counted.refuse()
    coming = Coming(visitor, *origin_of(visitor, fields), ticket, is_known, counted)
    try:
        return _enter(coming)
    except TooMany:
        _ask_for_list(posting)
        counted.note_refusal()
        raise
    except (NoStudy, StudyFull, TakenPart) as refusal:
        refusal.exit = _way_back(posting, visitor.arrival).as_json()
        raise


def _way_back(posting: Posting, arrival: Arrival) -> Exit:
    """The exit for a person who was not let in. If a submission is always paid, there is nothing to submit
    here: the person returns the place on the platform itself.
    """
    way = exit_of(posting, "turned_away", arrival)
    return way if way.method != "POST" else Exit("none")


def _ask_for_list(posting: Posting) -> None:
    """The next sync of the platform's list lets in those of its people who were refused here."""
    if is_told_at_join(posting):
        Posting.objects.filter(pk=posting.pk, sync_asked_at=None).update(sync_asked_at=timezone.now())


@dataclass(frozen=True, slots=True)
class Coming:
    """A visitor at the entry: who counts as whom, what the platform signed, whether it vouches for them."""

    visitor: Visitor
    origin: Session.Origin
    kind: str
    ticket: str
    is_known: bool
    counted: rate_limits.CountedJoin


def _enter(coming: Coming) -> JoinResult:
    visitor, ticket = coming.visitor, coming.ticket
    for _ in range(TRIES):
        joined = _returning(visitor, ticket)
        if joined is not None:
            return _back(coming, joined)
        try:
            return _let_in(_confirm_arrival(coming))
        except IntegrityError:
            # Another request made the same rows at the same moment: read them again.
            continue
        except (StudyFull, TakenPart):
            # The page may have been loaded twice, and the other load was let in meanwhile.
            joined = _returning(visitor, ticket)
            if joined is None:
                raise
            return joined
    raise TakenPart(say(visitor.posting.study, "taken_part"))


def _let_in(coming: Coming) -> JoinResult:
    """A new session. Who may come before those that hold the last places waits for them."""
    visitor, posting = coming.visitor, coming.visitor.posting
    try:
        admit(visitor, coming.origin)
    except StudyFull:
        is_open = posting.state != Posting.State.CLOSED and posting.study.state == Study.State.OPEN
        if not is_open or not unlisted_arrival_quota.are_there(posting):
            raise
        word = "places_held" if coming.is_known else "not_listed_yet"
        raise TooMany(say(posting.study, word), unlisted_arrival_quota.RETRY_S) from None
    return _begin(coming)


def _confirm_arrival(coming: Coming) -> Coming:
    """The same, once the platform was asked, if it can tell: also for a study that seems full. An outage
    keeps no person out."""
    posting, visitor = coming.visitor.posting, coming.visitor
    if coming.is_known or not is_told_at_join(posting):
        return coming
    row = ask_soon(posting, visitor.arrival.submission)
    is_known = row is not None and row.person_hash == visitor.person
    # A worker or the sync may have stored it meanwhile.
    return replace(coming, is_known=is_known or is_listed(posting, visitor.person, visitor.submission))


def _back(coming: Coming, joined: JoinResult) -> JoinResult:
    """A session that came again: if it is still unverified, its platform is asked once more."""
    visitor, posting = coming.visitor, coming.visitor.posting
    places = coming.counted.places_at(posting)
    is_elsewhere = places is not None and unverified_places.is_elsewhere(joined.session, places[0])
    lifecycle.note_opened_again(joined.session, is_elsewhere)
    if is_elsewhere:
        name = namer(posting.study)(joined.session.participant.pseudonym)
        record(posting.study, "", f"A session goes on from another address: {name}.")
    if places is not None and joined.session.arrival in unverified_places.UNSURE:
        unverified_places.recognise(joined.session, *places)
    is_open = joined.session.arrival == Session.Arrival.UNVERIFIED and is_told_at_join(posting)
    if is_open and ask_soon(posting, visitor.arrival.submission) is not None:
        joined.session.refresh_from_db()
    return joined


@transaction.atomic
def _returning(visitor: Visitor, ticket: str) -> JoinResult | None:
    """The session of a submission that came before. Raises NotAdmitted for another person's."""
    # One arrival of a submission at a time: a reload must find the session that the first one makes.
    row = (
        Submission.objects.select_for_update(of=("self",))
        .filter(posting=visitor.posting, submission_hash=visitor.submission)
        .select_related("posting__study", "session__study", "session__slot__condition", "identity")
        .first()
    )
    if row is None:
        return None
    known = row.identity.person_hash if row.identity is not None else row.person_hash
    if known and known != visitor.person:
        raise NotAdmitted(say(visitor.posting.study, "somebody_else"))
    if row.session is None:
        return None
    if ticket:
        check_replay(row, ticket)
        Submission.objects.filter(pk=row.pk).update(entry_digest=ticket)
    return _join_result(visitor.posting, row.session, created=False)


@transaction.atomic
def _begin(coming: Coming) -> JoinResult:
    """A new session. A second arrival of the same person at the same moment waits for the person's row."""
    visitor, ticket = coming.visitor, coming.ticket
    posting, study = visitor.posting, visitor.posting.study
    identity = _locked_identity(visitor)
    joined = _returning(visitor, ticket)
    if joined is not None:
        return joined
    check_sessions(study, identity)
    is_known = coming.is_known or is_listed(posting, visitor.person, visitor.submission)
    arrival = arrival_of(posting, is_known)
    is_short = arrival == Session.Arrival.UNVERIFIED and is_told_at_join(posting)
    session, token = lifecycle.start_session(
        study,
        identity.participant,
        origin=coming.origin,
        simulated_kind=coming.kind,
        arrival=arrival,
        lease_s=settings.UNVERIFIED_LEASE_S if is_short else lease_s_of(posting),
    )
    places = coming.counted.places_at(posting)
    if places is not None and arrival != Session.Arrival.VERIFIED:
        unverified_places.reserve(session, *places, coming.counted.wider)
    key = {"posting": visitor.posting, "submission_hash": visitor.submission}
    values = {"identity": identity, "person_hash": visitor.person, "session": session, "entry_digest": ticket}
    # The platform's own list may have brought the row before the person came; a row that another request took
    # in this moment makes `create` fail.
    if not Submission.objects.filter(**key, session__isnull=True).update(**values):
        Submission.objects.create(**key, **values)
    return _with_query(visitor.posting, JoinResult(session, token, created=True))


def _locked_identity(visitor: Visitor) -> Identity:
    study = visitor.posting.study
    # Against `forget`, which removes the id that is about to be relied on.
    rows = Identity.objects.select_for_update(of=("self",)).filter(study=study, person_hash=visitor.person)
    identity = rows.select_related("participant").first()
    if identity is None:
        try:
            with transaction.atomic():
                Identity.objects.create(
                    study=study,
                    platform=visitor.posting.platform,
                    person_hash=visitor.person,
                    participant=Participant.objects.create(study=study),
                )
        except IntegrityError:
            pass  # made at the same moment by the other arrival
        identity = rows.select_related("participant").get()
    return identity


def _join_result(posting: Posting, session: Session, *, created: bool) -> JoinResult:
    return _with_query(posting, JoinResult(session, lifecycle.renew_token(session), created))


def _with_query(posting: Posting, joined: JoinResult) -> JoinResult:
    if not is_signed(posting):
        return joined
    return JoinResult(joined.session, joined.token, joined.created, resume_query(posting, joined.session))


def claim_or_end(joined: JoinResult) -> Session:
    """Claims a slot if every gate is passed. A person for whom none is left gets the last page, which says
    what they are paid for coming this far."""
    try:
        return lifecycle.claim_if_due(joined.session)
    except StudyFull:
        joined.session.refresh_from_db()
        if joined.session.state != Session.State.TURNED_AWAY:
            raise
        return joined.session


def _join_preview(study: Study, signed: str) -> JoinResult:
    """A researcher's look at one slot: nothing is held, nothing counts."""
    try:
        preview = signing.loads(signed, salt="legible.preview", max_age=PREVIEW_MAX_AGE_S)
        if preview["study"] != study.pk:
            raise signing.BadSignature
        slot = peek_slot(study, int(preview["slot"]))
    except (signing.BadSignature, StudyError) as error:
        raise NotAdmitted("This preview is no longer valid. Open a new one from the dashboard.") from error
    participant = Participant.objects.create(study=study)
    session, token = lifecycle.start_session(study, participant, origin=Session.Origin.PREVIEW)
    Session.objects.filter(id=session.pk).update(slot=slot, state=Session.State.RUNNING)
    session.refresh_from_db()
    if preview["position"] is not None:
        skip_to(session, int(preview["position"]))
    elif preview.get("page"):
        skip_to_page(session, str(preview["page"]))
    return JoinResult(session, token, created=True)


@dataclass(frozen=True, slots=True)
class ClosedPage:
    """What a closed session is told last; `asks_again`: after this debrief, may the answers be used? `pay`
    are the sentences about money. `invites`: may the person be invited to another part? `has_check`: they may
    ask what the colour check showed."""

    debrief: str | None
    exit: Exit
    asks_again: bool
    invites: bool
    has_check: bool
    pay: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Field by field, so that nothing that is added here reaches a browser unasked."""
        return {
            "debrief": self.debrief,
            "exit": self.exit.as_json(),
            "asks_again": self.asks_again,
            "invites": self.invites,
            "has_check": self.has_check,
            "pay": list(self.pay),
        }


def finish(session: Session, comment: str, query: str = "") -> ClosedPage:
    """Ends a session that has answered everything. `query` is what the page came with: some exits need it,
    and nothing of it is kept here before consent.

    1. The arrival that the page names must be the session's own.
    2. The session ends: verdict, slot kept or given back.
    3. Its `Ending` is worked out once and handed to the page and the way out.
    """
    submission = _submission_of(session)
    arrival = _arrival_of(submission, query)
    return _closed_page(lifecycle.finish(session, comment), submission, arrival)


def withdraw(session: Session, reason: str, erase: bool, query: str = "") -> ClosedPage:
    submission = _submission_of(session)
    arrival = _arrival_of(submission, query)
    if erase:
        # While the answers are there the bonus can be counted: removing them must not change the pay.
        decide_for(session)
        PersonNote.objects.filter(session=session).delete()
    return _closed_page(lifecycle.withdraw(session, reason, erase), submission, arrival)


def leaving(session: Session, reason: str = "") -> tuple[str, ...]:
    """What leaving at this moment would pay, in sentences."""
    return pay_if_left(session, _submission_of(session), reason)


def _submission_of(session: Session) -> Submission | None:
    return Submission.objects.filter(session=session).select_related("posting__study", "identity").first()


def _arrival_of(submission: Submission | None, query: str) -> Arrival | None:
    """The arrival that a page names again, if it is this session's. Raises InvalidRequest."""
    if submission is None or not query:
        return None
    posting, fields = submission.posting, fields_of(query)
    if "resume" in fields:
        if read_resume_query(posting, fields["resume"]).pk != submission.pk:
            raise _foreign_query()
        return None
    arrival = read_arrival(posting, query)
    if arrival.preview or submission_hash(posting, arrival.submission) != submission.submission_hash:
        raise _foreign_query()
    person = person_hash(posting, arrival.person, arrival.realm)
    if submission.identity is not None and submission.identity.person_hash != person:
        raise _foreign_query()
    return arrival


def _foreign_query() -> InvalidRequest:
    return InvalidRequest(
        "query is not the one that this session began with.",
        fields={"query": "must be the page's own query string"},
    )


def _closed_page(session: Session, submission: Submission | None, arrival: Arrival | None) -> ClosedPage:
    definition = definition_of(session.study)
    debrief = None
    if last_page_of(session) == "debrief":
        debrief = text_html(definition, definition.texts["debrief"])
    has_answers = (
        session.state == Session.State.FINISHED and session.slot_id is not None and not session.erased
    )
    asks_again = bool(definition.ethics.deception) and has_answers
    page = ClosedPage(debrief, Exit("none"), asks_again, invites(session), has_check(session))
    if submission is not None and not _may_leave(session, submission, arrival):
        return replace(page, debrief=text_html(definition, say(session.study, "unlisted")) + (debrief or ""))
    ending = ending_for(session, submission, arrival)
    return replace(page, exit=ending.exit, pay=ending.pay)


def _may_leave(session: Session, submission: Submission, arrival: Arrival | None) -> bool:
    """Whether the page may hand out a code, which all people share. A platform that can tell its people is
    asked once more about a person whom it has not listed; if it does not answer, the person does not pay for
    that."""
    posting = submission.posting
    if session.arrival != Session.Arrival.UNVERIFIED or not is_told_at_join(posting):
        return True
    if arrival is None:
        return False
    if not rate_limits.may_ask(posting, "leaves", ASKED_PER_MINUTE):
        raise TooMany("Too many people are leaving at this moment.", RETRY_S)
    answer = ask_platform(posting, arrival.submission)
    if not answer.has_answered:
        return True
    return answer.row is not None and is_same_person(answer.row)
