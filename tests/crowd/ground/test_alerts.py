"""Trouble is told once, by what was provoked in the rows, and is over when it is mended; none is told of a
study that goes well."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from datetime import timedelta
from math import comb
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from crowd.alerts import watching
from crowd.alerts.current_troubles import Trouble, of_study
from crowd.alerts.watching import Watcher
from crowd.models import Alert, Failure, LastTime, Payout, Posting
from experiments.api import views
from experiments.models import Event, Session, Study
from experiments.tokens import hash_token
from stimuli.models import Stimulus
from tests.analysis import stored
from tests.crowd import paid
from tests.crowd.dashboard.test_dashboard_recruitment import live
from tests.crowd.listeners import Listener, listening
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
SLUG = "wolf-or-husky"
CONDITIONS = {name for name, _ in stored.CONDITIONS} - {"control"} | {"random"}


@pytest.fixture
def study(store_folder: object) -> Study:
    return stored.opened(16)


@pytest.fixture
def ear(settings: Any) -> Iterator[Listener]:
    settings.DISK_FREE_MIN_MB = 0
    with listening() as listener:
        settings.ALERT_WEBHOOK = listener.url
        yield listener


def looks(count: int = 4, after: timedelta = timedelta(0)) -> None:
    watcher = Watcher()
    for _ in range(count):
        watcher.look(timezone.now() + after)


def people(study: Study, verdicts: str) -> None:
    """One person per letter, in this order of arrival: p passed, s screened."""
    places = [name for name, _ in stored.CONDITIONS for _ in range(16)]
    for number, letter in enumerate(verdicts):
        verdict = {"p": "passed", "s": "screened"}[letter]
        session = stored.sitting(study, f"p{number}", condition=places[number], verdict=verdict, answers=0)
        Session.objects.filter(pk=session.pk).update(
            finished_at=timezone.now() - timedelta(minutes=len(verdicts) - number)
        )


def stalled(study: Study) -> Callable[[], object]:
    posting = live(
        study, created_at=timezone.now() - timedelta(hours=7), synced_at=timezone.now(), cap_cents=0
    )
    return lambda: Posting.objects.filter(pk=posting.pk).update(state="paused")


def out_of_step(study: Study) -> Callable[[], object]:
    posting = live(study, cap_cents=0, sync_error="It answered 503.")
    return lambda: Posting.objects.filter(pk=posting.pk).update(sync_error="", synced_at=timezone.now())


def unheard(study: Study) -> Callable[[], object]:
    posting = live(study, cap_cents=0, synced_at=timezone.now() - timedelta(minutes=16))
    return lambda: Posting.objects.filter(pk=posting.pk).update(synced_at=timezone.now())


def near_cap(study: Study) -> Callable[[], object]:
    posting = live(study, cap_cents=1, synced_at=timezone.now(), places=12)
    session = stored.sitting(study, "ada", condition="control")
    paid.payout(posting, session, kind="base", cents=100, currency="USD", state="due")
    return lambda: Posting.objects.filter(pk=posting.pk).update(cap_cents=10**6)


def unknown_payment(study: Study) -> Callable[[], object]:
    posting = live(study, synced_at=timezone.now(), cap_cents=10**6)
    session = stored.sitting(study, "ada", condition="control")
    row = paid.payout(posting, session, kind="base", cents=100, currency="USD", state="unknown")
    return lambda: Payout.objects.filter(pk=row.pk).update(state="sent")


def more_exclusions(study: Study) -> Callable[[], object]:
    people(study, "p" * 20 + "s" * 12 + "p" * 8)
    return lambda: Session.objects.filter(study=study).update(verdict="passed")


def failed_picture(study: Study) -> Callable[[], object]:
    row = Stimulus.objects.order_by("pk")[0]
    Stimulus.objects.filter(pk=row.pk).update(state="failed", error="It is empty.")
    return lambda: Stimulus.objects.filter(pk=row.pk).update(state="done")


def unloaded_picture(study: Study) -> Callable[[], object]:
    session = stored.sitting(study, "ada", condition="control", answers=3)
    rows = [Event.objects.create(session=session, uuid=uuid4(), kind="media_failed", at_ms=9) for _ in "ab"]
    Event.objects.update(received_at=timezone.now())
    return lambda: Event.objects.filter(pk__in=[row.pk for row in rows]).update(
        received_at=timezone.now() - timedelta(hours=2)
    )


def failed_request(study: Study) -> Callable[[], object]:
    Failure.objects.create(study=study, error="KeyError", at=timezone.now())
    return lambda: Failure.objects.update(at=timezone.now() - timedelta(hours=2))


CAUSES = [
    (stalled, "there are free places, and it is 7 h since it was offered.", "recruitment"),
    (out_of_step, "Prolific could not be asked: It answered 503.", "recruitment"),
    (unheard, "Prolific was last heard 1", "recruitment"),
    (near_cap, "and the cap is 0.01 USD.", "money"),
    (unknown_payment, "1 payment may or may not have been sent.", "money"),
    (more_exclusions, "12 of the last 20 people who finished were excluded; of the 20 before", "quality"),
    (failed_picture, "1 picture could not be made.", "stimuli"),
    (unloaded_picture, "in the browser of 1 person.", "quality"),
    (failed_request, "1 request failed in the last hour by our error.", "quality"),
]


@pytest.mark.parametrize(("cause", "words", "page"), CAUSES, ids=[cause.__name__ for cause, _, _ in CAUSES])
def test_each_cause_is_told_once_and_is_over_when_it_is_mended(
    study: Study, ear: Listener, cause: Callable[[Study], Callable[[], object]], words: str, page: str
) -> None:
    looks()
    assert ear.heard == [] and not Alert.objects.exists(), "a study that goes well tells nothing"
    mend = cause(study)
    looks()
    (letter,) = ear.heard
    assert words in letter["said"] and letter["about"] == SLUG and letter["remedy"]
    assert letter["page"].endswith(f"/studies/{SLUG}/{page}/")
    assert all(letter[part] in letter["text"] for part in ("about", "said", "remedy", "page"))
    assert not any(name in letter["text"] for name in CONDITIONS), "nothing is told by condition"
    looks()
    assert len(ear.heard) == 1, "also not by another process"
    desk = login("vera", "view")
    assert words.split(";")[0][:30] in desk.get(f"/studies/{SLUG}/").content.decode().replace("&#x27;", "'")
    mend()
    looks()
    (row,) = Alert.objects.all()
    assert row.ended_at is not None and row.told == ["webhook"] and len(ear.heard) == 1
    assert 'class="message error trouble"' not in desk.get(f"/studies/{SLUG}/").content.decode()
    assert words.split(";")[0][:30] in desk.get("/service/").content.decode()


def test_a_posting_whose_places_are_taken_is_not_stalled(study: Study, ear: Listener) -> None:
    stalled(study)
    Posting.objects.update(taken=40)
    looks()
    assert not ear.said("free places")


@pytest.mark.parametrize(("minutes", "letters"), [(0, 1), (9, 1), (11, 2)])
def test_what_comes_back_is_told_anew_unless_it_came_and_went(
    study: Study, ear: Listener, minutes: int, letters: int
) -> None:
    failed_picture(study)()
    for away in (timedelta(0), timedelta(minutes=minutes)):
        mend = failed_picture(study)
        looks(after=away)
        assert Alert.objects.filter(ended_at=None).count() == 1
        mend()
        looks(after=away)
    assert len(ear.heard) == letters == Alert.objects.exclude(ended_at=None).count()


def test_a_database_that_goes_away_tells_nothing_again(
    study: Study, ear: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker was told of before. The workers were seen once, and told while there were no rows to
    remember it by; so were the pictures, which no row knew."""
    names = ("broker", "workers", "pictures")
    every = [Trouble("service", name, f"{name}: none answers.", "Start it.", "/") for name in names]
    watcher = Watcher()
    for count, has_rows, looked in ((1, True, 3), (2, True, 1), (3, False, 3), (3, True, 3)):
        monkeypatch.setattr(watching, "trouble_now", lambda now, seen=(every[:count], has_rows): seen)
        for _ in range(looked):
            watcher.look(timezone.now())
    assert [letter["said"] for letter in ear.heard] == [trouble.said for trouble in every]
    standing = Alert.objects.filter(ended_at=None)
    assert {row.key: row.told for row in standing} == {trouble.key: ["webhook"] for trouble in every}


def test_one_look_alone_tells_nothing(study: Study, ear: Listener) -> None:
    failed_picture(study)
    looks(1)
    looks(1)
    assert ear.heard == [] and Alert.objects.count() == 1
    assert timezone.now() - LastTime.objects.get(name="watch").at < timedelta(minutes=10)


def test_a_message_that_was_not_taken_is_sent_again_by_that_channel_alone(
    study: Study, ear: Listener, settings: Any
) -> None:
    settings.ALERT_EMAIL, ear.status = "ada@example.org, bo@example.org", 503
    failed_picture(study)
    watcher = Watcher()
    for _ in range(3):
        watcher.look(timezone.now())
    row = Alert.objects.get()
    assert row.told == ["email"] and row.error == "The webhook answered 503."
    assert "The webhook answered 503." in login("vera", "view").get("/service/").content.decode()
    ear.status = 200
    watcher.look(timezone.now())
    watcher.look(timezone.now())
    assert len(ear.heard) == 1 == len(mail.outbox)
    assert mail.outbox[0].to == ["ada@example.org", "bo@example.org"]
    assert mail.outbox[0].subject == f"Legible, {SLUG}: 1 picture could not be made."
    assert f"/studies/{SLUG}/stimuli/" in mail.outbox[0].body
    row.refresh_from_db()
    assert row.error == "" and row.told == ["email", "webhook"]


def test_an_address_without_a_server_is_named_without_its_key(
    study: Study, ear: Listener, settings: Any
) -> None:
    settings.ALERT_WEBHOOK = "http://127.0.0.1:1/a-key-in-the-path"
    failed_picture(study)
    looks()
    assert Alert.objects.get().error == "The webhook did not answer (ConnectError)."


def test_a_webhook_can_tell_that_it_was_legible(study: Study, ear: Listener, settings: Any) -> None:
    settings.ALERT_WEBHOOK_SECRET = "s3cret"
    failed_picture(study)
    looks()
    assert ear.signatures == [hmac.new(b"s3cret", ear.bodies[0], hashlib.sha256).hexdigest()]


@pytest.mark.parametrize("out", range(2, 13))
def test_more_exclusions_are_told_only_if_so_many_are_rare(study: Study, out: int) -> None:
    """Beside the hypergeometric tail, counted by hand: `out` of the last 20, and 2 of 20 before them."""
    people(study, "ss" + "p" * 18 + "s" * out + "p" * (20 - out))
    both = out + 2
    tail = sum(comb(20, k) * comb(20, both - k) for k in range(out, min(20, both) + 1)) / comb(40, both)
    told = [trouble for trouble in of_study(study, timezone.now()) if trouble.kind == "exclusions"]
    assert bool(told) == (tail < 0.001)


@pytest.mark.parametrize(("verdicts", "is_told"), [("s" * 19, 0), ("s" * 11 + "p" * 9, 1), ("sp" * 10, 0)])
def test_the_first_people_are_told_of_if_most_are_excluded(study: Study, verdicts: str, is_told: int) -> None:
    people(study, verdicts)
    assert sum(trouble.kind == "exclusions" for trouble in of_study(study, timezone.now())) == is_told


def test_a_full_disk_is_told(study: Study, ear: Listener, settings: Any) -> None:
    settings.DISK_FREE_MIN_MB = 10**9
    looks()
    assert {letter["about"] for letter in ear.heard} == {"the service"}
    assert all("MB are left" in letter["said"] for letter in ear.heard) and ear.heard
    page = login("vera", "view").get("/service/").content.decode()
    assert "Make room: with less than 1,000,000,000 MB" in page


def test_the_service_page_tells_of_a_study_only_who_may_see_it(
    study: Study, ear: Listener, settings: Any
) -> None:
    failed_picture(study)
    looks()
    assert "1 picture could not be made." in login("vera", "view").get("/service/").content.decode()
    assert "1 picture could not be made." not in login("mallory").get("/service/").content.decode()


def test_a_failed_request_is_listed_with_whom_it_hit_and_not_what_they_sent(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = stored.sitting(study, "ada", condition="control", answers=3, verdict="")
    Session.objects.filter(pk=session.pk).update(token_hash=hash_token("t0ken"))

    def broken(session: Session) -> object:
        raise KeyError("what a person wrote")

    monkeypatch.setattr(views, "session_state", broken)
    client = Client(raise_request_exception=False)
    reply = client.get("/api/session/", headers={"Authorization": "Bearer t0ken"})
    assert reply.status_code == 500
    row = Failure.objects.get()
    assert (row.session_id, row.study_id, row.error) == (session.pk, study.pk, "KeyError")
    assert row.place.startswith("tests/crowd/ground/test_alerts.py:") and "session" in row.route
    assert "wrote" not in str(vars(row)) and "t0ken" not in str(vars(row))
    page = login("vera", "view").get(f"/studies/{SLUG}/quality/").content.decode()
    assert "a request failed: KeyError" in page and f"/participants/{session.pk}/" in page
