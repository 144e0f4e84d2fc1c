"""Decides what each person is due; no other module does. Pure: from numbers to amounts with their reasons.

Amounts are whole cents, halves rounded up. What a person is due never depends on the quality of the data: a
person who consented and finished gets the reward, excluded or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from crowd.ground.amounts import percent, share_of
from crowd.platforms.base import Kind

Ending = Literal["complete", "screened", "turned_away", "withdrawn", "left", "declined"]
Withdrawn = Literal["pro_rata", "full", "none"]
WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a study promises, and how its platform splits it.

    `base_cents` is what the platform itself pays for a submission that is approved; the rest of the reward
    follows as a bonus. `base_for_all`: the platform pays its base for every submission that it approves,
    however the session ended (Mechanical Turk), so a smaller amount cannot be paid there. `person_cap_cents`
    limits one person over all sessions.
    """

    reward_cents: int
    base_cents: int
    screened_share: float = 1.0
    turned_away_share: float = 0.25
    withdrawn: Withdrawn = "pro_rata"
    bonus_per_match_cents: int = 0
    bonus_max_cents: int = 0
    person_cap_cents: int | None = None
    base_for_all: bool = False

    @property
    def pays(self) -> bool:
        """Whether the study promises any money."""
        return bool(self.reward_cents or self.bonus_max_cents)


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How one session ended. `matches` is None if the answers were removed: removing them must not cost pay,
    so the whole bonus is due. `earlier_cents` is what the person is due for other sessions. `cannot_see`: for
    the first time and before any scored trial, the person left because the pictures cannot be seen."""

    ending: Ending
    consented: bool = True
    answered: int = 0
    planned: int = 0
    matches: int | None = 0
    earlier_cents: int = 0
    cannot_see: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """One amount with the sentence that explains it."""

    kind: Kind
    cents: int
    reason: str


def bonus_cents(terms: Terms, matches: int | None) -> int:
    """The bonus for answers that match the model, up to its limit."""
    if matches is None:
        return terms.bonus_max_cents
    return min(matches * terms.bonus_per_match_cents, terms.bonus_max_cents)


def share_due(terms: Terms, end: SessionEnd) -> Fraction:
    """The share of the reward that is due for a session (0-1)."""
    if not end.consented:
        return Fraction(0)
    if end.ending == "complete":
        return WHOLE
    if end.ending == "screened":
        return Fraction(str(terms.screened_share))
    if end.ending == "turned_away":
        return Fraction(str(terms.turned_away_share))
    if end.ending == "withdrawn":
        return _withdrawn_share(terms, end)
    return Fraction(0)


def _withdrawn_share(terms: Terms, end: SessionEnd) -> Fraction:
    if terms.withdrawn == "full" or end.cannot_see:
        return WHOLE
    if terms.withdrawn == "none" or end.planned <= 0:
        return Fraction(0)
    return min(WHOLE, Fraction(end.answered, end.planned))


def dues_of(terms: Terms, end: SessionEnd) -> tuple[Due, ...]:
    """What is due for one session, kind by kind; amounts of 0 are left out."""
    share = share_due(terms, end)
    cents = share_of(terms.reward_cents, share)
    if end.ending == "complete" and share:
        return _complete(terms, end)
    if cents <= 0:
        return ()
    kind: Kind = "screen_out" if end.ending == "screened" else "compensation"
    why = _why(terms, end, share)
    if not terms.base_for_all:
        return (Due(kind, cents, f"{why}."),)
    dues = [Due("base", terms.base_cents, f"{why}; the platform pays its base for all submitted work.")]
    if cents > terms.base_cents:
        dues.append(Due(kind, cents - terms.base_cents, f"{why}, less the base."))
    return tuple(due for due in dues if due.cents > 0)


def _complete(terms: Terms, end: SessionEnd) -> tuple[Due, ...]:
    bonus = bonus_cents(terms, end.matches)
    cut = ""
    if terms.person_cap_cents is not None:
        # The reward itself is never cut: the platform pays it whole or not at all.
        room = max(0, terms.person_cap_cents - end.earlier_cents - terms.reward_cents)
        cut = ", up to the most that one person may get" if bonus > room else ""
        bonus = min(bonus, room)
    # Approving may pay more than was offered: a reward that was raised on the platform, and accepted.
    rest = max(0, terms.reward_cents - terms.base_cents)
    parts = []
    if rest > 0:
        parts.append(f"The rest of the reward ({rest})")
    if bonus > 0:
        counted = "the whole bonus, for the answers were removed" if end.matches is None else (
            f"{end.matches} answers that match the model, {terms.bonus_per_match_cents} each, "
            f"at most {terms.bonus_max_cents}"
        )  # fmt: skip
        parts.append(f"{counted[:1].upper()}{counted[1:]}{cut}")
    dues = (
        Due("base", terms.base_cents, "Consented and finished."),
        Due("bonus", rest + bonus, "; ".join(parts) + "."),
    )
    return tuple(due for due in dues if due.cents > 0)


def _why(terms: Terms, end: SessionEnd, share: Fraction) -> str:
    if end.ending == "screened":
        return f"Screened out before a place: {percent(share)}"
    if end.ending == "turned_away":
        return f"Consented, then turned away, for every place was taken: {percent(share)}"
    if end.cannot_see:
        return f"Cannot see the pictures, and said so before a scored trial: {percent(share)}"
    if terms.withdrawn == "pro_rata":
        return f"Withdrew after {end.answered} of {end.planned} trials: that share of the reward"
    return f"Withdrew: {percent(share)}"
