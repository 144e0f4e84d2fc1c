"""A person who cannot see the pictures: told before the consent, and paid in full if they leave in time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from crowd.dashboard.rows.pay_due import money_of
from crowd.models import Payout, Posting
from crowd.money.ledger import decide_due
from crowd.money.policy import SessionEnd, Terms, dues_of
from experiments.models import Session, Study
from experiments.sessions.lifecycle import CANNOT_SEE
from experiments.wording.sentences import sight_words
from tests.crowd.arrivals import Visitor, posting, prolific
from tests.experiments.definitions import definition

pytestmark = pytest.mark.django_db

REWARD, TRAINED, TRIALS = 100, 4, 19
"""The small study: its reward in cents, its training trials before the first scored one, all its trials."""


@pytest.fixture
def offered(built: int, db: None) -> Posting:
    return posting(Study.objects.get(pk=built), "prolific")


def paid(by: Posting, visitor: Visitor) -> list[tuple[str, int]]:
    decide_due(by)
    return list(Payout.objects.filter(session=visitor.session()).values_list("kind", "cents"))


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("answered", [None, 0, TRAINED])
def test_it_pays_the_whole_reward_before_the_first_scored_trial(
    offered: Posting, answered: int | None, erase: bool
) -> None:
    """In the gates after the consent, in training, and at the first trial that counts."""
    ada = prolific("ada", offered)
    ada.arrive("quiz" if answered is None else "trials")
    if answered:
        ada.answer(answered)
    assert ada.leave(CANNOT_SEE, erase=erase).status_code == 200
    assert paid(offered, ada) == [("compensation", REWARD)]
    [row] = Payout.objects.all()
    assert row.reason == "Cannot see the pictures, and said so before a scored trial: the full reward."
    session = Session.objects.get()
    assert (session.state, session.verdict, session.excluded) == ("withdrawn", "withdrawn", {})


def test_it_is_too_late_after_a_scored_answer_and_another_reason_is_another_matter(offered: Posting) -> None:
    late, other = prolific("late", offered), prolific("other", offered)
    late.arrive()
    late.answer(TRAINED + 1)
    trials = len(late.trials())
    late.leave(CANNOT_SEE)
    assert paid(offered, late) == [("compensation", round(REWARD * (TRAINED + 1) / trials))]
    other.arrive()
    other.answer(TRAINED)
    other.leave("time")
    assert paid(offered, other) == [("compensation", round(REWARD * TRAINED / trials))]


@pytest.mark.parametrize("answered", [0, TRAINED, TRAINED + 1])
def test_the_dialog_says_what_this_reason_pays(offered: Posting, answered: int) -> None:
    """Before and after leaving the same words, in time and too late; other reasons have theirs."""
    ada = prolific("ada", offered)
    ada.arrive()
    if answered:
        ada.answer(answered)
    said = [
        ada.call("GET", f"/api/session/pay/?reason={reason}").json()["pay"] for reason in (CANNOT_SEE, "time")
    ]
    assert (said[0] == said[1]) == (answered > TRAINED)
    assert ada.leave(CANNOT_SEE).json()["pay"] == said[0]


def test_the_money_page_counts_them_apart(offered: Posting) -> None:
    ada, bo = prolific("ada", offered), prolific("bo", offered)
    for visitor, reason in ((ada, CANNOT_SEE), (bo, "time")):
        visitor.arrive("quiz")
        visitor.leave(reason)
    told = {row.ending: (row.people, row.cents) for row in money_of(offered.study, 9, 0).lines}
    assert told["Could not see the pictures, and said so in time"] == (1, REWARD)
    assert told["Withdrew"] == (1, 0)


def test_before_the_consent_nothing_is_done_and_nothing_is_owed(offered: Posting) -> None:
    bo = prolific("bo", offered)
    bo.arrive("consent")
    assert "pictures" in bo.state["study"]["sight"] and "paid in full" in bo.state["study"]["sight"]
    bo.leave(CANNOT_SEE)
    assert paid(offered, bo) == []


def test_it_pays_each_person_once(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive("quiz")
    now = ada.session()
    reasons = [{"rule": "withdrawn", "evidence": CANNOT_SEE}]
    earlier = Session.objects.create(
        study=now.study, participant=now.participant, origin=now.origin, state="withdrawn",
        verdict="withdrawn", reasons=reasons, token_hash="earlier", media_id="earlier",
    )  # fmt: skip
    Session.objects.filter(pk=earlier.pk).update(started_at=now.started_at - timedelta(days=1))
    ada.leave(CANNOT_SEE)
    assert paid(offered, ada) == []


@pytest.mark.parametrize("withdrawn", ["pro_rata", "full", "none"])
@pytest.mark.parametrize(("base_cents", "base_for_all"), [(100, False), (20, True)])
def test_it_pays_in_full_under_every_rule_and_on_every_platform(
    withdrawn: str, base_cents: int, base_for_all: bool
) -> None:
    terms = Terms(REWARD, base_cents, withdrawn=withdrawn, base_for_all=base_for_all)  # type: ignore[arg-type]
    end = SessionEnd("withdrawn", answered=0, planned=TRIALS, cannot_see=True)
    assert sum(due.cents for due in dues_of(terms, end)) == REWARD


def test_only_a_study_that_shows_pictures_says_so() -> None:
    assert sight_words(definition(paradigm="reverse_turing")) == ""
    unpaid = definition(reward={"amount_cents": 0, "expected_minutes": 5})
    assert "pictures" in sight_words(unpaid) and "paid" not in sight_words(unpaid)
    assert "Bilder" in sight_words(definition(language="de"))
