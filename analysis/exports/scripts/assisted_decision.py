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

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, t

LEVEL = 0.95
BASELINE, ADVICE = "baseline", "advice"
NOT_RE_RUN = (
    "intervals of RAIR, RSR and the other shares, and of d' and the criterion, which are drawn at random",
    "the gain by who is counted, answers to questions and the quality of the data",
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


def decisions(trials: pd.DataFrame, stimuli: pd.DataFrame) -> pd.DataFrame:
    """One row per picture that a sitting decided about twice, its numbers 1 or 0."""
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


def clustered(estimate: float, parts: pd.Series, rows: pd.DataFrame) -> dict[str, float]:
    """Error, p and interval of an estimate, to whose deviation each row adds its part."""
    person, item = rows["participant"], rows["item"]
    people, pictures = person.nunique(), item.nunique()
    told = {"estimate": estimate, "people": people, "p": np.nan, "low": np.nan, "high": np.nan}
    if min(people, pictures) < 2:
        return told
    by = [person, item, person + "\r" + item]
    sums = [parts.groupby(cluster).sum() for cluster in by]
    of_people, of_items, of_both = ((s**2).sum() * len(s) / max(len(s) - 1, 1) for s in sums)
    se = np.sqrt(max(of_people + of_items - of_both, of_people, of_items))
    if se > 1e-12 * max(1.0, abs(estimate)):
        df = min(people, pictures) - 1
        half = t.ppf((1 + LEVEL) / 2, df) * se
        told |= {"p": 2 * t.sf(abs(estimate) / se, df), "low": estimate - half, "high": estimate + half}
    return told


def mean(rows: pd.DataFrame, name: str) -> dict[str, float]:
    y = rows[name]
    return clustered(float(y.mean()), (y - y.mean()) / len(y), rows)


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
    return clustered(float((sign * weight * rows[name]).sum()), sign * weight * (rows[name] - means), rows)


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
        p = {pair: row["p"] for pair, row in told.items() if not np.isnan(row.get("p", np.nan))}
        worst = 0.0
        for place, pair in enumerate(sorted(p, key=lambda pair: p[pair])):
            worst = max(worst, min(1.0, (len(p) - place) * p[pair]))
            told[pair]["p_holm"] = worst
        made.update({("contrasts", pair, what): v for pair, row in told.items() for what, v in row.items()})


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
    made.update({("conditions", name, what): value for what, value in told.items()})


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
    made.update({("reliance", name, what): value for what, value in told.items()})


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

    def cell(part: str, name: str, what: str, digits: int = 1, scale: float = 100.0) -> str:
        value = made.get((part, name, what), np.nan)
        return "-" if np.isnan(value) else f"{scale * value:.{digits}f}"

    def with_ends(part: str, name: str, what: str) -> str:
        estimate, low, high = (cell(part, name, f"{what}{end}") for end in ("estimate", "low", "high"))
        return f"{estimate} [{low}, {high}]"

    of = {"initial_": "first %", "final_": "second %", "gain_": "gain"}
    of |= {"over_advice_": "less advice alone", "over_better_": "less better of both"}
    rows = [["condition", "n", *of.values()]]
    for name, label in zip(conditions["condition"], conditions["label"], strict=True):
        n = cell("conditions", name, "n", 0, 1)
        rows.append([label, n, *(with_ends("conditions", name, what) for what in of)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    print("\nPlanned contrasts, percentage points:")
    for pair in dict.fromkeys(name for part, name, _ in made if part == "contrasts"):
        p = f"p = {cell('contrasts', pair, 'p', 3, 1)}, by Holm {cell('contrasts', pair, 'p_holm', 3, 1)}"
        print(f"  {pair}: {with_ends('contrasts', pair, '')}, {p}")
    print("\nReliance on advice, %:")
    for name in conditions["condition"]:
        shares = []
        for what in ("rair", "rsr", "over_reliance", "under_reliance"):
            counts = [cell("reliance", name, f"{what}_{of}", 0, 1) for of in ("yes", "total")]
            shares.append(f"{what} {cell('reliance', name, what)} ({' of '.join(counts)})")
        crossed = [cell("reliance", name, what, 2, 1) for what in ("d_prime", "criterion")]
        print(f"  {name}: {', '.join(shares)}, d' {crossed[0]}, criterion {crossed[1]}")
    print(f"\nNot re-run here, see the report: {'; '.join(NOT_RE_RUN)}.")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The planned analysis, from the files of this package.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--origin", default="", help="whose sessions; people without it, or the only ones")
    parser.add_argument("--out", type=Path, help="a CSV file, outside the package, for every number")
    options: Any = parser.parse_args(arguments)
    people, conditions = table(options.folder, "participants"), table(options.folder, "conditions")
    origin = chosen(people, options.origin)
    kept = (people["origin"] == origin) & (people["arrival"] != "unverified")
    kept &= (people["status"] == "passed") & (people["excluded_by_hand"] != "1")
    trials = table(options.folder, "trials")
    rows = decisions(
        trials[trials["session"].isin(people.loc[kept, "session"])], table(options.folder, "stimuli")
    )
    made = analyse(rows, conditions)
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
