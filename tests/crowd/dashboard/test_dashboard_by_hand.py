"""Leaving a sitting out by hand: what the page may show, who decides, and what it changes."""

import re
from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from analysis.stored_reports.refresh import refresh_report
from crowd.dashboard.rows.places_and_exclusions import flows_of
from crowd.models import Identity, Payout, Posting, Submission
from experiments.models import Gate, Response, Session, Slot, Study, Trial
from tests.analysis import stored
from tests.crowd import paid

ROOT = "/studies/wolf-or-husky/"
REASON = "Wrote that a colleague answered the second half."


def page_of(session: Session) -> str:
    return f"{ROOT}exclusions/{session.pk}/"


def text_of(client: Client, path: str) -> str:
    reply = client.get(path)
    assert reply.status_code == 200, path
    return reply.content.decode()


def leave_out(client: Client, session: Session, reason: str = REASON) -> int:
    return client.post(page_of(session), {"act": "leave_out", "reason": reason}).status_code


def main_of(page: str) -> str:
    """The page without the study's frame: its title, next step and the list of studies."""
    return page[page.index("</nav>", page.index('class="tabs"')) :]


def test_it_shows_signs_of_quality_and_neither_condition_nor_score_nor_identity(
    study: Study, desk: Client
) -> None:
    session = stored.sitting(
        study, "ada", condition="grad_cam", comment="My screen <b>froze</b>.", right=lambda trial: False
    )
    posting = Posting.objects.create(study=study, platform="prolific", external_id="64ab")
    identity = Identity.objects.create(
        study=study,
        platform="prolific",
        person_hash="a" * 64,
        external_id="OUTSIDE-PERSON",
        participant=session.participant,
    )
    Submission.objects.create(
        posting=posting,
        identity=identity,
        submission_hash="b" * 64,
        session=session,
        external_id="OUTSIDE-WORK",
        state="awaiting",
    )
    paid.payout(posting=posting, session=session, kind="bonus", cents=37, currency="GBP", reason="7 matches")
    session.events.create(uuid=posting.key.zfill(32)[:32], kind="focus_lost", at_ms=5)
    Response.objects.filter(session=session, position=3).update(rt_ms=120)
    shown = main_of(text_of(desk, page_of(session)))
    assert "My screen &lt;b&gt;froze&lt;/b&gt;." in shown and "Focus losses" in shown
    # The stored sittings answer checks, too, with `right`: none of them is passed here.
    assert re.search(r"Instructed checks passed.*?0 of 2", shown, re.DOTALL)
    assert re.search(r"Under 300 ms.*?>1<", shown, re.DOTALL)
    for word in ("grad_cam", "Grad-CAM", "control", "baseline", "Baseline", "match", "accura", "score of"):
        assert word not in shown, word
    for value in ("OUTSIDE", "0.37", "64ab"):
        assert value not in shown, value


@pytest.mark.parametrize("right", [lambda trial: True, lambda trial: bool(trial.check_kind)])
def test_it_looks_the_same_for_every_score(
    study: Study, desk: Client, right: Callable[[Trial], bool]
) -> None:
    """Two people who differ in condition and in scored answers alone have the same page."""
    first = stored.sitting(study, "one", condition="baseline", right=lambda trial: True)
    other = stored.sitting(study, "other", condition="grad_cam", right=right)
    pages = []
    for session in (first, other):
        shown = main_of(text_of(desk, page_of(session)))
        shown = re.sub(r"p-[0-9a-f]{16}|[0-9a-f-]{36}|value=\"[A-Za-z0-9]{64}\"", "X", shown)
        pages.append(shown)
    assert pages[0] == pages[1]


def test_it_stores_name_reason_and_time_and_touches_neither_pay_nor_place(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="grad_cam")
    posting = Posting.objects.create(study=study, platform="prolific", external_id="64ab")
    paid.payout(posting=posting, session=session, kind="base", cents=140, currency="GBP", reason="x")
    assert leave_out(desk, session) == 302
    session.refresh_from_db()
    assert session.excluded.keys() == {"by", "reason", "at"}
    assert (session.excluded["by"], session.excluded["reason"]) == ("grace", REASON)
    assert (session.verdict, session.state) == ("passed", "finished")
    assert session.slot is not None and Slot.objects.get(pk=session.slot.pk).kept
    assert Payout.objects.get().state == "due"
    (entry,) = LogEntry.objects.all()
    assert entry.user.get_username() == "grace" and REASON in entry.change_message
    assert "out of the main result by hand:" in entry.change_message, "results were sealed"
    (flow,) = flows_of(study)
    assert (flow.passed, flow.left_out) == (1, 1)
    overview = text_of(desk, ROOT)
    assert "Left out by hand" in overview and "Not left out by hand" in overview


def test_it_can_be_taken_back_with_a_reason(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="grad_cam")
    leave_out(desk, session)
    assert desk.post(page_of(session), {"act": "take_back", "reason": ""}).status_code == 400
    session.refresh_from_db()
    assert session.excluded
    desk.post(page_of(session), {"act": "take_back", "reason": "The colleague only watched."})
    session.refresh_from_db()
    assert session.excluded == {}
    words = list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True))
    assert len(words) == 2 and "Took p-" in words[1] and "The colleague only watched." in words[1]


@pytest.mark.parametrize("reason", ["", "   ", "short", "x" * 1001])
def test_it_wants_a_reason_that_says_something(study: Study, desk: Client, reason: str) -> None:
    session = stored.sitting(study, "ada", condition="grad_cam")
    assert leave_out(desk, session, reason) == 400
    session.refresh_from_db()
    assert session.excluded == {} and not LogEntry.objects.exists()


@pytest.mark.parametrize("verdict", ["screened", "incomplete", "withdrawn", "declined", ""])
def test_it_decides_only_about_who_was_kept(study: Study, desk: Client, verdict: str) -> None:
    condition = None if verdict == "declined" else "control"
    session = stored.sitting(study, "bo", condition=condition, verdict=verdict, answers=3)
    assert "Leave out, as" not in text_of(desk, page_of(session))
    leave_out(desk, session)
    session.refresh_from_db()
    assert session.excluded == {}


def test_it_decides_once_and_keeps_the_first_reason(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="grad_cam")
    leave_out(desk, session)
    leave_out(desk, session, "Another reason altogether.")
    session.refresh_from_db()
    assert session.excluded["reason"] == REASON and LogEntry.objects.count() == 1


def test_it_writes_down_that_results_were_open(study: Study, desk: Client) -> None:
    stored.full(study)
    session = Session.objects.filter(study=study, verdict="passed").first()
    assert session is not None
    leave_out(desk, session)
    assert "(results were open)" in LogEntry.objects.get().change_message


def test_it_knows_no_sitting_of_another_study(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="grad_cam")
    Study.objects.filter(pk=study.pk).update(slug="elsewhere")
    assert desk.get(page_of(session)).status_code == 404
    assert leave_out(desk, session) == 404


def test_it_tells_no_condition_anywhere_while_results_are_sealed(study: Study, desk: Client) -> None:
    """Leaving people out and taking them back tells a researcher nothing: no number by condition changes."""
    stored.sitting(study, "ada", condition="grad_cam")
    stored.sitting(study, "eve", condition="baseline", right=lambda trial: False)
    session = Session.objects.get(slot__condition__name="grad_cam")
    before = refresh_report(study, "human").json
    leave_out(desk, session)
    after = refresh_report(study, "human").json
    assert after["pooled"] == before["pooled"] and after["conditions"] == before["conditions"]
    assert after["flow"]["by_condition"] == before["flow"]["by_condition"]
    assert after["flow"]["excluded_by_hand"] == 1
    for path in ("exclusions/", "exclusions/?status=by_hand", "exclusions/?status=kept", "participants/"):
        shown = main_of(text_of(desk, ROOT + path))
        assert "grad_cam" not in shown and "Grad-CAM" not in shown, path


def test_it_removes_nothing_of_who_wanted_to_be_forgotten(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="grad_cam")
    Session.objects.filter(pk=session.pk).update(erased={"responses": 3}, verdict="withdrawn")
    assert "there is nothing to decide" in text_of(desk, page_of(session))


def test_it_lists_who_was_kept_with_signs_of_quality(
    study: Study, desk: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    stored.cast(study)
    passed = [stored.sitting(study, f"k{number}", condition="control") for number in range(2)]
    passed[0].events.create(uuid="0" * 32, kind="focus_lost", at_ms=1)
    desk.get(f"{ROOT}exclusions/?status=kept")
    with django_assert_max_num_queries(18):
        few = text_of(desk, f"{ROOT}exclusions/?status=kept")
    assert few.count("/exclusions/") >= 3 and "Focus losses" in few
    for number in range(4):
        stored.sitting(study, f"m{number}", condition=("baseline", "grad_cam")[number % 2])
    with django_assert_max_num_queries(18):
        many = text_of(desk, f"{ROOT}exclusions/?status=kept")
    assert "7 sessions that screening kept" in many
    leave_out(desk, passed[0])
    assert "1 session not kept" in text_of(desk, f"{ROOT}exclusions/?status=by_hand")


def test_it_counts_tries_at_the_gates(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="grad_cam")
    for attempt in range(3):
        Gate.objects.create(session=session, kind="quiz", attempt=attempt, value={}, passed=attempt == 2)
    shown = text_of(desk, page_of(session))
    assert re.search(r"Tries at the quiz.*?>3<", shown, re.DOTALL)
    assert re.search(r"Tries at the practice.*?>2<", shown, re.DOTALL)
