"""From a phone to a computer by the same link: "not now" excludes no person and takes no second place."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from crowd.models import Identity, Posting, Submission
from experiments.models import Session, Slot, Study
from experiments.sessions.slot_assignment import GATES_MINUTES
from tests.crowd.arrivals import Visitor, posting, prolific, turker

pytestmark = pytest.mark.django_db


@pytest.fixture
def small(built: int, db: None) -> Study:
    return Study.objects.get(pk=built)


def by_link(by: Posting) -> Visitor:
    if by.platform == "local":
        return Visitor("ada", by.study.slug, platform="local", query="person=ada&submission=ada")
    return turker("A1ADA", by) if by.platform == "mturk" else prolific("ada", by)


def offered(study: Study, platform: str) -> Posting:
    return study.postings.get() if platform == "local" else posting(study, platform)


def on_phone(visitor: Visitor) -> None:
    """Looks at the device page and presses "not now", of which the server hears nothing."""
    visitor.join()
    assert visitor.gate({**visitor.good_value(), "width_px": 390, "touch": True}).status_code == 200
    assert visitor.state["step"] == "device"


@pytest.mark.parametrize("platform", ["prolific", "mturk", "local"])
def test_the_same_link_starts_the_study_at_a_computer(small: Study, platform: str) -> None:
    by = offered(small, platform)
    on_phone(by_link(by))
    desktop = by_link(by)
    assert desktop.join().status_code == 200
    desktop.gate(desktop.good_value())
    assert desktop.state["step"] == "consent"
    rows = (Session.objects, Submission.objects.filter(posting=by), Identity.objects.filter(study=small))
    assert [row.count() for row in rows] == [1, 1, 1]
    desktop.arrive()
    desktop.answer()
    assert desktop.end().status_code == 200
    assert Slot.objects.filter(study=small).exclude(holder=None).count() == 1


def test_it_works_a_day_later_too(small: Study) -> None:
    """The place is held for a while only; as long as the study has one, the link starts it."""
    by = offered(small, "prolific")
    on_phone(by_link(by))
    long_ago = timezone.now() - timedelta(minutes=GATES_MINUTES, days=1)
    Session.objects.update(started_at=long_ago)
    desktop = by_link(by)
    assert desktop.join().status_code == 200
    desktop.arrive("trials")
    assert Session.objects.get().state == "running"


def test_it_can_still_be_given_back_for_good(small: Study) -> None:
    by = offered(small, "prolific")
    phone = by_link(by)
    on_phone(phone)
    reply = phone.leave("no suitable device").json()
    assert reply["exit"]["url"].endswith(by.codes["device"])
    assert reply["pay"] == ["Nothing is paid for this, as you did not take part."]
    again = by_link(by)
    again.join()
    assert again.state["step"] == "finish"
