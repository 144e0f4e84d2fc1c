"""How many people a colour check has to screen for a place, and what that costs, before anybody comes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crowd.study_check.colour_screening_cost import COLUMNS, screened_in, screened_rows, screened_title
from experiments.definition.study import StudyDefinition
from experiments.paradigms.base import Plan
from tests.experiments.checked import ETHICS, checked_tables
from tests.experiments.definitions import definition
from tests.experiments.protocols import write


def plans(lanes: list[str]) -> list[Plan]:
    return [Plan(number, lane, "arm", None, ()) for number, lane in enumerate(lanes)]


def checked(prevalence: float, screened_share: float = 1.0, **more: Any) -> StudyDefinition:
    return definition(
        paradigm="blind_review",
        plates={"prevalence": prevalence},
        policy={"screened_share": screened_share},
        **more,
    )


def row(made: list[tuple[Any, ...]], lane: str) -> dict[str, Any]:
    return next(dict(zip(COLUMNS, each, strict=True)) for each in made if each[0] == lane)


@pytest.mark.pure
def test_a_lead_costs_all_who_come_before_one_is_found() -> None:
    """With 5 % reduced colour vision twenty people come per lead, of whom nineteen are paid to leave."""
    study = checked(0.05)
    made = screened_rows(screened_in(study, plans(["lead"] * 8)), "USD")
    assert row(made, "lead") == {
        "lane": "lead",
        "places": 8,
        "open to": "5.0%",
        "people per place": "20.0",
        "people in all": 160,
        "cost per place": "20.00 USD",
        "cost in all": "160.00 USD",
    }


@pytest.mark.pure
@pytest.mark.parametrize(
    ("screened_share", "cents_per_lead"), [(1.0, 2000), (0.25, 100 + 19 * 25), (0.0, 100)]
)
def test_the_cost_follows_the_policy(screened_share: float, cents_per_lead: int) -> None:
    [lead] = screened_in(checked(0.05, screened_share), plans(["lead"]))
    assert lead.cents_per_place == cents_per_lead


@pytest.mark.pure
def test_lanes_have_quotas_of_their_own() -> None:
    study = checked(0.2)
    made = screened_rows(screened_in(study, plans(["expert"] * 4 + ["lead"] * 3)), "USD")
    assert [each[:4] for each in made] == [("expert", 4, "80.0%", "1.2"), ("lead", 3, "20.0%", "5.0")]
    assert [each[4] for each in made] == [5, 15]


@pytest.mark.pure
def test_the_mean_is_that_of_people_who_come_one_by_one() -> None:
    """Drawn: how many come until the first of 4.2 %; 20,000 times, within four standard errors."""
    share, rng = 0.042, random.Random(15)
    counts = []
    for _ in range(20_000):
        count = 1
        while rng.random() >= share:
            count += 1
        counts.append(count)
    drawn = sum(counts) / len(counts)
    [lead] = screened_in(checked(share), plans(["lead"]))
    spread = (1 - share) ** 0.5 / share / len(counts) ** 0.5
    assert float(lead.people_per_place) == pytest.approx(drawn, abs=4 * spread)


@pytest.mark.pure
def test_a_study_without_a_check_screens_nobody() -> None:
    study = definition(paradigm="blind_review")
    assert screened_in(study, plans(["lead", "expert"])) == ()


@pytest.mark.pure
def test_the_usual_prevalence_is_that_of_as_many_women_as_men() -> None:
    """8 % of men and 0.4 % of women of European descent [Birch 2012]."""
    study = definition(paradigm="blind_review", plates={})
    assert study.plates is not None
    assert study.plates.prevalence == pytest.approx((0.08 + 0.004) / 2)
    assert "4.2%" in screened_title(study)


@pytest.mark.django_db
def test_study_check_prints_people_and_costs(
    tmp_path: Path, outcome: Callable[[Path], tuple[str, str]]
) -> None:
    path = write(tmp_path / "c", "tasks", "blind_review", checked_tables("prevalence = 0.5"))
    said, _ = outcome(path)
    assert "People to be screened, if 50.0% of those who come have a reduced colour vision" in said
    assert "expert 4 50.0% 2.0 8 2.00 USD 8.00 USD" in said
    for key in ("special_category", "deception", "retention_days"):
        assert f"Warning: ethics.{key}: must say" in said
    path.write_text(path.read_text().replace('contact = "lab@example.org"', ETHICS))
    said, _ = outcome(path)
    assert "ethics." not in said
