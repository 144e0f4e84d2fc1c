"""`analyse` beyond means: signal detection, correlation, Utility, agreement and looks, by other programs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from django.core.management import CommandError
from scipy import stats as scipy_stats

from analysis.any_table.analyse import AnalysisPlan, analyse, at_look
from analysis.any_table.table import BadTable, Roles, tidy
from analysis.stats.planning.sequential_looks import LookPlan, look_limits
from analysis.stats.ratings import ordinal_model
from tests.analysis.any_table.test_analyse import between, run, table, trials

pytestmark = pytest.mark.pure


def judged(people: int = 24, items: int = 10) -> pd.DataFrame:
    """Half of the items are right; those who see a map say yes to them more often."""
    rng = np.random.default_rng(3)
    rows = [
        (
            f"p{p}",
            "map" if p % 2 else "none",
            f"i{i}",
            i % 2,
            int(rng.random() < 0.3 + 0.2 * (i % 2) * (1 + p % 2)),
        )
        for p in range(people)
        for i in range(items)
    ]
    return pd.DataFrame(rows, columns=["who", "aid", "picture", "is_right", "yes"])


def test_signal_detection_counts_yes_to_right_and_wrong() -> None:
    frame = judged()
    roles = Roles("yes", ("aid",), subject="who", item="picture", signal="is_right")
    rows = {row["level"]: row for row in table(analyse(tidy(frame, roles), AnalysisPlan()), "signal")}
    for aid, part in frame.groupby("aid"):
        hits, rights = part[part["is_right"] == 1]["yes"].sum(), (part["is_right"] == 1).sum()
        false, wrongs = part[part["is_right"] == 0]["yes"].sum(), (part["is_right"] == 0).sum()
        z = scipy_stats.norm.ppf([(hits + 0.5) / (rights + 1), (false + 0.5) / (wrongs + 1)])
        row = rows[aid]
        assert (row["d_prime"], row["criterion"]) == pytest.approx((z[0] - z[1], -z.sum() / 2))
        each = []
        for _, mine in part.groupby("who"):
            counted = mine.groupby("is_right")["yes"].sum()
            each.append(float(np.diff(scipy_stats.norm.ppf((counted + 0.5) / 6))[0]))
        ends = scipy_stats.ttest_1samp(each, 0).confidence_interval()
        assert row["d_prime_of_people"] == pytest.approx(np.mean(each)) and row["people"] == 12
        assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))


def test_signal_detection_names_its_correction_and_refuses_other_signals(tmp_path: Path) -> None:
    options = ("--dv", "yes", "--between", "aid", "--subject", "who", "--item", "picture")
    text = run(tmp_path, judged(), *options, "--signal", "is_right")
    assert "Log-linear correction" in text and "Hautus" in text
    with pytest.raises(CommandError, match="holds 2; a signal is 1"):
        run(tmp_path, judged().assign(is_right=2), *options, "--signal", "is_right")


def test_correlations_draw_people_and_items_whole() -> None:
    frame = trials(people=25, items=30)
    frame["sure"] = frame["ms"] + np.random.default_rng(4).normal(0, 200, len(frame))
    roles = Roles("ms", within=("help",), subject="who", item="picture", correlate="sure")
    rows = table(analyse(tidy(frame, roles), AnalysisPlan()), "correlation")
    assert [(row["kind"], row["drawn"], row["clusters"]) for row in rows] == [
        ("pearson", "people", 25),
        ("pearson", "items", 30),
        ("spearman", "people", 25),
        ("spearman", "items", 30),
    ]
    assert rows[0]["r"] == pytest.approx(scipy_stats.pearsonr(frame["ms"], frame["sure"]).statistic)
    assert rows[2]["r"] == pytest.approx(scipy_stats.spearmanr(frame["ms"], frame["sure"]).statistic)
    assert all(row["fisher_low"] is None and row["low"] is not None for row in rows)


def accuracies() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = [
        (f"p{at}", arm, rng.binomial(21, mean) / 21)
        for arm, mean in (("base", 0.6), ("map", 0.75), ("text", 0.62))
        for at in range(20)
    ]
    return pd.DataFrame([(f"{arm}{who}", arm, y) for who, arm, y in rows], columns=["who", "arm", "share"])


def test_utility_stands_beside_shares_with_a_control_and_its_posterior_decides_nothing(
    tmp_path: Path,
) -> None:
    frame = accuracies()
    text = run(tmp_path, frame, "--dv", "share", "--between", "arm", "--subject", "who", "--control", "base")
    assert "Utility: means over that of base" in text and "Secondary, decides nothing" in text
    results = analyse(tidy(frame, Roles("share", ("arm",), subject="who")), AnalysisPlan(control="base"))
    means = frame.groupby("arm")["share"].mean()
    for row, drawn in zip(table(results, "utility"), table(results, "utility_bayes"), strict=True):
        ratio = means[row["level"]] / means["base"]
        assert row["utility"] == pytest.approx(ratio)
        # Fieller: the ends are the ratios at which the difference is t standard errors away.
        for end in (float(row[name] or 0) for name in ("low", "high")):
            x, y = (frame[frame["arm"] == arm]["share"] for arm in (row["level"], "base"))
            error = np.sqrt(x.var() / 20 + end**2 * y.var() / 20)
            assert abs(x.mean() - end * y.mean()) / error == pytest.approx(2.02, abs=0.08)
        assert drawn["utility"] == pytest.approx(ratio, abs=0.02)
    other = analyse(tidy(between(), Roles("Points", ("Arm",))), AnalysisPlan(control="n"))
    assert not [made for made in other.tables if made.key.startswith("utility")], "points are no shares"


def test_ratings_get_alpha_and_kappa() -> None:
    """Krippendorff's own example (2011, section C): four observers, twelve units, missing ratings."""
    votes = """1 2 3 3 2 1 4 1 2 . . .
               1 2 3 3 2 2 4 1 2 5 . 3
               . 3 3 3 2 3 4 2 2 5 1 .
               1 2 3 3 2 4 4 1 2 5 1 ."""
    rows = [
        (f"r{rater}", f"u{unit:02}", vote)
        for rater, line in enumerate(votes.split("\n"))
        for unit, vote in enumerate(line.split())
    ]
    frame = pd.DataFrame(rows, columns=["rater", "unit", "vote"])
    results = analyse(tidy(frame, Roles("vote", subject="rater", item="unit")), AnalysisPlan())
    alphas = {row["metric"]: row["alpha"] for row in table(results, "alpha")}
    assert alphas == pytest.approx({"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}, abs=6e-4)
    kappas = {(row["first"], row["second"]): row for row in table(results, "kappa")}
    assert len(kappas) == 6 and kappas["r0", "r1"]["rated"] == 9
    # By hand: one pair of nine differs, by one step.
    a, b = np.array([1, 2, 3, 3, 2, 1, 4, 1, 2]), np.array([1, 2, 3, 3, 2, 2, 4, 1, 2])
    chance = np.mean([(x - y) ** 2 for x in a for y in b])
    assert kappas["r0", "r1"]["quadratic"] == pytest.approx(1 - (1 / 9) / chance)


def test_measurements_are_no_ordered_answers() -> None:
    frame = trials()
    results = analyse(
        tidy(frame, Roles("ms", within=("help",), subject="who", item="picture")),
        AnalysisPlan(mixed_model=True),
    )
    assert any("counts as a measurement" in line for line in results.problems)
    assert any("at most 20 ordered levels" in line for line in results.problems)


def test_a_mixed_model_of_more_rows_than_it_takes_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ordinal_model.ROWS_MAX == 200_000
    monkeypatch.setattr(ordinal_model, "ROWS_MAX", 100)
    roles = Roles("right", within=("help",), subject="who", item="picture")
    results = analyse(tidy(trials(), roles), AnalysisPlan(mixed_model=True))
    assert any("There are 192 answers; a mixed model takes 1 to 100" in line for line in results.problems)


@pytest.mark.parametrize("shift", [0.0, 12.0])
def test_a_look_prints_continue_or_stop_and_nothing_else(shift: float, tmp_path: Path) -> None:
    frame = between()
    frame.loc[frame["Arm"] == "r", "Points"] += shift - 10
    words = ("--dv", "Points", "--between", "Arm", "--control", "n", "--looks", "0.5,1", "--look", "1")
    answer = run(tmp_path, frame, *words).strip()
    arms = {name: part["Points"] for name, part in frame.groupby("Arm")}
    pooled = np.sqrt(np.mean([part.var() for part in arms.values()]))
    t = max(abs(arms[name].mean() - arms["n"].mean()) / pooled / np.sqrt(2 / 12) for name in "lr")
    limit = look_limits(LookPlan((0.5, 1.0), alpha=0.025))[0]
    beyond = scipy_stats.norm.isf(scipy_stats.t.sf(t, 33)) >= limit
    assert answer == ("stop" if beyond else "continue")
    assert beyond == (shift > 0) and not re.search(r"\d", answer)


def test_a_look_needs_its_plan(tmp_path: Path) -> None:
    words = ("--dv", "Points", "--between", "Arm", "--look", "1")
    with pytest.raises(CommandError, match="name it by --control"):
        run(tmp_path, between(), *words, "--looks", "0.5,1")
    with pytest.raises(CommandError, match="name the shares of all people by --looks"):
        run(tmp_path, between(), *words, "--control", "n")
    with pytest.raises(CommandError, match="The plan has 2 looks, and 3"):
        run(tmp_path, between(), *words[:-1], "3", "--control", "n", "--looks", "0.5,1")


def test_people_within_conditions_are_looked_at_by_their_differences() -> None:
    roles = Roles("ms", within=("help",), subject="who", item="picture")
    plan = AnalysisPlan(control="plain")
    assert at_look(tidy(trials(), roles), plan, LookPlan((0.5, 1.0)), 1) == "continue"
    frame = trials()
    frame.loc[frame["help"] == "helped", "ms"] += 900
    assert at_look(tidy(frame, roles), plan, LookPlan((0.5, 1.0)), 1) == "stop"


def test_a_written_table_names_the_level_of_its_intervals(tmp_path: Path) -> None:
    words = ("--dv", "Points", "--between", "Arm", "--control", "n", "--margin", "4")
    run(tmp_path, between(), *words, "--out", str(tmp_path / "out"))
    levels = {
        name: set(pd.read_csv(tmp_path / "out" / f"{name}.csv")["confidence_level"])
        for name in ("means", "dunnett", "equivalence")
    }
    assert levels == {"means": {0.95}, "dunnett": {0.95}, "equivalence": {0.90}}
    assert "confidence_level" not in pd.read_csv(tmp_path / "out" / "welch.csv")


def test_a_covariate_beside_factors_within_people_is_refused_with_a_way_out() -> None:
    frame = trials().assign(age=30)
    roles = Roles("right", within=("help",), subject="who", item="picture", covariates=("age",))
    with pytest.raises(BadTable, match="give each person one value"):
        analyse(tidy(frame, roles), AnalysisPlan())


def test_ratings_that_a_condition_separates_have_no_finite_estimate() -> None:
    """Answers of 1 to 3 without help, 4 or 5 with it: the likelihood grows with the effect for ever."""
    rng = np.random.default_rng(18)
    cells = [(who, helped, item) for who in range(8) for helped in ("no", "yes") for item in range(6)]
    frame = pd.DataFrame(cells, columns=["who", "help", "item"])
    frame["points"] = np.where(frame["help"] == "yes", rng.integers(4, 6, 96), rng.integers(1, 4, 96))
    roles = Roles("points", within=("help",), subject="who", item="item")
    problems = analyse(tidy(frame, roles), AnalysisPlan(mixed_model=True)).problems
    (told,) = (text for text in problems if text.startswith("Mixed model"))
    assert "yes: no finite estimate, as some answer never came there, or always" in told


def test_one_and_the_same_answer_of_everybody_is_called_that() -> None:
    frame = pd.DataFrame({"who": list("aabbcc"), "item": [1, 2] * 3, "points": [3] * 6})
    problems = analyse(tidy(frame, Roles("points", subject="who", item="item")), AnalysisPlan()).problems
    assert (
        "Alpha and kappa: everybody gave one and the same answer (3), so agreement is not defined."
        in problems
    )
