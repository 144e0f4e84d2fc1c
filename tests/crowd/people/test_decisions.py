"""Decisions of a named person about a submission: approve, ask to return, reject on permitted grounds."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from crowd.ground import platform_accounts
from crowd.models import Submission
from crowd.people.decisions import decide_batch, propose_rejections
from experiments.errors import StudyError
from tests.crowd import paid

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """No time passes between two tries, and an unknown payout may be settled at once."""
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (lambda seconds: None,))
    settings.PAYOUT_GRACE_S = 0


def test_it_proposes_rejections_and_a_person_decides(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        failed = stage.person(verdict="screened", outcome="failed_checks")
        passed = stage.person(verdict="screened", matches=2)
        fail_checks(failed)
        paid.settle(stage.study, yes=False)
        proposals = propose_rejections(stage.study)
        assert [(p.submission, p.failed_checks, p.checks) for p in proposals] == [(failed.pk, 2, 2)]
        assert "2 failed fair attention checks" in proposals[0].grounds
        message = "You pressed another key than the page asked for, in two checks of two. " * 2
        refused = decide_batch(researcher, [passed.pk], "reject", message, "FAILED_CHECK")
        assert refused.done == 0 and "no grounds" in refused.problems[0]
        short = decide_batch(researcher, [failed.pk], "reject", "Two checks failed.", "FAILED_CHECK")
        assert short.done == 0 and "100" in short.problems[0]
        assert stage.ledger(failed) == {"base": ("due", 140)}
        done = decide_batch(researcher, [failed.pk], "reject", message, "FAILED_CHECK")
        assert (done.done, done.problems) == (1, ())
        assert stage.ledger(failed) == {"base": ("withheld", 140)}
        assert stage.truth()[failed.submission_hash]["state"] == "REJECTED"
        assert LogEntry.objects.latest("pk").user == researcher
        assert paid.settle(stage.study) == ""
        assert stage.paid(failed) == (0, [])
        assert stage.paid(passed) == (140, [10])


def fail_checks(row: Submission) -> None:
    assert row.session is not None
    for response in row.session.responses.filter(trial__check_kind="instructed").select_related("trial"):
        wrong = [c["value"] for c in response.trial.choices if c["value"] != response.trial.expected]
        type(response).objects.filter(pk=response.pk).update(value={"choice": wrong[0]})


@pytest.mark.parametrize(("uncertain", "state"), [(True, "withheld"), (False, "due")])
def test_it_writes_down_every_rejection_that_failed(uncertain: bool, state: str, researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        failed = stage.person(verdict="screened", outcome="failed_checks")
        fail_checks(failed)
        paid.settle(stage.study, yes=False)
        if uncertain:
            # Reading before the decision succeeds; every try of the decision gets no answer.
            stage.sim.faults.forced = ["", *["5xx_before"] * 12]
        else:
            stage.sim.clock.advance(22 * 86_400)  # The platform has approved it, so it refuses.
        message = "You pressed another key than the page asked for, in two checks of two. " * 2
        done = decide_batch(researcher, [failed.pk], "reject", message, "FAILED_CHECK")
        assert done.done == 0 and len(done.problems) == 1
        stage.sim.faults.forced = []
        line = LogEntry.objects.latest("pk")
        assert line.user == researcher and line.change_message.startswith("Tried to reject")
        assert stage.ledger(failed) == {"base": (state, 140)}
        says = "stay withheld" if uncertain else "still owed"
        assert says in line.change_message, line.change_message


def test_it_approves_a_batch_by_a_click(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        first, second = stage.person(matches=4), stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        decided = decide_batch(researcher, [first.pk], "approve")
        assert (decided.done, decided.problems) == (1, ())
        assert (stage.paid(first), stage.paid(second)) == ((140, []), (0, []))
        assert paid.settle(stage.study) == ""
        assert (stage.paid(first), stage.paid(second)) == ((140, [20]), (140, [20]))
        late = decide_batch(researcher, [first.pk], "reject", "x" * 120, "FAILED_CHECK")
        assert late.done == 0
        paid.agree(stage)


def test_it_asks_for_a_return_in_the_name_of_a_person(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(verdict="withdrawn", answers=3, outcome="complete")
        paid.settle(stage.study, yes=False)
        decided = decide_batch(researcher, [row.pk], "request_return", "You withdrew from the study.")
        assert (decided.done, decided.problems) == (1, ())
        assert "to return the submission: You withdrew" in LogEntry.objects.latest("pk").change_message
        assert stage.truth()[row.submission_hash]["return_requested"]
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (0, [])  # The platform may still pay the whole reward.
        work = next(iter(stage.sim.control.state()["submissions"]))
        stage.sim.control.give_back(work)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (0, [stage.ledger(row)["compensation"][1]])
        paid.agree(stage)


def test_it_decides_nothing_without_a_name_or_a_message(researcher: User) -> None:
    with pytest.raises(StudyError, match="Write a message"):
        decide_batch(researcher, [], "reject", " ", "FAILED_CHECK")
    researcher.is_active = False
    with pytest.raises(StudyError, match="named person"):
        decide_batch(researcher, [], "approve")
