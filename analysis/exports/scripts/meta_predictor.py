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

from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import chi2, f_oneway, norm, studentized_range, t

from analysis.exports.scripts.steps import LEVEL, Numbers, cell, kept, names_in, print_rows, run, table

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


def people_of(trials: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """One row per kept session: condition, accuracy, accuracy by block."""
    # Only scored trials have a value here: training and checks have none.
    hits = trials.assign(hit=pd.to_numeric(trials["matches_model"], errors="coerce"))
    scored = hits[hits["hit"].notna()]
    blocks = scored.pivot_table(index="session", columns="block", values="hit", aggfunc="mean")
    blocks.columns = [f"block_{int(block) + 1}" for block in blocks.columns]
    accuracy = scored.groupby("session")["hit"].mean().rename("accuracy")
    condition = people.set_index("session")["condition"]
    return pd.concat([condition, accuracy, blocks], axis=1, join="inner")


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
    shown = partial(cell, made)

    def p_of(part: str, name: str) -> str:
        value = made.get((part, name, "p"), np.nan)
        return "p < 0.001" if value < 0.001 else f"p = {shown(part, name, 'p')}"

    blocks = sorted({m for part, _, m in made if part == "conditions" and m.startswith("block_")})
    together = f"{100 * TOGETHER:.4g} % together"
    heads = ["condition", "n", *blocks, "mean %", "95 %", "utility", together, "p (Dunnett)"]
    rows = [heads]
    for name, label in zip(conditions["condition"], conditions["label"], strict=True):
        ends = [shown("conditions", name, f"accuracy_{end}", 1, 100) for end in ("low", "high")]
        wide = [shown("utility", name, f"together_{end}", 2) for end in ("low", "high")]
        rows.append(
            [
                str(label),
                shown("conditions", name, "n", 0),
                *(shown("conditions", name, block, 1, 100) for block in blocks),
                shown("conditions", name, "accuracy_mean", 1, 100),
                f"[{ends[0]}, {ends[1]}]",
                shown("utility", name, "utility", 2),
                f"[{wide[0]}, {wide[1]}]" if "-" not in wide else "-",
                shown("dunnett", name, "p"),
            ]
        )
    print_rows(rows)
    if ("anova", "", "F") in made:
        df = f"{shown('anova', '', 'df_between', 0)}, {shown('anova', '', 'df_within', 0)}"
        print(f"\nOne-way ANOVA of accuracy per person: F({df}) = {shown('anova', '', 'F', 2)}, ", end="")
        print(f"{p_of('anova', '')}, eta squared = {shown('anova', '', 'eta_squared')}")
        print("\nAll pairs (Tukey-Kramer), percentage points:")
        for pair in names_in(made, "tukey"):
            difference, low, high = (
                shown("tukey", pair, key, 1, 100) for key in ("difference", "low", "high")
            )
            print(f"  {pair}: {difference} [{low}, {high}], {p_of('tukey', pair)}")


def read(folder: Path, people: pd.DataFrame) -> tuple[Numbers, pd.DataFrame]:
    conditions = table(folder, "conditions").astype({"wanted": int})
    rows = people_of(kept(table(folder, "trials"), people), people)
    return analyse(conditions, rows), conditions


if __name__ == "__main__":
    run(read, show, NOT_RE_RUN)
