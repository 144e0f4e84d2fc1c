"""The planned analysis of ratings of explanations, from the files of its package alone.

    python analysis.py [FOLDER] [--origin human] [--out NUMBERS.csv]

It needs Python 3.11, numpy, pandas and scipy, and nothing else. It reads trials, participants, stimuli and
conditions.csv and definition.json, prints the main table and the tests, and with --out writes every number
with all its digits.

Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
them; agreement of all raters is of the screened ones too. Points of reversed questions are turned round
first, so that high is good. Ratings of anchors are left out. A picture that is also another condition's was
rated once and counts for both, but once in the agreement. Means, and differences on the pictures that both
conditions have, each picture counting alike, have two-way clustered errors: people and pictures are both as
drawn at random, Student's t with the smaller number of clusters less 1. Tests are two-sided, with Holm's
correction over the pairs of a question; saliency against concepts: over the questions.
"""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

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

SCALE = range(1, 6)
STANDARD = {"q1": False, "q2": False, "q3": False, "q4": False, "q5": True, "q6": False}
NOT_RE_RUN = (
    "the cumulative logit mixed model",
    "means by method, model, dataset and form",
    "intervals of alpha and one rater against the usual answer, which are drawn at random",
    "agreement with oneself, single raters, raters per explanation",
    "correlations with automatic metrics, and the quality of the data",
)


def reversed_by_question(folder: Path) -> dict[str, bool]:
    """Whether low is good, of each question that was asked, by the study's definition."""
    design = json.loads((folder / "definition.json").read_text(encoding="utf-8"))["design"]
    worded = {row["id"]: bool(row.get("reverse")) for row in design.get("wording", ())}
    return {name: {**STANDARD, **worded}[name] for name in design.get("asked", STANDARD)}


def rating_rows(trials: pd.DataFrame, turned: dict[str, bool]) -> pd.DataFrame:
    """One row per single rating, without anchors: `asked` as it was chosen, `value` with high as good."""
    given = trials[(trials["scored_index"] != "") & trials["response"].str.startswith("{")]
    given = given[given["anchor"] != "1"]
    names = ["participant", "session", "condition", "item", "question", "asked"]
    fields = zip(*(given[name] for name in [*names[:4], "response"]), strict=True)
    rows = [(*who, name, point) for *who, text in fields for name, point in json.loads(text).items()]
    made = pd.DataFrame(rows, columns=names).astype({"asked": float})
    is_turned = made["question"].map(turned).fillna(False).astype(bool)
    return made.assign(value=made["asked"].where(~is_turned, 6 - made["asked"]), is_shared=False)


def with_shared(rows: pd.DataFrame, stimuli: pd.DataFrame) -> pd.DataFrame:
    """The rows, and those of a picture that is another condition's too once more, under that condition."""
    twins = stimuli.loc[stimuli["rated_as"] != "", ["item", "condition", "rated_as"]]
    twins = twins.drop_duplicates(["item", "condition"], keep="last")
    twins = twins.rename(columns={"condition": "twin", "rated_as": "condition"})
    copies = rows.merge(twins, on=["item", "condition"])
    copies = copies.assign(condition=copies["twin"], is_shared=True)
    return pd.concat([rows, copies[list(rows.columns)]], ignore_index=True)


def difference(first: pd.DataFrame, second: pd.DataFrame) -> dict[str, float]:
    """First less second on the pictures that both have; a group's ratings of a picture are averaged."""
    shared = sorted(set(first["item"]) & set(second["item"]))
    if not shared:
        return {"pictures": 0}
    parts, means = [], []
    for rows in (first, second):
        rows = rows[rows["item"].isin(shared)]
        weight = 1 / len(shared) / rows.groupby("item")["value"].transform("size")
        means.append(float((weight * rows["value"]).sum()))
        parts.append(weight * (rows["value"] - means[-1]))
    both = pd.concat([rows[rows["item"].isin(shared)] for rows in (first, second)], ignore_index=True)
    signed = pd.concat([parts[0], -parts[1]], ignore_index=True)
    return {"pictures": len(shared), **clustered_estimate(means[0] - means[1], signed, both)}


def alpha(rows: pd.DataFrame) -> dict[str, float]:
    """Krippendorff's ordinal alpha of one question, over explanations with two raters or more."""
    counts = pd.crosstab([rows["item"], rows["condition"]], rows["asked"])
    counts = counts.reindex(columns=[float(point) for point in SCALE], fill_value=0).to_numpy(float)
    counts = counts[counts.sum(axis=1) >= 2]
    told = {"units": float(len(counts)), "ratings": counts.sum(), "alpha": np.nan}
    if len(counts):
        weighted = counts / (counts.sum(axis=1, keepdims=True) - 1)
        pairs = weighted.T @ counts - np.diag(weighted.sum(axis=0))
        totals = pairs.sum(axis=1)
        middle = np.cumsum(totals) - totals / 2
        distance = np.subtract.outer(middle, middle) ** 2
        expected = (distance * np.outer(totals, totals)).sum() / (totals.sum() - 1)
        told["alpha"] = 1 - (distance * pairs).sum() / expected if expected else np.nan
    return told


def analyse(
    rows: pd.DataFrame,
    everybody: pd.DataFrame,
    stimuli: pd.DataFrame,
    conditions: pd.DataFrame,
    asked: list[str],
) -> Numbers:
    """Every number as (analysis, condition or pair with its question, what)."""
    made: Numbers = {}
    standing = with_shared(rows, stimuli)
    explained = conditions[conditions["role"] != "baseline"]
    items = {
        name: set(standing.loc[standing["condition"] == name, "item"]) for name in explained["condition"]
    }
    pairs = [(a, b) for a, b in combinations(items, 2) if items[a] & items[b]]
    forms = explained[explained["role"] != "control"].set_index("condition")["shows"]
    between_forms = {}
    for question in asked:
        given = standing[standing["question"] == question]
        by = {name: given[given["condition"] == name] for name in items}
        for name, part in by.items():
            points, values = (part[what].value_counts().sort_index() for what in ("asked", "value"))
            explanations = part["item"].nunique()
            told = {"explanations": explanations, "ratings": len(part), "shared": part["is_shared"].sum()}
            told |= {f"points_{point}": points.get(point, 0) for point in SCALE}
            if items[name]:
                told["missing"] = 1 - explanations / len(items[name])
            if len(part):
                of = mean(part, "value")
                told |= {"mean": of["estimate"], "low": of["low"], "high": of["high"]}
                # Of equally common points the smallest.
                told |= {
                    "mean_asked": part["asked"].mean(),
                    "mode_asked": points.idxmax(),
                    "mode": values.idxmax(),
                }
            add(made, "conditions", f"{name} {question}", told)
        add_family(made, "pairs", {f"{question} {a} - {b}": difference(by[a], by[b]) for a, b in pairs})
        if {"image", "concept"} <= set(forms):
            form = given["condition"].map(forms)
            between_forms[question] = difference(given[form == "image"], given[form == "concept"])
        for name, part in (("kept", rows), ("all", everybody)):
            told = alpha(part[part["question"] == question])
            add(made, "agreement", f"{name} {question}", told)
    add_family(made, "forms", between_forms)
    return made


def show(made: Numbers, conditions: pd.DataFrame, asked: list[str]) -> None:
    """The main table, the pairs and the agreement, rounded for people."""

    def shown(part: str, name: str, what: str, digits: int = 2) -> str:
        return cell(made, part, name, what, digits)

    rows = [["condition", *(f"{question}: mean (mode) [95 %]" for question in asked)]]
    for name, label in zip(conditions["condition"], conditions["label"], strict=True):
        keys = [f"{name} {question}" for question in asked]
        if ("conditions", keys[0], "ratings") in made:
            texts = [[shown("conditions", key, what) for what in ("mean", "low", "high")] for key in keys]
            modes = [shown("conditions", key, "mode", 0) for key in keys]
            rows.append(
                [label, *(f"{m} ({mode}) [{a}, {b}]" for (m, a, b), mode in zip(texts, modes, strict=True))]
            )
    print_rows(rows)
    heads = {"pairs": "Pairs of conditions on shared pictures", "forms": "Saliency less concepts"}
    for part, head in heads.items():
        names = names_in(made, part)
        lines = [f"\n{head}, points, high is good:"] if names else []
        for name in names:
            low, high = shown(part, name, "low"), shown(part, name, "high")
            p = f"p = {shown(part, name, 'p', 3)}, by Holm {shown(part, name, 'p_holm', 3)}"
            lines.append(f"  {name}: {shown(part, name, 'estimate')} [{low}, {high}], {p}")
        print("\n".join(lines), end="\n" if lines else "")
    print("\nKrippendorff's alpha, ordinal (kept raters, all raters):")
    for question in asked:
        both = [shown("agreement", f"{who} {question}", "alpha") for who in ("kept", "all")]
        print(f"  {question}: {', '.join(both)}")


def read(folder: Path, people: pd.DataFrame) -> tuple[Numbers, pd.DataFrame, list[str]]:
    turned, trials, conditions = (
        reversed_by_question(folder),
        table(folder, "trials"),
        table(folder, "conditions"),
    )
    everybody = trials[trials["session"].isin(people["session"])]
    rows, of_everybody = (rating_rows(part, turned) for part in (kept(trials, people), everybody))
    made = analyse(rows, of_everybody, table(folder, "stimuli"), conditions, list(turned))
    return made, conditions, list(turned)


if __name__ == "__main__":
    run(read, show, NOT_RE_RUN)
