"""Closing a study closes and verifies every posting that still recruits; otherwise the study stays open."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from crowd import tasks
from crowd.models import Posting
from crowd.people import study_closure
from crowd.people.study_closure import close_whole
from crowd.recruiting.publishing import publish_posting
from experiments.errors import StudyError
from experiments.models import Study
from tests.crowd.offered_studies import offers, public, simulated, study_of

__all__ = ["public"]
pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/"
WHY = "The money is spent."


def close(**options: Any) -> str:
    out = StringIO()
    try:
        call_command("study_close", "wolf-or-husky", stdout=out, **{"by": "grace", "reason": WHY, **options})
    except CommandError as error:
        return f"error: {error}"
    return out.getvalue()


def state() -> str:
    return Study.objects.get().state


@pytest.mark.parametrize("platform", ["prolific", "mturk"])
def test_it_closes_the_postings_there_and_then_the_study(researcher: User, platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        publish_posting(study, platform, "rehearsal", site=sim.url, places=3)
        Posting.objects.create(study=study, platform="local", mode="live")
        printed = close()
        assert "wolf-or-husky is closed." in printed and printed.count("Closed:") == 2
        assert offers(platform, sim)[0]["states"].isdisjoint({"ACTIVE", "Assignable"})
    assert state() == "closed"
    assert set(Posting.objects.values_list("state", flat=True)) == {"closed"}
    closed = LogEntry.objects.get(change_message__startswith="Closed the study")
    assert closed.user == researcher and WHY in closed.change_message
    study.refresh_from_db()
    assert study.unsealed_by == "grace"
    assert "Nothing was left" in close()


def test_a_rehearsal_whose_simulator_is_gone_is_over(researcher: User) -> None:
    study = study_of()
    with simulated("prolific") as sim:
        publish_posting(study, "prolific", "rehearsal", site=sim.url, places=3)
    assert "is closed" in close()
    assert Posting.objects.get().state == "closed" and Posting.objects.get().closed_at is not None
    assert LogEntry.objects.filter(change_message__contains="does not answer").count() == 1


@pytest.mark.parametrize("external_id", ["64ab", ""])
def test_a_posting_that_cannot_be_closed_keeps_the_study_open(researcher: User, external_id: str) -> None:
    study = study_of()
    Posting.objects.create(study=study, platform="local", mode="live")
    row = {"mode": "live", "state": "open" if external_id else "draft", "external_id": external_id}
    Posting.objects.create(study=study, platform="prolific", **row)
    printed = close()
    assert "error: wolf-or-husky stays open" in printed and "places on prolific (live)" in printed
    assert state() == "open"
    assert dict(Posting.objects.values_list("platform", "state")) == {
        "local": "closed",
        "prolific": row["state"],
    }
    assert not LogEntry.objects.filter(change_message__startswith="Closed the study").exists()


def test_a_posting_that_comes_at_the_same_moment_keeps_the_study_open(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = study_closure._check

    def late(*args: Any) -> None:
        check(*args)
        monkeypatch.setattr(study_closure, "_end", lambda posting, who: "")

    Posting.objects.create(study=study, platform="local", mode="live")
    monkeypatch.setattr(study_closure, "_check", late)
    with pytest.raises(StudyError, match="at this very moment"):
        close_whole(study, "grace", WHY)
    assert state() == "open"


def test_it_wants_a_name_a_reason_and_an_open_study(study: Study) -> None:
    assert "say why" in close(reason=" ")
    assert "needs a name" in close(by=" ")
    Study.objects.update(state="draft")
    assert "is a draft" in close()
    assert state() == "draft"


def test_it_keeps_a_name_that_is_no_user_here(study: Study) -> None:
    close(by="Mary")
    study.refresh_from_db()
    assert (study.state, study.unsealed_by) == ("closed", "Mary")
    assert LogEntry.objects.latest("pk").change_message.startswith("Mary: Closed the study")


def test_it_closes_what_an_earlier_closing_left(study: Study) -> None:
    Study.objects.update(state="closed")
    Posting.objects.create(study=study, platform="local", mode="live")
    assert "Closed: places on local (live)." in close(reason="")
    assert Posting.objects.get().state == "closed"


def test_the_page_closes_what_needs_no_platform_itself(study: Study, desk: Client) -> None:
    Posting.objects.create(study=study, platform="local", mode="live")
    assert "It is still offered: Local (live, open)" in desk.get(f"{ROOT}close/").content.decode()
    desk.post(f"{ROOT}close/", {"reason": WHY})
    assert (state(), Posting.objects.get().state) == ("closed", "closed")


def test_the_page_names_the_command_without_a_broker(study: Study, desk: Client) -> None:
    Posting.objects.create(study=study, platform="prolific", mode="live", external_id="64ab")
    page = desk.get(f"{ROOT}close/").content.decode()
    assert (
        "study_close wolf-or-husky --by grace --reason WHY" in page
        and ">Close the study</button>" not in page
    )
    reply = desk.post(f"{ROOT}close/", {"reason": WHY}, follow=True).content.decode()
    assert "study_close wolf-or-husky --by grace --reason &#x27;The money is spent.&#x27;" in reply
    assert (state(), Posting.objects.get().state) == ("open", "open")


def test_the_page_sends_a_worker(
    researcher: User, desk: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of()
    settings.CELERY_BROKER_URL = "redis://nowhere"
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tasks.close_study, "delay", lambda *args: asked.append(args))
    with simulated("prolific") as sim:
        posting = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=3)
        Posting.objects.filter(pk=posting.pk).update(mode="sandbox")
        assert "asked again, says so" in desk.get(f"{ROOT}close/").content.decode()
        desk.post(f"{ROOT}close/", {"reason": ""})
        assert asked == []
        desk.post(f"{ROOT}close/", {"reason": WHY})
        assert asked == [(study.pk, "grace", WHY)] and state() == "open"
        sim.faults.down = True
        tasks.close_study(*asked[0])
        assert (state(), Posting.objects.get().state) == ("open", "open")
        last = LogEntry.objects.latest("pk")
        assert last.user == researcher and "that failed" in last.change_message
        sim.faults.down = False
        tasks.close_study(*asked[0])
    assert (state(), Posting.objects.get().state) == ("closed", "closed")
    tasks.close_study(10**9, "grace", WHY)
