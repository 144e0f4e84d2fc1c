"""From arrival to analysis: how many people were lost at which step, by which rule, and whether conditions
differ. A study whose slots mix conditions is counted by lane.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis.any_table.formats import NONE, finding, p_sentence, p_value, percent
from analysis.any_table.result_tables import Table
from analysis.facts import SlotFacts, StudyFacts
from analysis.frames import by_hand, is_unverified
from analysis.reports.base import Figure, Headline, Section
from analysis.reports.drawing.figures import Look
from analysis.reports.parts.consort_diagram import consort_content, consort_figure
from analysis.stats.intervals_and_checks import json_of
from analysis.stats.shares.proportions import RateComparison, compare_rates
from experiments.paradigms.screening import rule_word

STEP_WORDS = {
    "arrived": "Arrived",
    "consented": "Consented",
    "admitted": "Passed every gate",
    "claimed": "Got a place in a condition",
    "finished": "Finished",
    "passed": "Kept by screening",
    "analysed": "Analysed: not left out by hand",
}
BY_HAND = "excluded_by_hand"
"""Name of a decision by hand in the list of rules."""
SETTLED = ("passed", "screened", "incomplete", "withdrawn")
COLLIDER_NOTE = (
    "Rules that act after assignment may depend on the condition; excluding by them can bias the comparison."
)


def flow_section(people: pd.DataFrame, facts: StudyFacts, *, sealed: bool = False, note: str = "") -> Section:
    """The n-flow, the losses per condition with a test for differential exclusion, and the rules one by
    one. While results are sealed, those left out by hand are counted without their conditions, because the
    person who decides must not learn them; so nothing is drawn then. `note` is what the
    reporter adds to the warning about exclusion.

    People whom their platform did not confirm are no data: they are told apart and counted in no step.
    """
    origin = str(people["origin"].iloc[0]) if len(people) else "human"
    unverified = int(is_unverified(people).sum())
    people = people[~is_unverified(people)]
    counts = _step_counts(people)
    claimed = people["claimed_at"].notna()
    left_out = people[(people["status"] == "passed") & by_hand(people)]
    if len(left_out):
        counts["analysed"] = counts["passed"] - len(left_out)
    by_group = _by_group(people[claimed], facts)
    exclusions = _exclusions(people, facts) + _by_hand(people, left_out, facts, sealed)
    loss = compare_rates([g["lost"] for g in by_group], [g["settled"] for g in by_group], seed=facts.seed)
    content: dict[str, Any] = {
        "steps": [{"step": step, "count": count} for step, count in counts.items()],
        **counts,
        BY_HAND: len(left_out),
        "unverified": unverified,
        "unconfirmable": _unconfirmable(people),
        "status": {str(k): int(v) for k, v in people["status"].value_counts().sort_index().items()},
        "surplus": int(people["surplus"].fillna(False).sum()),
        "by_condition": by_group,
        "differential_loss": _test_json(loss),
        "exclusions": exclusions,
        "consort": None,
    }
    figures: tuple[Figure, ...] = ()
    if not len(left_out) or not sealed:
        places = {group.key: members(people, group) for group in facts.slots}
        content["consort"] = consort_content(people, facts, places)
        figures = (consort_figure(content["consort"], Look.of(facts, origin)),)
    tables = (
        _steps_table(counts, facts),
        _group_table(by_group, facts, loss),
        _exclusion_table(exclusions, facts),
    )
    told = [f"{COLLIDER_NOTE} {note}".rstrip(), *_arrivals(people, unverified)]
    return Section("flow", "Flow of participants", content, tuple(told), tables, figures)


def _unconfirmable(people: pd.DataFrame) -> dict[str, int]:
    """People who came to a place that lists none: how many, and how many of them screening kept."""
    there = people[people["arrival"] == "unconfirmable"]
    return {"arrived": len(there), "passed": int((there["status"] == "passed").sum())}


def _arrivals(people: pd.DataFrame, unverified: int) -> Iterator[str]:
    if unverified:
        yield (
            f"{unverified} more came whom their platform could have confirmed and did not; they are no data, "
            "and are counted nowhere above."
        )
    counted = _unconfirmable(people[people["origin"] != "simulated"])
    if counted["arrived"]:
        yield (
            f"{counted['arrived']} came by an address that no platform confirms; screening kept "
            f"{counted['passed']} of them, who are counted with the others."
        )


def flow_headline(flow: Section, facts: StudyFacts) -> tuple[Headline, Headline]:
    """How many came, and how many of the wanted slots are kept."""
    return (
        Headline(str(flow.content["arrived"]), "arrived"),
        Headline(str(flow.content["passed"]), "kept for the analysis", f" of {facts.wanted}"),
    )


def members(people: pd.DataFrame, group: SlotFacts) -> pd.Series:
    """Which of these sessions have a slot of the group."""
    if group.by == "condition":
        return people["condition"] == group.name
    return (people["condition"] == "") & (people["lane"] == group.name)


def group_head(facts: StudyFacts) -> str:
    """What the rows of a table by groups of slots are."""
    kinds = dict.fromkeys(group.by for group in facts.slots)
    return " or ".join(kinds).capitalize() or "Condition"


def _step_counts(people: pd.DataFrame) -> dict[str, int]:
    claimed = people["claimed_at"].notna()
    finished = claimed & people["status"].isin(["passed", "screened", "finished"])
    return {
        "arrived": len(people),
        "consented": int(people["consented"].fillna(False).sum()),
        "admitted": int((people["admitted"].fillna(False) | claimed).sum()),
        "claimed": int(claimed.sum()),
        "finished": int(finished.sum()),
        "passed": int((people["status"] == "passed").sum()),
    }


def _by_group(claimed: pd.DataFrame, facts: StudyFacts) -> list[dict[str, Any]]:
    rows = []
    for group in facts.slots:
        status = claimed.loc[members(claimed, group), "status"]
        settled, passed = int(status.isin(SETTLED).sum()), int((status == "passed").sum())
        row = group_content(group) | {"label": group.label, "wanted": group.wanted, "claimed": len(status)}
        row |= {"settled": settled, "passed": passed, "screened": int((status == "screened").sum())}
        left = int(status.isin(["incomplete", "withdrawn"]).sum())
        rows.append(row | {"left": left, "lost": settled - passed})
    return rows


def group_content(group: SlotFacts) -> dict[str, Any]:
    """What a group is, in report.json."""
    return {"condition": group.name} if group.by == "condition" else {"condition": "", "lane": group.name}


def _exclusions(people: pd.DataFrame, facts: StudyFacts) -> list[dict[str, Any]]:
    """One entry per rule that decided against a person; only those who had a slot count in its group."""
    broken: dict[tuple[str, str], list[int]] = {}
    for row, reasons in people.loc[people["status"] != "passed", "reasons_detail"].items():
        for reason in json.loads(reasons or "[]"):
            broken.setdefault((reason["rule"], reason.get("timing") or ""), []).append(row)
    return [
        _entry(rule, timing, people.loc[rows], people, facts)
        for (rule, timing), rows in sorted(broken.items())
    ]


def _by_hand(
    people: pd.DataFrame, left_out: pd.DataFrame, facts: StudyFacts, sealed: bool
) -> list[dict[str, Any]]:
    """Those left out by hand, as one more rule; empty if there are none."""
    if left_out.empty:
        return []
    entry = _entry(BY_HAND, "after", left_out, people, facts)
    if sealed:
        unknown = dict.fromkeys(group.key for group in facts.slots)
        entry |= {"by_condition": unknown, "rate_by_condition": unknown, "test": None}
    return [entry]


def _entry(
    rule: str, timing: str, excluded: pd.DataFrame, people: pd.DataFrame, facts: StudyFacts
) -> dict[str, Any]:
    """One rule: how many it decided against, in which conditions, and whether those differ."""
    settled = people[people["claimed_at"].notna() & people["status"].isin(SETTLED)]
    totals = [int(members(settled, group).sum()) for group in facts.slots]
    counts = [int(members(excluded, group).sum()) for group in facts.slots]
    test = compare_rates(list(map(min, counts, totals)), totals, seed=facts.seed)
    keys = [group.key for group in facts.slots]
    rates = [n / total if total else None for n, total in zip(counts, totals, strict=True)]
    return {
        "rule": rule,
        "timing": timing,
        "count": len(excluded),
        "by_condition": dict(zip(keys, counts, strict=True)),
        "rate_by_condition": dict(zip(keys, rates, strict=True)),
        "test": _test_json(test) if timing != "before" else None,
    }


def _test_json(test: RateComparison) -> dict[str, Any]:
    return json_of(test)


def _steps_table(counts: dict[str, int], facts: StudyFacts) -> Table:
    in_conditions = _groups(facts) == "conditions"
    words = STEP_WORDS if in_conditions else STEP_WORDS | {"claimed": "Got a place"}
    rows, before = [], counts["arrived"]
    for step, count in counts.items():
        share = percent(count / counts["arrived"]) if counts["arrived"] else percent(None)
        lost = before - count
        rows.append((words[step], str(count), str(lost) if lost else "", share))
        before = count
    return Table("flow", "From arrival to analysis", ("Step", "n", "Lost", "% of arrivals"), tuple(rows))


def _group_table(rows: list[dict[str, Any]], facts: StudyFacts, loss: RateComparison) -> Table:
    return Table(
        "flow_by_condition",
        f"Places by {group_head(facts).lower()}",
        (group_head(facts), "Wanted", "Claimed", "Kept", "Screened", "Left", "Loss %"),
        tuple(
            (
                r["label"],
                *(str(r[key]) for key in ("wanted", "claimed", "passed", "screened", "left")),
                percent(r["lost"] / r["settled"] if r["settled"] else None),
            )
            for r in rows
        ),
        f"Screened and left count those who already had a place. {_loss_sentence(rows, facts, loss)}",
    )


def _loss_sentence(rows: list[dict[str, Any]], facts: StudyFacts, loss: RateComparison) -> str:
    said = finding(loss.p, "loss", _groups(facts)).capitalize()
    if loss.p is not None:
        return f"{said} ({p_sentence(loss.p)}, {loss.method})."
    if sum(row["settled"] > 0 for row in rows) < 2:
        return f"{said}: fewer than two of them have people whose sitting is settled."
    return f"{said}: {'everybody' if any(row['lost'] for row in rows) else 'nobody'} was lost."


def _groups(facts: StudyFacts) -> str:
    """What the groups of slots are, in the plural."""
    kinds = {group.by for group in facts.slots} or {"condition"}
    return f"{kinds.pop()}s" if len(kinds) == 1 else "groups"


def _exclusion_table(entries: list[dict[str, Any]], facts: StudyFacts) -> Table:
    labels = tuple(group.label for group in facts.slots)
    hidden = " Who was left out by hand is told by condition once results are open."
    is_hidden = any(None in e["by_condition"].values() for e in entries)
    rows = tuple(
        (
            rule_word(e["rule"]),
            e["timing"],
            str(e["count"]),
            *(NONE if n is None else str(n) for n in e["by_condition"].values()),
            p_value(e["test"]["p"] if e["test"] else None),
        )
        for e in entries
    )
    return Table(
        "exclusions",
        "Exclusions by rule",
        ("Rule", "Acts", "n", *labels, "p"),
        rows,
        f"Acts before or after assignment. p: equal rates in all {_groups(facts)}. "
        f"One person can break several rules.{hidden if is_hidden else ''}",
        left=2,
    )
