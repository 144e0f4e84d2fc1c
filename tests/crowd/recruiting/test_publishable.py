"""What is refused before anything is offered: pay, texts, what is withheld, options, currencies."""

from __future__ import annotations

from typing import Any

import pytest

from crowd.models import Posting
from crowd.platforms.base import UnsupportedRequest
from crowd.recruiting.publishing import publish_posting
from crowd.study_check.publication_quote import check_ethics
from experiments.definition.study import StudyDefinition
from experiments.errors import InvalidStudy, StudyError
from experiments.models import Study
from tests.analysis import stored
from tests.crowd.offered_studies import changed, public, simulated, study_of
from tests.experiments.definitions import definition

__all__ = ["public"]
pytestmark = pytest.mark.django_db


def publish(study: Study, platform: str, sim: Any) -> Posting:
    return publish_posting(study, platform, "rehearsal", site=sim.url)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ({"amount_cents": 0, "expected_minutes": 5}, "prolific is a platform for paid work"),
        (
            {"amount_cents": 99, "currency": "USD", "expected_minutes": 5},
            "11.88 USD per hour, below the floor of 12.00 USD. Pay at least 100",
        ),
        (
            {"amount_cents": 149, "currency": "GBP", "expected_minutes": 10},
            "8.94 GBP per hour, below the floor of 9.00 GBP. Pay at least 150",
        ),
        (
            {"amount_cents": 900, "currency": "EUR", "expected_minutes": 5},
            "no hourly floor is set for it .there is one for GBP, USD",
        ),
    ],
)
def test_it_refuses_pay_below_the_floor(reward: dict[str, Any], message: str) -> None:
    study = study_of(reward=reward)
    with simulated("prolific") as sim, pytest.raises(InvalidStudy, match=message):
        publish(study, "prolific", sim)
    assert not Posting.objects.exists()


@pytest.mark.parametrize(
    ("texts", "deception", "message"),
    [
        ({"consent": " \n"}, "", "texts.consent: is empty"),
        ({"debrief": ""}, "", "texts.debrief: is empty"),
        ({"debrief": "i"}, "Some areas are random.", "is what people read before"),
        ({"debrief": "Thank you."}, "Some areas are random.", "must disclose what .*Some areas are random"),
    ],
)
def test_it_refuses_what_tells_people_nothing(texts: dict[str, str], deception: str, message: str) -> None:
    whole = {"consent": "c", "instructions": "i", "debrief": "d", **texts}
    study = study_of(texts=whole, ethics={"contact": "lab@example.org", "deception": deception})
    with simulated("prolific") as sim, pytest.raises(InvalidStudy, match=message):
        publish(study, "prolific", sim)


FAIR = {"amount_cents": 200, "currency": "USD", "expected_minutes": 5}


@pytest.mark.parametrize("role", ["method", "control"])
@pytest.mark.parametrize("task", ["known", "masked"])
def test_it_refuses_what_is_withheld_and_not_declared(role: str, task: str) -> None:
    """Marks of a control, and a task that is hidden; without either nothing is."""
    words = {"task_words": ["tense"]} if task == "masked" else {}
    tables: dict[str, Any] = {
        "paradigm": "reverse_turing",
        "design": {"task": task, **words},
        "render": {"preset": "reverse-turing"},
        "conditions": [
            {"name": "plain", "role": "baseline", "slots": 2},
            {"name": "marked", "role": role, "slots": 2, "explainer": {"name": "lime_text"}},
        ],
    }
    told = {
        problem.key: problem.limit for problem in check_ethics(definition(**tables, reward=FAIR), "prolific")
    }
    clauses = []
    if task == "masked":
        clauses.append('what the model was made for ([design] task = "masked")')
    if role == "control":
        clauses.append('that marks of marked say nothing of the model (role = "control")')
    expected = {"ethics.deception": f"must say what people are not told: {'; '.join(clauses)}"}
    assert told == (expected if clauses else {})
    declared = {"contact": "lab@example.org", "deception": "Some marks are random, the task was hidden."}
    texts = {"consent": "c", "instructions": "i", "debrief": "Some marks were random; the task was hidden."}
    study = definition(**tables, reward=FAIR, ethics=declared).model_copy(update={"texts": texts})
    assert check_ethics(study, "prolific") == []


def test_it_takes_a_debrief_that_speaks_of_the_deception() -> None:
    debrief = "For some people the areas were chosen at random."
    definition = StudyDefinition.model_validate(
        {
            **stored.definition(2).model_dump(mode="json"),
            "texts": {"consent": "c", "instructions": "i", "debrief": debrief},
            "ethics": {"contact": "lab@example.org", "deception": "Some areas are random."},
            "reward": {"amount_cents": 100, "expected_minutes": 5},
        }
    )
    assert check_ethics(definition, "prolific") == []


def test_it_names_a_wrong_option_and_a_platform_that_is_none() -> None:
    with simulated("prolific") as sim:
        study = study_of(platforms={"prolific": {"project": "rehearsal", "colour": "red"}})
        with pytest.raises(StudyError, match="colour"):
            publish(study, "prolific", sim)
        changed(study, platforms={"clickworker": {}})
        with pytest.raises(StudyError, match="platforms.clickworker.: there is no such platform"):
            publish(Study.objects.get(), "prolific", sim)


def test_it_refuses_another_currency_than_the_accounts() -> None:
    study = study_of(reward={"amount_cents": 100, "currency": "GBP", "expected_minutes": 5})
    with simulated("prolific") as sim, pytest.raises(UnsupportedRequest, match="GBP"):
        publish(study, "prolific", sim)
    assert not Posting.objects.exists()
