"""What the policy owes for the sittings that ended. What was sent of it is in `ledger`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Case, CharField, Count, Exists, OuterRef, Sum, Value, When

from crowd.ground.amounts import amount_of, percent
from crowd.models import Payout, Posting
from crowd.money.endings import CONSENTED, ENDINGS, ended
from crowd.money.ledger import promised
from crowd.money.policy import Ending, SessionEnd, Terms, bonus_cents, owed
from experiments.models import Session, Study
from experiments.selectors import definition_of

PAID = ("human", "pilot")


@dataclass(frozen=True, slots=True)
class EndingLine:
    """One way to end a sitting, how many people ended it so, and what they are owed together."""

    ending: str
    rule: str
    people: int
    cents: int
    currency: str

    @property
    def amount(self) -> str:
        return amount_of(self.cents, self.currency)


@dataclass(frozen=True, slots=True)
class Money:
    """A study's money by the policy.

    `cap_cents` is what the postings may spend, or the reward of every place if there is no posting. Only a
    posting's cap includes platform fees; the other sums do not.
    """

    currency: str
    reward_cents: int
    cap_cents: int
    places: int
    in_progress: int
    lines: tuple[EndingLine, ...]
    simulated: tuple[EndingLine, ...]

    @property
    def owed_cents(self) -> int:
        return sum(line.cents for line in self.lines)

    @property
    def owed(self) -> str:
        return amount_of(self.owed_cents, self.currency)

    @property
    def cap(self) -> str:
        return amount_of(self.cap_cents, self.currency)

    @property
    def reward(self) -> str:
        return amount_of(self.reward_cents, self.currency)

    @property
    def reserved(self) -> str:
        return amount_of(self.reward_cents * self.in_progress, self.currency)

    @property
    def would_have(self) -> str:
        """What the simulated sittings would have cost if people had done them."""
        return amount_of(sum(line.cents for line in self.simulated), self.currency)

    @property
    def simulated_people(self) -> int:
        return sum(line.people for line in self.simulated)

    @property
    def people(self) -> int:
        return sum(line.people for line in self.lines)


def money_of(study: Study, places: int, in_progress: int, *, counts_matches: bool = True) -> Money:
    """What is owed so far. The caller counts `places` and `in_progress`, which it also shows.

    Without `counts_matches`, a bonus that the ledger has not decided counts as the largest possible bonus:
    to read every answer takes seconds in a large study.
    """
    definition = definition_of(study)
    reward, terms = definition.reward, promised(definition)
    caps = Posting.objects.filter(study=study, mode=Posting.Mode.LIVE).aggregate(n=Sum("cap_cents"))["n"]
    counts = _counts(study)
    return Money(
        currency=reward.currency,
        reward_cents=reward.amount_cents,
        cap_cents=caps or reward.amount_cents * places,
        places=places,
        in_progress=in_progress,
        lines=_lines(study, terms, reward.currency, counts, PAID, counts_matches),
        simulated=_lines(study, terms, reward.currency, counts, ("simulated",), counts_matches),
    )


Counts = dict[tuple[str, Ending, bool], int]


def _counts(study: Study) -> Counts:
    """(origin, ending, whether they consented) -> number of people."""
    ending = Case(
        *(When(condition, then=Value(name)) for name, condition in ENDINGS.items()),
        default=Value(""),
        output_field=CharField(),
    )
    rows = Session.objects.filter(study=study).annotate(ending=ending, consented=CONSENTED)
    counted = rows.exclude(ending="").values_list("origin", "ending", "consented").annotate(n=Count("pk"))
    return {(origin, name, bool(consented)): n for origin, name, consented, n in counted.order_by()}


def _lines(
    study: Study, terms: Terms, currency: str, counts: Counts, origins: tuple[str, ...], counts_matches: bool
) -> tuple[EndingLine, ...]:
    def line(words: str, rule: str, ending: Ending) -> EndingLine:
        people = {agreed: sum(counts.get((origin, ending, agreed), 0) for origin in origins)
                  for agreed in (True, False)}  # fmt: skip
        each = sum(due.cents for due in owed(terms, SessionEnd(ending)))
        return EndingLine(words, rule, sum(people.values()), people[True] * each, currency)

    withdrawn = Session.objects.filter(ENDINGS["withdrawn"], study=study, origin__in=origins)
    ends = [session.end for session in ended(study, withdrawn, matches=False)]
    amounts = [_cents(terms, end) for end in ends if not end.cannot_see]
    unseen = [_cents(terms, end) for end in ends if end.cannot_see]
    how = {"pro_rata": "for the trials they answered", "full": "the full reward", "none": "nothing"}
    bonus = _bonus(study, terms, origins, counts_matches) if terms.bonus_per_match_cents else None
    return (
        line("Finished, kept or excluded", "the full reward", "complete"),
        *([EndingLine("Bonus for matches", f"{terms.bonus_per_match_cents} cents each, at most "
                f"{terms.bonus_max_cents}", 0, bonus, currency)] if bonus is not None else []),
        line("Screened out before a place", percent(terms.screened_share), "screened"),
        line("Turned away, all places taken", percent(terms.turned_away_share), "turned_away"),
        EndingLine("Withdrew", how[terms.withdrawn], len(amounts), sum(amounts), currency),
        *([EndingLine("Could not see the pictures, and said so in time", "the full reward", len(unseen),
                sum(unseen), currency)] if unseen else []),
        line("Left without finishing", "nothing", "left"),
        line("Did not consent", "nothing", "declined"),
    )  # fmt: skip


def _cents(terms: Terms, end: SessionEnd) -> int:
    return sum(due.cents for due in owed(terms, end))


def _bonus(study: Study, terms: Terms, origins: Iterable[str], counts_matches: bool) -> int:
    """The bonuses of all people who finished: from the ledger if they are decided there, else counted now."""
    complete = Session.objects.filter(ENDINGS["complete"], study=study, origin__in=list(origins))
    base = Payout.objects.filter(session=OuterRef("pk"), kind=Payout.Kind.BASE)
    decided = complete.filter(Exists(base))
    rows = Payout.objects.filter(session__in=decided, kind__in=[Payout.Kind.BASE, Payout.Kind.BONUS])
    in_ledger = (rows.aggregate(n=Sum("cents"))["n"] or 0) - decided.count() * terms.reward_cents
    if not counts_matches:
        return in_ledger + complete.filter(~Exists(base)).count() * bonus_cents(terms, None)
    undecided = ended(study, complete.filter(~Exists(base)), matches=True)
    return in_ledger + sum(_cents(terms, session.end) - terms.reward_cents for session in undecided)
