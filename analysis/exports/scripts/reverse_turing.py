"""The planned analysis of a reverse Turing test, from the files of its package alone.

    python analysis.py [FOLDER] [--origin human] [--out NUMBERS.csv]

It needs Python 3.11, numpy, pandas and scipy, and nothing else. It reads trials, participants, stimuli and
conditions.csv, prints the main table and the tests, and with --out writes every number with all its digits.

Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
them. The unit is one score per session and condition: the share of scored test answers that are the model's,
or the gold label, the macro F1 over the classes that this person met or gave, and the sums of response times.
Tests against the baseline are two-sided: Mann-Whitney of different people, or Wilcoxon's signed ranks of the
same people, exact if nothing is tied and the samples are small, with Holm's correction over the conditions.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu, rankdata, t, wilcoxon

from analysis.exports.scripts.steps import (
    LEVEL,
    Numbers,
    add,
    cell,
    holm,
    kept,
    names_in,
    print_rows,
    run,
    table,
)

MEASURES = ("accuracy", "truth", "test_s")
ROUNDING = 2.0**-46
NOT_RE_RUN = (
    "the mixed models of single answers and the effects of period and preceding condition",
    "people who know the task against people who do not",
    "the tests of single answers as printed in the paper",
    "chance, the learning curve, coverage, marks, elapsed time and the quality of the data",
)


def scores(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per session and condition with test answers."""
    for name in ("matches_model", "matches_truth", "rt_ms", "block"):
        trials[name] = pd.to_numeric(trials[name])
    keys = ["session", "condition"]
    tests = trials[(trials["scored_index"] != "") & (trials["phase"] == "test")].groupby(keys)
    training = trials[trials["phase"] == "train"].groupby(keys)
    made = {
        "accuracy": tests["matches_model"].mean(),
        "truth": tests["matches_truth"].mean(),
        "f1": tests[["model_label", "response"]].apply(macro_f1),
        "test_s": tests["rt_ms"].sum(min_count=1) / 1000,
        "period": tests["block"].min(),
    }
    rows = pd.DataFrame(made)
    # People without training have no time of it.
    rows["train_s"] = (training["rt_ms"].sum(min_count=1) / 1000).reindex(rows.index)
    return rows.reset_index()


def macro_f1(given: pd.DataFrame) -> float:
    right, answered = given["model_label"], given["response"]
    if (right == answered).all():
        return 1.0
    classes = sorted({*right, *answered} - {""})
    f1 = [
        2 * ((right == c) & (answered == c)).sum() / ((right == c).sum() + (answered == c).sum())
        for c in classes
    ]
    # An answer that is missing is none of the classes, so there is no F1.
    return float(np.mean(f1)) if len(classes) > 1 and (answered != "").all() else np.nan


def student(values: pd.Series) -> tuple[float, float]:
    """The ends of Student's t interval; none without spread."""
    x = values.dropna()
    if len(x) < 2 or not x.max() - x.min() > ROUNDING * x.abs().max():
        return np.nan, np.nan
    half = t.ppf((1 + LEVEL) / 2, len(x) - 1) * x.std() / np.sqrt(len(x))
    return x.mean() - half, x.mean() + half


def mann_whitney(x: pd.Series, y: pd.Series) -> tuple[float, float]:
    """Rank-biserial correlation and p; none without values or spread."""
    both = np.r_[x, y]
    if min(len(x), len(y)) < 1 or not np.ptp(both) > ROUNDING * np.abs(both).max():
        return np.nan, np.nan
    is_exact = len(np.unique(both)) == len(both) and max(len(x), len(y)) <= 20
    told = mannwhitneyu(x, y, alternative="two-sided", method="exact" if is_exact else "asymptotic")
    return 2 * told.statistic / (len(x) * len(y)) - 1, told.pvalue


def signed_rank(x: pd.Series, y: pd.Series) -> tuple[float, float]:
    """The same of two values per person; pairs that are equal are left out."""
    change = x - y
    change = change[change.abs() > ROUNDING * max(x.abs().max(), y.abs().max())]
    if change.empty:
        return np.nan, np.nan
    # Equal differences of shares may differ by rounding, and must tie.
    change = np.sign(change) * np.round(change.abs() / change.abs().max(), 12)
    n = len(change)
    is_exact = len(np.unique(change.abs())) == n and n <= 50
    p = wilcoxon(change, correction=True, method="exact" if is_exact else "asymptotic").pvalue
    above = rankdata(change.abs())[change > 0].sum()
    return 4 * above / (n * (n + 1)) - 1, min(1.0, p)


def compare(made: Numbers, rows: pd.DataFrame, names: list[str], base: str, measure: str, part: str) -> None:
    """Every other condition against the baseline on one measure."""
    is_within = rows.groupby("session")["condition"].nunique().max() > 1
    of = {name: rows[rows["condition"] == name].set_index("session")[measure].dropna() for name in names}
    p_of = {}
    for name in (name for name in names if name != base):
        x, y = of[name], of[base]
        if is_within:
            shared = x.index.intersection(y.index)
            x, y = x[shared], y[shared]
        effect, p = (signed_rank if is_within else mann_whitney)(x, y)
        key = f"{name} {measure}"
        add(made, part, key, {"n": len(x), "n_baseline": len(y), "effect": effect, "p": p})
        if not np.isnan(p):
            p_of[key] = p
    made.update({(part, key, "p_holm"): p for key, p in holm(p_of).items()})


def analyse(trials: pd.DataFrame, stimuli: pd.DataFrame, conditions: pd.DataFrame) -> Numbers:
    """Every number as (analysis, condition and measure, what)."""
    made: Numbers = {}
    rows, names = scores(trials), list(conditions["condition"])
    base = conditions.loc[conditions["role"] == "baseline", "condition"].iloc[0]
    items = stimuli.drop_duplicates("item").set_index("item")
    tests = trials[(trials["scored_index"] != "") & (trials["phase"] == "test")]
    tests = tests.assign(
        gold=tests["item"].map(items["truth"]), predicted=tests["item"].map(items["predicted"])
    )
    for name in names:
        members, answers = rows[rows["condition"] == name], tests[tests["condition"] == name]
        told: dict[str, float] = {"n": len(members)}
        for measure in ("accuracy", "truth", "f1"):
            told[measure] = members[measure].mean()
            told[f"{measure}_low"], told[f"{measure}_high"] = student(members[measure])
        for measure in ("test_s", "train_s"):
            logs = np.log(members[measure][members[measure] > 0])
            told[measure] = np.exp(logs.mean())
            told[f"{measure}_low"], told[f"{measure}_high"] = np.exp(student(logs))
        told["majority"] = answers["model_label"].value_counts(normalize=True).max()
        told["gold"] = (answers["gold"] == answers["model_label"]).mean()
        add(made, "conditions", name, told)
        wrong = answers[answers["gold"] != answers["predicted"]]
        by_person = wrong.groupby("session")[["matches_model", "matches_truth"]].mean()
        gap = by_person["matches_truth"] - by_person["matches_model"]
        low, high = student(gap)
        belief = {"n": len(wrong), "model": wrong["matches_model"].mean(), "gap": gap.mean()}
        belief |= {"truth": wrong["matches_truth"].mean(), "low": low, "high": high}
        add(made, "belief", name, belief)
    if rows.empty:
        return made
    for measure in MEASURES:
        compare(made, rows, names, base, measure, "tests")
    if rows.groupby("session")["condition"].nunique().max() > 1:
        first = rows[rows["period"] == rows.groupby("session")["period"].transform("min")]
        compare(made, first, names, base, "accuracy", "first_period")
    return made


def show(made: Numbers, conditions: pd.DataFrame) -> None:
    """The main table and the tests, rounded for people."""
    shown = partial(cell, made)
    heads = ["condition", "n", "model %", "95 %", "F1", "test s", "training s"]
    rows = [[*heads, "gold %", "frequent %", "always gold %"]]
    for name, label in zip(conditions["condition"], conditions["label"], strict=True):
        ends = [shown("conditions", name, f"accuracy_{end}", 1, 100) for end in ("low", "high")]
        shares = [shown("conditions", name, what, 1, 100) for what in ("truth", "majority", "gold")]
        seconds = [shown("conditions", name, what, 1) for what in ("test_s", "train_s")]
        first = [label, shown("conditions", name, "n", 0), shown("conditions", name, "accuracy", 1, 100)]
        rows.append([*first, f"[{', '.join(ends)}]", shown("conditions", name, "f1"), *seconds, *shares])
    print_rows(rows)
    parts = {"tests": "Against the baseline", "first_period": "Only the condition that each person met first"}
    for part, head in parts.items():
        names = names_in(made, part)
        print(f"\n{head}:" if names else "", end="\n" if names else "")
        for name in names:
            n = f"{shown(part, name, 'n', 0)} and {shown(part, name, 'n_baseline', 0)}"
            p = f"p = {shown(part, name, 'p')}, by Holm {shown(part, name, 'p_holm')}"
            print(f"  {name}: n {n}, rank-biserial {shown(part, name, 'effect')}, {p}")
    print("\nOn texts that the model gets wrong, % that say what it says, and the truth:")
    for name in conditions["condition"]:
        shares = [shown("belief", name, what, 1, 100) for what in ("model", "truth")]
        print(f"  {name}: {', '.join(shares)} of {shown('belief', name, 'n', 0)} answers")


def read(folder: Path, people: pd.DataFrame) -> tuple[Numbers, pd.DataFrame]:
    conditions, trials = table(folder, "conditions"), kept(table(folder, "trials"), people).copy()
    return analyse(trials, table(folder, "stimuli"), conditions), conditions


if __name__ == "__main__":
    run(read, show, NOT_RE_RUN)
