"""What a person is paid, in words: the ledger's own amounts, how they are paid, and only what is certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from crowd.models import Posting, Submission
from crowd.money.ledger import SessionDue, owed_for, study_terms, terms_of
from crowd.money.policy import SessionEnd, Terms, bonus_cents, dues_of, share_due
from crowd.money.policy_endings import CONSENTED, asked_of, may_say_it
from crowd.platforms import has_service, traits_of
from crowd.recruiting.arrival_confirmation import is_told_at_join
from experiments.definition.study import StudyDefinition
from experiments.models import Session
from experiments.selectors import cards_of, definition_of, next_position
from experiments.sessions.lifecycle import CANNOT_SEE
from experiments.wording.sentences import money, pay_words


@dataclass(frozen=True, slots=True)
class _Pay:
    """What the sentences are made of. `posting` is None for a preview, which is not paid."""

    definition: StudyDefinition
    terms: Terms
    posting: Posting | None
    owed: SessionDue
    asked: int
    is_listed: bool

    @property
    def words(self) -> Mapping[str, str]:
        return pay_words(self.definition)

    def money(self, cents: int) -> str:
        return money(cents, self.definition)


def pay_of(session: Session, submission: Submission | None, owed: SessionDue | None) -> tuple[str, ...]:
    """Sentences about what is owed for a session that has ended; none if the study pays nothing."""
    return () if owed is None else _told(session, submission, _terms(session, submission), owed)


def pay_if_left(session: Session, submission: Submission | None, reason: str = "") -> tuple[str, ...]:
    """The same for a session that goes on, if the person left at this moment for this reason."""
    terms = _terms(session, submission)
    if not terms.pays:
        return ()
    end = SessionEnd(
        "withdrawn",
        consented=Session.objects.filter(CONSENTED, pk=session.pk).exists(),
        answered=next_position(session),
        planned=len(cards_of(session.slot, session.study)) if session.slot else 0,
        cannot_see=reason == CANNOT_SEE and may_say_it(session),
    )
    owed = owed_for(terms, session) or SessionDue(end, dues_of(terms, end))
    return _told(session, submission, terms, owed)


def _terms(session: Session, submission: Submission | None) -> Terms:
    return study_terms(definition_of(session.study)) if submission is None else terms_of(submission.posting)


def _told(session: Session, submission: Submission | None, terms: Terms, owed: SessionDue) -> tuple[str, ...]:
    posting, definition = submission.posting if submission else None, definition_of(session.study)
    return _sentences(_Pay(definition, terms, posting, owed, asked_of(session), _is_listed(session, posting)))


def _is_listed(session: Session, posting: Posting | None) -> bool:
    """Whether nothing speaks against this person: a platform that tells its people may not have listed them
    yet."""
    return session.arrival != Session.Arrival.UNVERIFIED or posting is None or not is_told_at_join(posting)


def _sentences(pay: _Pay) -> tuple[str, ...]:
    if pay.owed.is_held:
        held = pay.words["held"].format(contact=pay.definition.ethics.contact)
        return (*_amount(pay), *_way(pay), held) if pay.owed.cents else (held,)
    if not pay.owed.cents:
        return (_nothing(pay),)
    return (*_amount(pay), *_way(pay))


def _nothing(pay: _Pay) -> str:
    end = pay.owed.end
    if not end.consented or end.ending == "declined":
        return pay.words["nothing_begun"]
    if end.ending == "withdrawn" and pay.terms.withdrawn == "pro_rata" and not end.answered:
        return pay.words["nothing_yet"]
    is_by_rule = end.ending == "left" or (end.ending == "withdrawn" and pay.terms.withdrawn == "none")
    return pay.words["nothing_left" if is_by_rule else "nothing"]


def _amount(pay: _Pay) -> tuple[str, ...]:
    """How much, and by which rule."""
    words, terms, told = pay.words, pay.terms, pay.owed
    end, amount = told.end, pay.money(told.cents)
    share = share_due(terms, end)
    if told.is_held:
        return (words["amount"].format(amount=amount),)
    if end.ending == "complete":
        return _complete_amount(pay)
    if share == 1 and told.cents == terms.reward_cents:
        return (words["whole"].format(amount=amount),)
    plain_cents = sum(due.cents for due in dues_of(replace(terms, base_for_all=False), end))
    if told.cents == terms.base_cents > plain_cents:
        return (words["least"].format(amount=amount),)
    if end.ending == "withdrawn" and told.cents == plain_cents:
        parts = {"answered": end.answered, "planned": end.planned}
        return (words["share"].format(amount=amount, reward=pay.money(terms.reward_cents), **parts),)
    return (words["amount"].format(amount=amount),)


def _complete_amount(pay: _Pay) -> tuple[str, ...]:
    words, terms, told = pay.words, pay.terms, pay.owed
    amount, reward = pay.money(told.cents), pay.money(terms.reward_cents)
    if not terms.bonus_max_cents:
        return (words["complete"].format(amount=amount),)
    paid_cents = told.cents - terms.reward_cents
    parts = {"amount": amount, "reward": reward, "bonus": pay.money(paid_cents)}
    total = words["complete_bonus" if paid_cents else "complete"].format_map(parts)
    return (total, *_arithmetic(pay, paid_cents))


def _arithmetic(pay: _Pay, paid_cents: int) -> tuple[str, ...]:
    """How the bonus was counted. None of a bonus to which a named person added something."""
    words, terms, matches = pay.words, pay.terms, pay.owed.end.matches
    due_cents = bonus_cents(terms, matches)
    if paid_cents > due_cents:
        return ()
    if matches is None:
        return (words["bonus_whole"],)
    each_cents = terms.bonus_per_match_cents
    limit = "person_most" if paid_cents < due_cents else "most" if due_cents < matches * each_cents else ""
    said = words["matched"].format(
        matches=matches,
        asked=pay.asked,
        each=pay.money(each_cents),
        limit=words[limit].format(most=pay.money(terms.bonus_max_cents)) if limit else "",
        bonus=pay.money(paid_cents),
    )
    return (said,)


def _way(pay: _Pay) -> tuple[str, ...]:
    """How the amount reaches the person, by the traits of the platform."""
    words, posting = pay.words, pay.posting
    if posting is None:
        return ()
    traits = traits_of(posting.platform)
    contact = pay.definition.ethics.contact
    if not has_service(posting.platform):
        return (words["by_hand" if traits.is_ours else "by_sender"].format(contact=contact),)
    base_cents = sum(due.cents for due in pay.owed.dues if due.kind == "base")
    rest_cents = pay.owed.cents - base_cents
    names = {"platform": traits.title, "base": pay.money(base_cents), "rest": pay.money(rest_cents)}
    if base_cents:
        way = "approved_and_bonus" if rest_cents else "approved"
    else:
        way = "returned" if traits.pays_returned else "through"
    ways = (way,) if pay.is_listed else (way, "if_listed")
    return tuple(words[each].format_map(names) for each in ways)
