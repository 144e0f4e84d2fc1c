"""Sessions as the pages show them: by pseudonym, without condition while results are sealed, and never with
an outside identity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import DurationField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery

from analysis.any_table.formats import condition_label
from crowd.dashboard.rows.places_and_exclusions import ORIGIN_WORDS
from crowd.dashboard.rows.postings import mode_word, title_of
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Submission
from crowd.people.result_seals import concealing, seals
from experiments.models import Gate, Response, Session, Study, Trial
from experiments.sessions.colour_check_debriefing import INVITATION
from experiments.sessions.pseudonyms import namer

RUNNING = Q(state__in=["gates", "assigned", "running"])
LEFT_OUT = ~Q(excluded={})
STATUSES: dict[str, tuple[str, Q]] = {
    "running": ("In progress", RUNNING),
    "passed": ("Passed", Q(verdict="passed")),
    "screened": ("Screened", Q(verdict="screened")),
    "by_hand": ("Left out by hand", LEFT_OUT),
    "incomplete": ("Left", Q(verdict="incomplete")),
    "withdrawn": ("Withdrew", Q(verdict="withdrawn")),
    "declined": ("Declined", Q(state="declined")),
    "turned_away": ("Turned away", Q(state="turned_away")),
}
INVITED = Q(Exists(Gate.objects.filter(session=OuterRef("pk"), kind=INVITATION, value__agree=True)))
ONE_OF = {
    "human": "person",
    "simulated": "simulated",
    "pilot": "pilot",
    "preview": "preview",
    "model": "model",
}
STATE_WORDS = {"gates": "At the gates", "assigned": "Reading instructions", "running": "In progress"}
SUBMISSION_WORDS = {
    "reserved": "place reserved",
    "active": "at it",
    "awaiting": "submitted",
    "approved": "approved",
    "partly_approved": "partly approved",
    "rejected": "rejected",
    "returned": "returned",
    "timed_out": "timed out",
    "screened_out": "screened out",
    "unknown": "not seen yet",
}
"""The platform's words for the state of a submission."""
KIND_WORDS = {
    "base": "Reward",
    "bonus": "Bonus",
    "screen_out": "Screened out",
    "compensation": "Compensation",
}
CONCEALED = "Sealed: the amount would tell the score."
WORST_FIRST = ("unknown", "failed", "sending", "due", "withheld", "sent")


@dataclass(frozen=True, slots=True)
class Outside:
    """What the platform says of a session; no identity."""

    where: str
    mode: str
    word: str
    raw: str
    submission: Submission


@dataclass(frozen=True, slots=True)
class PaidRow:
    """One payout as it may be shown. `amount` is empty, and `why` general, if the amount would tell a sealed
    score."""

    payout: Payout
    kind: str
    amount: str
    why: str


@dataclass(frozen=True, slots=True)
class Pay:
    """The payouts of a session together; `state` is the one that most needs attention."""

    text: str
    state: str
    rows: tuple[PaidRow, ...]


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One row: a session as it may be shown. `condition` is empty while its origin is sealed."""

    session: Session
    name: str
    origin: str
    status: str
    tone: str
    answered: int
    planned: int | None
    minutes: float | None
    rules: tuple[str, ...]
    condition: str
    outside: Outside | None
    pay: Pay | None


def filters_of(study: Study) -> dict[str, tuple[str, Q]]:
    """The statuses by which the sessions of a study may be listed. A study with a colour check asks all its
    people whether they may be invited to another part."""
    return STATUSES | ({"invited": ("May be invited", INVITED)} if study.plates else {})


def listed_sessions(study: Study) -> QuerySet[Session, Session]:
    """The sessions of a study with everything that a row needs."""
    last_answer = Response.objects.filter(session=OuterRef("pk")).order_by("-position").values("position")[:1]
    last_trial = Trial.objects.filter(slot=OuterRef("slot")).order_by("-position").values("position")[:1]
    return (
        Session.objects.filter(study=study)
        .select_related("participant", "slot__condition", "submission__posting")
        .prefetch_related("payouts")
        .annotate(
            last_position=Subquery(last_answer),
            last_trial=Subquery(last_trial),
            took=ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField()),
        )
    )


def session_rows(study: Study, sessions: Sequence[Session], blind: bool = False) -> list[SessionRow]:
    """Sessions as rows, under the names that an export gives them."""
    name = namer(study)
    sealed_by = seals(study, set(ORIGIN_WORDS))
    concealed = concealing(study, sealed_by)
    return [
        _session_row(
            study,
            session,
            name(session.participant.pseudonym),
            blind or sealed_by[session.origin].sealed,
            session.origin in concealed,
        )
        for session in sessions
    ]


def _session_row(study: Study, session: Any, name: str, is_blind: bool, is_concealed: bool) -> SessionRow:
    took = session.took
    condition = session.slot.condition if session.slot and not is_blind else None
    return SessionRow(
        session=session,
        name=name,
        origin=session.simulated_kind.replace("_", " ") or ONE_OF[session.origin],
        status=status_word(session),
        tone="screened" if session.excluded else session.verdict or session.state,
        answered=_answer_count(session),
        planned=None if session.last_trial is None else session.last_trial + 1,
        minutes=None if took is None else took.total_seconds() / 60,
        rules=tuple(reason["rule"] for reason in session.reasons),
        condition=_label(study, condition.name) if condition else "",
        outside=_outside(session),
        pay=pay_of(list(session.payouts.all()), is_concealed),
    )


def _label(study: Study, name: str) -> str:
    """As the study's file calls the condition, else as figures do."""
    tables = study.definition.get("conditions", [])
    given = next((table.get("label") for table in tables if table["name"] == name), "")
    return given or condition_label(name)


def _outside(session: Session) -> Outside | None:
    submission: Submission | None = getattr(session, "submission", None)
    if submission is None:
        return None
    posting = submission.posting
    word = SUBMISSION_WORDS.get(submission.state, submission.state)
    where = title_of(posting.platform)
    return Outside(where, mode_word(posting).lower(), word, submission.raw_state, submission)


def paid_row(payout: Payout, is_concealed: bool) -> PaidRow:
    """A payout; with `is_concealed` a bonus is shown without its amount."""
    kind = KIND_WORDS[payout.kind]
    if is_concealed and payout.kind == Payout.Kind.BONUS:
        return PaidRow(payout, kind, "", CONCEALED)
    return PaidRow(payout, kind, amount_of(payout.cents, payout.currency), payout.reason)


def pay_of(payouts: Sequence[Payout], is_concealed: bool) -> Pay | None:
    """How much of what is owed was sent, and the state that most needs attention."""
    if not payouts:
        return None
    rows = tuple(paid_row(payout, is_concealed) for payout in payouts)
    if is_concealed:
        payouts = [row.payout for row in rows if row.amount] or payouts
    cents: Counter[str] = Counter()
    for payout in payouts:
        cents[payout.state] += payout.cents
    total, currency = cents.total(), payouts[0].currency
    present = {row.payout.state for row in rows}
    state = next(state for state in WORST_FIRST if state in present)
    if not any(row.amount for row in rows):
        return Pay("", state, rows)
    sent = cents["sent"]
    text = amount_of(total, currency)
    if sent and sent < total:
        text = f"{amount_of(sent)} of {text}"
    hidden = any(not row.amount for row in rows)
    return Pay(f"{text} + bonus" if hidden else text, state, rows)


def _answer_count(session: Any) -> int:
    if session.erased:
        return int(session.erased.get("responses", 0))
    return 0 if session.last_position is None else int(session.last_position) + 1


def status_word(session: Session) -> str:
    if session.excluded and session.verdict == "passed":
        return STATUSES["by_hand"][0]
    for key in ("passed", "screened", "incomplete", "withdrawn"):
        if session.verdict == key:
            return STATUSES[key][0]
    return STATE_WORDS.get(session.state) or STATUSES.get(session.state, (session.state.capitalize(),))[0]
