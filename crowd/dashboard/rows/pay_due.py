"""What the policy owes for the sessions that ended. What was sent of it is in `ledger`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Sum

from crowd.ground.amounts import percent
from crowd.models import Payout, Posting
from crowd.money.ledger import study_terms
from crowd.money.policy import Ending, SessionEnd, Terms, bonus_cents, dues_of
from crowd.money.policy_endings import CONSENTED, ENDING, ENDINGS, endings_of
from experiments.models import Session, Study
from experiments.selectors import definition_of

PAID = ("human", "pilot")


@dataclass(frozen=True, slots=True)
class EndingLine:
    """One way to end a session, how many people ended it so, and what they are owed together."""

    ending: str
    rule: str
    people: int
    cents: int


@dataclass(frozen=True, slots=True)
class Money:
    """A study's money by the policy.

    `cap_cents` is what the postings may spend, or the reward of every place if there is no posting. Only a
    posting's cap includes platform fees; the other sums do not. `simulated` is what the simulated sessions
    would have cost if people had done them.
    """

    currency: str
    reward_cents: int
    cap_cents: int
    reserved_cents: int
    places: int
    in_progress: int
    lines: tuple[EndingLine, ...]
    simulated: EndingLine

    @property
    def owed_cents(self) -> int:
        return sum(line.cents for line in self.lines)

    @property
    def people(self) -> int:
        return sum(line.people for line in self.lines)


def money_of(study: Study, places: int, in_progress: int) -> Money:
    """What is owed so far. The caller counts `places` and `in_progress`, which it also shows.

    A bonus that the ledger has not decided counts as the largest possible bonus: to read every answer takes
    seconds in a large study.
    """
    definition = definition_of(study)
    reward, terms = definition.reward, study_terms(definition)
    caps = Posting.objects.filter(study=study, mode=Posting.Mode.LIVE).aggregate(n=Sum("cap_cents"))["n"]
    counts = _counts(study)
    simulated = _lines(study, terms, counts, ("simulated",))
    return Money(
        currency=reward.currency,
        reward_cents=reward.amount_cents,
        cap_cents=caps or reward.amount_cents * places,
        reserved_cents=reward.amount_cents * in_progress,
        places=places,
        in_progress=in_progress,
        lines=_lines(study, terms, counts, PAID),
        simulated=EndingLine(
            "", "", sum(line.people for line in simulated), sum(line.cents for line in simulated)
        ),
    )


Counts = dict[tuple[str, Ending, bool], int]


def _counts(study: Study) -> Counts:
    """(origin, ending, whether they consented) -> number of people."""
    rows = Session.objects.filter(study=study).annotate(ending=ENDING, consented=CONSENTED)
    counted = rows.exclude(ending="").values_list("origin", "ending", "consented").annotate(n=Count("pk"))
    return {(origin, name, bool(consented)): n for origin, name, consented, n in counted.order_by()}


def _lines(study: Study, terms: Terms, counts: Counts, origins: tuple[str, ...]) -> tuple[EndingLine, ...]:
    def line(words: str, rule: str, ending: Ending) -> EndingLine:
        people = {agreed: sum(counts.get((origin, ending, agreed), 0) for origin in origins)
                  for agreed in (True, False)}  # fmt: skip
        each = _cents(terms, SessionEnd(ending))
        return EndingLine(words, rule, sum(people.values()), people[True] * each)

    withdrawn = Session.objects.filter(ENDINGS["withdrawn"], study=study, origin__in=origins)
    ends = [session.end for session in endings_of(study, withdrawn, matches=False)]
    amounts = [_cents(terms, end) for end in ends if not end.cannot_see]
    unseen = [_cents(terms, end) for end in ends if end.cannot_see]
    how = {"pro_rata": "for the trials they answered", "full": "the full reward", "none": "nothing"}
    bonus = _bonus(study, terms, origins) if terms.bonus_per_match_cents else None
    return (
        line("Finished, kept or excluded", "the full reward", "complete"),
        *([EndingLine("Bonus for matches", f"{terms.bonus_per_match_cents} cents each, at most "
                f"{terms.bonus_max_cents}", 0, bonus)] if bonus is not None else []),
        line("Screened out before a place", percent(terms.screened_share), "screened"),
        line("Turned away, all places taken", percent(terms.turned_away_share), "turned_away"),
        EndingLine("Withdrew", how[terms.withdrawn], len(amounts), sum(amounts)),
        *([EndingLine("Could not see the pictures, and said so in time", "the full reward", len(unseen),
                sum(unseen))] if unseen else []),
        line("Left without finishing", "nothing", "left"),
        line("Did not consent", "nothing", "declined"),
    )  # fmt: skip


def _cents(terms: Terms, end: SessionEnd) -> int:
    return sum(due.cents for due in dues_of(terms, end))


def _bonus(study: Study, terms: Terms, origins: Iterable[str]) -> int:
    """The bonuses of all people who finished: from the ledger if they are decided there, else at most."""
    complete = Session.objects.filter(ENDINGS["complete"], study=study, origin__in=list(origins))
    base = Payout.objects.filter(session=OuterRef("pk"), kind=Payout.Kind.BASE)
    decided = complete.filter(Exists(base))
    rows = Payout.objects.filter(session__in=decided, kind__in=[Payout.Kind.BASE, Payout.Kind.BONUS])
    in_ledger = (rows.aggregate(n=Sum("cents"))["n"] or 0) - decided.count() * terms.reward_cents
    return in_ledger + complete.filter(~Exists(base)).count() * bonus_cents(terms, None)
