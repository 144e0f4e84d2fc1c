"""The ledger: creates the payouts that are due, and records what a named person decides about them. Nothing
is sent from here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from crowd.ground import audit, platform_clock
from crowd.ground.amounts import amount_of, split
from crowd.ground.identity_hashes import is_same_person
from crowd.models import Payout, Posting, Submission
from crowd.money.policy import Due, SessionEnd, Terms, dues_of
from crowd.money.policy_endings import CONSENTED, ENDINGS, MAIN_KIND, EndedSession, endings_of
from crowd.platforms import has_service, traits_of
from crowd.platforms.base import Kind
from experiments.definition.study import StudyDefinition
from experiments.errors import StudyError
from experiments.models import Participant, Session
from experiments.selectors import definition_of
from experiments.sessions.lifecycle import ENDED
from experiments.sessions.pseudonyms import namer

CHUNK = 200
INSTEAD = (Payout.Kind.SCREEN_OUT, Payout.Kind.COMPENSATION)
"""Kinds that take the place of a reward."""
UNSETTLED = (Payout.State.DUE, Payout.State.SENDING, Payout.State.UNKNOWN)
SPENT_STATES = (
    Payout.State.SENDING,
    Payout.State.UNKNOWN,
    Payout.State.SENT,
    Payout.State.BY_HAND,
)
"""The states that count against a cap: the payout was sent, may have been, or was paid by hand."""
DENIED = (Payout.State.FAILED, Payout.State.WITHHELD)
"""The states in which a payout is on no way to the person."""
BY_APPROVAL = Q(batch__isnull=True) | Q(batch__purpose="base")
"""Payouts that the platform makes by approving the work; all others reach people as bonuses."""


class PayoutRefused(StudyError):
    """A decision about money cannot be taken; the message says why and what can be done."""


def terms_of(posting: Posting) -> Terms:
    """What the study promises, split as this posting's platform pays it; approving pays another reward if a
    named person has accepted one that was raised on the platform's page."""
    terms = study_terms(
        definition_of(posting.study),
        base_share=float(posting.options.get("base_share", 1.0)),
        base_for_all=traits_of(posting.platform).pays_base_for_all,
    )
    if posting.accepted_cents is None:
        return terms
    return replace(terms, base_cents=posting.accepted_cents)


def study_terms(definition: StudyDefinition, *, base_share: float = 1.0, base_for_all: bool = False) -> Terms:
    """What a study promises, independent of its platform."""
    reward, policy = definition.reward, definition.policy
    return Terms(
        reward_cents=reward.amount_cents,
        base_cents=split(reward.amount_cents, base_share)[0],
        screened_share=policy.screened_share,
        turned_away_share=policy.turned_away_share,
        withdrawn=policy.withdrawn,
        bonus_per_match_cents=reward.bonus_per_match_cents,
        bonus_max_cents=reward.bonus_max_cents,
        person_cap_cents=reward.person_cap_cents,
        base_for_all=base_for_all,
    )


def origin_of(posting: Posting) -> str:
    """The origin of the sessions that a posting pays for. Real money never goes to simulated sessions."""
    if posting.mode != Posting.Mode.LIVE:
        return Session.Origin.SIMULATED
    return Session.Origin.PILOT if posting.pilot else Session.Origin.HUMAN


def sessions_of(posting: Posting) -> QuerySet[Session]:
    """The sessions of people who came by this posting and belong to its mode."""
    return Session.objects.filter(submission__posting=posting, origin=origin_of(posting))


def decide_due(posting: Posting) -> int:
    """Creates the payouts that sessions of this posting are due since they ended; returns how many are new.

    It can be repeated, and several processes may do it at once.
    """
    if not has_service(posting.platform):
        return 0
    ids = list(_undecided_sessions(sessions_of(posting)).values_list("pk", flat=True))
    return sum(_decide(posting, ids[start : start + CHUNK]) for start in range(0, len(ids), CHUNK))


def decide_for(session: Session) -> int:
    """Does the same for one session. Call it before the session's answers or ids are removed: after that the
    bonus cannot be counted."""
    submission = Submission.objects.filter(session=session).select_related("posting__study").first()
    if submission is None or not has_service(submission.posting.platform):
        return 0
    sessions = sessions_of(submission.posting).filter(pk=session.pk)
    return _decide(submission.posting, list(_undecided_sessions(sessions).values_list("pk", flat=True)))


@dataclass(frozen=True, slots=True)
class SessionDue:
    """What is owed for a session that has ended, and how it ended. `is_held`: a named person, or the
    platform, stands against a part of it, which is left out of `dues`."""

    end: SessionEnd
    dues: tuple[Due, ...]
    is_held: bool = False

    @property
    def cents(self) -> int:
        return sum(due.cents for due in self.dues)


def owed_for(terms: Terms, session: Session) -> SessionDue | None:
    """What the ledger owes for a session: its rows, or if it was not decided yet, what it will decide. None
    if the session has not ended."""
    sessions = Session.objects.filter(pk=session.pk)
    if terms.person_cap_cents is not None:
        sessions = Session.objects.filter(participant=session.participant_id)
    earlier = 0
    for each in endings_of(session.study, sessions, matches=terms.bonus_per_match_cents > 0):
        end = replace(each.end, earlier_cents=earlier)
        rows = list(Payout.objects.filter(session=each.session))
        held = [row for row in rows if row.state in DENIED]
        decided = tuple(Due(cast(Kind, row.kind), row.cents, row.reason) for row in rows if row not in held)
        dues = decided if rows else dues_of(terms, end)
        if each.session == session.pk:
            return SessionDue(end, dues, bool(held))
        earlier += sum(due.cents for due in dues)
    return None


def _undecided_sessions(sessions: QuerySet[Session]) -> QuerySet[Session]:
    undecided = Q(pk__in=[])
    for ending, kind in MAIN_KIND.items():
        payout = Payout.objects.filter(session=OuterRef("pk"), kind=kind)
        undecided |= ENDINGS[ending] & Q(~Exists(payout))
    return sessions.filter(undecided, CONSENTED)


def _decide(posting: Posting, ids: Sequence[Any]) -> int:
    terms = terms_of(posting)
    with transaction.atomic():
        # The sessions are locked first. A withdrawal that erases answers locks them too, so the answers are
        # either all there or known to be removed.
        sessions = Session.objects.filter(pk__in=ids)
        people = list(sessions.select_for_update().order_by("pk").values_list("participant_id", flat=True))
        if terms.person_cap_cents is not None:
            _lock_people(people)
        undecided = _undecided_sessions(sessions)
        ended_sessions = list(endings_of(posting.study, undecided, matches=terms.bonus_per_match_cents > 0))
        rows = _rows(posting, terms, ended_sessions)
        Payout.objects.bulk_create(rows, ignore_conflicts=True)
        return Payout.objects.filter(reference__in=[row.reference for row in rows]).count()


def _lock_people(participants: Iterable[int]) -> None:
    """Allows one decision about a person at a time: two sessions that end together share one limit."""
    rows = Participant.objects.select_for_update(no_key=True).filter(pk__in=set(participants))
    list(rows.order_by("pk").values_list("pk"))


def _rows(posting: Posting, terms: Terms, ended_sessions: Sequence[EndedSession]) -> list[Payout]:
    currency = definition_of(posting.study).reward.currency
    capped = terms.person_cap_cents is not None
    sessions = [session.session for session in ended_sessions]
    submissions = dict(
        Submission.objects.filter(posting=posting, session__in=sessions).values_list("session_id", "pk")
    )
    earlier = _earlier(ended_sessions) if capped else defaultdict(int)
    rows = []
    for session in ended_sessions:
        end = replace(session.end, earlier_cents=earlier[session.participant])
        for due in dues_of(terms, end):
            earlier[session.participant] += due.cents
            rows.append(
                Payout(
                    posting=posting,
                    submission_id=submissions[session.session],
                    session_id=session.session,
                    kind=due.kind,
                    cents=due.cents,
                    currency=currency,
                    reason=due.reason,
                )
            )
    return rows


def _earlier(ended_sessions: Sequence[EndedSession]) -> defaultdict[int, int]:
    """What these people are due for their other sessions."""
    sums = defaultdict[int, int](int)
    participants = {session.participant for session in ended_sessions}
    rows = Payout.objects.filter(session__participant__in=participants)
    rows = rows.exclude(state__in=DENIED)
    for person, cents in rows.values_list("session__participant").annotate(n=Sum("cents")).order_by():
        sums[person] += cents
    return sums


def adopt_approval(posting: Posting, submission: Submission) -> int:
    """Records that the platform paid its reward for a submission to which the ledger owes no reward.

    Returns how many payouts that changed.
    """
    now = platform_clock.now()
    paid = {"state": Payout.State.SENT, "cents": terms_of(posting).base_cents, "batch": None, "sent_at": now,
            "confirmed_at": now, "error": ""}  # fmt: skip
    row, is_new = Payout.objects.get_or_create(
        submission=submission,
        kind=Payout.Kind.BASE,
        defaults={
            **paid,
            "posting": posting,
            "session_id": submission.session_id,
            "currency": posting.currency,
            "reason": "Approved on the platform.",
        },
    )
    return 1 if is_new else Payout.objects.filter(pk=row.pk, state__in=DENIED).update(**paid)


def withhold(payouts: Iterable[int], who: str, reason: str, *, log: bool = True) -> int:
    """Withholds payouts that are due, in a person's name; sent and unknown payouts stay as they are. A caller
    that passes `log=False` logs the decision itself."""
    return _turn(payouts, (Payout.State.DUE, Payout.State.WITHHELD), who, reason, log)


def release(payouts: Iterable[int], who: str, reason: str, *, log: bool = True) -> int:
    """Makes withheld payouts due again."""
    return _turn(payouts, (Payout.State.WITHHELD, Payout.State.DUE), who, reason, log)


def _turn(payouts: Iterable[int], states: tuple[str, str], who: str, reason: str, logged: bool) -> int:
    name_and_reason(who, reason)
    old, new = states
    word = "Withheld" if new == Payout.State.WITHHELD else "Released"
    turned: dict[Any, list[Payout]] = {}
    with transaction.atomic():
        # A payout that is being sent has left its old state, and is not turned.
        rows = Payout.objects.select_for_update(of=("self",)).filter(pk__in=list(payouts), state=old)
        for row in rows.select_related("posting__study").order_by("pk"):
            text = f"{row.reason} {word} by {who}: {reason}"
            Payout.objects.filter(pk=row.pk).update(state=new, decided_by=who, reason=text, error="")
            turned.setdefault(row.posting.study, []).append(row)
        for study, changed in turned.items() if logged else ():
            total = amount_of(sum(row.cents for row in changed), changed[0].currency)
            people = len({row.submission_id for row in changed})
            audit.record(study, who, f"{word} {total} of {people} {_people(people)}: {reason}")
    return sum(len(changed) for changed in turned.values())


def grant(
    session: Session, kind: Literal["compensation", "bonus"], cents: int, who: str, reason: str
) -> Payout:
    """Creates a payout that the policy does not owe, in a person's name. Raises PayoutRefused."""
    name_and_reason(who, reason)
    if cents <= 0:
        raise PayoutRefused(f"{cents} cents is no amount. Give at least 1.")
    submission = Submission.objects.filter(session=session).select_related("posting__study").first()
    if submission is None or not has_service(submission.posting.platform):
        raise PayoutRefused("This person came by no platform that can be asked to pay. Pay by hand.")
    posting = submission.posting
    if not Session.objects.filter(pk=session.pk, state__in=ENDED).exists():
        raise PayoutRefused(
            "They are still at it, so what the policy owes them is not decided. "
            "Grant it when they have ended."
        )
    decide_for(session)
    reward = definition_of(posting.study).reward
    other = "compensation" if kind == "bonus" else "bonus"
    _refuse_second(Payout.objects.filter(session=session, kind=kind).first(), other)
    try:
        with transaction.atomic():
            _lock_people([session.participant_id])
            if submission.state == "approved" and is_same_person(submission):
                adopt_approval(posting, submission)  # What is granted now comes on top of it.
            _within_person_cap(session, reward.person_cap_cents, cents, reward.currency)
            row = Payout.objects.create(
                posting=posting,
                submission=submission,
                session=session,
                kind=kind,
                cents=cents,
                currency=reward.currency,
                reason=f"Granted by {who}: {reason}",
                decided_by=who,
            )
            audit.record(
                posting.study,
                who,
                f"Granted {amount_of(cents, reward.currency)} as {kind} to "
                f"{namer(posting.study)(session.participant.pseudonym)}: {reason}",
            )
    except IntegrityError:
        _refuse_second(Payout.objects.filter(session=session, kind=kind).first(), other)
        raise
    return row


def _refuse_second(row: Payout | None, other: str) -> None:
    if row is None:
        return
    state = "due, and the next settle sends it" if row.state == Payout.State.DUE else row.state
    raise PayoutRefused(
        f"This session has a {row.kind} already ({amount_of(row.cents, row.currency)}, {state}), and each "
        f"kind is paid once. Grant a {other} instead."
    )


def _within_person_cap(session: Session, cap: int | None, cents: int, currency: str) -> None:
    if cap is None:
        return
    rows = Payout.objects.filter(session__participant=session.participant_id)
    rows = rows.exclude(state__in=DENIED)
    already = int(rows.aggregate(n=Sum("cents"))["n"] or 0)
    if already + cents > cap:
        raise PayoutRefused(
            f"{amount_of(cents, currency)} more would make {amount_of(already + cents, currency)} for this "
            f"person, above person_cap_cents ({amount_of(cap, currency)}). Grant at most "
            f"{amount_of(max(0, cap - already), currency)}."
        )


def name_and_reason(who: str, reason: str) -> None:
    """Raises PayoutRefused if one of them is missing."""
    if not who.strip():
        raise PayoutRefused("A decision about money needs a name.")
    if not reason.strip():
        raise PayoutRefused("A decision about money needs a reason: the person may ask for it.")


def _people(count: int) -> str:
    return "person" if count == 1 else "people"
