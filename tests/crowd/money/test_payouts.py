"""The ledger's rows: for whom, when, and what a named person may decide about them."""

import threading
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection

from analysis.tables.response_reader import read_frames
from crowd.dashboard.rows.pay_due import money_of
from crowd.ground.identity_hashes import person_hash, submission_hash
from crowd.models import Identity, Payout, Posting, Submission
from crowd.money.expense_cap import change_cap
from crowd.money.ledger import PayoutRefused, decide_due, decide_for, grant, release, withhold
from experiments.models import Gate, Session, Study, Trial
from experiments.sessions import lifecycle
from tests.analysis import stored
from tests.crowd import paid

pytestmark = pytest.mark.django_db
DUE: dict[str, dict[str, Any]] = {
    "kept": {"condition": "control", "right": paid.right_until(3)},
    "excluded": {"condition": "grad_cam", "verdict": "screened", "right": paid.right_until(0)},
    "quiz": {"verdict": "screened"},
    "away": {"verdict": ""},
    "half": {"condition": "baseline", "verdict": "withdrawn"},
    "left": {"condition": "baseline", "verdict": "incomplete", "answers": 5},
    "declined": {"verdict": "declined"},
    "running": {"condition": "baseline", "verdict": "", "answers": 5},
}


@pytest.fixture
def study(db: None) -> Study:
    return paid.paying()


def posting_of(study: Study, **fields: Any) -> Posting:
    values: dict[str, Any] = {"platform": "prolific", "mode": "live", "currency": "GBP", "cap_cents": 100_000}
    return Posting.objects.create(study=study, reward_cents=140, **(values | fields))


def came(posting: Posting, session: Session, name: str) -> Session:
    """The session as one that came by this posting."""
    identity = Identity.objects.create(
        study=posting.study,
        platform=posting.platform,
        person_hash=person_hash(posting, name),
        participant=session.participant,
    )
    Submission.objects.create(
        posting=posting,
        identity=identity,
        session=session,
        submission_hash=submission_hash(posting, name),
    )
    return session


def cast(posting: Posting, origin: str = "human") -> dict[str, Session]:
    sessions = {}
    for name, ending in DUE.items():
        right = paid.right_until(3 if name == "kept" else 0)
        session = stored.sitting(posting.study, name, origin=origin, **(ending | {"right": right}))
        sessions[name] = came(posting, session, name)
    half = sessions["half"]
    half.responses.filter(position__gte=half.responses.count() // 2).delete()
    Session.objects.filter(pk=sessions["away"].pk).update(state="turned_away")
    return sessions


def rows(session: Session) -> dict[str, int]:
    return dict(Payout.objects.filter(session=session).values_list("kind", "cents"))


def test_it_writes_a_row_for_every_amount_due(study: Study) -> None:
    posting = posting_of(study)
    people = cast(posting)
    assert decide_due(posting) == 6
    assert {name: rows(session) for name, session in people.items()} == {
        "kept": {"base": 140, "bonus": 15},
        "excluded": {"base": 140},
        "quiz": {"screen_out": 70},
        "away": {"compensation": 35},
        "half": {"compensation": 70},
        "left": {},
        "declined": {},
        "running": {},
    }
    assert set(Payout.objects.values_list("state", "currency", "decided_by")) == {("due", "GBP", "policy")}


def test_it_shows_as_owed_what_it_will_decide(study: Study) -> None:
    posting = posting_of(study)
    cast(posting)
    before = money_of(study, 12, 0)
    decide_due(posting)
    due = sum(Payout.objects.values_list("cents", flat=True))
    after = money_of(study, 12, 0)
    assert after.owed_cents == due
    assert {line.ending: line.cents for line in after.lines if line.cents} == {
        "Finished, kept or excluded": 280,
        "Bonus for matches": 15,
        "Screened out before a place": 70,
        "Turned away, all places taken": 35,
        "Withdrew": 70,
    }
    # Until then each of the two who finished may get the largest bonus.
    assert before.owed_cents == due - 15 + 2 * 30


@pytest.mark.both_databases("constraints")
def test_it_decides_once_however_often_it_is_asked(study: Study) -> None:
    posting = posting_of(study)
    people = cast(posting)
    assert decide_due(posting) == 6
    people["kept"].responses.all().delete()
    assert decide_due(posting) == 0
    assert rows(people["kept"]) == {"base": 140, "bonus": 15}


def test_it_counts_matches_as_every_report_does(study: Study) -> None:
    posting = posting_of(study)
    people: dict[Any, Session] = {}
    for number in range(6):

        def right(trial: Trial, number: int = number) -> bool:
            return bool(trial.check_kind) or (trial.position + number) % 3 != 0

        session = stored.sitting(study, f"p{number}", condition="control" if number % 2 else "baseline",
                                 right=right, minutes=number)  # fmt: skip
        people[number] = came(posting, session, f"p{number}")
    decide_due(posting)
    trials = read_frames(study).trials
    expected = trials.groupby("session", sort=False)["matches_model"].sum()
    bonuses = [rows(people[number]).get("bonus", 0) for number in range(6)]
    assert bonuses == [min(int(count) * 5, 30) for count in expected]
    assert 0 < min(bonuses) < 30


@pytest.mark.parametrize(
    ("fields", "origin", "count"),
    [
        ({}, "human", 6),
        ({}, "simulated", 0),
        ({}, "pilot", 0),
        ({"pilot": True}, "pilot", 6),
        ({"pilot": True}, "human", 0),
        ({"mode": "rehearsal"}, "simulated", 6),
        ({"mode": "rehearsal"}, "human", 0),
        ({"platform": "local"}, "human", 0),
        ({"platform": "link"}, "human", 0),
    ],
)
def test_it_pays_only_the_people_of_the_posting_s_mode(
    study: Study, fields: dict[str, Any], origin: str, count: int
) -> None:
    posting = posting_of(study, **fields)
    cast(posting, origin)
    assert decide_due(posting) == count


def test_it_pays_only_who_came_by_the_posting(study: Study) -> None:
    posting, other = posting_of(study), posting_of(study, platform="mturk")
    cast(other)
    assert decide_due(posting) == 0


def test_it_owes_nothing_without_consent(study: Study) -> None:
    posting = posting_of(study)
    people = cast(posting)
    Gate.objects.filter(kind="consent").delete()
    assert decide_due(posting) == 0
    assert not any(rows(session) for session in people.values())


def test_it_pays_who_removes_the_answers_after_finishing(study: Study) -> None:
    posting = posting_of(study)
    people = cast(posting)
    assert decide_for(people["kept"]) == 2  # before: the bonus is counted
    for name in ("kept", "excluded"):
        lifecycle.withdraw(people[name], "debrief", erase=True)
    decide_due(posting)
    assert rows(people["kept"]) == {"base": 140, "bonus": 15}
    assert rows(people["excluded"]) == {"base": 140, "bonus": 30}  # not counted in time: the whole bonus


def test_it_pays_pro_rata_when_answers_were_erased(study: Study) -> None:
    posting = posting_of(study)
    people = cast(posting)
    lifecycle.withdraw(people["half"], "again", erase=True)
    decide_due(posting)
    assert rows(people["half"]) == {"compensation": 70}


def test_it_splits_the_reward_where_the_platform_does(study: Study) -> None:
    posting = posting_of(study, platform="mturk", options={"base_share": 0.25})
    people = cast(posting)
    decide_due(posting)
    assert {name: rows(people[name]) for name in ("kept", "quiz", "away")} == {
        "kept": {"base": 35, "bonus": 120},
        "quiz": {"base": 35, "screen_out": 35},
        "away": {"base": 35},
    }


def test_it_keeps_a_person_s_cap_over_all_sittings(db: None) -> None:
    study = paid.paying(reward={"person_cap_cents": 300})
    posting = posting_of(study)
    first = came(posting, stored.sitting(study, "one", condition="control", right=paid.right_until(4)), "one")
    second = stored.sitting(study, "two", condition="control", right=paid.right_until(4), minutes=30)
    Session.objects.filter(pk=second.pk).update(participant=first.participant)
    Submission.objects.create(posting=posting, session=second, submission_hash="two")
    decide_due(posting)
    assert (rows(first), rows(second)) == ({"base": 140, "bonus": 20}, {"base": 140})


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases("locks")
def test_it_may_be_asked_by_several_at_once() -> None:
    study = paid.paying()
    posting = posting_of(study)
    cast(posting)
    counts: list[int] = []
    gate = threading.Barrier(3)

    def sweep() -> None:
        try:
            gate.wait(30)
            counts.append(decide_due(posting))
        finally:
            connection.close()

    threads = [threading.Thread(target=sweep) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(counts) == 6 == Payout.objects.count()


def last_entry() -> tuple[str, str]:
    entry = LogEntry.objects.select_related("user").latest("pk")
    return entry.user.get_username(), entry.change_message


def test_it_withholds_and_releases_in_the_name_of_a_person(study: Study, researcher: User) -> None:
    posting = posting_of(study)
    people = cast(posting)
    decide_due(posting)
    payouts = list(Payout.objects.filter(session=people["kept"]).values_list("pk", flat=True))
    assert withhold(payouts, "grace", "the same answer everywhere") == 2
    assert last_entry() == ("grace", "Withheld 1.55 GBP of 1 person: the same answer everywhere")
    withheld = Payout.objects.filter(session=people["kept"])
    assert set(withheld.values_list("state", "decided_by")) == {("withheld", "grace")}
    assert withhold(payouts, "grace", "again") == 0
    assert release(payouts, "ada@desk", "looked again") == 2
    assert last_entry() == ("legible", "ada@desk: Released 1.55 GBP of 1 person: looked again")
    assert not User.objects.get(username="legible").is_active


@pytest.mark.parametrize("state", ["sending", "sent", "unknown", "failed"])
def test_it_withholds_nothing_that_may_be_paid(study: Study, state: str) -> None:
    posting = posting_of(study)
    cast(posting)
    decide_due(posting)
    Payout.objects.update(state=state)
    assert withhold(Payout.objects.values_list("pk", flat=True), "grace", "too late") == 0


def test_it_grants_what_no_policy_foresees(study: Study) -> None:
    posting = posting_of(study)
    people = cast(posting)
    row = grant(people["left"], "compensation", 50, "grace", "our server was down")
    assert (row.state, row.cents, row.reason) == ("due", 50, "Granted by grace: our server was down")
    assert "Granted 0.50 GBP as compensation to" in last_entry()[1]
    with pytest.raises(PayoutRefused, match="has a compensation already.*Grant a bonus instead"):
        grant(people["left"], "compensation", 50, "grace", "again")
    with pytest.raises(PayoutRefused, match="has a bonus already"):
        grant(people["kept"], "bonus", 50, "grace", "the policy's comes first")
    assert rows(people["kept"]) == {"base": 140, "bonus": 15}


@pytest.mark.parametrize(
    ("who", "reason", "cents", "says"),
    [("", "x", 5, "needs a name"), ("g", " ", 5, "needs a reason"), ("g", "x", 0, "at least 1")],
)
def test_it_refuses_a_decision_without_name_reason_or_amount(
    study: Study, who: str, reason: str, cents: int, says: str
) -> None:
    posting = posting_of(study)
    session = cast(posting)["left"]
    with pytest.raises(PayoutRefused, match=says):
        grant(session, "bonus", cents, who, reason)


def test_it_grants_nothing_above_a_person_s_cap(db: None) -> None:
    study = paid.paying(reward={"person_cap_cents": 180})
    posting = posting_of(study)
    session = cast(posting)["kept"]
    with pytest.raises(PayoutRefused, match=r"1\.85 GBP for this person.*Grant at most 0\.25 GBP"):
        grant(session, "compensation", 30, "grace", "thanks")
    assert grant(session, "compensation", 25, "grace", "thanks").cents == 25


def test_it_grants_nothing_where_no_machine_can_pay(study: Study) -> None:
    posting = posting_of(study, platform="link")
    session = cast(posting)["left"]
    with pytest.raises(PayoutRefused, match="by hand"):
        grant(session, "bonus", 5, "grace", "thanks")


def test_it_changes_a_cap_by_name_and_never_below_what_it_has_promised(study: Study) -> None:
    posting = posting_of(study, cap_cents=1000, places=3, taken=3)
    change_cap(posting, 2000, "grace", "more people than planned")
    raised = "grace: Raised the cap on prolific from 10.00 GBP to 20.00 GBP: more people than planned"
    assert last_entry()[1] == raised
    with pytest.raises(PayoutRefused, match=r"20\.00 GBP already"):
        change_cap(posting, 2000, "grace", "the same amount once more")
    session = came(posting, stored.sitting(study, "ada", condition="control", origin="human"), "ada")
    paid.payout(posting, session, kind="base", cents=140, currency="GBP", state="sent")
    # Rates are not known, so fees count as a half: 140 is 210.
    with pytest.raises(PayoutRefused, match=r"Give at least 2\.10 GBP"):
        change_cap(posting, 209, "grace", "less than we thought at first")
    for who, reason in (("", "less"), ("grace", " ")):
        with pytest.raises(PayoutRefused):
            change_cap(posting, 210, who, reason)
    change_cap(posting, 210, "grace", "less than we thought at first")
    assert Posting.objects.get().cap_cents == 210
    lowered = "grace: Lowered the cap on prolific from 20.00 GBP to 2.10 GBP: less than we thought at first"
    assert last_entry()[1] == lowered
