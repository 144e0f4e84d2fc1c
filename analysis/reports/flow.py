"""From arrival to analysis: how many people were lost where, by which rule, and whether conditions differ
in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.frames import by_hand
from analysis.reports.base import Section, StudyFacts, Table
from analysis.reports.formats import NONE, p_value, percent
from analysis.stats.proportions import RateComparison, compare_rates

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
"""A person's decision stands among the rules under this name."""
SETTLED = ("passed", "screened", "incomplete", "withdrawn")
COLLIDER_NOTE = (
    "Rules that act after assignment may depend on the condition; excluding by them can bias the "
    "comparison. The main "
    "result is therefore also given as assigned."
)


def flow_section(people: pd.DataFrame, facts: StudyFacts, *, sealed: bool = False) -> Section:
    """The n-flow, the losses per condition with a test for differential exclusion, and the rules one by
    one. While results are sealed, those left out by hand are counted without their conditions, which whoever
    decides must not learn.
    """
    claimed = people["claimed_at"].notna()
    finished = claimed & people["status"].isin(["passed", "screened", "finished"])
    counts = {
        "arrived": len(people),
        "consented": int(people["consented"].fillna(False).sum()),
        "admitted": int((people["admitted"].fillna(False) | claimed).sum()),
        "claimed": int(claimed.sum()),
        "finished": int(finished.sum()),
        "passed": int((people["status"] == "passed").sum()),
    }
    left_out = people[(people["status"] == "passed") & by_hand(people)]
    if len(left_out):
        counts["analysed"] = counts["passed"] - len(left_out)
    per_condition = _per_condition(people[claimed], facts)
    exclusions = _exclusions(people, facts) + _by_hand(people, left_out, facts, sealed)
    lost = compare_rates(
        [c["lost"] for c in per_condition], [c["settled"] for c in per_condition], seed=facts.seed
    )
    content = {
        "steps": [{"step": step, "count": count} for step, count in counts.items()],
        **counts,
        BY_HAND: len(left_out),
        "status": {str(k): int(v) for k, v in people["status"].value_counts().sort_index().items()},
        "surplus": int(people["surplus"].fillna(False).sum()),
        "by_condition": per_condition,
        "differential_loss": _test_json(lost),
        "exclusions": exclusions,
    }
    tables = (
        _steps_table(counts),
        _condition_table(per_condition, lost),
        _exclusion_table(exclusions, facts),
    )
    return Section("flow", "Flow of participants", content, (COLLIDER_NOTE,), tables)


def _per_condition(claimed: pd.DataFrame, facts: StudyFacts) -> list[dict[str, Any]]:
    rows = []
    for condition in facts.conditions:
        status = claimed.loc[claimed["condition"] == condition.name, "status"]
        settled, passed = int(status.isin(SETTLED).sum()), int((status == "passed").sum())
        rows.append(
            {
                "condition": condition.name,
                "label": condition.label,
                "wanted": condition.wanted,
                "claimed": len(status),
                "settled": settled,
                "passed": passed,
                "screened": int((status == "screened").sum()),
                "left": int(status.isin(["incomplete", "withdrawn"]).sum()),
                "lost": settled - passed,
            }
        )
    return rows


def _exclusions(people: pd.DataFrame, facts: StudyFacts) -> list[dict[str, Any]]:
    """One entry per rule that decided against somebody; conditions count only those who had got one."""
    found = []
    for _, person in people[people["status"] != "passed"].iterrows():
        for reason in json.loads(person["reasons_detail"] or "[]"):
            found.append((reason["rule"], reason.get("timing") or "", person["condition"]))
    return [
        _entry(
            rule, timing, [condition for r, t, condition in found if (r, t) == (rule, timing)], people, facts
        )
        for rule, timing in sorted({(rule, timing) for rule, timing, _ in found})
    ]


def _by_hand(
    people: pd.DataFrame, left_out: pd.DataFrame, facts: StudyFacts, sealed: bool
) -> list[dict[str, Any]]:
    """Those left out by hand, as one more rule; none where nobody is."""
    if left_out.empty:
        return []
    entry = _entry(BY_HAND, "after", list(left_out["condition"]), people, facts)
    if sealed:
        unknown = dict.fromkeys(c.name for c in facts.conditions)
        entry |= {"by_condition": unknown, "rate_by_condition": unknown, "test": None}
    return [entry]


def _entry(
    rule: str, timing: str, where: list[str], people: pd.DataFrame, facts: StudyFacts
) -> dict[str, Any]:
    """One rule: how many it decided against, in which conditions, and whether those differ."""
    claimed = people[people["claimed_at"].notna() & people["status"].isin(SETTLED)]
    totals = [int((claimed["condition"] == c.name).sum()) for c in facts.conditions]
    by_condition = [where.count(c.name) for c in facts.conditions]
    test = compare_rates(_within(by_condition, totals), totals, seed=facts.seed)
    return {
        "rule": rule,
        "timing": timing,
        "count": len(where),
        "by_condition": {c.name: n for c, n in zip(facts.conditions, by_condition, strict=True)},
        "rate_by_condition": {
            c.name: n / total if total else None
            for c, n, total in zip(facts.conditions, by_condition, totals, strict=True)
        },
        "test": _test_json(test) if timing != "before" else None,
    }


def _within(counts: Sequence[int], totals: Sequence[int]) -> list[int]:
    return [min(count, total) for count, total in zip(counts, totals, strict=True)]


def _test_json(test: RateComparison) -> dict[str, Any]:
    return {"statistic": test.statistic, "df": test.df, "p": test.p, "method": test.method}


def _steps_table(counts: dict[str, int]) -> Table:
    rows, before = [], counts["arrived"]
    for step, count in counts.items():
        share = percent(count / counts["arrived"]) if counts["arrived"] else percent(None)
        lost = before - count
        rows.append((STEP_WORDS[step], str(count), str(lost) if lost else "", share))
        before = count
    return Table("flow", "From arrival to analysis", ("Step", "n", "Lost", "% of arrivals"), tuple(rows))


def _condition_table(rows: list[dict[str, Any]], lost: RateComparison) -> Table:
    note = "Screened and left count those who already had a place."
    if lost.p is not None:
        note += f" Loss differs between conditions: p {p_value(lost.p)} ({lost.method})."
    return Table(
        "flow_by_condition",
        "Places by condition",
        ("Condition", "Wanted", "Claimed", "Kept", "Screened", "Left", "Loss %"),
        tuple(
            (
                r["label"],
                str(r["wanted"]),
                str(r["claimed"]),
                str(r["passed"]),
                str(r["screened"]),
                str(r["left"]),
                percent(r["lost"] / r["settled"] if r["settled"] else None),
            )
            for r in rows
        ),
        note,
    )


def _exclusion_table(entries: list[dict[str, Any]], facts: StudyFacts) -> Table:
    labels = tuple(c.label for c in facts.conditions)
    rows = tuple(
        (
            e["rule"].replace("_", " "),
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
        "Acts before or after assignment. p: equal rates in all conditions. One person can break several "
        "rules."
        + (
            " Who was left out by hand is told by condition once results are open."
            if any(None in e["by_condition"].values() for e in entries)
            else ""
        ),
        left=2,
    )
