"""The power that a study's plan is printed with: of the right test, for its people and its scored texts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.stats import nct, t

from analysis.planning import study_power
from analysis.planning.study_power import PUBLISHED_SHARES, SharedItems, power_of, shared_items
from analysis.stats.planning.anova_power import anova_power
from analysis.stats.planning.contrast_power import dunnett_power, equivalence_power
from analysis.stats.planning.rank_power import people_needed, rank_power
from analysis.stats.planning.rating_power import pair_power
from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Plan
from tests.experiments.definitions import definition
from tests.experiments.pools import make_pool

pytestmark = pytest.mark.pure
SIZES: dict[str, Any] = {"train_items": 8, "test_items": 5}


def study(paradigm: str, slots: int, **design: Any) -> tuple[StudyDefinition, list[Plan]]:
    """Three conditions with so many slots each, and what is planned for them."""
    rows: list[dict[str, Any]] = [{"name": "c0", "role": "baseline", "slots": slots}]
    for name in ("c1", "c2"):
        rows.append({"name": name, "role": "method", "slots": slots, "explainer": {"name": "saliency"}})
    made = definition({}, paradigm=paradigm, conditions=rows, design=design)
    protocol = get_paradigm(paradigm)
    pool = make_pool(slots=slots)
    return made, list(protocol.plans(protocol.Design(**design), pool, Streams(1)))


@pytest.mark.long(stays="test_a_study_of_advice_has_the_power_of_its_contrast_with_the_second_look")
@pytest.mark.parametrize(
    ("assignment", "within", "who"),
    [
        ("between", False, "Mann-Whitney's test, 18 people per condition, 5 test texts"),
        ("square", True, "Wilcoxon's signed ranks, 18 people under all conditions, 5 test texts"),
    ],
)
def test_a_reverse_turing_test_has_the_power_of_its_rank_test(
    assignment: str, within: bool, who: str
) -> None:
    """Checks among the test texts are no answers that count."""
    power = power_of(*study("reverse_turing", 18, assignment=assignment, **SIZES))
    assert power is not None and who in power.title
    expected = []
    for spread in (0.0, 0.1):
        expected.append(rank_power(PUBLISHED_SHARES, 5, 18, spread=spread, within=within))
        expected.append(people_needed(PUBLISHED_SHARES, 5, spread=spread, within=within))
    assert [value for _, value in power.rows] == expected


def test_a_study_of_advice_has_the_power_of_its_contrast_with_the_second_look() -> None:
    """A t test of two groups at the first step of Holm's correction; with groups of other sizes as well."""
    conditions = [
        {"name": "look", "role": "baseline", "slots": 40},
        {"name": "told", "role": "advice", "slots": 25},
    ]
    for name, slots in (("map", 30), ("other", 30)):
        role = "method" if name == "map" else "control"
        conditions.append({"name": name, "role": role, "slots": slots, "explainer": {"name": "saliency"}})
    made = definition(
        {}, paradigm="assisted_decision", conditions=conditions, design={"advice_accuracy": 0.5}
    )
    power = power_of(made, [])
    assert power is not None and power.title == (
        "Power of a contrast with the baseline, 25 people against 40, alpha 0.0167 (0.05 by 3)"
    )
    df, told = 63, dict(power.rows)
    edge = t.isf(0.05 / 3 / 2, df)
    for d, name in ((0.2, "small"), (0.5, "medium"), (0.8, "large")):
        far = d * math.sqrt(40 * 25 / 65)
        expected = nct.sf(edge, df, far) + nct.cdf(-edge, df, far)
        assert told[f"d = {d:.2f} ({name})"] == pytest.approx(expected, abs=1e-6)
    least = told["smallest d found with power .80"] * math.sqrt(40 * 25 / 65)
    assert nct.sf(edge, df, least) + nct.cdf(-edge, df, least) == pytest.approx(0.8, abs=1e-6)
    single = made.model_copy(update={"conditions": made.conditions[:1]})
    assert power_of(single, []) is None


def test_other_studies_keep_the_power_of_the_anova() -> None:
    power = power_of(*study("meta_predictor", 4))
    assert power is not None and power.title.startswith("Power of the ANOVA over 3 conditions of 4")
    assert power.rows[1][1] == anova_power([4, 4, 4], 0.25)


def test_a_study_with_a_baseline_has_the_power_of_each_planned_test_beside_the_anova() -> None:
    """Three conditions of 30: the noncentral t of scipy at the limits of Dunnett and of Holm's first step."""
    made, plans = study("meta_predictor", 30)
    power = power_of(made, plans)
    assert power is not None
    told = dict(power.rows)
    wanted = dunnett_power(30, [30, 30], [0.5, 0.5])
    assert told["Dunnett over 2 contrasts: any, all d = 0.50"] == wanted.any
    shift = 0.5 * math.sqrt(15)
    single = nct.sf(wanted.critical, 87, shift) + nct.cdf(-wanted.critical, 87, shift)
    assert told["Dunnett over 2 contrasts: one, d = 0.50 (medium)"] == pytest.approx(single, abs=1e-8)
    edge, far = t.isf(0.05 / 2 / 2, 29), 0.5 * math.sqrt(30)
    paired = nct.sf(edge, 29, far) + nct.cdf(-edge, 29, far)
    assert told["paired by 30 plans, d_z = 0.50, alpha by 2"] == pytest.approx(paired, abs=1e-8)
    least = told["Dunnett over 2 contrasts: smallest d of one with power .80"]
    assert dunnett_power(30, [30, 30], [least, 0]).each[0] == pytest.approx(0.8, abs=1e-6)
    small, large = (value for name, value in power.rows if name.startswith("Utility"))
    assert 0.05 < small < large < 1
    equivalence = told["equivalence within d = 0.50, no difference, alpha by 2"]
    assert equivalence == equivalence_power(30, 30, 0.5, alpha=0.025)


def test_without_a_baseline_there_is_the_anova_alone() -> None:
    made, plans = study("meta_predictor", 4)
    rows = [row.model_copy(update={"role": "method"}) for row in made.conditions]
    power = power_of(made.model_copy(update={"conditions": rows}), plans)
    assert power is not None and len(power.rows) == 4


def test_more_people_than_are_simulated_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_power, "PEOPLE_MAX", 17)
    assert power_of(*study("reverse_turing", 18, **SIZES)) is None


def rated(sittings: int, items: int = 30, **design: Any) -> tuple[StudyDefinition, list[Plan]]:
    """Two methods on so many items, none with a copy."""
    made, _ = study("meta_predictor", 4)
    made = made.model_copy(update={"paradigm": "rating", "design": design, "sittings_max": sittings})
    protocol = get_paradigm("rating")
    return made, list(protocol.plans(protocol.Design(**design), make_pool(items, check_repeat=0), Streams(1)))


def test_ratings_have_the_power_of_their_planned_comparison() -> None:
    """60 explanations in lists of 20: three lists in each of four rounds, and a person may rate two."""
    made, plans = rated(2, raters_per_explanation=4)
    assert shared_items(plans, 2) == SharedItems(pairs=1, items=30, raters=4, people=4 * 2)
    power = power_of(made, plans)
    assert power is not None and "30 items that they share, 4 raters each, 8 people" in power.title
    expected = pair_power(30, 4, 8, seed=made.seed)
    assert dict(power.rows)["0.5 points"] == expected.of(0.5)
    assert power.rows[-1] == ("smallest difference found with power 0.80", expected.detectable())
    assert "no difference" not in power.title
    # Few pictures and people leave a test that finds nothing from one end of the scale to the other.
    made, plans = rated(3, items=4, raters_per_explanation=2)
    least = pair_power(4, 2, 2, seed=made.seed).detectable()
    assert least is not None and least > 4
    power = power_of(made, plans)
    assert power is not None and len(power.rows) == 3
    assert power.title.endswith("; no difference that the scale allows is found with power 0.80")


def test_ratings_without_items_in_common_or_of_one_person_have_none() -> None:
    assert power_of(*rated(3, raters_per_explanation=1)) is None, "one person"
    made, plans = rated(1, raters_per_explanation=3, explanations_per_item=1)
    told = shared_items(plans, 1)
    assert told is not None and (told.pairs, told.items) == (0, 0)
    assert power_of(made, plans) is None
    assert shared_items(study("meta_predictor", 4)[1], 1) is None
