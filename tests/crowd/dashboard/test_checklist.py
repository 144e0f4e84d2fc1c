"""The list before people take part: each point is ticked by the fact itself, and unticked without it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from crowd.dashboard.rows.checklist import EXAMPLE_APPROVAL, checklist
from crowd.models import LastTime, Posting
from experiments.models import Preregistration, Session, Study
from tests.analysis import stored
from tests.crowd import paid
from tests.crowd.dashboard.test_dashboard_recruitment import live
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
PAGE = "/studies/wolf-or-husky/recruitment/"
SHIPPED = Path(__file__).parents[3] / "experiments" / "studies"


@pytest.fixture
def study(store_folder: object) -> Study:
    return stored.opened(8)


def state(study: Study) -> dict[str, bool | None]:
    return {point.what: point.is_met for point in checklist(Study.objects.get(pk=study.pk))}


def sat(study: Study, origin: str, **of_posting: Any) -> None:
    session = stored.sitting(study, origin, condition="control", origin=origin)
    if of_posting:
        posting = live(study, **of_posting)
        paid.payout(posting, session, kind="base", cents=1, currency="USD", state="due")
    assert Session.objects.get(pk=session.pk).state == "finished"


def approved(study: Study) -> None:
    ethics = {**study.definition["ethics"], "approval": "EC-2026-14"}
    Study.objects.filter(pk=study.pk).update(
        definition={**study.definition, "ethics": ethics}, digest="a" * 64
    )


def test_the_approval_of_an_example_is_none(study: Study) -> None:
    named = {"": "[ethics] approval", "Example protocol: replace it": "your own, not the example's"}
    for approval, remedy in named.items():
        ethics = {**study.definition["ethics"], "approval": approval}
        changed = {**study.definition, "ethics": ethics}
        Study.objects.filter(pk=study.pk).update(definition=changed, digest=f"{len(approval):064}")
        (point, *_) = checklist(Study.objects.get(pk=study.pk))
        assert not point.is_met and remedy in point.remedy
    for shipped in SHIPPED.glob("*/study.toml"):
        assert tomllib.loads(shipped.read_text())["ethics"]["approval"].startswith(EXAMPLE_APPROVAL), shipped


def deposited(study: Study) -> None:
    Preregistration.objects.filter(study=study).update(registry="https://osf.io/x")


FACTS: dict[str, Callable[[Study], object]] = {
    "An approval of the ethics board is named": approved,
    "The plan is deposited, and its address is named": deposited,
    "You took it yourself to the end": lambda study: sat(study, "preview"),
    "A rehearsal ran": lambda study: sat(study, "simulated", mode="rehearsal"),
    "A pilot ran": lambda study: sat(study, "pilot", pilot=True),
    "A backup was made": lambda study: LastTime.objects.create(name="backup", at=timezone.now()),
}


@pytest.mark.parametrize("what", FACTS)
def test_a_point_is_ticked_by_its_fact_alone(study: Study, what: str) -> None:
    before = state(study)
    assert before[what] is False
    FACTS[what](study)
    assert state(study) == {**before, what: True}


def test_people_by_a_plain_address_are_no_rehearsal(study: Study) -> None:
    sat(study, "simulated", mode="rehearsal", platform="local", external_id="")
    assert state(study)["A rehearsal ran"] is False


def test_settings_and_database_tick_themselves(study: Study, settings: Any) -> None:
    told = "The address is https, and debug pages are off"
    settings.SECURE, settings.DEBUG = False, False
    assert state(study)[told] is False
    settings.SECURE = True
    assert state(study)[told] is True
    settings.DEBUG = True
    assert state(study)[told] is False
    assert state(study)["Rows are in PostgreSQL"] == (connection.vendor == "postgresql")
    assert state(study)["The texts are yours, and say time and pay as they are"] is None


def test_the_page_shows_it_until_the_study_is_offered_to_people(study: Study) -> None:
    desk = login("vera", "view")
    page = desk.get(PAGE).content.decode()
    assert "Before people take part" in page and "yours to say" in page and " manage.py backup FOLDER" in page
    live(study, pilot=True)
    assert "Before people take part" in desk.get(PAGE).content.decode(), "a pilot is a point of it"
    Posting.objects.update(pilot=False)
    assert "Before people take part" not in desk.get(PAGE).content.decode()
