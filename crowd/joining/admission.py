"""Admission: the posting that an address means, the person who arrives, and refusals with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q

from crowd.ground.identity_hashes import person_hash, submission_hash
from crowd.ground.platform_accounts import site_of
from crowd.models import ExcludedPerson, Identity, Posting, Submission
from crowd.platforms import PLATFORMS, entry_of, has_service
from crowd.platforms.base import Arrival, Entry, Exit, NotAnArrival, Outcome
from crowd.platforms.query import KIND
from crowd.platforms.query import fields_of as read_query
from crowd.recruiting.places import outstanding
from crowd.study_check.publication_quote import recruiting_of
from experiments.errors import InvalidRequest, NoStudy, NotAdmitted, StudyFull, TakenPart
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.sessions.slot_assignment import places_left
from experiments.stages.solution_freeze import source_of
from experiments.wording.sentences import entry_words

LIST = "list:"
"""Prefix of an entry of `excludes` that names a list of people instead of a study."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """An arrival at a posting. Of person and submission only the keyed hashes are ever stored here."""

    posting: Posting
    arrival: Arrival
    person: str
    submission: str


def fields_of(query: str) -> dict[str, str]:
    """The last value of each field of a query string. Raises InvalidRequest."""
    try:
        return read_query(query)
    except NotAnArrival as error:
        raise InvalidRequest(str(error), fields={"query": str(error)}) from error


def find_posting(study: Study, fields: Mapping[str, str], platform: str = "") -> Posting | None:
    """The posting that an address means: by its key, else the open one on the platform (any: "").

    A key also finds closed postings, because people who have begun may finish, and drafts, because the
    platform may send people before its answer that it opened the posting reaches us.
    """
    postings = Posting.objects.filter(study=study).select_related("study")
    if platform:
        postings = postings.filter(platform=platform)
    if "via" in fields:
        return postings.filter(key=fields["via"][:40]).first()
    return postings.filter(state=Posting.State.OPEN).order_by("pilot", "mode", "platform", "id").first()


def posting_of(study: Study, fields: Mapping[str, str], platform: str) -> Posting:
    """The same for a new arrival. Raises NoStudy."""
    posting = find_posting(study, fields, platform) if platform in PLATFORMS else None
    if posting is None:
        raise NoStudy(f"{study.slug!r} is not offered on {platform[:20]!r}.")
    return posting


def entry_at(posting: Posting) -> Entry:
    """The platform's entry for a posting."""
    return entry_of(posting.platform, posting.options)


def read_arrival(posting: Posting, query: str) -> Arrival:
    """The person and submission that a query string names. Raises InvalidRequest."""
    try:
        return entry_at(posting).arrival(query, site_of(posting))
    except NotAnArrival as error:
        raise InvalidRequest(str(error), fields={"query": str(error)}) from error


def visitor_of(posting: Posting, query: str) -> Visitor:
    """The arrival, checked against the posting. Raises InvalidRequest, or NotAdmitted for a preview."""
    arrival = read_arrival(posting, query)
    if arrival.preview:
        raise NotAdmitted(say(posting.study, "preview_refused"))
    known = {posting.external_id, *posting.names} - {""}
    if arrival.posting and known and arrival.posting not in known:
        raise InvalidRequest(
            "The address names another offer than the one it leads to.",
            fields={"query": "names another offer on the platform"},
        )
    person = person_hash(posting, arrival.person, arrival.realm)
    return Visitor(posting, arrival, person, submission_hash(posting, arrival.submission))


def say(study: Study, word: str) -> str:
    """A sentence in the study's language."""
    return entry_words(definition_of(study))[word]


def exit_of(posting: Posting, outcome: Outcome, arrival: Arrival | None = None) -> Exit:
    """The way back to the platform for an outcome."""
    return entry_at(posting).exit(outcome, posting.codes, arrival, site_of(posting), posting.options)


def origin_of(visitor: Visitor, fields: Mapping[str, str]) -> tuple[Session.Origin, str]:
    """The origin of a session, and the kind of simulated person. Raises InvalidRequest.

    In a rehearsal of a platform that has people, every person is simulated, even if the address does not say
    so; so is every visitor in a platform's sandbox.
    """
    posting, kind = visitor.posting, visitor.arrival.simulated_kind
    if posting.mode != Posting.Mode.LIVE and has_service(posting.platform):
        usual = "visitor" if posting.mode == Posting.Mode.REHEARSAL else "sandbox"
        kind = kind or fields.get("simulated", "") or usual
        if not KIND.fullmatch(kind):
            raise InvalidRequest(
                "simulated must name a kind: 1 to 20 small letters or underscores.",
                fields={"query": "simulated: 1 to 20 small letters or underscores"},
            )
    if kind:
        return Session.Origin.SIMULATED, kind
    return (Session.Origin.PILOT if posting.pilot else Session.Origin.HUMAN), ""


def admit(visitor: Visitor, origin: Session.Origin) -> None:
    """Lets a new person begin. Raises NoStudy, NotAdmitted, StudyFull or TakenPart.

    Sessions are counted again under a lock when the new one is made.
    """
    posting = visitor.posting
    study = posting.study
    if posting.state == Posting.State.CLOSED:
        raise NoStudy(say(study, "not_offered"))
    if study.state == Study.State.CLOSED:
        raise StudyFull(say(study, "closed"))
    if _is_live(study):
        if origin == Session.Origin.SIMULATED:
            raise NotAdmitted("A study with a live posting takes no simulated people.")
        if not posting.live:
            # Anyone can write such an address: its visitors were not counted, verified or promised pay.
            raise NotAdmitted(say(study, "not_live"))
    known = Identity.objects.filter(study=study, person_hash=visitor.person).first()
    if known is not None:
        check_sessions(study, known)
    if _is_excluded(study, visitor.person):
        raise TakenPart(say(study, "excluded"))
    left = places_left(study, pilot=origin == Session.Origin.PILOT)
    if not has_service(posting.platform):
        # Places that a platform has promised to its people are not given to visitors with a plain address.
        left -= _open_places(posting)
    if left <= 0:
        raise StudyFull(say(study, "full"))


def _open_places(posting: Posting) -> int:
    """Places that live postings on platforms offer and that are not taken yet."""
    live = Posting.objects.filter(study=posting.study_id, pilot=posting.pilot, mode=Posting.Mode.LIVE)
    others = live.exclude(state=Posting.State.CLOSED).select_related("study")
    return sum(outstanding(other) for other in others if has_service(other.platform))


def check_sessions(study: Study, identity: Identity) -> None:
    """Raises TakenPart if the person has used all sessions that the study allows."""
    had = Submission.objects.filter(identity=identity, session__isnull=False).count()
    if had >= definition_of(study).sittings_max:
        raise TakenPart(say(study, "taken_part"))


def _is_live(study: Study) -> bool:
    return Posting.objects.filter(study=study, mode=Posting.Mode.LIVE).exists()


def _is_excluded(study: Study, person: str) -> bool:
    """Whether the person took part in a study, or is on a list, that this study excludes, or has solved in
    its own earlier stage. Who was shown no task there may come: such people are asked for an invitation."""
    recruitment, _ = recruiting_of(study)
    lists = [name.removeprefix(LIST) for name in recruitment.excludes if name.startswith(LIST)]
    slugs = [name for name in recruitment.excludes if not name.startswith(LIST)]
    if lists and ExcludedPerson.objects.filter(list_name__in=lists, person_hash=person).exists():
        return True
    earlier = Session.objects.filter(participant__identity__person_hash=person).exclude(study=study)
    solved = Q(study__slug=source_of(definition_of(study)), slot__isnull=False)
    return earlier.filter(Q(study__slug__in=slugs) | solved).exists()
