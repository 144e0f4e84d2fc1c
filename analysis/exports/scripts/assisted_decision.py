"""The planned analysis of a study of advice, from the files of its package alone.

    python analysis.py [FOLDER] [--origin human] [--out NUMBERS.csv]

It needs Python 3.11, numpy, pandas and scipy, and nothing else. It reads trials, participants, stimuli and
conditions.csv, prints the main table and the tests, and with --out writes every number with all its digits.

Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
them. A decision is right if it names what the picture shows; the gain is the second less the first decision
on a picture. Means and contrasts have two-way clustered errors: people and pictures are both as drawn at
random, Student's t with the smaller number of clusters less 1. A contrast is of the pictures that both
conditions have; those of right and of wrong advice are strata, each with its share of the decisions. Tests
are two-sided, with Holm's correction over the contrasts with a second look without advice, and over those
with unexplained advice.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from analysis.exports.scripts.steps import (
    Numbers,
    add,
    add_family,
    cell,
    clustered_estimate,
    kept,
    mean,
    names_in,
    print_rows,
    run,
    table,
)

BASELINE, ADVICE = "baseline", "advice"
NOT_RE_RUN = (
    "intervals of RAIR, RSR and the other shares, and of d' and the criterion, which are drawn at random",
    "the gain by who is counted, answers to questions and the quality of the data",
)


def decisions(trials: pd.DataFrame, stimuli: pd.DataFrame) -> pd.DataFrame:
    """One row per picture that a session decided about twice, its numbers 1 or 0."""
    trials = trials[(trials["kind"] == "decide") & (trials["check"] == "")].copy()
    for name in ("matches_truth", "matches_model"):
        trials[name] = pd.to_numeric(trials[name])
    first, second = (trials[trials["step"] == step] for step in ("first", "second"))
    keys = ["session", "item"]
    wanted = [*keys, "response", "matches_truth", "matches_model"]
    both = first[[*wanted, "participant", "condition"]].merge(second[wanted], on=keys, suffixes=("", "_2"))
    items = stimuli.drop_duplicates("item").set_index("item")
    numbers = {
        "initial": both["matches_truth"],
        "final": both["matches_truth_2"],
        "gain": both["matches_truth_2"] - both["matches_truth"],
        "advice": both["item"].map(items["truth"] == items["predicted"]),
        "agreed": both["matches_model"],
        "follows": both["matches_model_2"],
        "switched": both["response"] != both["response_2"],
    }
    return both[["participant", "condition", "item"]].assign(
        **{name: column.astype(float) for name, column in numbers.items()}
    )


def difference(rows: pd.DataFrame, first: str, name: str) -> dict[str, float]:
    """First condition less the other on the pictures that both have; a condition's decisions about a picture
    are averaged, and pictures count alike within the strata of the advice."""
    rows = rows.assign(is_first=rows["condition"] == first)
    shares = rows["advice"].value_counts(normalize=True)
    rows = rows[rows.groupby("item")["is_first"].transform("nunique") == 2]
    pictures = rows.groupby("advice")["item"].nunique()
    if set(pictures.index) != set(shares.index):
        return {}
    counts = rows.groupby(["item", "is_first"])[name].transform("size")
    weight = rows["advice"].map(shares / pictures) / counts
    cell = [rows["advice"], rows["is_first"]]
    means = (weight * rows[name]).groupby(cell).transform("sum") / weight.groupby(cell).transform("sum")
    sign = np.where(rows["is_first"], 1, -1)
    return clustered_estimate(
        float((sign * weight * rows[name]).sum()), sign * weight * (rows[name] - means), rows
    )


def add_contrasts(made: Numbers, rows: pd.DataFrame, roles: dict[str, str], name: str) -> None:
    """Each condition with advice less the second look without, and each with an explanation less unexplained
    advice, with Holm's correction over each of the two families."""
    families = {BASELINE: (BASELINE,), ADVICE: (BASELINE, ADVICE)}
    for other, left_out in families.items():
        others = [condition for condition, role in roles.items() if role == other]
        firsts = [condition for condition, role in roles.items() if role not in left_out]
        told = {}
        for second in others:
            for first in firsts:
                both = rows[rows["condition"].isin([first, second])]
                told[f"{name} {first} - {second}"] = difference(both, first, name)
        add_family(made, "contrasts", told)


def add_accuracy(made: Numbers, rows: pd.DataFrame, name: str) -> None:
    """First and second decisions, the gain, and second decisions beside the advice and the better of both."""
    told: dict[str, float] = {"n": rows["participant"].nunique(), "items": rows["item"].nunique()}
    if len(rows):
        # By design the advice is as often right in every session: it has no error.
        advice = told["advice"] = float(rows["advice"].mean())
        of = {measure: mean(rows, measure) for measure in ("initial", "final", "gain")}
        of["over_advice"] = {end: of["final"][end] - advice for end in ("estimate", "low", "high")}
        # The difference to the better of both is the smaller one, and so are its ends.
        of["over_better"] = {
            end: float(np.min([of["gain"][end], of["over_advice"][end]]))
            for end in ("estimate", "low", "high")
        }
        ends = ("estimate", "low", "high")
        told |= {f"{measure}_{end}": row[end] for measure, row in of.items() for end in ends}
    add(made, "conditions", name, told)


def add_reliance(made: Numbers, rows: pd.DataFrame, name: str) -> None:
    """On whose answers people rely: shares of decisions, and d' and criterion of following (signal: the
    advice is right), with half added to the decisions that follow and one to all."""
    right, wrong = rows["advice"] == 1, rows["advice"] == 0
    follows, switched = rows["follows"], rows["switched"]
    shares = {
        "rair": (right & (rows["initial"] == 0), follows),
        "rsr": (wrong & (rows["initial"] == 1), 1 - switched),
        "over_reliance": (wrong, follows),
        "under_reliance": (right, 1 - follows),
        "to_right": (right & (rows["agreed"] == 0), follows),
        "to_wrong": (wrong & (rows["agreed"] == 0), follows),
        "from_right": (rows["initial"] == 1, switched),
        "from_wrong": (rows["initial"] == 0, switched),
        "switched": (rows["initial"] >= 0, switched),
    }
    told: dict[str, float] = {}
    for share, (of, yes) in shares.items():
        told[f"{share}_yes"], told[f"{share}_total"] = yes[of].sum(), of.sum()
        told[share] = yes[of].mean()
    if right.any() and wrong.any():
        z = [norm.ppf((follows[part].sum() + 0.5) / (part.sum() + 1)) for part in (right, wrong)]
        told["d_prime"], told["criterion"] = z[0] - z[1], -(z[0] + z[1]) / 2
    add(made, "reliance", name, told)


def analyse(rows: pd.DataFrame, conditions: pd.DataFrame) -> Numbers:
    """Every number as (analysis, condition or contrast, what)."""
    made: Numbers = {}
    roles = dict(zip(conditions["condition"], conditions["role"], strict=True))
    for name in roles:
        part = rows[rows["condition"] == name]
        add_accuracy(made, part, name)
        add_reliance(made, part, name)
    for measure in ("gain", "final"):
        add_contrasts(made, rows, roles, measure)
    return made


def show(made: Numbers, conditions: pd.DataFrame) -> None:
    """The main table, the contrasts and the reliance, rounded for people."""

    def shown(part: str, name: str, what: str, digits: int = 1, scale: float = 100.0) -> str:
        return cell(made, part, name, what, digits, scale)

    def with_ends(part: str, name: str, what: str) -> str:
        estimate, low, high = (shown(part, name, f"{what}{end}") for end in ("estimate", "low", "high"))
        return f"{estimate} [{low}, {high}]"

    of = {"initial_": "first %", "final_": "second %", "gain_": "gain"}
    of |= {"over_advice_": "less advice alone", "over_better_": "less better of both"}
    rows = [["condition", "n", *of.values()]]
    for name, label in zip(conditions["condition"], conditions["label"], strict=True):
        n = shown("conditions", name, "n", 0, 1)
        rows.append([label, n, *(with_ends("conditions", name, what) for what in of)])
    print_rows(rows)
    print("\nPlanned contrasts, percentage points:")
    for pair in names_in(made, "contrasts"):
        p = f"p = {shown('contrasts', pair, 'p', 3, 1)}, by Holm {shown('contrasts', pair, 'p_holm', 3, 1)}"
        print(f"  {pair}: {with_ends('contrasts', pair, '')}, {p}")
    print("\nReliance on advice, %:")
    for name in conditions["condition"]:
        shares = []
        for what in ("rair", "rsr", "over_reliance", "under_reliance"):
            counts = [shown("reliance", name, f"{what}_{of}", 0, 1) for of in ("yes", "total")]
            shares.append(f"{what} {shown('reliance', name, what)} ({' of '.join(counts)})")
        crossed = [shown("reliance", name, what, 2, 1) for what in ("d_prime", "criterion")]
        print(f"  {name}: {', '.join(shares)}, d' {crossed[0]}, criterion {crossed[1]}")


def read(folder: Path, people: pd.DataFrame) -> tuple[Numbers, pd.DataFrame]:
    conditions = table(folder, "conditions")
    rows = decisions(kept(table(folder, "trials"), people), table(folder, "stimuli"))
    return analyse(rows, conditions), conditions


if __name__ == "__main__":
    run(read, show, NOT_RE_RUN)
