"""The report follows the plan that its study declares: contrasts, level, smallest effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import dunnett, ttest_ind, tukey_hsd
from scipy.stats import t as student

from analysis.facts import StudyFacts
from analysis.planning.study_power import power_of
from analysis.reports.base import Section
from analysis.reports.meta_predictor.report import report
from analysis.reports.report import Report
from analysis.stats.planning.anova_power import anova_power
from experiments.definition.study import StudyDefinition
from experiments.paradigms.base import Plan
from tests.analysis.stored import definition
from tests.analysis.worlds import facts, frames_of

NAMES = ("baseline", "control", "grad_cam")


def declared(**plan: Any) -> StudyFacts:
    return replace(facts(NAMES, wanted=20), preregistration={"stored": True, "document": plan})


def people(seed: int = 3) -> dict[str, Any]:
    """The control is as good as the baseline, Grad-CAM better."""
    draws = np.random.default_rng(seed)
    shares = {"baseline": 0.5, "control": 0.5, "grad_cam": 0.75}
    return {name: draws.binomial(7, share, (20, 3)) for name, share in shares.items()}


def of_plan(**plan: Any) -> Report:
    return report(frames_of(people()), declared(**plan))


def keys(made: Report) -> list[str]:
    return [section.key for section in made.sections]


def section(made: Report, key: str) -> Section:
    return next(section for section in made.sections if section.key == key)


def test_contrasts_with_the_baseline_lead_if_nothing_else_is_declared() -> None:
    made = of_plan()
    assert keys(made).index("planned") < keys(made).index("tukey")
    assert section(made, "planned").title == "Planned contrasts with the baseline"
    assert section(made, "planned").content["is_planned"] and not section(made, "tukey").content["is_planned"]
    assert "smallest_effect" not in keys(made)


def test_all_pairs_lead_if_they_are_declared() -> None:
    made = of_plan(contrasts="tukey")
    assert keys(made).index("tukey") < keys(made).index("planned")
    assert section(made, "tukey").title.startswith("Planned")
    assert section(made, "planned").title.startswith("Exploratory")
    assert section(made, "tukey").content["is_planned"] and not section(made, "planned").content["is_planned"]
    (terminal,) = [main.table for main in made.main if main.table and main.table.key != "conditions"]
    assert terminal.key == "tukey"


@pytest.mark.parametrize("contrasts", ["dunnett", "tukey"])
def test_p_and_stars_are_those_of_the_declared_contrasts(contrasts: str) -> None:
    made = of_plan(contrasts=contrasts)
    row = next(row for row in section(made, "conditions").content if row["name"] == "grad_cam")
    pairs = section(made, "tukey").content["pairs"]
    tukey = next(p["p"] for p in pairs if {p["first"], p["second"]} == {"baseline", "grad_cam"})
    contrast = next(c for c in section(made, "planned").content["contrasts"] if c["condition"] == "grad_cam")
    assert tukey != contrast["p"]
    assert row["planned_p"] == (tukey if contrasts == "tukey" else contrast["p"])
    table = made.tables()["conditions"]
    assert table.columns[-1] == f"p ({contrasts.capitalize()})"
    assert contrasts.capitalize() in table.note
    starred = {key: "*" in str(made.tables()[key].rows) for key in ("planned", "tukey")}
    assert starred == {"planned": contrasts == "dunnett", "tukey": contrasts == "tukey"}


def test_stars_and_sentences_follow_the_declared_level() -> None:
    """The same p lies on either side of two levels that are put around it."""
    p = section(of_plan(), "anova").content["p"]
    for alpha, said in ((p * 2, "accuracy differs"), (p / 2, "no difference in accuracy")):
        assert said in section(of_plan(alpha=alpha), "anova").paragraphs[0]
    row = next(row for row in section(of_plan(), "conditions").content if row["name"] == "grad_cam")
    for alpha, is_starred in ((row["planned_p"] * 2, True), (row["planned_p"] / 2, False)):
        cells = of_plan(alpha=alpha).tables()["conditions"].rows[2]
        assert ("*" in str(cells)) == is_starred


def shown(made: Report) -> str:
    """The headings, notes and captions of all that is planned, and of the figure and table that lead."""
    tables = [made.tables()[key] for key in ("planned", "tukey", "conditions")]
    parts = [text for table in (*tables, *made.papers) for text in (*table.columns, *table.short, table.note)]
    return " ".join([*parts, *section(made, "answer").paragraphs, section(made, "answer").figures[0].caption])


@pytest.mark.parametrize(("alpha", "words"), [(None, "95 %"), (0.01, "99 %"), (0.001, "99.9 %")])
def test_intervals_of_planned_contrasts_have_the_declared_level(alpha: float | None, words: str) -> None:
    """Dunnett's and Tukey's by scipy; what only describes stays at 95 % and says so."""
    made = of_plan(alpha=alpha)
    level = 1 - (alpha or 0.05)
    base, *others = (people()[name].sum(axis=1) / 21 for name in NAMES)
    wide = dunnett(*others, control=base, rng=1).confidence_interval(level)
    ends = [contrast["ci"] for contrast in section(made, "planned").content["contrasts"]]
    assert np.array(ends) == pytest.approx(np.column_stack([wide.low, wide.high]), abs=2e-3)
    pairs = tukey_hsd(base, *others).confidence_interval(level)
    told = [pair["ci"] for pair in section(made, "tukey").content["pairs"]]
    above = [(0, 1), (0, 2), (1, 2)]
    assert np.array(told) == pytest.approx(
        np.array([[pairs.low[place], pairs.high[place]] for place in above]), abs=1e-6
    )
    text = shown(made)
    assert made.tables()["planned"].columns[2] == made.tables()["tukey"].columns[2] == f"{words} interval"
    assert f"{words}, together" in text and f"simultaneous {words} intervals" in text
    for describes in ("Student's t over people, 95 %", "the 95 % interval of one condition alone"):
        assert describes in text
        text = text.replace(describes, "")
    # What is left with another alpha is the column of mean accuracy.
    assert alpha is None or text.count("95 %") == 1
    assert made.tables()["conditions"].columns.count("95 % interval") == 1
    row = section(made, "conditions").content[2]["intervals"]
    assert (row["level"], row["simultaneous_level"]) == (0.95, level)


def test_the_bar_of_utility_has_the_declared_level() -> None:
    """With one contrast all that hold together are one: Fieller's limits are where the t of a - R b is its
    quantile."""
    names, alpha = ("baseline", "grad_cam"), 0.01
    told = replace(facts(names, wanted=20), preregistration={"stored": True, "document": {"alpha": alpha}})
    made = report(frames_of({name: people()[name] for name in names}), told)
    ends = section(made, "conditions").content[1]["intervals"]["utility_simultaneous"]
    a, b = (people()[name].sum(axis=1) / 21 for name in reversed(names))
    va, vb, ratio = a.var(ddof=1) / 20, b.var(ddof=1) / 20, a.mean() / b.mean()
    df = (va + ratio**2 * vb) ** 2 / (va**2 / 19 + (ratio**2 * vb) ** 2 / 19)
    for end in ends:
        t = abs(a.mean() - end * b.mean()) / np.sqrt(va + end**2 * vb)
        assert t == pytest.approx(student.ppf(1 - alpha / 2, df), abs=1e-4)


def test_each_planned_contrast_stands_against_the_smallest_effect() -> None:
    """Welch's two one-sided tests, by scipy."""
    made = of_plan(smallest_effect={"points": 15.0})
    told = {row["condition"]: row for row in section(made, "smallest_effect").content["contrasts"]}
    assert set(told) == {"control", "grad_cam"}
    accuracy = {name: counts.sum(axis=1) / 21 for name, counts in people().items()}
    for name in told:
        x, y = accuracy[name], accuracy["baseline"]
        upper = ttest_ind(x - 0.15, y, equal_var=False, alternative="less").pvalue
        lower = ttest_ind(x + 0.15, y, equal_var=False, alternative="greater").pvalue
        assert told[name]["p"] == pytest.approx(max(upper, lower))
    assert told["control"]["decision"] == "equivalent" and told["grad_cam"]["decision"] != "equivalent"
    sentences = " ".join(section(made, "smallest_effect").paragraphs)
    smaller = "Smaller than the declared smallest effect, 15 percentage points"
    assert f"{smaller}, by Holm's correction over 2 pairs: Control \N{MINUS SIGN} Baseline." in sentences


def test_a_contrast_that_decides_nothing_is_called_inconclusive() -> None:
    made = of_plan(smallest_effect={"points": 0.5})
    told = {row["condition"]: row for row in section(made, "smallest_effect").content["contrasts"]}
    assert told["control"]["decision"] == "inconclusive"
    x, y = (people()[name].sum(axis=1) / 21 for name in ("control", "baseline"))
    se2 = [v.var(ddof=1) / 20 for v in (x, y)]
    df = sum(se2) ** 2 / sum(part**2 / 19 for part in se2)
    half = student.ppf(0.95, df) * sum(se2) ** 0.5
    difference = x.mean() - y.mean()
    assert told["control"]["interval_narrow"] == pytest.approx([difference - half, difference + half])


def test_what_only_holds_by_itself_is_said_apart() -> None:
    """Holm's corrected p by its definition; at a level between p and corrected p only the pair by itself is
    smaller."""
    effect = {"points": 15.0}
    first = section(of_plan(smallest_effect=effect), "smallest_effect")
    told = {row["condition"]: row for row in first.content["contrasts"]}
    p = {name: row["p"] for name, row in told.items()}
    assert p["control"] < p["grad_cam"]
    assert told["control"]["p_holm"] == pytest.approx(2 * p["control"])
    assert told["grad_cam"]["p_holm"] == pytest.approx(max(2 * p["control"], p["grad_cam"]))
    strict = section(of_plan(smallest_effect=effect, alpha=1.5 * p["control"]), "smallest_effect")
    row = next(row for row in strict.content["contrasts"] if row["condition"] == "control")
    assert (row["decision"], row["decision_alone"]) == ("inconclusive", "equivalent")
    assert "if the pair is taken by itself and not corrected: Control" in strict.paragraphs[-1]
    level = f"{100 * (1 - 3 * p['control']):.4g} % interval"
    assert strict.tables[0].columns[4] == level and "by itself" not in " ".join(first.paragraphs)


def test_a_large_effect_is_told_by_holm_as_by_its_interval() -> None:
    """Of one pair, which needs no correction, the finding is that of the wide interval, on either side."""
    names = ("baseline", "grad_cam")
    for low, high, decision in ((0.3, 0.9, "superior"), (0.9, 0.3, "worse")):
        draws = np.random.default_rng(5)
        came = {name: draws.binomial(7, p, (20, 3)) for name, p in zip(names, (low, high), strict=True)}
        plan = {"stored": True, "document": {"smallest_effect": {"points": 5.0}}}
        made = report(frames_of(came), replace(facts(names, wanted=20), preregistration=plan))
        (row,) = section(made, "smallest_effect").content["contrasts"]
        assert row["decision"] == row["decision_alone"] == decision
        assert "Holm" not in " ".join(section(made, "smallest_effect").paragraphs)


def test_a_smallest_effect_in_deviations_is_one_of_people_within_conditions() -> None:
    made = of_plan(smallest_effect={"d": 0.5}, contrasts="tukey")
    content = section(made, "smallest_effect").content
    accuracy = [counts.sum(axis=1) / 21 for counts in people().values()]
    pooled = np.sqrt(np.mean([values.var(ddof=1) for values in accuracy]))
    assert content["margin"] == pytest.approx(0.5 * pooled)
    assert len(content["contrasts"]) == 3


def test_nothing_against_the_smallest_effect_is_told_while_results_are_sealed() -> None:
    sealed = replace(
        facts(NAMES, wanted=20, kept=3, state="open"),
        preregistration={"stored": True, "document": {"smallest_effect": {"points": 5}}},
    )
    made = report(frames_of(people()), sealed)
    assert made.seal.sealed and "smallest_effect" not in keys(made)


def test_the_power_is_that_of_the_declared_level() -> None:
    plain = definition(20)
    strict = StudyDefinition.model_validate({**plain.model_dump(), "preregistration": {"alpha": 0.01}})
    power = power_of(strict, [Plan(0, "participant", "baseline", "baseline", ())])
    assert power is not None and "alpha 0.01" in power.title
    assert power.rows[1][1] == pytest.approx(anova_power([20, 20, 20], 0.25, alpha=0.01))
