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

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu, rankdata, t, wilcoxon

LEVEL = 0.95
MEASURES = ("accuracy", "truth", "test_s")
ROUNDING = 2.0**-46
NOT_RE_RUN = (
    "the mixed models of single answers and the effects of period and preceding condition",
    "people who know the task against people who do not",
    "the tests of single answers as printed in the paper",
    "chance, the learning curve, coverage, marks, elapsed time and the quality of the data",
)
Numbers = dict[tuple[str, str, str], float]


def table(folder: Path, name: str) -> pd.DataFrame:
    """All cells as text, of the file beside this script or as Psych-DS names it in data/."""
    files = [folder / f"{name}.csv", *sorted((folder / "data").glob(f"*-{name}_data.csv"))]
    there = [path for path in files if path.is_file()]
    if not there:
        sys.exit(f"{folder}: there is no {name}.csv; give the folder of the package.")
    return pd.read_csv(there[0], dtype=str, keep_default_na=False, encoding="utf-8")


def chosen(people: pd.DataFrame, origin: str) -> str:
    there = sorted(people["origin"].unique())
    origin = origin or (there[0] if len(there) == 1 else "human")
    if origin not in there:
        sys.exit(f"No session has the origin {origin!r}; there are {', '.join(there)}: choose with --origin.")
    return origin


def kept(people: pd.DataFrame, origin: str) -> pd.Series:
    is_kept = (people["status"] == "passed") & (people["excluded_by_hand"] != "1")
    return is_kept & (people["origin"] == origin) & (people["arrival"] != "unverified")


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


def holm(p: dict[str, float]) -> dict[str, float]:
    order, worst, made = sorted(p, key=lambda name: p[name]), 0.0, {}
    for place, name in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - place) * p[name]))
        made[name] = worst
    return made


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
        made[part, key, "n"], made[part, key, "n_baseline"] = len(x), len(y)
        made[part, key, "effect"], made[part, key, "p"] = effect, p
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
        made.update({("conditions", name, key): value for key, value in told.items()})
        wrong = answers[answers["gold"] != answers["predicted"]]
        by_person = wrong.groupby("session")[["matches_model", "matches_truth"]].mean()
        gap = by_person["matches_truth"] - by_person["matches_model"]
        low, high = student(gap)
        belief = {"n": len(wrong), "model": wrong["matches_model"].mean(), "gap": gap.mean()}
        belief |= {"truth": wrong["matches_truth"].mean(), "low": low, "high": high}
        made.update({("belief", name, key): value for key, value in belief.items()})
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

    def cell(part: str, name: str, what: str, digits: int = 3, scale: float = 1.0) -> str:
        value = made.get((part, name, what), np.nan)
        return "-" if np.isnan(value) else f"{scale * value:.{digits}f}"

    rows = [
        [
            "condition",
            "n",
            "model %",
            "95 %",
            "F1",
            "test s",
            "training s",
            "gold %",
            "frequent %",
            "always gold %",
        ]
    ]
    for name, label in zip(conditions["condition"], conditions["label"], strict=True):
        ends = [cell("conditions", name, f"accuracy_{end}", 1, 100) for end in ("low", "high")]
        shares = [cell("conditions", name, what, 1, 100) for what in ("truth", "majority", "gold")]
        seconds = [cell("conditions", name, what, 1) for what in ("test_s", "train_s")]
        first = [label, cell("conditions", name, "n", 0), cell("conditions", name, "accuracy", 1, 100)]
        rows.append([*first, f"[{', '.join(ends)}]", cell("conditions", name, "f1"), *seconds, *shares])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    heads = {"tests": "Against the baseline", "first_period": "Only the condition that each person met first"}
    for part, head in heads.items():
        names = dict.fromkeys(name for of, name, _ in made if of == part)
        print(f"\n{head}:" if names else "", end="\n" if names else "")
        for name in names:
            n = f"{cell(part, name, 'n', 0)} and {cell(part, name, 'n_baseline', 0)}"
            p = f"p = {cell(part, name, 'p')}, by Holm {cell(part, name, 'p_holm')}"
            print(f"  {name}: n {n}, rank-biserial {cell(part, name, 'effect')}, {p}")
    print("\nOn texts that the model gets wrong, % that say what it says, and the truth:")
    for name in conditions["condition"]:
        shares = [cell("belief", name, what, 1, 100) for what in ("model", "truth")]
        print(f"  {name}: {', '.join(shares)} of {cell('belief', name, 'n', 0)} answers")
    print(f"\nNot re-run here, see the report: {'; '.join(NOT_RE_RUN)}.")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The planned analysis, from the files of this package.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--origin", default="", help="whose sessions; people without it, or the only ones")
    parser.add_argument("--out", type=Path, help="a CSV file, outside the package, for every number")
    options: Any = parser.parse_args(arguments)
    people, trials = table(options.folder, "participants"), table(options.folder, "trials")
    origin = chosen(people, options.origin)
    conditions = table(options.folder, "conditions")
    trials = trials[trials["session"].isin(people.loc[kept(people, origin), "session"])].copy()
    made = analyse(trials, table(options.folder, "stimuli"), conditions)
    if origin == "simulated":
        print("Computational observers, not people.\n")
    show(made, conditions)
    if options.out:
        with options.out.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(["analysis", "name", "measure", "value"])
            writer.writerows([*key, repr(float(value))] for key, value in made.items() if not np.isnan(value))


if __name__ == "__main__":
    main()
