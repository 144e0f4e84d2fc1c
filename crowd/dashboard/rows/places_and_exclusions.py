"""The state of a study now, in a fixed number of queries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q

from analysis.any_table.formats import condition_label
from experiments.gates.consent import NAME as CONSENT
from experiments.models import Gate, Rendering, Session, Study
from experiments.selectors import slot_counts
from stimuli.models import Stimulus

COUNTED = ("human", "simulated", "pilot", "model")
"""Origins that are counted, each by itself; a researcher's preview is not a session of a participant."""
UNPLACED = ("preview", "model")
"""Origins that never take a place, so that none of them loses one or is a person who came."""
ORIGIN_WORDS = {
    "human": "People",
    "simulated": "Simulated observers",
    "pilot": "Pilot",
    "preview": "Previews",
    "model": "Models",
}
LOST = ("incomplete", "withdrawn")


@dataclass(frozen=True, slots=True)
class Places:
    """The slots of one condition, and the sessions that lost theirs."""

    label: str
    role: str
    wanted: int
    passed: int
    in_progress: int
    free: int
    screened: int
    left: int


@dataclass(frozen=True, slots=True)
class Flow:
    """From arrival to analysis, for one origin."""

    origin: str
    at_gates: int
    arrived: int
    consented: int
    admitted: int
    claimed: int
    finished: int
    passed: int
    screened: int
    left_out: int

    @property
    def word(self) -> str:
        return ORIGIN_WORDS[self.origin]


STEPS = (
    ("Arrived", "arrived"),
    ("Consented", "consented"),
    ("Passed every gate", "admitted"),
    ("Got a place", "claimed"),
    ("Finished", "finished"),
    ("Kept by screening", "passed"),
)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """How many sessions one rule excluded, per origin."""

    rule: str
    timing: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """How far the pictures of a study are."""

    total: int
    done: int
    claimed: int
    failed: int
    error: str = ""

    @property
    def missing(self) -> int:
        return self.total - self.done

    @property
    def is_complete(self) -> bool:
        return self.done == self.total


def places_of(study: Study) -> list[Places]:
    """One row per condition (per arm, if a slot mixes conditions), in the order of the study."""
    conditions = list(study.conditions.order_by("ordinal"))
    named = {c["name"]: c.get("label") or "" for c in study.definition.get("conditions", [])}
    roles = {c.name: c.role for c in conditions}
    slots = slot_counts(study) or {
        c.name: {"wanted": c.slots, "passed": 0, "in_progress": 0, "free": c.slots} for c in conditions
    }
    lost = _slot_losses(study)
    return [
        Places(
            label=named.get(name) or condition_label(name),
            role=roles.get(name, ""),
            **counts,
            screened=lost[name, "screened"],
            left=sum(lost[name, verdict] for verdict in LOST),
        )
        for name, counts in slots.items()
    ]


def _slot_losses(study: Study) -> Counter[tuple[str, str]]:
    """(condition or arm, verdict) -> sessions that had a slot and lost it."""
    rows = (
        Session.objects.filter(study=study, slot__pilot=False, verdict__in=["screened", *LOST])
        .exclude(origin__in=UNPLACED)
        .values_list("slot__condition__name", "slot__arm", "verdict")
        .annotate(n=Count("id"))
        .order_by()
    )
    lost: Counter[tuple[str, str]] = Counter()
    for condition, arm, verdict, n in rows:
        lost[condition or arm, verdict] += n
    return lost


def flows_of(study: Study) -> list[Flow]:
    """One flow per origin that has come."""
    claimed = Q(claimed_at__isnull=False)
    ended_well = Q(verdict__in=["passed", "screened"])
    gate = Gate.objects.filter(session=OuterRef("pk"))
    consented = Exists(gate.filter(kind=CONSENT).exclude(passed=False))
    rows = (
        Session.objects.filter(study=study, origin__in=COUNTED)
        .values("origin")
        .annotate(
            arrived=Count("id"),
            at_gates=Count("id", filter=Q(state="gates")),
            consented=Count("id", filter=Q(consented)),
            admitted=Count("id", filter=claimed | Q(state="turned_away")),
            claimed=Count("id", filter=claimed),
            finished=Count("id", filter=claimed & ended_well),
            passed=Count("id", filter=Q(verdict="passed")),
            screened=Count("id", filter=Q(verdict="screened")),
            left_out=Count("id", filter=Q(verdict="passed") & ~Q(excluded={})),
        )
        .order_by()
    )
    by_origin = {row["origin"]: Flow(**row) for row in rows}
    return [by_origin[origin] for origin in COUNTED if origin in by_origin]


def steps_of(flows: list[Flow]) -> list[tuple[str, list[int]]]:
    """The lines of the flow: a number per origin."""
    steps = [(word, [getattr(flow, name) for flow in flows]) for word, name in STEPS]
    if any(flow.left_out for flow in flows):
        steps.append(("Not left out by hand", [flow.passed - flow.left_out for flow in flows]))
    return steps


def by_hand_of(flows: list[Flow]) -> list[Exclusion]:
    """The sessions left out by hand, as one more line; no line if there are none. Never by condition."""
    counts = tuple(flow.left_out for flow in flows)
    return [Exclusion("excluded_by_hand", "after", counts)] if any(counts) else []


def exclusions_of(study: Study, origins: list[str]) -> list[Exclusion]:
    """Every rule that excluded a session; a session can break several."""
    rows = Session.objects.filter(study=study, origin__in=origins).exclude(verdict__in=["", "passed"])
    by_rule: dict[tuple[str, str], Counter[str]] = {}
    for origin, reasons in rows.values_list("origin", "reasons").iterator(2000):
        for reason in reasons:
            by_rule.setdefault((reason["rule"], reason.get("timing") or ""), Counter())[origin] += 1
    return [
        Exclusion(rule, timing, tuple(counts[origin] for origin in origins))
        for (rule, timing), counts in sorted(by_rule.items(), key=lambda pair: (-pair[1].total(), pair[0]))
    ]


def drawing_of(study: Study) -> Drawing:
    """The state of rendering, and the first error if there is one."""
    rows = (
        Rendering.objects.filter(item__study=study)
        .values_list("stimulus__state")
        .annotate(n=Count("stimulus", distinct=True))
        .order_by()
    )
    states = dict(rows)
    error = ""
    if states.get("failed"):
        failed = Stimulus.objects.filter(renderings__item__study=study, state="failed")
        error = failed.order_by("pk").values_list("error", flat=True).first() or ""
    return Drawing(
        total=sum(states.values()),
        done=states.get("done", 0),
        claimed=states.get("claimed", 0),
        failed=states.get("failed", 0),
        error=error,
    )


def origins_of(study: Study) -> list[str]:
    """The origins that have sessions, people first; previews only if no other origin is asked for."""
    present = set(Session.objects.filter(study=study).values_list("origin", flat=True).distinct().order_by())
    return [origin for origin in COUNTED if origin in present]
