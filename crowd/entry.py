"""The calls that speak with a platform: join, finish, withdraw. Each may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs

from django.core import signing
from django.db import IntegrityError, transaction

from crowd.accounts import site_of
from crowd.models import Identity, Posting, Submission
from crowd.platforms import PLATFORMS, get_door
from crowd.platforms.base import Arrival, Exit, NotAnArrival, Outcome
from experiments import sessions
from experiments.api.state import ending_of
from experiments.enrolment import peek_slot, places_left
from experiments.errors import InvalidRequest, NoStudy, NotAdmitted, StudyError, StudyFull, TakenPart
from experiments.gates import placeholders
from experiments.models import Participant, Session, Study
from experiments.selectors import definition_of
from experiments.texts import html_of
from experiments.tokens import keyed_hash

PREVIEW_MAX_AGE_S = 8 * 3600


@dataclass(frozen=True, slots=True)
class Joined:
    """A session with its token; `created` is False where the same submission came again."""

    session: Session
    token: str
    created: bool


def preview_query(study: Study, ordinal: int, position: int | None = None) -> str:
    """The query string of a researcher's preview, signed and good for a working day.

    It begins at the first page, or with the trial at `position` of the slot's plan.
    """
    asked = {"study": study.pk, "slot": ordinal, "position": position}
    return "preview=" + signing.dumps(asked, salt="legible.preview")


def join(slug: str, platform_name: str, query: str) -> Joined:
    """Makes or finds the session of an arrival. Raises a SessionError that the wire knows."""
    study = Study.objects.filter(slug=slug).exclude(state=Study.State.DRAFT).first()
    if study is None:
        raise NoStudy(f"There is no open study called {slug[:64]!r}.")
    preview = _preview_of(query)
    if preview is not None:
        return _join_preview(study, preview)
    posting = Posting.objects.filter(study=study, platform=platform_name, state=Posting.State.OPEN).first()
    if posting is None or platform_name not in PLATFORMS:
        raise NoStudy(f"{slug[:64]!r} is not offered on {platform_name[:20]!r}.")
    try:
        arrival = get_door(platform_name).arrival(query, site_of(posting))
    except NotAnArrival as error:
        raise InvalidRequest(str(error), fields={"query": str(error)}) from error
    person = keyed_hash("person", platform_name, arrival.person)
    submission = keyed_hash("submission", platform_name, arrival.submission)
    found = _returning(posting, submission, person)
    if found is not None:
        return found
    _admit(study, posting, arrival, person)
    try:
        with transaction.atomic():
            return _new(study, posting, arrival, person, submission)
    except IntegrityError:
        # The same submission joined twice at the same moment; the other request made the rows.
        found = _returning(posting, submission, person)
        if found is None:
            raise TakenPart("You have already taken part in this study.") from None
        return found


def _returning(posting: Posting, submission: str, person: str) -> Joined | None:
    row = (
        Submission.objects.filter(posting=posting, submission_hash=submission)
        .select_related("session", "session__study", "session__slot", "identity")
        .first()
    )
    if row is None or row.session is None or row.identity is None:
        return None
    if row.identity.person_hash != person:
        raise NotAdmitted("This link belongs to somebody else.")
    return Joined(row.session, sessions.renew_token(row.session), created=False)


def _admit(study: Study, posting: Posting, arrival: Arrival, person: str) -> None:
    if arrival.simulated_kind and Posting.objects.filter(study=study, mode=Posting.Mode.LIVE).exists():
        raise NotAdmitted("A study with a live posting takes no simulated people.")
    if study.state == Study.State.CLOSED:
        raise StudyFull("This study is closed.")
    definition = definition_of(study)
    earlier = Submission.objects.filter(identity__study=study, identity__person_hash=person).count()
    if earlier >= definition.sittings_max:
        raise TakenPart("You have already taken part in this study.")
    if places_left(study) <= 0:
        raise StudyFull("All places of this study are taken.")


def _new(study: Study, posting: Posting, arrival: Arrival, person: str, submission: str) -> Joined:
    identity = Identity.objects.filter(study=study, platform=posting.platform, person_hash=person).first()
    if identity is None:
        identity = Identity.objects.create(
            study=study,
            platform=posting.platform,
            person_hash=person,
            participant=Participant.objects.create(study=study),
        )
    origin = Session.Origin.SIMULATED if arrival.simulated_kind else Session.Origin.HUMAN
    session, token = sessions.start_session(
        study, identity.participant, origin=origin, simulated_kind=arrival.simulated_kind
    )
    Submission.objects.create(posting=posting, identity=identity, submission_hash=submission, session=session)
    return Joined(session, token, created=True)


def _preview_of(query: str) -> str | None:
    """The signed preview of a query string; None where it is somebody's arrival."""
    try:
        found = parse_qs(query.lstrip("?"), max_num_fields=20).get("preview")
    except ValueError as error:
        raise InvalidRequest(
            "The address has too many fields.", fields={"query": "at most 20 fields"}
        ) from error
    return found[-1] if found else None


def _join_preview(study: Study, signed: str) -> Joined:
    """A researcher's look at one slot: nothing is held, nothing counts."""
    try:
        asked = signing.loads(signed, salt="legible.preview", max_age=PREVIEW_MAX_AGE_S)
        if asked["study"] != study.pk:
            raise signing.BadSignature
        slot = peek_slot(study, int(asked["slot"]))
    except (signing.BadSignature, StudyError) as error:
        raise NotAdmitted("This preview is no longer valid. Open a new one from the dashboard.") from error
    participant = Participant.objects.create(study=study)
    session, token = sessions.start_session(study, participant, origin=Session.Origin.PREVIEW)
    Session.objects.filter(id=session.pk).update(slot=slot, state=Session.State.RUNNING)
    session.refresh_from_db()
    if asked["position"] is not None:
        sessions.skip_to(session, int(asked["position"]))
    return Joined(session, token, created=True)


@dataclass(frozen=True, slots=True)
class Ended:
    """What a closed session is told last; `asks_again`: after this debrief, may the answers be used?"""

    debrief: str | None
    exit: Exit
    asks_again: bool

    def as_json(self) -> dict[str, object]:
        return {"debrief": self.debrief, "exit": self.exit.as_json(), "asks_again": self.asks_again}


def finish(session: Session, comment: str) -> Ended:
    return _ended(sessions.finish(session, comment))


def withdraw(session: Session, reason: str, erase: bool) -> Ended:
    return _ended(sessions.withdraw(session, reason, erase))


def _ended(session: Session) -> Ended:
    definition = definition_of(session.study)
    debrief = None
    if ending_of(session) == "debrief":
        debrief = html_of(definition.texts["debrief"], placeholders(definition))
    has_answers = (
        session.state == Session.State.FINISHED and session.slot_id is not None and not session.erased
    )
    asks_again = bool(definition.ethics.deception) and has_answers
    submission = Submission.objects.filter(session=session).select_related("posting").first()
    if submission is None:
        return Ended(debrief, Exit("none"), asks_again)
    posting = submission.posting
    door = get_door(posting.platform)
    way_back = door.exit(_outcome(session), posting.codes, None, site_of(posting), posting.options)
    return Ended(debrief, way_back, asks_again)


def _outcome(session: Session) -> Outcome:
    if session.state == Session.State.DECLINED:
        return "declined"
    if session.state == Session.State.TURNED_AWAY:
        return "turned_away"
    if session.state == Session.State.WITHDRAWN:
        return "withdrawn"
    return "complete" if session.slot_id is not None else "screened"
