"""A report beside the script that a researcher would write: both from the tables of one exported package.

Run as `python -m benchmarks.beside SIDE PACKAGE`; SIDE is "plain" (pandas, pingouin, statsmodels) or "tests"
(ours: the package's tables and the same tests). Prints F and Tukey's p as JSON.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

CLOSE = 1e-9
"""How far numbers that are the same may differ."""
SIDES = ("plain", "tests", "report")
WORDS: Mapping[str, str] = {
    "plain": "read_csv, groupby, pingouin, statsmodels",
    "tests": "ours: checked tables, the same tests",
    "report": "ours: report --from, whole",
}
MORE = (
    "The second does more: all columns that reports read, of declared types, and the tables of participants "
    "and stimuli. The third besides: digests of all files, flow, Utility with Fieller's intervals and the "
    "bootstrap, Dunnett, effect sizes, results as assigned, items, times; files of figures and tables."
)
"""What the ratios do not show."""
Outcome = dict[str, float]
"""F, and p by the names of a pair."""


def plain(package: Path) -> Outcome:
    """As in a notebook: one table, means of people, two libraries."""
    import pandas as pd
    import pingouin
    from statsmodels.stats.multicomp import pairwise_tukeyhsd

    trials = pd.read_csv(package / "trials.csv")
    scored = trials[trials["scored_index"].notna()]
    people = scored.groupby(["condition", "session"], as_index=False)["matches_model"].mean()
    f = pingouin.anova(data=people, dv="matches_model", between="condition")["F"].iloc[0]
    tukey = pairwise_tukeyhsd(people["matches_model"], people["condition"])
    pairs = [", ".join(pair) for pair in combinations(tukey.groupsunique, 2)]
    return {"F": float(f), **dict(zip(pairs, map(float, tukey.pvalues), strict=True))}


def tests(package: Path) -> Outcome:
    """The same numbers by our reading and our tests."""
    from analysis.exports.study_facts_file import read_study_file, read_tables
    from analysis.reports import READ
    from analysis.reports.utility.accuracy_anova import person_scores
    from analysis.stats.means.anova import one_way
    from analysis.stats.means.tukey_and_corrections import tukey_kramer

    people, _ = person_scores(read_tables(package, read_study_file(package), READ))
    groups = {str(name): given["accuracy"].to_numpy() for name, given in people.groupby("condition")}
    pairs = {", ".join(sorted((pair.first, pair.second))): pair.p for pair in tukey_kramer(groups).pairs}
    return {"F": one_way(groups).f, **pairs}


def differing(first: Outcome, second: Outcome) -> list[str]:
    """Which numbers are not the same in both; none if all are."""
    return [
        f"{name}: {first.get(name)} and {second.get(name)}"
        for name in sorted(first.keys() | second.keys())
        if not math.isclose(
            first.get(name, math.nan), second.get(name, math.nan), rel_tol=CLOSE, abs_tol=CLOSE
        )
    ]


def main() -> None:
    import django

    made: Mapping[str, Callable[[Path], Outcome]] = {"plain": plain, "tests": tests}
    side, package = sys.argv[1:]
    if side == "tests":
        django.setup()
    print(json.dumps(made[side](Path(package))))


if __name__ == "__main__":
    main()
