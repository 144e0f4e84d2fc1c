"""The planned analysis of a meta-predictor study, from the files of its package alone.

    python analysis.py [FOLDER] [--origin human] [--out NUMBERS.csv]

It needs Python 3.11, numpy, pandas and scipy, and nothing else. It reads trials, participants and
conditions.csv, prints table 1 and the tests, and with --out writes every number with all its digits.

Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
them. A person's accuracy is the share of scored trials on which the answer was the model's. Utility is the
mean accuracy of a condition over the baseline's; its interval is Fieller's with the variance of each
condition by itself. The planned contrasts are Dunnett's, two-sided: every condition against the baseline,
one variance pooled over all conditions unless the planned sizes differ by more than a half. With fewer than
five people in a condition or in the baseline no interval of Utility and no p of the contrast is given.
"""

import argparse
import csv
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import chi2, f_oneway, norm, studentized_range, t

LEVEL = 0.95
TOGETHER = 0.95  # of intervals that hold together: what the study's plan declares
PEOPLE_MIN = 5
UNEVEN = 1.5
NOT_RE_RUN = (
    "intervals by block and by the bootstrap, other means of Utility, and sizes of effects",
    "the key secondary contrasts of methods with the control",
    "the smallest effect that was declared",
    "the result as assigned, with people left out by hand, and blocked by plan",
    "the course of learning, automatic metrics, also beside Utility, and the quality of the data",
)
Numbers = dict[tuple[str, str, str], float]


def read(folder: Path, origin: str) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """The conditions in their order, and one row per kept session: condition, accuracy, accuracy by block."""
    trials, people = (pd.read_csv(table(folder, name), dtype=str) for name in ("trials", "participants"))
    conditions = pd.read_csv(table(folder, "conditions"), dtype={"condition": str, "wanted": int})
    there = sorted(people["origin"].unique())
    chosen = origin or (there[0] if len(there) == 1 else "human")
    if chosen not in there:
        sys.exit(f"No session has the origin {chosen!r}; there are {', '.join(there)}: choose with --origin.")
    kept = (
        (people["origin"] == chosen)
        & (people["status"] == "passed")
        & (people["excluded_by_hand"] != "1")
        & (people["arrival"] != "unverified")
    )
    # Only scored trials have a value here: training and checks have none.
    trials["hit"] = pd.to_numeric(trials["matches_model"], errors="coerce")
    scored = trials[trials["hit"].notna() & trials["session"].isin(people.loc[kept, "session"])]
    blocks = scored.pivot_table(index="session", columns="block", values="hit", aggfunc="mean")
    blocks.columns = [f"block_{int(block) + 1}" for block in blocks.columns]
    accuracy = scored.groupby("session")["hit"].mean().rename("accuracy")
    condition = people.loc[kept].set_index("session")["condition"]
    return conditions, pd.concat([condition, accuracy, blocks], axis=1, join="inner"), chosen


def table(folder: Path, name: str) -> Path:
    """The file of a table: beside this script, or as Psych-DS names it in data/."""
    files = [folder / f"{name}.csv", *sorted((folder / "data").glob(f"*-{name}_data.csv"))]
    there = [path for path in files if path.is_file()]
    if not there:
        sys.exit(f"{folder}: there is no {name}.csv; give the folder of the package.")
    return there[0]


def tail(limit: float, loadings: list[float], df: float) -> float:
    """P(max |T_i| > limit) of comparisons with one control: correlations are products of the loadings, so
    that it is an integral over the control's deviation z and the scale s of the variance estimate."""
    x, w = np.polynomial.legendre.leggauss(300)
    z, wz = 9.0 * x, 9.0 * w * norm.pdf(9.0 * x)
    low, high = np.log(chi2.ppf(1e-14, df) / df) / 2, np.log(chi2.isf(1e-14, df) / df) / 2
    log_s = (high + low) / 2 + (high - low) / 2 * x
    s = np.exp(log_s)
    ws = (high - low) / 2 * w * chi2.pdf(df * s**2, df) * 2 * df * s**2
    inside = np.ones((len(s), len(z)))
    for loading in loadings:
        rest = np.sqrt(1 - loading**2)
        edge, centre = (limit * s / rest)[:, None], (loading * z / rest)[None, :]
        inside *= norm.cdf(edge - centre) - norm.cdf(-edge - centre)
    return float(ws @ (1 - inside) @ wz)


def critical(loadings: list[float], df: float) -> float:
    return float(brentq(lambda x: tail(x, loadings, df) - (1 - TOGETHER), 0.1, 200.0, xtol=1e-10))


def ratio(x: pd.Series, y: pd.Series) -> dict[str, float]:
    """Mean of x over mean of y, with what Fieller's interval needs."""
    a, b, va, vb = x.mean(), y.mean(), x.var() / len(x), y.var() / len(y)
    shared = (a / b) ** 2 * vb
    df = (va + shared) ** 2 / (va**2 / (len(x) - 1) + shared**2 / (len(y) - 1))
    loading = min(float(np.sqrt(shared / (va + shared))), 0.999)
    return {"a": a, "b": b, "va": va, "vb": vb, "df": df, "loading": loading}


def fieller(r: dict[str, float], times: float) -> tuple[float, float]:
    """The ratios R with |a - R b| at most `times` its standard error; no number if they have no two ends."""
    scale = r["b"] ** 2 - times**2 * r["vb"]
    if scale <= 0:
        return np.nan, np.nan
    root = np.sqrt(max(0.0, (r["a"] * r["b"]) ** 2 - scale * (r["a"] ** 2 - times**2 * r["va"])))
    return (r["a"] * r["b"] - root) / scale, (r["a"] * r["b"] + root) / scale


def analyse(conditions: pd.DataFrame, people: pd.DataFrame) -> Numbers:
    """Every number as (analysis, condition or pair, measure)."""
    made: Numbers = {}
    blocks = [name for name in people if str(name).startswith("block_")]
    groups = {name: people[people["condition"] == name] for name in conditions["condition"]}
    baseline = str(conditions.loc[conditions["role"] == "baseline", "condition"].iloc[0])
    for name, group in groups.items():
        x = group["accuracy"]
        made["conditions", name, "n"] = len(x)
        made["conditions", name, "accuracy_mean"] = x.mean()
        half = t.ppf((1 + LEVEL) / 2, max(len(x) - 1, 1)) * x.std() / np.sqrt(max(len(x), 1))
        made["conditions", name, "accuracy_low"] = x.mean() - half
        made["conditions", name, "accuracy_high"] = x.mean() + half
        for block in blocks:
            made["conditions", name, block] = group[block].mean()
            made["conditions", name, f"utility_{block}"] = (
                group[block].mean() / groups[baseline][block].mean()
            )
    usable = {name: group["accuracy"] for name, group in groups.items() if len(group) >= 2}
    if len(usable) < 2:
        return made
    if baseline in usable:
        utility(made, usable, baseline)
        dunnett(made, usable, baseline, conditions)
    anova_and_tukey(made, usable)
    return made


def has_enough(name: str, groups: dict[str, pd.Series], baseline: str) -> bool:
    return min(len(groups[name]), len(groups[baseline])) >= PEOPLE_MIN


def utility(made: Numbers, groups: dict[str, pd.Series], baseline: str) -> None:
    ratios = {name: ratio(x, groups[baseline]) for name, x in groups.items() if name != baseline}
    loadings = [r["loading"] for r in ratios.values()]
    for name, r in ratios.items():
        made["utility", name, "utility"] = r["a"] / r["b"]
        if has_enough(name, groups, baseline):
            low, high = fieller(r, t.ppf((1 + LEVEL) / 2, r["df"]))
            made["utility", name, "low"], made["utility", name, "high"] = low, high
            low, high = fieller(r, critical(loadings, r["df"]))
            made["utility", name, "together_low"], made["utility", name, "together_high"] = low, high


def dunnett(made: Numbers, groups: dict[str, pd.Series], baseline: str, conditions: pd.DataFrame) -> None:
    wanted = conditions.loc[conditions["condition"].isin(list(groups)), "wanted"]
    is_even = wanted.max() <= UNEVEN * wanted.min()
    others = [name for name in groups if name != baseline]
    total_df = sum(len(x) - 1 for x in groups.values())
    pooled = sum(((x - x.mean()) ** 2).sum() for x in groups.values()) / total_df
    error = {name: (pooled if is_even else x.var()) / len(x) for name, x in groups.items()}
    loadings = [
        min(float(np.sqrt(error[baseline] / (error[name] + error[baseline]))), 0.999) for name in others
    ]
    for name in others:
        both = error[name] + error[baseline]
        df = float(total_df)
        if not is_even:
            df = 1 / sum((error[g] / both) ** 2 / (len(groups[g]) - 1) for g in (name, baseline))
        difference = groups[name].mean() - groups[baseline].mean()
        made["dunnett", name, "difference"] = difference
        if has_enough(name, groups, baseline):
            half = critical(loadings, df) * np.sqrt(both)
            made["dunnett", name, "low"], made["dunnett", name, "high"] = difference - half, difference + half
            made["dunnett", name, "t"] = difference / np.sqrt(both)
            made["dunnett", name, "df"] = df
            made["dunnett", name, "p"] = tail(abs(difference) / np.sqrt(both), loadings, df)


def anova_and_tukey(made: Numbers, groups: dict[str, pd.Series]) -> None:
    df = sum(len(x) - 1 for x in groups.values())
    within = sum(((x - x.mean()) ** 2).sum() for x in groups.values())
    everybody = pd.concat(list(groups.values()))
    between = ((everybody - everybody.mean()) ** 2).sum() - within
    result = f_oneway(*groups.values())
    made["anova", "", "F"], made["anova", "", "p"] = float(result.statistic), float(result.pvalue)
    made["anova", "", "df_between"], made["anova", "", "df_within"] = len(groups) - 1, df
    made["anova", "", "eta_squared"] = between / (between + within)
    width = studentized_range.ppf(TOGETHER, len(groups), df)
    for first, second in combinations(groups, 2):
        x, y = groups[first], groups[second]
        difference = x.mean() - y.mean()
        se = np.sqrt(within / df / 2 * (1 / len(x) + 1 / len(y)))
        pair = f"{first} - {second}"
        made["tukey", pair, "difference"] = difference
        made["tukey", pair, "low"], made["tukey", pair, "high"] = (
            difference - width * se,
            difference + width * se,
        )
        made["tukey", pair, "p"] = float(studentized_range.sf(abs(difference) / se, len(groups), df))


def show(made: Numbers, conditions: pd.DataFrame) -> None:
    """Table 1, the ANOVA and all pairs, rounded for people."""

    def cell(part: str, name: str, measure: str, digits: int = 3, scale: float = 1.0) -> str:
        value = made.get((part, name, measure), np.nan)
        return "-" if np.isnan(value) else f"{scale * value:.{digits}f}"

    def p_of(part: str, name: str) -> str:
        value = made.get((part, name, "p"), np.nan)
        return "p < 0.001" if value < 0.001 else f"p = {cell(part, name, 'p')}"

    blocks = sorted({m for part, _, m in made if part == "conditions" and m.startswith("block_")})
    together = f"{100 * TOGETHER:.4g} % together"
    heads = ["condition", "n", *blocks, "mean %", "95 %", "utility", together, "p (Dunnett)"]
    rows = [heads]
    for name, label in zip(conditions["condition"], conditions["label"], strict=True):
        ends = [cell("conditions", name, f"accuracy_{end}", 1, 100) for end in ("low", "high")]
        wide = [cell("utility", name, f"together_{end}", 2) for end in ("low", "high")]
        rows.append(
            [
                str(label),
                cell("conditions", name, "n", 0),
                *(cell("conditions", name, block, 1, 100) for block in blocks),
                cell("conditions", name, "accuracy_mean", 1, 100),
                f"[{ends[0]}, {ends[1]}]",
                cell("utility", name, "utility", 2),
                f"[{wide[0]}, {wide[1]}]" if "-" not in wide else "-",
                cell("dunnett", name, "p"),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    if ("anova", "", "F") in made:
        df = f"{cell('anova', '', 'df_between', 0)}, {cell('anova', '', 'df_within', 0)}"
        print(f"\nOne-way ANOVA of accuracy per person: F({df}) = {cell('anova', '', 'F', 2)}, ", end="")
        print(f"{p_of('anova', '')}, eta squared = {cell('anova', '', 'eta_squared')}")
        print("\nAll pairs (Tukey-Kramer), percentage points:")
        for pair in dict.fromkeys(name for part, name, _ in made if part == "tukey"):
            difference, low, high = (
                cell("tukey", pair, key, 1, 100) for key in ("difference", "low", "high")
            )
            print(f"  {pair}: {difference} [{low}, {high}], {p_of('tukey', pair)}")
    print(f"\nNot re-run here, see the report: {'; '.join(NOT_RE_RUN)}.")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The planned analysis, from the files of this package.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--origin", default="", help="whose sessions; people without it, or the only ones")
    parser.add_argument("--out", type=Path, help="a CSV file, outside the package, for every number")
    options: Any = parser.parse_args(arguments)
    conditions, people, origin = read(options.folder, options.origin)
    made = analyse(conditions, people)
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
