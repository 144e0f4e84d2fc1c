"""The recruitment tab: what it says of each posting, and what its buttons do, on simulated platforms."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from crowd import tasks
from crowd.dashboard.rows.postings import acts_of
from crowd.ground.copyable_commands import as_typed
from crowd.models import Posting, Submission
from crowd.recruiting.publishing import publish_posting
from experiments.models import Study
from tests.analysis import stored
from tests.crowd import paid
from tests.crowd.offered_studies import offers, public, simulated, study_of

__all__ = ["public"]
pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/recruitment/"


@pytest.fixture
def sent(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """A broker that only records the tasks."""
    settings.CELERY_BROKER_URL = "redis://nowhere"
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tasks.change_posting, "delay", lambda *args: asked.append(args))
    yield asked


def text_of(client: Client, path: str = ROOT) -> str:
    reply = client.get(path, follow=True)
    assert reply.status_code == 200, path
    return str(reply.content.decode())


def said_after(client: Client, path: str, data: dict[str, Any] | None = None) -> str:
    """The sentence that the page says after a form was sent."""
    reply = client.post(path, data or {}, follow=True)
    sentences = re.findall(r'class="message \w+" role="status">(.*?)</p>', reply.content.decode(), re.DOTALL)
    return " ".join(sentences)


def live(study: Study, **changes: Any) -> Posting:
    row = {
        **{"platform": "prolific", "mode": "live", "state": "open", "places": 40, "taken": 12},
        **{"reward_cents": 100, "currency": "USD", "cap_cents": 9000, "external_id": "64SECRETSTUDY"},
        **{"raw_state": "ACTIVE"},
    }
    return Posting.objects.create(study=study, **{**row, **changes})


def test_it_says_everything_about_a_posting(study: Study, desk: Client) -> None:
    study = study_with_reward()
    posting = live(study, sync_error="prolific could not be read: 503.")
    session = stored.sitting(study, "ada", condition="control")
    paid.payout(posting=posting, session=session, kind="base", cents=100, currency="USD", state="sent")
    for number, state in enumerate(("active", "awaiting", "awaiting")):
        Submission.objects.create(posting=posting, submission_hash=f"{number:064}", state=state)
    page = text_of(desk)
    assert '<span class="mode live">Live</span>' in page
    assert "the platform says <code>ACTIVE</code>" in page
    assert "40 <span" in page and "12 taken, 28 open" in page
    assert "prolific could not be read: 503." in page
    assert "1.00 USD</dd>" in page and "12.00 USD" in page and "floor 12.00 USD" in page
    # The platform has told no fees, so they count as half.
    assert re.search(r"1.50 USD <span class=\"soft\">of 90.00 USD", page)
    assert "11</dd>" in page, "free slots"
    assert re.search(r"At it now</dt><dd>1<", page) and re.search(r"Waiting for review</dt><dd>2<", page)
    assert "never" in page and "SECRET" not in page


def study_with_reward() -> Study:
    from experiments.definition.study import StudyDefinition

    study = Study.objects.get()
    definition = {
        **study.definition,
        "reward": {"amount_cents": 100, "currency": "USD", "expected_minutes": 5},
    }
    digest = StudyDefinition.model_validate(definition).digest
    Study.objects.filter(pk=study.pk).update(definition=definition, digest=digest)
    return Study.objects.get(pk=study.pk)


@pytest.mark.parametrize(
    "changes,word",
    [
        ({"mode": "live"}, "Live"),
        ({"mode": "sandbox", "platform": "mturk"}, "Sandbox"),
        ({"mode": "rehearsal"}, "Rehearsal"),
        ({"mode": "live", "pilot": True}, "Live · pilot"),
    ],
)
def test_it_says_how_real_a_posting_is(
    study: Study, desk: Client, changes: dict[str, Any], word: str
) -> None:
    posting = live(study, **changes)
    for path in (ROOT, f"{ROOT}{posting.pk}/close/", f"{ROOT}{posting.pk}/add/?count=2"):
        assert f'<span class="mode {posting.mode}">{word}</span>' in text_of(desk, path), path


def test_it_warns_of_pay_below_the_floor(study: Study, desk: Client) -> None:
    live(study_with_reward(), reward_cents=99)
    assert re.search(r'class="bad">11.88 USD <span class="soft">· floor 12.00 USD', text_of(desk))


def test_it_sends_a_worker_and_keeps_the_name(
    study: Study, desk: Client, sent: list[tuple[Any, ...]]
) -> None:
    posting = live(study)
    for act in ("pause", "sync"):
        sentence = said_after(desk, f"{ROOT}{posting.pk}/{act}/")
        assert "A worker was asked to" in sentence
    desk.post(f"{ROOT}{posting.pk}/close/")
    assert sent == [(posting.pk, act, "grace", 0) for act in ("pause", "sync", "close")]
    posting.refresh_from_db()
    assert posting.state == "open", "the page itself changes nothing"
    words = list(LogEntry.objects.order_by("pk").values_list("change_message", "user__username"))
    assert words[0] == ("Asked a worker to pause the posting on prolific (live).", "grace")
    assert len(words) == 3


def test_it_names_the_command_without_a_broker(study: Study, desk: Client, settings: Any) -> None:
    posting = live(study, pilot=True)
    line = as_typed("python manage.py publish wolf-or-husky --platform prolific --live --pilot --pause")
    page = text_of(desk)
    assert f"<code>{line}</code>" in page and "<button>Pause" not in page
    assert line in said_after(desk, f"{ROOT}{posting.pk}/pause/")
    assert not LogEntry.objects.exists()


def test_it_asks_before_it_closes(study: Study, desk: Client, sent: list[tuple[Any, ...]]) -> None:
    posting = live(study)
    page = text_of(desk, f"{ROOT}{posting.pk}/close/")
    assert "Close this posting?" in page and "28 of 40 places stay unfilled" in page
    assert sent == []
    assert desk.get(f"{ROOT}{posting.pk}/pause/").status_code == 405
    assert desk.post(f"{ROOT}{posting.pk}/closes/").status_code == 404


def test_it_adds_places_only_after_their_cost_was_typed(
    study: Study, desk: Client, sent: list[tuple[Any, ...]]
) -> None:
    posting = live(study_with_reward())
    path = f"{ROOT}{posting.pk}/add/"
    assert "20.00 USD" in text_of(desk, f"{path}?count=20")
    for total in ("", "2", "19.99", "20.00 GB", "2000"):
        assert desk.post(path, {"count": "20", "total": total}).status_code == 400, total
    assert sent == []
    assert "add 20 places" in said_after(desk, path, {"count": "20", "total": "20.00 USD"})
    assert sent == [(posting.pk, "add", "grace", 20)]


@pytest.mark.parametrize("count", ["", "0", "-3", "1.5", "x", "5001", "9" * 400])
def test_it_adds_no_nonsense(study: Study, desk: Client, sent: list[tuple[Any, ...]], count: str) -> None:
    posting = live(study)
    reply = desk.get(f"{ROOT}{posting.pk}/add/?count={count}", follow=True)
    assert "places" in reply.content.decode() and reply.redirect_chain
    desk.post(f"{ROOT}{posting.pk}/add/", {"count": count, "total": "1.00"})
    assert sent == []


def test_it_asks_nothing_of_a_posting_that_is_over(
    study: Study, desk: Client, sent: list[tuple[Any, ...]]
) -> None:
    posting = live(study, state="closed")
    for act in ("pause", "resume"):
        assert "nothing was done" in said_after(desk, f"{ROOT}{posting.pk}/{act}/")
    assert "nothing was done" in said_after(desk, f"{ROOT}{posting.pk}/close/")
    assert sent == [] and acts_of(posting) == ("sync",)


def test_it_changes_a_posting_without_a_machine_itself(study: Study, desk: Client) -> None:
    posting = Posting.objects.create(study=study, platform="local", mode="live")
    for act, state in (("pause", "paused"), ("resume", "open"), ("close", "closed")):
        said_after(desk, f"{ROOT}{posting.pk}/{act}/")
        posting.refresh_from_db()
        assert posting.state == state
    users = set(LogEntry.objects.values_list("user__username", flat=True))
    assert users == {"grace"} and LogEntry.objects.count() == 3
    assert Posting.objects.get(pk=posting.pk).closed_at is not None


def test_it_knows_no_posting_of_another_study(study: Study, desk: Client) -> None:
    posting = live(study)
    Study.objects.filter(pk=study.pk).update(slug="elsewhere")
    for act in ("pause", "close", "add"):
        assert desk.post(f"{ROOT}{posting.pk}/{act}/", {"count": "1"}).status_code == 404


def test_it_asks_the_same_questions_for_few_and_many(
    study: Study, desk: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    live(study)
    text_of(desk)
    with django_assert_max_num_queries(24):
        text_of(desk)
    for number in range(12):
        live(study, state="closed", external_id=f"{number}", pilot=bool(number % 2))
    with django_assert_max_num_queries(24):
        page = text_of(desk)
    assert page.count('<section class="posting') == 8 and "1–8 of 13" in page
    assert "Live</span>" in page.split('<section class="posting')[1], "the open one stands first"


@pytest.mark.parametrize("platform", ["prolific", "mturk"])
def test_a_worker_does_what_was_asked_on_the_platform(researcher: User, platform: str) -> None:
    study = study_of()
    with simulated(platform) as sim:
        posting = publish_posting(study, platform, "rehearsal", site=sim.url, places=3)
        for act, state in (("pause", "paused"), ("resume", "open")):
            tasks.change_posting(posting.pk, act, "grace")
            posting.refresh_from_db()
            assert posting.state == state, act
        tasks.change_posting(posting.pk, "add", "grace", 2)
        assert offers(platform, sim)[0]["places"] == 5
        tasks.change_posting(posting.pk, "sync", "grace")
        posting.refresh_from_db()
        assert posting.synced_at is not None and not posting.sync_error
        tasks.change_posting(posting.pk, "close", "grace")
        posting.refresh_from_db()
        assert posting.state == "closed"
    assert LogEntry.objects.filter(user=researcher).count() >= 4


def test_a_worker_says_what_went_wrong_on_the_posting_and_in_the_log(researcher: User, desk: Client) -> None:
    study = study_of()
    with simulated("prolific") as sim:
        posting = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=3)
        tasks.change_posting(posting.pk, "add", "grace", 500)
        assert "are more than the" in text_of(desk)
        sim.faults.down = True
        tasks.change_posting(posting.pk, "pause", "grace")
        page = text_of(desk)
        assert "pause it again" in page
    failures = LogEntry.objects.filter(user=researcher, change_message__contains="that failed")
    assert failures.count() == 2
    tasks.change_posting(10**9, "pause", "grace")
