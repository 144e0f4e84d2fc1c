"""The command for anybody's table: the functions' numbers for foreign column names, and clear refusals."""

from __future__ import annotations

import contextlib
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pingouin
import pytest
from django.core.management import CommandError, call_command
from statsmodels.stats.weightstats import ttost_paired

from analysis.any_table.analyse import AnalysisPlan, analyse
from analysis.any_table.result_tables import Results, ResultTable
from analysis.any_table.table import BadTable, Roles, tidy
from analysis.stats.intervals_and_checks import Row

pytestmark = pytest.mark.pure


def between(people: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = [
        (f"p{at}", "nlr"[at % 3], 20 + at % 7, rng.normal(50 + 5 * (at % 3), 6)) for at in range(3 * people)
    ]
    return pd.DataFrame(rows, columns=["Person", "Arm", "Age", "Points"])


def trials(people: int = 12, items: int = 8) -> pd.DataFrame:
    """Every person answers every item in both conditions; the second helps."""
    rng = np.random.default_rng(2)
    rows = [
        (
            f"p{p}",
            "plain" if c == 0 else "helped",
            f"i{i}",
            int(rng.random() < 0.5 + 0.2 * c),
            400 + rng.exponential(300),
        )
        for p in range(people)
        for c in (0, 1)
        for i in range(items)
    ]
    return pd.DataFrame(rows, columns=["who", "help", "picture", "right", "ms"])


def table(results: Results, key: str) -> list[Row]:
    (made,) = [made for made in results.tables if made.key == key]
    return made.rows


def run(folder: Path, frame: pd.DataFrame, *options: str) -> str:
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return run_on(path, *options)


def run_on(path: Path, *options: str) -> str:
    out = StringIO()
    with contextlib.redirect_stdout(out):
        call_command("analyse", str(path), *options)
    return out.getvalue()


def test_groups_get_the_f_p_and_intervals_of_other_programs() -> None:
    frame = between()
    results = analyse(tidy(frame, Roles("Points", ("Arm",), subject="Person")), AnalysisPlan())
    (anova,) = table(results, "anova")
    theirs = pingouin.anova(data=frame, dv="Points", between="Arm").iloc[0]
    assert (anova["f"], anova["p"]) == pytest.approx((theirs["F"], theirs["p_unc"]))
    (welch,) = table(results, "welch")
    other = pingouin.welch_anova(data=frame, dv="Points", between="Arm").iloc[0]
    assert (welch["f"], welch["p"]) == pytest.approx((other["F"], other["p_unc"]))
    pairs = pingouin.pairwise_tukey(data=frame, dv="Points", between="Arm")
    ours = {frozenset((str(row["first"]), str(row["second"]))): row["p"] for row in table(results, "tukey")}
    for row in pairs.itertuples():
        assert ours[frozenset((row.A, row.B))] == pytest.approx(row.p_tukey, rel=1e-5)
    assert [row["level"] for row in table(results, "means")] == ["n", "l", "r"]


def test_a_control_plans_dunnett_with_tukey_beside_it(tmp_path: Path) -> None:
    text = run(tmp_path, between(), "--dv", "Points", "--between", "Arm", "--control", "n", "--margin", "4")
    assert "Planned: each level against n, Dunnett, equal variances" in text
    assert "All pairs, Tukey-Kramer" in text and "Equivalence within 4" in text
    assert "Tests speak of people like these" in text and "n = 36 people" in text


@pytest.mark.parametrize("plan", ["tukey", "games_howell", "dunnett"])
def test_each_plan_is_the_planned_one(plan: str, tmp_path: Path) -> None:
    control = ("--control", "n", "--separate-variances") if plan == "dunnett" else ()
    text = run(tmp_path, between(), "--dv", "Points", "--between", "Arm", "--plan", plan, *control)
    (planned,) = [line for line in text.splitlines() if line.startswith("Planned")]
    assert {"tukey": "Tukey", "games_howell": "Games-Howell", "dunnett": "separate variances"}[
        plan
    ] in planned


def test_people_within_conditions_are_compared_with_themselves() -> None:
    frame = trials()
    results = analyse(
        tidy(frame, Roles("right", within=("help",), subject="who", item="picture")), AnalysisPlan()
    )
    means = frame.groupby(["who", "help"])["right"].mean().unstack()
    (effect,) = table(results, "repeated")
    t = pingouin.ttest(means["plain"], means["helped"], paired=True).iloc[0]
    assert (effect["f"], effect["p"]) == pytest.approx((t["T"] ** 2, t["p_val"]))
    (pair,) = table(results, "paired")
    assert pair["difference"] == pytest.approx(float((means["plain"] - means["helped"]).mean()))
    assert "Each person's cell is the mean of 8 items." in results.notes
    assert any("on these 8 items" in note for note in results.notes)


def test_two_factors_within_agree_with_pingouin() -> None:
    """The rows of the file stand in no order, and "none" is a level like others."""
    rng = np.random.default_rng(6)
    rows = [
        (f"p{p}", look, size, rng.normal(3 * (look == "map") + (size == "big"), 2))
        for p in range(9)
        for size in ("small", "big")
        for look in ("none", "map", "text")
    ]
    frame = pd.DataFrame(rows, columns=["who", "look", "size", "points"]).sample(frac=1, random_state=3)
    results = analyse(tidy(frame, Roles("points", within=("look", "size"), subject="who")), AnalysisPlan())
    ours = {row["name"]: row for row in table(results, "repeated")}
    theirs = pingouin.rm_anova(data=frame, dv="points", within=["look", "size"], subject="who")
    for row in theirs.set_index("Source").itertuples():
        mine = ours[row.Index.replace("*", "x")]
        assert (mine["f"], mine["p"], mine["p_gg"]) == pytest.approx((row.F, row.p_unc, row.p_GG_corr))
    means = {row["level"]: row["mean"] for row in table(results, "means")}
    by_hand = frame.groupby(["look", "size"])["points"].mean()
    assert means == pytest.approx({" / ".join(key): value for key, value in by_hand.items()})


def test_a_mixed_design_agrees_with_pingouin() -> None:
    frame = trials().groupby(["who", "help"], sort=False, as_index=False)["ms"].mean()
    frame["site"] = ["a" if int(name[1:]) < 6 else "b" for name in frame["who"]]
    roles = Roles("ms", ("site",), ("help",), "who")
    rows = {row["name"]: row for row in table(analyse(tidy(frame, roles), AnalysisPlan()), "repeated")}
    theirs = pingouin.mixed_anova(
        data=frame, dv="ms", within="help", between="site", subject="who"
    ).set_index("Source")
    for mine, other in (("site", "site"), ("help", "help"), ("site x help", "Interaction")):
        assert rows[mine]["f"] == pytest.approx(theirs.loc[other, "F"])


def test_a_covariate_makes_it_an_analysis_of_covariance() -> None:
    frame = between()
    roles = Roles("Points", ("Arm",), subject="Person", covariates=("Age",))
    results = analyse(tidy(frame, roles), AnalysisPlan(sum_of_squares="II"))
    theirs = pingouin.ancova(data=frame, dv="Points", covar="Age", between="Arm").set_index("Source")
    rows = {row["name"]: row for row in table(results, "factorial")}
    assert rows["Arm"]["f"] == pytest.approx(theirs.loc["Arm", "F"])
    assert rows["Age"]["p"] == pytest.approx(theirs.loc["Age", "p_unc"])
    assert len(table(results, "adjusted")) == 3


def test_answers_of_one_row_per_person_are_shares() -> None:
    frame = pd.DataFrame({"arm": ["a"] * 20 + ["b"] * 20, "yes": [1] * 15 + [0] * 5 + [1] * 8 + [0] * 12})
    results = analyse(tidy(frame, Roles("yes", ("arm",))), AnalysisPlan(control="a", margin=0.1))
    first, second = table(results, "shares")
    assert (first["share"], second["share"]) == (0.75, 0.4)
    assert second["odds_ratio"] == pytest.approx(8 * 5 / (12 * 15))
    (equivalence,) = table(results, "equivalence")
    assert equivalence["decision"] == "inconclusive" and "Equal shares, chi-square" in " ".join(results.notes)


def test_items_reliability_mixed_model_and_times_are_told_if_they_are_named(tmp_path: Path) -> None:
    frame = trials(people=14)
    text = run(
        tmp_path, frame, "--dv", "right", "--within", "help", "--subject", "who", "--item", "picture",
        "--times", "ms", "--control", "plain", "--mixed-model", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    for title in ("Mixed model: help against plain", "Split-half reliability", "ms on the log scale",
                  "Accuracy by speed", "Wilcoxon's signed ranks"):  # fmt: skip
        assert title in text, title
    written = pd.read_csv(tmp_path / "out" / "paired.csv")
    means = frame.groupby(["who", "help"])["right"].mean().unstack()
    assert written.loc[0, "difference"] == pytest.approx((means["helped"] - means["plain"]).mean(), rel=1e-15)
    assert "notes.txt" in text and (tmp_path / "out" / "notes.txt").read_text().startswith(
        "Each person's cell"
    )
    with pytest.raises(CommandError, match="cannot be written"):
        run(tmp_path, frame, "--dv", "right", "--within", "help", "--subject", "who", "--item", "picture",
            "--out", str(tmp_path / "out"))  # fmt: skip


def test_items_of_one_condition_get_their_statistics() -> None:
    frame = trials()[lambda rows: rows["help"] == "plain"]
    frame["arm"] = ["a" if int(name[1:]) % 2 else "b" for name in frame["who"]]
    roles = Roles("right", ("arm",), subject="who", item="picture")
    rows = table(analyse(tidy(frame, roles), AnalysisPlan()), "items")
    by_hand = frame.groupby("picture")["right"].mean()
    assert {row["item"]: row["difficulty"] for row in rows} == pytest.approx(by_hand.to_dict())


def refused(frame: pd.DataFrame, roles: Roles, plan: AnalysisPlan | None = None) -> str:
    with pytest.raises(BadTable) as error:
        analyse(tidy(frame, roles), plan or AnalysisPlan())
    return str(error.value)


def test_it_names_the_columns_that_are_there() -> None:
    assert refused(between(), Roles("Score", ("Arm",))) == (
        "There is no column 'Score'; the table has: Person, Arm, Age, Points."
    )
    assert "'Arm' is named for two roles" in refused(between(), Roles("Points", ("Arm",), subject="Arm"))


def test_it_refuses_repeated_cells_unless_the_items_are_named() -> None:
    text = refused(trials(), Roles("right", within=("help",), subject="who"))
    assert "24 cells have several rows, the first is p0, plain with 8" in text and "--item" in text
    doubled = pd.concat([trials(), trials().head(1)])
    text = refused(doubled, Roles("right", within=("help",), subject="who", item="picture"))
    assert "p0, plain, i0 stands in 2 rows" in text


def test_missing_values_are_counted_and_named(tmp_path: Path) -> None:
    frame = between()
    frame["Points"] = frame["Points"].astype(object)
    frame.loc[[2, 5], "Points"] = ["", "NA"]
    text = run(tmp_path, frame, "--dv", "Points", "--between", "Arm", "--subject", "Person")
    assert "Points is missing in 2 of 36 rows (lines 4, 7)." in text
    assert "2 rows with a missing value are left out, 34 remain." in text and "n = 34 people" in text


def test_a_level_that_missing_values_emptied_is_named() -> None:
    """The others are compared as in a table that never had it."""
    frame = between()
    without = frame[frame["Arm"] != "l"]
    frame.loc[frame["Arm"] == "l", "Points"] = np.nan
    results = analyse(tidy(frame, Roles("Points", ("Arm",))), AnalysisPlan())
    assert "Arm: l has no row without a missing value and is not compared." in results.notes
    same = analyse(tidy(without, Roles("Points", ("Arm",))), AnalysisPlan())
    assert table(results, "anova") == table(same, "anova")
    assert not any("not compared" in note for note in same.notes)
    frame.loc[frame["Arm"] == "r", "Points"] = np.inf
    assert refused(frame, Roles("Points", ("Arm",))) == (
        "Column 'Arm' has one value only (n); l, r has no row without a missing value, so nothing can be "
        "compared; look at the missing values."
    )


def test_a_group_whose_people_all_lack_a_cell_is_named() -> None:
    frame = trials()
    frame["arm"] = frame["who"].map(lambda who: "abc"[int(who[1:]) % 3])
    frame = frame[(frame["arm"] != "b") | (frame["help"] == "plain")]
    results = analyse(
        tidy(frame, Roles("right", ("arm",), ("help",), subject="who", item="picture")), AnalysisPlan()
    )
    assert "arm: b has no person with all cells and is not compared." in results.notes


def test_nothing_has_no_sign_in_print() -> None:
    made = ResultTable("x", "X", [{"difference": -0.0, "gap": -0.25, "t": 0.0}]).printable()
    assert made.rows == (("0", "\N{MINUS SIGN}0.25", "0"),)


def test_infinite_values_are_called_so() -> None:
    frame = between()
    frame.loc[0, "Points"] = np.inf
    results = analyse(tidy(frame, Roles("Points", ("Arm",))), AnalysisPlan())
    assert "Points is missing or infinite in 1 of 36 rows (row 2)." in results.notes


def test_people_within_conditions_are_held_against_the_smallest_effect() -> None:
    """Witness: statsmodels' paired test of the people's means."""
    roles = Roles("right", within=("help",), subject="who", item="picture")
    (row,) = table(analyse(tidy(trials(), roles), AnalysisPlan(control="plain", margin=0.3)), "equivalence")
    means = trials().pivot_table(index="who", columns="help", values="right")
    p, low, _ = ttost_paired(means["helped"].to_numpy(), means["plain"].to_numpy(), -0.3, 0.3)
    assert (row["first"], row["second"], row["margin"]) == ("helped", "plain", 0.3)
    assert (row["p_equivalent"], row["p_noninferior"]) == pytest.approx((p, low[1]))


def test_an_option_that_the_design_does_not_use_is_refused() -> None:
    within = Roles("right", within=("help",), subject="who", item="picture")
    two = Roles("Points", ("Arm", "Age"))
    for roles, frame, plan, words in [
        (two, between(), AnalysisPlan(margin=1), "with 2 factors leave it out"),
        (Roles("Points"), between(), AnalysisPlan(margin=1), "with 0 factors leave it out"),
        (within, trials(), AnalysisPlan(plan="games_howell"), "one factor between people"),
        (within, trials(), AnalysisPlan(separate_variances=True), "one factor between people"),
        (two, between(), AnalysisPlan(plan="tukey"), "one factor between people"),
        (Roles("Points", ("Arm",)), between(), AnalysisPlan(separate_variances=True), "name its --control"),
        (
            Roles("Points", ("Arm",)),
            between(),
            AnalysisPlan(control="n", plan="games_howell", separate_variances=True),
            "of Dunnett's test",
        ),
        (Roles("Points", ("Arm",)), between(), AnalysisPlan(correction="bh"), "pairs within people"),
    ]:
        assert words in refused(frame, roles, plan)


def test_people_without_a_cell_are_left_out_and_named() -> None:
    frame = trials()[lambda rows: ~((rows["who"] == "p3") & (rows["help"] == "plain"))]
    results = analyse(
        tidy(frame, Roles("right", within=("help",), subject="who", item="picture")), AnalysisPlan()
    )
    assert "1 people lack a cell and are left out: p3." in results.notes
    assert any(note.startswith("n = 11 people") for note in results.notes)


def test_it_refuses_text_one_group_and_an_empty_table() -> None:
    frame = between()
    frame["Points"] = ["yes", "no", "7"] * 12
    assert "holds text in 24 rows ('yes' in row 2, 'no' in row 3" in refused(frame, Roles("Points", ("Arm",)))
    frame["Points"] = ["7,5", "1", "-0,25"] * 12
    assert "numbers are needed: write decimals with a point." in refused(frame, Roles("Points", ("Arm",)))
    frame = between()
    assert "one value only (n)" in refused(frame[frame["Arm"] == "n"], Roles("Points", ("Arm",)))
    assert "has no rows" in refused(frame.head(0), Roles("Points", ("Arm",)))
    frame["Points"] = np.nan
    assert "No row has all of Points, Arm" in refused(frame, Roles("Points", ("Arm",)))


def test_it_refuses_designs_that_are_not_covered() -> None:
    frame = trials()
    assert "add --subject" in refused(frame, Roles("right", within=("help",)))
    assert "12 people (p0, p1, p2 and 9 more) with more than one value of 'help'" in refused(
        frame, Roles("right", ("help",), subject="who", item="picture")
    )
    assert "is no level; the levels are: n, l, r" in refused(
        between(), Roles("Points", ("Arm",)), AnalysisPlan(control="z")
    )
    assert "by --control" in refused(between(), Roles("Points", ("Arm",)), AnalysisPlan(plan="dunnett"))
    assert "needs --subject, --item" in refused(
        between(), Roles("Points", ("Arm",)), AnalysisPlan(mixed_model=True)
    )
    assert "The seed is -1" in refused(between(), Roles("Points", ("Arm",)), AnalysisPlan(seed=-1))
    assert "add --between" in refused(between(), Roles("Points", covariates=("Age",)))


def test_times_that_are_none_leave_a_sentence() -> None:
    frame = trials()
    frame.loc[frame.index[0], "ms"] = 0
    roles = Roles("right", within=("help",), subject="who", item="picture", times="ms")
    results = analyse(tidy(frame, roles), AnalysisPlan())
    assert "Response times of plain: one is not above 0; drop such rows." in results.problems
    assert [row["level"] for row in table(results, "times")] == ["helped"]
    by_hand = np.log(frame[frame["help"] == "helped"].set_index("who")["ms"]).groupby("who").mean()
    assert table(results, "times")[0]["geometric_mean"] == pytest.approx(np.exp(by_hand.mean()))


def test_a_procedure_that_is_not_defined_leaves_a_sentence() -> None:
    frame = pd.DataFrame({"arm": list("aabb"), "points": [1, 1, 2, 3]})
    results = analyse(tidy(frame, Roles("points", ("arm",))), AnalysisPlan())
    (stopped,) = (titles for why, titles in results.refused.items() if why.startswith("Group 'a' has no var"))
    assert "points by arm: Welch" in stopped and len(stopped) == len(set(stopped)) > 1
    assert len(results.problems) == len(results.refused), "a reason is told once, after all that it stops"
    assert table(results, "anova")


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(CommandError, match=r"empty\.csv cannot be read"):
        run_on(tmp_path / "empty.csv", "--dv", "x")
    with pytest.raises(CommandError, match=r"none\.csv cannot be read"):
        run_on(tmp_path / "none.csv", "--dv", "x")
    for text, words in {
        "g;x\na;1\n": r"has: g;x\. Its cells seem to be separated by semicolons; save the table with",
        "g;x\na;1,5\n": "line 2 has 2; its cells seem to be separated by semicolons",
        "g\tx\na\t1\n": "separated by tabs; save the table with commas or under a name that ends in .tsv",
        "g,x\n\xe4,1\n": r"is not in UTF-8 \(byte 0xe4 in line 2\); save it as CSV in UTF-8",
        "g,x\na,1\nb,2,3\n": "line 3 has 3",
    }.items():
        (tmp_path / "odd.csv").write_bytes(text.encode("latin-1"))
        with pytest.raises(CommandError, match=words):
            run_on(tmp_path / "odd.csv", "--dv", "x")


def test_parquet_is_read_or_its_reader_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    try:
        between().to_parquet(path)
    except ImportError:
        path.write_bytes(b"PAR1")
        with pytest.raises(CommandError, match="install pyarrow, or save the table as CSV"):
            run_on(path, "--dv", "Points", "--between", "Arm")
    else:
        assert "n = 36 people" in run_on(path, "--dv", "Points", "--between", "Arm")
