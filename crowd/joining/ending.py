"""How a session ended: worked out once, for the platform, for the person, and for the page's way out."""

from __future__ import annotations

from dataclasses import dataclass

from crowd.joining.admission import exit_of
from crowd.joining.pay import pay_of
from crowd.models import Submission
from crowd.money.ledger import SessionDue, owed_for, study_terms, terms_of
from crowd.money.policy import dues_of
from crowd.platforms.base import Arrival, Exit, Outcome
from experiments.gates.device import NAME as DEVICE
from experiments.models import Session
from experiments.selectors import definition_of
from experiments.wording.sentences import pay_words

FAILURE = "technical failure"
"""The reason sent by a page that gave up: not the person's fault."""
FAIR_CHECKS = "instructed_share_min"
"""The only rule whose checks may change the outcome that the platform is told."""
DONE: frozenset[Outcome] = frozenset({"complete", "failed_checks"})
"""Outcomes of a person who answered everything."""


@dataclass(frozen=True, slots=True)
class Ending:
    """`outcome`: as the platform is told. `owed`: by the ledger, None if the study pays nothing. `pay`: the
    same in sentences. `exit`: where the page leads."""

    outcome: Outcome
    owed: SessionDue | None
    pay: tuple[str, ...]
    exit: Exit


def ending_for(session: Session, submission: Submission | None, arrival: Arrival | None) -> Ending:
    """The ending of a closed session; one without a submission is a preview, and leads nowhere.

    1. The outcome, from the session's state, its verdict and the reasons stored with it.
    2. What the ledger owes: its rows, or what it will decide.
    3. The exit. If a submission is always paid, the platform pays it even if no researcher looks at it: so
       only a person to whom the policy owes something submits, and others return the place.
    4. The sentences about pay, which name the button if the exit needs one.
    """
    outcome = outcome_of(session)
    definition = definition_of(session.study)
    terms = terms_of(submission.posting) if submission else study_terms(definition)
    owed = owed_for(terms, session) if terms.pays else None
    way = Exit("none") if submission is None else exit_of(submission.posting, outcome, arrival)
    # By the policy alone: what is decided about the payout later moves no page that is loaded again.
    if way.method == "POST" and outcome not in DONE and not (owed and dues_of(terms, owed.end)):
        way = Exit("none")
    pay = pay_of(session, submission, owed)
    if way.method == "POST" and pay:
        pay = (*pay, pay_words(definition)["hand_in"])
    return Ending(outcome, owed, pay, way)


def outcome_of(session: Session) -> Outcome:
    """How a closed session ended, as the platform is told. Only a session with every answer stored is
    complete."""
    if session.state == Session.State.DECLINED:
        return "declined"
    if session.state == Session.State.TURNED_AWAY:
        return "turned_away"
    if session.state == Session.State.WITHDRAWN:
        return _withdrawal_of(session)
    if session.state != Session.State.FINISHED or session.verdict == "incomplete":
        return "withdrawn"
    if session.slot_id is None:
        return "screened"
    rules = {reason["rule"] for reason in session.reasons} if session.verdict == "screened" else set()
    return "failed_checks" if FAIR_CHECKS in rules else "complete"


def _withdrawal_of(session: Session) -> Outcome:
    if any(reason.get("evidence") == FAILURE for reason in session.reasons):
        return "failure"
    fits = list(session.gates.filter(kind=DEVICE).values_list("passed", flat=True))
    return "device" if fits and True not in fits else "withdrawn"
