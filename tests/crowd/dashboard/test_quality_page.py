"""The page of quality while a study runs: its counts against naive ones, its what-ifs against screening
itself, and no condition on it."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from analysis.models import Viewing
from analysis.stored_reports.departures import plan_facts
from crowd.dashboard.rows.quality_page import origin_quality, pace, what_if
from crowd.ground.audit import study_log
from experiments.models import Event, Response, Session, Study, Trial
from experiments.selectors import definition_of
from experiments.sessions.lifecycle import withdraw
from experiments.sessions.verdicts import screen
from tests.analysis import stored
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
RULES = {
    "fastest_median_ms": 400,
    "instructed_share_min": 1.0,
    "total_minutes": [1, 30],
    "practice_attempts_max": 3,
}
DECISION = {"by": "x", "reason": "y", "at": "2099-01-01T00:00:00+00:00"}
OVER = ("passed", "screened")
PAGE = "/studies/wolf-or-husky/quality/"


@pytest.fixture
def study(store_folder: object) -> Study:
    """Twelve people who finish, each slower than the one before; some miss checks. And one who left."""
    study = stored.opened(8, screening=RULES)
    for number in range(12):

        def right(trial: Trial, number: int = number) -> bool:
            return not (trial.check_kind == "instructed" and number % 3 == 0)

        name = ("baseline", "control", "grad_cam")[number % 3]
        session = stored.sitting(study, f"p{number}", condition=name, right=right, minutes=number)
        Response.objects.filter(session=session).update(rt_ms=150 * (number + 1))
        verdict = screen(session)
        session.verdict, session.reasons = verdict.status, [reason.as_json() for reason in verdict.reasons]
        session.save()
    stored.sitting(study, "gone", condition="control", verdict="incomplete", answers=7, minutes=20)
    return study


@pytest.fixture
def viewer(study: Study) -> Client:
    return login("vera", "view")


def test_its_rates_are_those_of_a_naive_count(study: Study) -> None:
    told = origin_quality(study, "human", 5)
    answers = Response.objects.filter(trial__check_kind="instructed", session__verdict__in=OVER)
    right = sum(row.value["choice"] == row.trial.expected for row in answers.select_related("trial"))
    (check,) = [row for row in told.checks if row.word == "Instructed checks"]
    assert (check.passed, check.asked) == (right, answers.count()) and 0 < right < answers.count()
    assert sum(passed for _, passed, _ in check.times) == right
    (practice,) = [row for row in told.checks if row.word == "Practice"]
    assert (practice.passed, practice.asked) == (13, 13), "a second try counts"
    broken = [row.reasons for row in Session.objects.filter(verdict="screened")]
    by_rule = sum(any(reason["rule"] == "instructed_share_min" for reason in reasons) for reasons in broken)
    (kept,) = [row for row in told.checks if row.word == "Enough instructed checks"]
    assert kept.asked - kept.passed == by_rule == 4


@pytest.mark.parametrize(
    ("passed", "minutes", "left", "rate", "until"),
    [
        (5, 10, 5, "5 in the last 10 minutes", "about 10 minutes, if it goes on as with these 5"),
        (6, 120, 12, "6 in the last 2.0 hours", "about 4.0 hours, if it goes on as with these 6"),
        (6, 600, 60, "6 in the last 6.0 hours", "about 2 days, if it goes on as with these 6"),
        (4, 10, 5, "4 in the last 10 minutes", "cannot be told from fewer than 5 people"),
        (9, 10, 0, "9 in the last 10 minutes", "every place is kept"),
    ],
)
def test_a_pace_counts_from_the_first_arrival(
    passed: int, minutes: int, left: int, rate: str, until: str
) -> None:
    """By hand: 5 people in 10 minutes fill 5 places in 10 more; of ten hours the last six count."""
    now = timezone.now()
    first = Session(started_at=now - timedelta(minutes=minutes), verdict="screened", verdict_at=now)
    earlier = Session(started_at=now, verdict="passed", verdict_at=now - timedelta(minutes=minutes + 1))
    others = [Session(started_at=now, verdict="passed", verdict_at=now) for _ in range(passed)]
    rows: Any = [first, earlier, *others]
    assert pace(rows, left) == (rate, until)


def test_its_figures_count_everybody_once(study: Study) -> None:
    charts = {chart.key: chart for chart in origin_quality(study, "human", 5).charts}
    for key in ("fastest-median-ms", "total-minutes"):
        assert sum(int(row[2]) for row in charts[key].rows) == 12
    (limit,) = charts["fastest-median-ms"].marks
    assert limit.word == f"limit {definition_of(study).rules['fastest_median_ms']['limit']:g}"
    far = {row[0]: row[1] for row in charts["staying"].rows}
    assert far["Arrived"] == far["Got a place"] == "13 of 13"
    assert (far["Trial 7"], far["Trial 8"]) == ("13 of 13", "12 of 13"), "one left after seven answers"


@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        ("fastest_median_ms", 700.0),
        ("fastest_median_ms", 0.0),
        ("instructed_share_min", 0.4),
        ("total_minutes", [9.0, 30.0]),
        ("total_minutes", [1.0, 8.0]),
        ("side_share_max", 0.5),
        ("straight_share_max", 0.1),
    ],
)
def test_a_what_if_excludes_whom_screening_excludes(study: Study, rule: str, limit: object) -> None:
    """Beside the paradigm's own screening of the same sessions under a definition with that limit."""
    origin_quality(study, "human", 5)
    told = what_if(study, "human", rule, limit)
    before = {row.pk: row.verdict for row in Session.objects.filter(verdict__in=OVER)}
    study.definition = {
        **study.definition,
        "screening": {**study.definition["screening"], rule: {"limit": limit}},
    }
    study.digest = f"with {rule} {limit}"
    study.save()
    after = {key: screen(Session.objects.get(pk=key)).status for key in before}
    assert told["more"] == sum(before[k] == "passed" and after[k] == "screened" for k in before)
    assert told["fewer"] == sum(before[k] == "screened" and after[k] == "passed" for k in before)
    assert told["of"] == 12


def test_a_limit_that_is_tried_is_noted_and_changes_nothing(study: Study, viewer: Client) -> None:
    digest, page = study.digest, viewer.get(PAGE).content.decode()
    assert "As of" in page and "Instructed checks" in page
    reply = viewer.post(f"{PAGE}try/", {"rule": "fastest_median_ms", "limit": "700", "origin": "human"})
    assert reply.status_code == 302
    (row,) = Viewing.objects.filter(kind="limit")
    assert (
        row.sealed and row.who == "vera" and row.detail == what_if(study, "human", "fastest_median_ms", 700)
    )
    page = viewer.get(PAGE).content.decode()
    assert "at least 700 ms" in page and "tried 700" in page
    assert "Tried another limit" in study_log(study)[0].change_message
    study.refresh_from_db()
    assert study.digest == digest
    for rule, limit, said in (
        ("fastest_median_ms", "soon", "&#x27;soon&#x27; is not a number from 0 to"),
        ("total_minutes", "5", "is not a pair [lowest, highest]"),
        ("quiz_attempts_max", "2", "Choose a rule that acts at the end"),
    ):
        sent = viewer.post(f"{PAGE}try/", {"rule": rule, "limit": limit}, follow=True)
        assert said in sent.content.decode()
    assert Viewing.objects.filter(kind="limit").count() == 1


def test_no_condition_is_on_the_page_while_results_are_sealed(study: Study, viewer: Client) -> None:
    for address in (PAGE, f"{PAGE}live/", f"{PAGE}values.csv"):
        text = viewer.get(address).content.decode().lower()
        assert not any(name in text for name in ("grad_cam", "grad-cam", "baseline", "placebo"))


def test_its_values_can_be_downloaded(study: Study, viewer: Client) -> None:
    rows = list(csv.DictReader(io.StringIO(viewer.get(f"{PAGE}values.csv").content.decode())))
    people = [int(row["people"]) for row in rows if row["figure"].startswith("Minutes from arrival")]
    assert sum(people) == 12


def test_what_is_erased_is_measured_no_more(study: Study) -> None:
    origin_quality(study, "human", 5)
    session = Session.objects.filter(verdict="passed").first()
    assert session is not None and session.measures["rules"]
    withdraw(session, "no longer", erase=True)
    session.refresh_from_db()
    assert session.measures == {}
    assert origin_quality(study, "human", 5).finished == 11


def test_a_check_that_excludes_honest_people_is_named(study: Study) -> None:
    assert origin_quality(study, "human", 5).suspects == []
    reason = {"rule": "instructed_share_min", "timing": "after", "found": 0.0, "limit": 1.0, "evidence": ""}
    for session in Session.objects.filter(verdict="passed")[:6]:
        session.verdict, session.reasons = "screened", [reason]
        session.save()
    (sentence,) = origin_quality(study, "human", 5).suspects
    assert "“Missed instructed checks” excludes" in sentence


def test_a_record_shows_every_trial_and_no_more_than_the_seal_allows(study: Study, viewer: Client) -> None:
    """A failed check is whole: what was asked, which key was pressed and after how long, as exported."""
    session = Session.objects.get(media_id="p2")
    check = Response.objects.filter(session=session, trial__check_kind="instructed").select_related("trial")[
        0
    ]
    wrong = next(c["value"] for c in check.trial.choices if c["value"] != check.trial.expected)
    Response.objects.filter(pk=check.pk).update(value={"choice": wrong}, rt_ms=4321)
    Event.objects.create(
        session=session,
        uuid=session.participant.pseudonym,
        kind="focus_lost",
        at_ms=5,
        trial=check.trial,
    )
    address = f"/studies/wolf-or-husky/participants/{session.pk}/"
    page = viewer.get(address).content.decode()
    assert page.count('scope="row" class="n"') == Trial.objects.filter(slot=session.slot).count()
    row = page.split(f'data-part="number">{check.trial.position + 1}</th>')[1].split("</tr>")[0]
    for part in (
        f"asked for <strong>{check.trial.expected}</strong>",
        wrong,
        "<kbd>f</kbd>",
        "4321 ms",
        "tick-no",
        "left the page",
    ):
        assert part in row
    assert (
        page.count("tick-yes") + page.count("tick-no")
        == Trial.objects.filter(slot=session.slot).exclude(check_kind="").count()
    ), "scored trials say nothing while results are sealed"
    assert "/explanation/" not in page and "grad_cam" not in page.lower() and "grad-cam" not in page.lower()
    viewer.get(address)
    (viewing,) = Viewing.objects.filter(kind="record")
    assert (viewing.session, viewing.who, viewing.sealed) == (session, "vera", True)


def test_the_report_tells_what_was_viewed_before_results_were_open(study: Study, viewer: Client) -> None:
    viewer.post(f"{PAGE}try/", {"rule": "fastest_median_ms", "limit": "700"})
    session = Session.objects.filter(verdict="passed").first()
    assert session is not None
    viewer.get(f"/studies/wolf-or-husky/participants/{session.pk}/")
    notes = " ".join(_notes(study))
    assert "1 other limit of screening was tried" in notes and "1 person's record was opened" in notes
    assert "0 of them were left out" in notes
    Session.objects.filter(pk=session.pk).update(excluded=DECISION)
    assert "1 of them were left out by hand afterwards" in " ".join(_notes(study))


def _notes(study: Study) -> list[str]:
    notes: list[str] = plan_facts(study, "human")["notes"]
    return notes


def test_what_the_model_says_stands_beside_no_scored_answer_while_results_are_sealed(
    study: Study, viewer: Client
) -> None:
    """Advice beside the answer would tell whether the two agree; what was told while learning stays."""
    session = Session.objects.get(media_id="p2")
    trials = Trial.objects.filter(slot=session.slot)
    trials.filter(phase="test", check_kind="").update(label="the advice")
    trials.filter(phase="train").update(label="the lesson")
    Study.objects.filter(pk=study.pk).update(plan_digest="as it is served from now on")
    page = viewer.get(f"/studies/wolf-or-husky/participants/{session.pk}/").content.decode()
    assert "the lesson" in page and "the advice" not in page
    unsealed = {"unsealed_at": stored.START, "unsealed_by": "x", "unsealed_reason": "y"}
    Study.objects.filter(pk=study.pk).update(**unsealed)
    assert "the advice" in viewer.get(f"/studies/wolf-or-husky/participants/{session.pk}/").content.decode()
