"""Methods that differ from the baseline are compared with the control, by Dunnett over all methods; the
others are not."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from scipy.stats import dunnett, multivariate_t, ttest_ind

from analysis.facts import StudyFacts
from analysis.reports.meta_predictor.report import report
from analysis.reports.output.terminal import print_report
from analysis.reports.report import Report
from tests.analysis.worlds import facts, frames_of

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("few_draws")]
NAMES = ("baseline", "control", "grad_cam", "saliency", "occlusion")
SHARES = {"baseline": 0.5, "control": 0.65, "grad_cam": 0.85, "saliency": 0.52, "occlusion": 0.25}
DASH = "\N{EN DASH}"


def people(n: int = 20, seed: int = 8) -> dict[str, NDArray[np.int64]]:
    """Grad-CAM is better than baseline and control, saliency as good as the baseline, occlusion worse."""
    draws = np.random.default_rng(seed)
    return {name: draws.binomial(7, share, (n, 3)) for name, share in SHARES.items()}


def of(came: dict[str, NDArray[np.int64]], study: StudyFacts | None = None, **plan: Any) -> Report:
    told = study or facts(tuple(came), wanted=20)
    return report(frames_of(came), replace(told, preregistration={"stored": True, "document": plan}))


def content(made: Report) -> dict[str, Any]:
    told: dict[str, Any] = next(section for section in made.sections if section.key == "secondary").content
    return told


def shares(came: dict[str, NDArray[np.int64]], *names: str) -> list[NDArray[np.float64]]:
    return [came[name].sum(axis=1) / 21 for name in names]


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_each_method_that_passed_is_compared_with_the_control_over_all_methods(alpha: float) -> None:
    """By scipy: which pass, and their p and intervals at the level of the plan."""
    came = people()
    told = content(of(came, alpha=alpha))
    base, *others = shares(came, *NAMES)
    first = dunnett(*others, control=base, rng=1).pvalue[1:]
    control, *methods = others
    wanted = dunnett(*methods, control=control, rng=1)
    assert (told["control"], told["level"], told["variances"]) == ("control", 1 - alpha, "equal")
    rows = {row["condition"]: row for row in told["contrasts"]}
    assert list(rows) == list(NAMES[2:])
    for place, (row, method) in enumerate(zip(rows.values(), methods, strict=True)):
        if first[place] >= alpha:
            assert (row["against_baseline"], row["contrast"]) == ("not detected", None)
            continue
        assert row["against_baseline"] == ("better" if method.mean() > base.mean() else "worse")
        made = row["contrast"]
        assert made["difference"] == pytest.approx(method.mean() - control.mean())
        assert made["p"] == pytest.approx(wanted.pvalue[place], abs=1e-4)
        assert made["df"] == 4 * 19
        # Sizes are equal, so the comparisons with the control correlate by one half.
        half, se = np.diff(made["ci"])[0] / 2, made["difference"] / made["t"]
        together = multivariate_t(shape=(np.eye(3) + 1) / 2, df=76, seed=1)
        edge = np.full(3, half / se)
        assert together.cdf(edge, lower_limit=-edge) == pytest.approx(1 - alpha, abs=1e-4)
    assert [row["against_baseline"] for row in rows.values()] == ["better", "not detected", "worse"]


def test_the_table_stands_beneath_the_planned_one_with_a_dash_for_what_is_not_read() -> None:
    made = of(people())
    keys = [section.key for section in made.sections]
    assert keys.index("secondary") == keys.index("planned") + 1
    table = made.tables()["secondary"]
    assert table.title == "Key secondary contrasts: methods against the control"
    cells = {row[1]: row for row in table.rows}
    assert cells["not detected"][2:] == (DASH,) * 6 and DASH not in cells["better"]
    assert cells["better"][6] == "< .001*"
    assert "a dash: no such difference was detected" in table.note and "p < .05" in table.note
    assert made.json()["section_marks"]["secondary"] == "planned"
    out = StringIO()
    print_report(made, Console(file=out, width=160, no_color=True))
    assert 0 < out.getvalue().index("Planned contrasts") < out.getvalue().index("Key secondary contrasts")


def test_no_method_is_read_if_none_differs_from_the_baseline() -> None:
    """The control is far worse than all methods: without the first test, each would differ from it."""
    came = {**people(), **{name: people(seed=3)["baseline"] for name in NAMES if name != "control"}}
    came["control"] = people()["occlusion"]
    assert ttest_ind(*shares(came, "grad_cam", "control")).pvalue < 1e-6
    told = content(of(came))["contrasts"]
    assert [row["contrast"] for row in told] == [None] * 3


def test_variances_are_separate_if_the_plan_has_other_sizes_of_methods_and_control() -> None:
    """The t of Welch for the one method, by scipy; the size of the baseline has no part in it."""
    came = people()
    came = {"baseline": people(40)["baseline"], "control": came["control"][:10], "grad_cam": came["grad_cam"]}
    plain = facts(tuple(came), wanted=20)
    for control_wanted, equal in ((10, False), (16, True)):
        sizes = {"baseline": 40, "control": control_wanted, "grad_cam": 20}
        conditions = tuple(replace(c, wanted=sizes[c.name], kept=sizes[c.name]) for c in plain.conditions)
        told = content(of(came, replace(plain, conditions=conditions)))
        wanted = ttest_ind(*shares(came, "grad_cam", "control"), equal_var=equal)
        (row,) = told["contrasts"]
        assert told["variances"] == ("equal" if equal else "separate")
        assert row["contrast"]["t"] == pytest.approx(wanted.statistic)
        assert row["contrast"]["df"] == pytest.approx(wanted.df)
        assert row["contrast"]["p"] == pytest.approx(wanted.pvalue, abs=1e-8)


def test_without_people_under_the_control_nothing_is_read() -> None:
    few = {**people(), "control": people()["control"][:4]}
    told = content(of(few))["contrasts"]
    assert [row["against_baseline"] for row in told] == ["better", "not detected", "worse"]
    assert all(row["contrast"] is None for row in told)
    nobody = {**people(), "control": people()["control"][:1]}
    made = of(nobody)
    assert content(made) is None
    section = next(section for section in made.sections if section.key == "secondary")
    assert "Control has 1 finished so far" in " ".join(section.paragraphs)


def test_there_is_no_such_section_without_one_control_with_tukey_or_under_seal() -> None:
    came = people()
    without = {name: x for name, x in came.items() if name != "control"}
    plain = facts(NAMES, wanted=20)
    two = tuple(replace(c, role="control") if c.name == "saliency" else c for c in plain.conditions)
    sealed = facts(NAMES, wanted=20, kept=3, state="open")
    for made in (
        of(without),
        of(came, contrasts="tukey"),
        of(came, replace(plain, conditions=two)),
        of(came, sealed),
    ):
        assert "secondary" not in [section.key for section in made.sections]
        assert "secondary" not in made.tables()
