"""Platform, server and browser: every way in which they can disagree, and the page that lists it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from crowd.models import Posting, Submission
from crowd.money.needs_hand import hands_of
from crowd.money.run import look
from crowd.money.submission_comparison import agreement_of, mendable
from crowd.money.submission_disagreements import (
    RULES,
    Browser,
    Ours,
    SubmissionViews,
    Theirs,
    compare,
    together,
)
from crowd.recruiting.publishing import publish_posting
from experiments.models import Event, Session
from experiments.selectors import definition_of
from tests.crowd.offered_studies import held, known_there, public, simulated, study_of

__all__ = ["public"]
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
AGO = NOW - timedelta(hours=1)
CODES = {
    "DONE": "complete",
    "FAIR": "failed_checks",
    "OUT": "screened",
    "NO": "declined",
    "LEFT": "withdrawn",
}
PASSED = Ours("finished", "passed", True, AGO, AGO)
RUNNING = Ours("running", "", True, AGO)
LISTED = Theirs("awaiting", "AWAITING REVIEW", "DONE", True, AGO, AGO)
AT_WORK = Theirs("active", "ACTIVE", "", True)
FINE = SubmissionViews("ada", LISTED, PASSED, Browser(AGO, "trial 24 of 24"), "prolific", CODES, NOW)


def kinds(seen: SubmissionViews, now: datetime = NOW) -> list[str]:
    return [disagreement.kind for disagreement in compare(seen, now)]


def theirs(**changes: Any) -> SubmissionViews:
    return replace(FINE, theirs=replace(LISTED, **changes))


@pytest.mark.parametrize(
    "seen",
    [
        FINE,
        theirs(code="FAIR"),
        theirs(state="approved"),
        # Paid instead of a reward, and gone: nothing is left to do.
        replace(theirs(state="timed_out"), ours=replace(PASSED, compensated_cents=140)),
        # Approved: the code does not matter any more.
        theirs(state="approved", code="OUT"),
        replace(theirs(code="OUT", state="returned"), ours=Ours("finished", "screened", False, AGO, AGO)),
        replace(theirs(code="NO", state="returned"), ours=Ours("declined", "declined", False, AGO, AGO)),
        replace(theirs(code="LEFT"), ours=Ours("withdrawn", "withdrawn", True, AGO, AGO)),
        replace(
            FINE, ours=RUNNING, theirs=Theirs("active", "ACTIVE", "", True), browser=Browser(NOW, "trial 3")
        ),
        replace(FINE, ours=Ours(), theirs=AT_WORK, browser=Browser()),
        replace(FINE, ours=Ours(), theirs=Theirs("returned", "RETURNED", "", True), browser=Browser()),
        replace(theirs(state="active", code=""), read_at=AGO),
    ],
)
def test_it_finds_nothing_where_all_three_agree(seen: SubmissionViews) -> None:
    assert kinds(seen) == []


WRONG = [
    ("never_here", replace(FINE, ours=Ours(), browser=Browser()), "without ever having been here"),
    ("code_early", replace(FINE, ours=RUNNING, browser=Browser(NOW)), "before finishing here"),
    ("still_active", theirs(state="active", code=""), "still at work on prolific"),
    ("finished_gone", theirs(state="returned"), "Finished here, and returned on prolific"),
    ("finished_gone", theirs(state="timed_out"), "Finished here, and timed out on prolific"),
    (
        "approved_unfinished",
        replace(theirs(state="approved", raw="APPROVED"), ours=RUNNING, browser=Browser(NOW)),
        "APPROVED on prolific, and not finished here",
    ),
    ("unknown_there", replace(FINE, theirs=Theirs()), "does not list this work"),
    (
        "person_differs",
        replace(FINE, ours=replace(PASSED, same_person=False)),
        "lists the work as another",
    ),
    ("wrong_code", theirs(code="OUT"), "Entered the code for 'screened', and ended here as passed"),
    ("wrong_code", theirs(code="GUESS"), "a code that is none of this posting's"),
    (
        "wrong_code",
        replace(theirs(code="DONE"), ours=Ours("declined", "declined", False, AGO, AGO)),
        "Entered the code for 'complete', and ended here as declined",
    ),
    (
        "awaiting_compensated",
        replace(FINE, ours=replace(PASSED, compensated_cents=140)),
        "Awaits review on prolific again, after 1.40 was sent",
    ),
    (
        "return_open",
        replace(
            theirs(code="OUT", return_requested=True),
            ours=Ours("finished", "screened", False, AGO, AGO, held_cents=70),
        ),
        "Asked to give the place back, and has not; 0.70 is due to them then",
    ),
    (
        "return_open",
        replace(theirs(code="LEFT"), ours=Ours("withdrawn", "withdrawn", True, AGO, AGO, held_cents=35)),
        "was not asked to give the place back; 0.35 is due to them then",
    ),
    (
        "running_gone",
        replace(theirs(state="returned", code=""), ours=RUNNING, browser=Browser(NOW)),
        "Running here, and returned on prolific",
    ),
    ("rejected_due", theirs(state="rejected"), "Rejected on prolific, and finished here"),
    (
        "silent",
        replace(
            FINE,
            ours=RUNNING,
            theirs=Theirs("active", "ACTIVE", "", True),
            browser=Browser(AGO, "", True),
        ),
        "silent for 20 minutes or more, after saying that it was offline",
    ),
]
"""The state of all three, the kind of their disagreement, words of its sentence."""


@pytest.mark.parametrize(("kind", "seen", "says"), WRONG)
def test_it_names_what_disagrees_with_its_remedy(kind: str, seen: SubmissionViews, says: str) -> None:
    disagreements = compare(seen, NOW)
    assert [disagreement.kind for disagreement in disagreements] == [kind]
    assert (
        says in disagreements[0].sentence
        and disagreements[0].remedy == RULES[kind][1]
        and disagreements[0].people == ("ada",)
    )


def test_it_has_a_case_here_for_every_kind() -> None:
    assert {case[0] for case in WRONG} == set(RULES)


def test_it_waits_for_a_list_that_may_be_behind() -> None:
    fresh = replace(PASSED, finished_at=NOW - timedelta(minutes=5))
    assert kinds(replace(theirs(state="active", code=""), ours=fresh)) == []
    young = Ours("running", "", True, NOW - timedelta(minutes=5))
    assert kinds(replace(FINE, theirs=Theirs(), ours=young, browser=Browser(NOW))) == []
    assert kinds(replace(FINE, theirs=Theirs(), read_at=None)) == []


def test_it_reports_no_running_session_if_the_list_shows_only_submitted_work() -> None:
    mturk = replace(FINE, platform="mturk", theirs=Theirs(), lists_active=False)
    assert kinds(mturk) == ["unknown_there"]
    assert kinds(replace(mturk, ours=RUNNING, browser=Browser(NOW))) == []
    assert kinds(replace(mturk, ours=Ours("declined", "declined", False, AGO, AGO))) == []


def test_it_puts_the_same_of_several_people_together_the_urgent_first() -> None:
    again = replace(theirs(), ours=replace(PASSED, compensated_cents=140))
    each = [compare(replace(seen, name=name), NOW) for name, seen in
            (("ada", theirs(state="returned")), ("bo", again), ("cy", theirs(state="returned")))]  # fmt: skip
    grouped = together([disagreement for part in each for disagreement in part])
    assert [(disagreement.kind, disagreement.people) for disagreement in grouped] == [
        ("awaiting_compensated", ("bo",)),
        ("finished_gone", ("ada", "cy")),
    ]


@pytest.mark.both_databases("time")
@pytest.mark.django_db
def test_it_compares_a_study_with_its_platform() -> None:
    with simulated("prolific") as sim:
        posting = publish_posting(study_of(8), "prolific", "rehearsal", places=6, site=sim.url)
        ada, bo = held(posting, sim), held(posting, sim)
        cy = held(posting, sim, code="declined")
        forged = held(posting, sim, as_person="64b7c0ffee0000000000dead")
        gone = held(posting, sim, code="")
        sim.control("return", submission=known_there(gone, sim)["submission"])
        stranger = sim.control("take")
        sim.control("complete", submission=stranger["submission"], code=posting.codes["complete"])
        sim.control("advance", seconds=60)
        sim.world.submissions[known_there(bo, sim)["submission"]].bonuses.append(75)
        assert not look(posting, everything=True).error
    (hand,) = [hand for hand in hands_of(posting) if hand.kind == "surplus"]
    assert (hand.submission, hand.cents) == (bo.pk, 75)
    agreement = agreement_of(posting.study)
    names = {
        row.submission.pk: [disagreement.kind for disagreement in row.disagreements] for row in agreement.rows
    }
    assert names[ada.pk] == names[bo.pk] == [] and names[cy.pk] == ["wrong_code"]
    assert names[forged.pk] == ["person_differs"] and names[gone.pk] == ["finished_gone"]
    assert ["never_here"] in names.values()
    to_mend, left = [
        {(row.submission.pk, each.kind) for row in rows for each in row.open_disagreements}
        for rows in (agreement.rows, mendable(posting))
    ]
    assert left == to_mend and len(mendable(posting)) < len(agreement.rows) and to_mend
    assert (len(agreement.rows), agreement.disagreeing) == (6, 4)
    assert all(row.disagreements for row in agreement.rows[:4]) and not agreement.rows[5].disagreements
    assert {disagreement.kind for disagreement in agreement.disagreements} == {
        kind for kinds in names.values() for kind in kinds
    }
    shown = repr(agreement.disagreements) + "".join(repr(row.seen) for row in agreement.rows)
    for work in sim.control("state")["submissions"].values():
        assert work["person"] not in shown and work["submission"] not in shown


def many(posting: Posting, count: int) -> None:
    from tests.analysis import stored

    for number in range(count):
        session = stored.sitting(posting.study, f"{posting.pk}-{number}-{count}", verdict="screened")
        Submission.objects.create(
            posting=posting,
            submission_hash=f"{number}-{count}",
            session=session,
            state="awaiting",
            code="GUESS",
            seen_at=timezone.now(),
        )


@pytest.mark.both_databases("time")
@pytest.mark.django_db
def test_it_asks_the_database_as_often_for_many_as_for_one() -> None:
    study = study_of()
    posting = Posting.objects.create(study=study, platform="prolific", codes={"complete": "DONE"})
    definition_of(study)  # Read once per process.
    asked = []
    for count in (1, 29):
        many(posting, count)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            agreement = agreement_of(study)
        asked.append(len(queries))
    assert asked[0] == asked[1] and asked[0] <= 4
    assert len({row.submission.pk for row in agreement.rows}) == len(agreement.rows) == 30
    assert agreement_of(study, kind="rejected_due").rows == ()


@pytest.mark.both_databases("time")
@pytest.mark.django_db
def test_it_reads_the_last_sign_of_life_of_the_page() -> None:
    study = study_of()
    posting = Posting.objects.create(study=study, platform="prolific", synced_at=timezone.now())
    from tests.analysis import stored

    session = stored.sitting(study, "cy", condition="baseline", verdict="", answers=5)
    Submission.objects.create(
        posting=posting, submission_hash="cy", session=session, state="active", seen_at=timezone.now()
    )
    Session.objects.filter(pk=session.pk).update(state="running")
    Event.objects.filter(session=session).delete()
    for at_ms, kind in ((1, "online"), (2, "offline")):
        Event.objects.create(session=session, uuid=f"{at_ms:032}", kind=kind, at_ms=at_ms)
    Event.objects.update(received_at=timezone.now() - timedelta(minutes=30))
    session.gates.update(created_at=session.started_at)
    browser = agreement_of(study).rows[0].seen.browser
    assert browser.step == "trial 5 of 16" and browser.offline
    assert browser.seen_at == Event.objects.first().received_at  # type: ignore[union-attr]
    assert [
        disagreement.kind
        for disagreement in agreement_of(study).disagreements
        if disagreement.kind == "silent"
    ] == ["silent"]
