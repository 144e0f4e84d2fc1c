"""What the policy owes, from the sittings as they ended. Nothing is sent from here."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, OuterRef, Q, Subquery

from experiments.definition import StudyDefinition
from experiments.models import Response, Session, Study, Trial
from experiments.selectors import definition_of

PAID = ("human", "pilot")
ENDINGS = ("complete", "screened", "turned_away", "left", "declined")


@dataclass(frozen=True, slots=True)
class Line:
    """One way to end, how many people did, and what they are owed together."""

    ending: str
    rule: str
    people: int
    cents: int
    currency: str

    @property
    def amount(self) -> str:
        return money_text(self.cents, self.currency)


@dataclass(frozen=True, slots=True)
class Money:
    """A study's money by the policy. `cap_cents` is the reward of every place; fees are not in it."""

    currency: str
    reward_cents: int
    places: int
    in_progress: int
    lines: tuple[Line, ...]
    simulated: tuple[Line, ...]

    @property
    def owed_cents(self) -> int:
        return sum(line.cents for line in self.lines)

    @property
    def cap_cents(self) -> int:
        return self.reward_cents * self.places

    @property
    def owed(self) -> str:
        return money_text(self.owed_cents, self.currency)

    @property
    def cap(self) -> str:
        return money_text(self.cap_cents, self.currency)

    @property
    def reward(self) -> str:
        return money_text(self.reward_cents, self.currency)

    @property
    def reserved(self) -> str:
        return money_text(self.reward_cents * self.in_progress, self.currency)

    @property
    def would_have(self) -> str:
        """What the simulated sittings would have cost, had they been people."""
        return money_text(sum(line.cents for line in self.simulated), self.currency)

    @property
    def simulated_people(self) -> int:
        return sum(line.people for line in self.simulated)

    @property
    def people(self) -> int:
        return sum(line.people for line in self.lines)


def money_text(cents: int, currency: str) -> str:
    return f"{cents // 100:,}.{cents % 100:02d} {currency}"


def money_of(study: Study, places: int, in_progress: int) -> Money:
    """What is owed so far; `places` and `in_progress` are counted where they are shown."""
    definition = definition_of(study)
    counts = _counts(study)
    withdrawn = _withdrawn(study, definition)
    reward = definition.reward
    return Money(
        currency=reward.currency,
        reward_cents=reward.amount_cents,
        places=places,
        in_progress=in_progress,
        lines=_lines(definition, counts, withdrawn, PAID),
        simulated=_lines(definition, counts, withdrawn, ("simulated",)),
    )


def _counts(study: Study) -> dict[str, dict[str, int]]:
    # Whoever had the answers removed after finishing (withdrawn) is owed as if they had stayed.
    finished = Q(state="finished")
    rows = (
        Session.objects.filter(study=study)
        .values("origin")
        .annotate(
            complete=Count(
                "id", filter=finished & Q(slot__isnull=False, verdict__in=["passed", "screened", "withdrawn"])
            ),
            screened=Count(
                "id", filter=finished & Q(slot__isnull=True, verdict__in=["screened", "withdrawn"])
            ),
            turned_away=Count("id", filter=Q(state="turned_away")),
            left=Count("id", filter=Q(verdict="incomplete")),
            declined=Count("id", filter=Q(state="declined")),
        )
        .order_by()
    )
    return {
        origin: dict(zip(ENDINGS, counts, strict=True))
        for origin, *counts in rows.values_list("origin", *ENDINGS)
    }


def _withdrawn(study: Study, definition: StudyDefinition) -> dict[str, list[int]]:
    """Per origin, the cents of each person who withdrew: pro rata of the trials that were answered."""
    last_answer = Response.objects.filter(session=OuterRef("pk")).order_by("-position").values("position")[:1]
    last_trial = Trial.objects.filter(slot=OuterRef("slot")).order_by("-position").values("position")[:1]
    rows = Session.objects.filter(study=study, state="withdrawn").annotate(
        answered=Subquery(last_answer), planned=Subquery(last_trial)
    )
    found: dict[str, list[int]] = {}
    for origin, erased, answered, planned in rows.values_list("origin", "erased", "answered", "planned"):
        done = int(erased.get("responses", 0)) if erased else (0 if answered is None else answered + 1)
        share = done / (planned + 1) if planned is not None else 0.0
        found.setdefault(origin, []).append(_withdrawn_cents(definition, share))
    return found


def _withdrawn_cents(definition: StudyDefinition, share: float) -> int:
    shares = {"pro_rata": share, "full": 1.0, "none": 0.0}
    return share_of(definition.reward.amount_cents, shares[definition.policy.withdrawn])


def share_of(cents: int, share: float) -> int:
    """A share of a reward in whole cents, halves up."""
    return int(cents * share + 0.5)


def _lines(
    definition: StudyDefinition,
    counts: dict[str, dict[str, int]],
    withdrawn: dict[str, list[int]],
    origins: tuple[str, ...],
) -> tuple[Line, ...]:
    reward, policy = definition.reward, definition.policy

    def people(ending: str) -> int:
        return sum(counts[origin][ending] for origin in origins if origin in counts)

    def line(ending: str, rule: str, key: str, share: float) -> Line:
        n = people(key)
        return Line(ending, rule, n, n * share_of(reward.amount_cents, share), reward.currency)

    left = [cents for origin in origins for cents in withdrawn.get(origin, [])]
    how = {"pro_rata": "for the trials they answered", "full": "the full reward", "none": "nothing"}
    return (
        line("Finished, kept or excluded", "the full reward", "complete", 1.0),
        line("Screened out before a place", _percent(policy.screened_share), "screened",
             policy.screened_share),
        line("Turned away, all places taken", _percent(policy.turned_away_share), "turned_away",
             policy.turned_away_share),
        Line("Withdrew", how[policy.withdrawn], len(left), sum(left), reward.currency),
        line("Left without finishing", "nothing", "left", 0.0),
        line("Did not consent", "nothing", "declined", 0.0),
    )  # fmt: skip


def _percent(share: float) -> str:
    return "the full reward" if share == 1 else "nothing" if share == 0 else f"{share:.0%} of the reward"
