"""The planned analysis of a blind review, from the files of its package alone.

    python analysis.py [FOLDER] [--origin human] [--out NUMBERS.csv]

It needs Python 3.11, numpy, pandas and scipy, and nothing else. It reads trials, participants and
conditions.csv and definition.json, prints the main tables, and with --out writes every number with all its
digits.

Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
them. Real solutions of tasks are compared by the share that leads accept, people's with each explainer's and
with all of them; a decision after the budget is a rejection. Hits are right answers accepted, false
acceptances are wrong ones, the source's errors and lures together; "cannot say" is in neither. The intervals
of a difference are drawn at random here, with a seed of this script: leads and tasks with replacement, each
draw divided by its own two-way clustered error (pigeonhole bootstrap-t). The verdict: worse or superior if
the 95 % interval lies wholly beyond the declared margin, equivalent if the 90 % interval lies within it.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from analysis.exports.scripts.steps import LEVEL, Numbers, add, cell, kept, names_in, print_rows, run, table

NARROW = 0.90
DRAWS, CHUNK, SEED = 10_000, 500, 1
PEOPLE_MIN, TASKS_MIN = 12, 30
DEFAULTS = {"role": "review", "budget_ms": 3000, "margin": 0.1}
NOT_RE_RUN = (
    "all of the stage in which people solve",
    "intervals and tests of shares, of acc_L, of d' and of usefulness, which are drawn at random",
    "other budgets, the first run alone, order, explainers against one another, and the mixed model",
    "regions alone, labels, suspicion, audits, times and the quality of the data",
)


def reviews(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per solution that was judged; numbers 1 or 0, `right` empty if its item has no truth."""
    rows = trials[(trials["kind"] == "review") & (trials["accepted"] != "")]
    return pd.DataFrame(
        {
            **{name: rows[name] for name in ("participant", "condition", "item")},
            "use": rows["use"].replace("", "task"),
            "says": rows["answer"] != "cannot_say",
            "explained": rows["explained"] == "1",
            "right": pd.to_numeric(rows["answer_right"]),
            "accepted": pd.to_numeric(rows["accepted"]),
            "rt_ms": pd.to_numeric(rows["rt_ms"]),
        }
    ).reset_index(drop=True)


def wilson(yes: float, n: int) -> tuple[float, float]:
    z, share = norm.ppf((1 + LEVEL) / 2), yes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def newcombe(x: pd.Series, y: pd.Series) -> tuple[float, float]:
    """Of the share of x less that of y, as if all were independent."""
    (low_x, high_x), (low_y, high_y) = wilson(x.sum(), len(x)), wilson(y.sum(), len(y))
    gap = x.mean() - y.mean()
    return gap - np.hypot(x.mean() - low_x, high_y - y.mean()), gap + np.hypot(
        high_x - x.mean(), y.mean() - low_y
    )


def contrast(tables: list[tuple[Any, Any]], leads: Any, tasks: Any) -> tuple[Any, Any]:
    """The share of the first table less that of the second, and its two-way clustered error, in each draw.
    A table is the accepted and all reviews by lead and task; `leads` (draws, n) and `tasks` (draws, n)
    say how often each was drawn."""
    value, within, total = 0.0, 0.0, 0.0
    of_leads, of_tasks = np.zeros(leads.shape), np.zeros(tasks.shape)
    for sign, (yes, every) in zip((1, -1), tables, strict=True):
        yes_of_leads, all_of_leads = tasks @ yes.T, tasks @ every.T
        count, n = (leads * yes_of_leads).sum(1), (leads * all_of_leads).sum(1)
        by_yes, by_all = sign / n, -sign * count / n**2
        value, total = value + sign * count / n, total + n
        of_leads += by_yes[:, None] * yes_of_leads + by_all[:, None] * all_of_leads
        of_tasks += by_yes[:, None] * (leads @ yes) + by_all[:, None] * (leads @ every)
        within += (by_yes**2 + 2 * by_yes * by_all) * count + by_all**2 * n
    sizes = (leads.sum(1), tasks.sum(1), total)
    parts = ((leads * of_leads**2).sum(1), (tasks * of_tasks**2).sum(1), within)
    of_lead, of_task, of_both = (
        part * n / np.maximum(n - 1, 1) for part, n in zip(parts, sizes, strict=True)
    )
    return value, np.sqrt(np.maximum(of_lead + of_task - of_both, np.maximum(of_lead, of_task)))


def difference(mine: pd.DataFrame, people: pd.DataFrame) -> dict[str, float]:
    """Accepted of mine less accepted of people's, with both intervals."""
    both = pd.concat([mine, people])
    lead, task = (np.unique(both[name], return_inverse=True)[1] for name in ("participant", "item"))
    is_mine, accepted = np.arange(len(both)) < len(mine), both["accepted"].to_numpy(float)
    shape = lead.max() + 1, task.max() + 1
    tables = []
    for chosen in (is_mine, ~is_mine):
        yes, every = np.zeros(shape), np.zeros(shape)
        np.add.at(yes, (lead[chosen], task[chosen]), accepted[chosen])
        np.add.at(every, (lead[chosen], task[chosen]), 1)
        tables.append((yes, every))
    value, se = (float(x[0]) for x in contrast(tables, *(np.ones((1, n)) for n in shape)))
    told = {"estimate": value, "se": se, "people": shape[0], "items": shape[1]}
    if min(shape) < 2 or not se > 1e-9:
        return told
    rng, drawn = np.random.default_rng(SEED), []
    for _ in range(DRAWS // CHUNK):
        copies = (rng.multinomial(n, np.full(n, 1 / n), CHUNK).astype(float) for n in shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            at, error = contrast(tables, *copies)
            drawn.append(((at - value) / error)[np.isfinite(at) & (error > 1e-9)])
    t = np.concatenate(drawn)
    if len(t) < 0.9 * DRAWS:
        return told
    for level, ends in ((LEVEL, ("low", "high")), (NARROW, ("narrow_low", "narrow_high"))):
        limits = value - np.quantile(t, [(1 + level) / 2, (1 - level) / 2]) * se
        told |= dict(zip(ends, np.clip(limits, -1, 1).tolist(), strict=True))
    return told


def verdict(told: dict[str, float], margin: float) -> str:
    if "low" not in told or told["people"] < PEOPLE_MIN or told["items"] < TASKS_MIN:
        return f"no verdict, which needs {PEOPLE_MIN} leads, {TASKS_MIN} tasks and an interval"
    if told["high"] < -margin:
        return "worse"
    if told["low"] > margin:
        return "superior"
    is_within = -margin < told["narrow_low"] and told["narrow_high"] < margin
    return "equivalent" if is_within else "inconclusive"


def shares(right: pd.DataFrame, wrong: pd.DataFrame) -> dict[str, float]:
    """Hits and false acceptances; d' and criterion with half added to the accepted and one to all."""
    told = {
        "hits": right["yes"].mean(),
        "false": wrong["yes"].mean(),
        "errors": wrong.loc[wrong["use"] == "task", "yes"].mean(),
        "lures": wrong.loc[wrong["use"] == "lure", "yes"].mean(),
    }
    if len(right) and len(wrong):
        z = [norm.ppf((part["yes"].sum() + 0.5) / (len(part) + 1)) for part in (right, wrong)]
        told |= {"d_prime": z[0] - z[1], "criterion": -(z[0] + z[1]) / 2}
    return told


def groups(conditions: pd.DataFrame) -> dict[str, list[str]]:
    """People first, then the model with all explainers if it has several, then each of them."""
    people = conditions.loc[conditions["role"] == "source", "condition"].tolist()
    methods = conditions.loc[conditions["role"] != "source", "condition"].tolist()
    if len(people) != 1 or not methods:
        sys.exit("A review compares one source of people with at least one other; this package has no such.")
    together = {"all_methods": methods} if len(methods) > 1 else {}
    return {people[0]: people, **together, **{name: [name] for name in methods}}


def analyse(
    rows: pd.DataFrame, of: dict[str, list[str]], design: dict[str, Any]
) -> tuple[Numbers, dict[str, str]]:
    """Every number as (analysis, group, what), and the verdict of each group but people."""
    made: Numbers = {}
    verdicts = {}
    in_time = rows["accepted"] * ((rows["rt_ms"] > 0) & (rows["rt_ms"] <= design["budget_ms"]))
    answered = rows["use"].isin(["task", "lure"]) & rows["says"] & rows["right"].notna()
    real = {name: rows[rows["condition"].isin(names) & (rows["use"] == "task")] for name, names in of.items()}
    people = next(iter(real.values()))
    for name, mine in real.items():
        silent = mine[~mine["says"]]
        told = {
            "reviews": len(mine),
            "cannot_say": len(silent),
            "cannot_say_accepted": silent["accepted"].sum(),
        }
        if len(mine):
            low, high = wilson(mine["accepted"].sum(), len(mine))
            told |= {"people": mine["participant"].nunique(), "items": mine["item"].nunique()}
            told |= {"accepted": mine["accepted"].mean(), "naive_low": low, "naive_high": high}
            told |= {"in_time": in_time[mine.index].mean(), "right": (mine["right"] == 1).mean()}
        add(made, "acceptance", name, told)
        if mine is not people and len(mine) and len(people):
            told = difference(mine, people)
            verdicts[name] = verdict(told, design["margin"])
            low, high = newcombe(mine["accepted"], people["accepted"])
            told |= {"naive_low": low, "naive_high": high}
            if people["accepted"].any() and mine["accepted"].any():
                told["acc_L"] = mine["accepted"].mean() / people["accepted"].mean()
            add(made, "difference", name, told)
        for limit, yes in (("any time", rows["accepted"]), ("in budget", in_time)):
            chosen = rows.assign(yes=yes)[answered & rows["condition"].isin(of[name])]
            parts = {}
            for explained, word in ((False, "without"), (True, "with")):
                part = chosen[chosen["explained"] == explained]
                parts[word] = shares(part[part["right"] == 1], part[part["right"] == 0])
                key = f"{name}, {word} explanations, {limit}"
                add(made, "signal", key, parts[word])
            gains = {what: parts["with"][what] - parts["without"][what] for what in ("hits", "false")}
            shown = [yes[mine.index][mine["explained"] == explained].mean() for explained in (True, False)]
            told = {"gain_hits": gains["hits"], "gain_false": gains["false"]}
            told |= {"usefulness": gains["hits"] - gains["false"], "paper_difference": shown[0] - shown[1]}
            add(made, "usefulness", f"{name}, {limit}", told)
    return made, verdicts


def show(made: Numbers, of: dict[str, list[str]], verdicts: dict[str, str], design: dict[str, Any]) -> None:
    """The main tables, rounded for people."""

    def shown(part: str, name: str, what: str, digits: int = 1, scale: float = 100.0) -> str:
        return cell(made, part, name, what, digits, scale)

    def ends(part: str, name: str, what: str = "") -> str:
        return f"[{shown(part, name, f'{what}low')}, {shown(part, name, f'{what}high')}]"

    heads = ["solutions of", "reviews", "leads", "tasks", "accepted %", "naive 95 %"]
    rows = [[*heads, f"in {design['budget_ms'] / 1000:g} s %", "cannot say", "true answers %"]]
    for name in of:
        counts = [shown("acceptance", name, what, 0, 1) for what in ("reviews", "people", "items")]
        accepted = [shown("acceptance", name, what) for what in ("accepted", "in_time", "right")]
        silent = shown("acceptance", name, "cannot_say", 0, 1)
        naive = ends("acceptance", name, "naive_")
        rows.append([name, *counts, accepted[0], naive, accepted[1], silent, accepted[2]])
    print_rows(rows)
    print(f"\nLess {next(iter(of))}, points, margin {100 * design['margin']:g}:")
    for name, said in verdicts.items():
        narrow, acc = ends("difference", name, "narrow_"), shown("difference", name, "acc_L", 2, 1)
        points = f"{shown('difference', name, 'estimate')}, 95 % {ends('difference', name)}, 90 % {narrow}"
        print(f"  {name}: {points}: {said}; acc_L {acc}")
    print("\nRight and wrong answers, % accepted:")
    for key in names_in(made, "signal"):
        d_prime, criterion = (shown("signal", key, what, 2, 1) for what in ("d_prime", "criterion"))
        told = f"hits {shown('signal', key, 'hits')}, false {shown('signal', key, 'false')}"
        print(f"  {key}: {told}, d' {d_prime}, criterion {criterion}")
    print("\nWith explanations less without, points:")
    for key in names_in(made, "usefulness"):
        told = ", ".join(
            f"{what} {shown('usefulness', key, what)}" for what in ("usefulness", "paper_difference")
        )
        print(f"  {key}: {told}")


def read(folder: Path, people: pd.DataFrame) -> tuple[Any, ...]:
    told = json.loads((folder / "definition.json").read_text(encoding="utf-8"))["design"]
    design = {**DEFAULTS, **told}
    if design["role"] == "solve":
        sys.exit("This package is of the stage in which people solve, which has no planned test.")
    of = groups(table(folder, "conditions"))
    made, verdicts = analyse(reviews(kept(table(folder, "trials"), people)), of, design)
    return made, of, verdicts, design


if __name__ == "__main__":
    run(read, show, NOT_RE_RUN)
