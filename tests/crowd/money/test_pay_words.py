"""What every exit says of money, before leaving and after it, is what the ledger then owes."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import pytest
from django.db.models import Sum

from crowd.joining.ending import ending_for
from crowd.models import Payout, Posting
from crowd.money.ledger import decide_due, grant, withhold
from experiments.definition.study import StudyDefinition
from experiments.gates.promises import find_promises
from experiments.models import Session, Study
from experiments.wording.sentence_tables import LANGUAGES, table_of
from experiments.wording.sentences import money
from tests.crowd.arrivals import OUTCOMES, Visitor, posting, prolific, turker
from tests.crowd.joining.test_way_out import fate
from tests.experiments.definitions import definition

pytestmark = pytest.mark.django_db
SAID = {"en": r"You are paid ([\d.,]+) USD", "de": r"Sie bekommen ([\d.,]+) USD"}
POLICIES: dict[str, dict[str, Any]] = {
    "parts": {"withdrawn": "pro_rata", "screened_share": 0.5, "turned_away_share": 0.25},
    "whole": {"withdrawn": "full", "screened_share": 1.0, "turned_away_share": 1.0},
    "nothing": {"withdrawn": "none", "screened_share": 0.0, "turned_away_share": 0.0},
}
BONUS = {"bonus_per_match_cents": 5, "bonus_max_cents": 30}
_numbers = count()


@pytest.fixture
def small(built: int, db: None) -> Study:
    return Study.objects.get(pk=built)


def changed(study: Study, **tables: Any) -> Study:
    """The study with other tables; `reward` and `policy` complete its own."""
    for table in ("reward", "policy"):
        tables[table] = {**study.definition.get(table, {}), **tables.get(table, {})}
    definition = {**study.definition, **tables}
    StudyDefinition.model_validate(definition)
    digest = f"paid-{next(_numbers)}"
    Study.objects.filter(pk=study.pk).update(definition=definition, digest=digest)
    return Study.objects.get(pk=study.pk)


def visitor_of(by: Posting, name: str = "A1ADA") -> Visitor:
    if by.platform == "local":
        return Visitor(name, by.study.slug, platform="local", query=f"person={name}&submission={name}")
    return turker(name, by) if by.platform == "mturk" else prolific(name, by)


def offered(study: Study, platform: str) -> Posting:
    if platform == "local":
        return Posting.objects.get(study=study, platform="local")
    options = {"options": {"base_share": 0.25}} if platform == "mturk" else {}
    return posting(study, platform, **options)


def cents_said(sentences: list[str], language: str = "en") -> int:
    """The amount that the sentences promise, in cents; 0 if they name none."""
    amounts = [match for text in sentences for match in re.findall(SAID[language], text)]
    assert len(amounts) <= 1, sentences
    point = "." if language == "en" else ","
    return sum(int(re.sub(rf"[^\d{point}]", "", text).replace(point, "")) for text in amounts)


def owed_cents(by: Posting, session: Session) -> int:
    decide_due(by)
    return Payout.objects.filter(session=session).aggregate(cents=Sum("cents"))["cents"] or 0


EXITS = [
    (("prolific", "mturk")[(row + column) % 2], policy, outcome)
    for row, policy in enumerate(POLICIES)
    for column, outcome in enumerate(OUTCOMES)
]
"""Every outcome under every policy, in turns on the two platforms."""


@pytest.mark.parametrize(("platform", "policy", "outcome"), EXITS)
def test_every_exit_says_what_the_ledger_owes(small: Study, platform: str, policy: str, outcome: str) -> None:
    language = "de" if policy == "whole" else "en"
    study = changed(small, policy=POLICIES[policy], reward=BONUS, language=language)
    by = offered(study, platform)
    ada = visitor_of(by)
    reply = fate(outcome, ada).json()
    assert reply["pay"], "a study that pays says so, or that nothing is paid"
    assert cents_said(reply["pay"], language) == owed_cents(by, ada.session())
    assert ada.end().json()["pay"] == reply["pay"], "a decided amount reads as it did before"


BY_HAND: dict[str, tuple[int, ...]] = {
    # By outcome, for the three policies in order; the reward is 100, 3 of 19 trials are answered.
    "complete": (130, 130, 130),
    "failed_checks": (130, 130, 130),
    "screened": (50, 100, 0),
    "declined": (0, 0, 0),
    "device": (0, 0, 0),
    "turned_away": (25, 100, 0),
    "failure": (0, 100, 0),
    "withdrawn": (16, 100, 0),
}


@pytest.mark.long(stays="test_every_exit_says_what_the_ledger_owes")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_people_who_are_paid_by_hand_read_what_the_policy_says(small: Study, outcome: str) -> None:
    """Computed by hand: the ledger has no rows for people with a plain address."""
    for number, policy in enumerate(POLICIES.values()):
        study = changed(small, policy=policy, reward=BONUS)
        by = offered(study, "local")
        ada = visitor_of(by, f"ada{number}")
        sentences = fate(outcome, ada).json()["pay"]
        session = ada.session()
        trials = session.slot.trials.count() if session.slot else 19
        assert trials == 19, "the numbers by hand are for 19 trials"
        assert cents_said(sentences) == BY_HAND[outcome][number]
        assert bool(cents_said(sentences)) == any("researchers pay it to you" in text for text in sentences)
        if outcome == "turned_away":
            session.study.slots.update(kept=False)


@pytest.mark.long(stays="test_every_exit_says_what_the_ledger_owes")
@pytest.mark.parametrize("platform", ["prolific", "mturk", "local"])
@pytest.mark.parametrize("policy", list(POLICIES))
def test_the_amount_before_leaving_is_the_amount_after_it(small: Study, platform: str, policy: str) -> None:
    """From every place, with and without the wish that answers are removed: each way in every second case."""
    first = list(POLICIES).index(policy) + len(platform)
    by = offered(changed(small, policy=POLICIES[policy], reward=BONUS), platform)
    hand_in = table_of("en")["pay"]["hand_in"]
    for number, place in enumerate(("instructions", "quiz", "trials", "answered")):
        ada = visitor_of(by, f"A{number}ADA")
        ada.arrive("trials" if place == "answered" else place)
        if place == "answered":
            ada.answer(7)
        before = ada.call("GET", "/api/session/pay/").json()["pay"]
        after = ada.leave("time", erase=bool((first + number) % 2)).json()["pay"]
        assert [text for text in after if text != hand_in] == before, place
        assert ada.call("GET", "/api/session/pay/").json()["pay"] == before


def test_a_refused_token_is_told_nothing_of_money(small: Study) -> None:
    ada = visitor_of(offered(small, "local"))
    ada.join()
    assert ada.call("GET", "/api/session/pay/", token="another").status_code == 401


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_unpaid_study_says_nothing_of_money(small: Study, outcome: str) -> None:
    by = offered(changed(small, reward={"amount_cents": 0}), "prolific")
    reply = fate(outcome, visitor_of(by)).json()
    assert reply["pay"] == []


def test_the_bonus_comes_with_its_arithmetic(small: Study) -> None:
    study = changed(small, reward=BONUS)
    by = offered(study, "prolific")
    ada, bo, cy = (visitor_of(by, name) for name in ("ada", "bo", "cy"))
    for visitor, right in ((ada, 8), (bo, 3), (cy, 0)):
        visitor.arrive()
        for trial in visitor.trials():
            response = visitor.good_response(trial)
            if trial.right is not None and not trial.check_kind:
                right -= 1
                if right < 0:
                    other = next(c["value"] for c in trial.choices if c["value"] != trial.right)
                    response["value"] = {"choice": other}
            assert visitor.respond(response).status_code == 200
        visitor.refresh()
    said = [visitor.end().json()["pay"][:2] for visitor in (ada, bo, cy)]
    assert said == [
        [
            "You are paid 1.30 USD: 1.00 USD for taking part, and a bonus of 0.30 USD.",
            "The bonus: 8 of 8 answers matched, 0.05 USD each, at most 0.30 USD: 0.30 USD.",
        ],
        [
            "You are paid 1.15 USD: 1.00 USD for taking part, and a bonus of 0.15 USD.",
            "The bonus: 3 of 8 answers matched, 0.05 USD each: 0.15 USD.",
        ],
        [
            "You are paid 1.00 USD for this study.",
            "The bonus: 0 of 8 answers matched, 0.05 USD each: 0.00 USD.",
        ],
    ]


def test_answers_that_are_removed_afterwards_change_no_amount(small: Study) -> None:
    by = offered(changed(small, reward=BONUS), "prolific")
    ada = visitor_of(by)
    ada.arrive()
    ada.answer()
    before = ada.end().json()["pay"]
    assert cents_said(ada.leave("debrief", erase=True).json()["pay"]) == cents_said(before) == 130
    assert owed_cents(by, ada.session()) == 130


def test_a_limit_for_each_person_is_counted_over_all_sessions(small: Study) -> None:
    study = changed(small, reward={**BONUS, "person_cap_cents": 250}, sittings_max=2)
    by = offered(study, "prolific")
    said = []
    for number in range(2):
        ada = prolific("ada", by, submission=f"s{number}")
        ada.arrive()
        ada.answer()
        said.append(ada.end().json()["pay"])
    assert [cents_said(sentences) for sentences in said] == [130, 120]
    assert "up to the most that each person may get: 0.20 USD" in said[1][1]
    decide_due(by)
    assert list(Payout.objects.order_by("id").values_list("kind", "cents")) == [
        ("base", 100), ("bonus", 30), ("base", 100), ("bonus", 20)]  # fmt: skip


def test_a_payment_that_is_held_back_is_not_promised(small: Study) -> None:
    by = offered(changed(small, reward=BONUS), "prolific")
    ada = visitor_of(by)
    ada.arrive()
    ada.answer()
    ada.end()
    decide_due(by)
    bonus = Payout.objects.get(kind="bonus")
    withhold([bonus.pk], "grace", "to be looked at")
    said = ada.end().json()["pay"]
    assert cents_said(said) == 100 and "held back" in said[-1]
    withhold(Payout.objects.values_list("pk", flat=True), "grace", "to be looked at")
    said = ada.end().json()["pay"]
    assert cents_said(said) == 0 and "held back" in said[-1]


def test_what_a_named_person_adds_is_said_too(small: Study) -> None:
    by = offered(changed(small, policy=POLICIES["parts"]), "prolific")
    ada = visitor_of(by)
    fate("screened", ada)
    grant(ada.session(), "bonus", 40, "grace", "the page had failed")
    assert cents_said(ada.end().json()["pay"]) == 90 == owed_cents(by, ada.session())
    changed(small, policy=POLICIES["whole"])
    bo = visitor_of(by, "bo")
    assert fate("screened", bo).json()["pay"][0] == "You are paid 1.00 USD, the full amount."
    grant(bo.session(), "bonus", 40, "grace", "the page had failed")
    assert bo.end().json()["pay"][0] == "You are paid 1.40 USD."


def test_a_share_that_rounds_to_nothing_is_not_blamed_on_leaving(small: Study) -> None:
    by = offered(changed(small, reward={"amount_cents": 1}), "prolific")
    ada = visitor_of(by)
    assert fate("withdrawn", ada).json()["pay"] == ["Nothing is paid for this."]
    assert owed_cents(by, ada.session()) == 0


def test_it_says_how_the_amount_comes(small: Study) -> None:
    """By the platform's traits: a reward by approval, the rest as a bonus, a returned place paid or not."""
    mturk = offered(changed(small, reward=BONUS), "mturk")
    said = fate("complete", visitor_of(mturk)).json()["pay"]
    assert (
        "Mechanical Turk pays 0.25 USD of it when your work has been approved; 1.05 USD follows as a bonus."
        in said
    )
    assert "hand your work in" in said[-1]
    said = fate("declined", visitor_of(mturk, "A2BO")).json()["pay"]
    assert said == ["Nothing is paid for this, as you did not take part."]


def test_a_place_that_is_given_back_is_paid_where_the_platform_can(small: Study) -> None:
    by = offered(changed(small, policy=POLICIES["parts"]), "prolific")
    ada = visitor_of(by)
    ada.join()
    assert fate("withdrawn", ada).json()["pay"][-1] == "This holds as soon as Prolific lists your submission."
    Session.objects.update(arrival="verified")
    said = ada.end().json()["pay"]
    assert said == [
        "You are paid 0.16 USD: the share of 1.00 USD for 3 of 19 answers.",
        "It reaches you through Prolific. If Prolific asks you to give your place back, please do: you are "
        "paid all the same.",
    ]


def test_who_comes_back_to_a_full_study_reads_the_last_page_and_the_amount(small: Study) -> None:
    """Every gate was passed and the claim was cut off; meanwhile the last place was taken."""
    by = offered(changed(small, policy=POLICIES["parts"]), "prolific")
    ada = visitor_of(by)
    ada.arrive("practice")
    ada.session().gates.create(kind="practice", attempt=0, value={}, passed=True)
    small.slots.update(kept=True)
    assert ada.join().status_code == 200
    assert (ada.state["step"], ada.state["page"]["kind"]) == ("finish", "turned_away")
    reply = ada.end().json()
    assert cents_said(reply["pay"]) == 25 == owed_cents(by, ada.session())
    assert reply["exit"]["url"].endswith(by.codes["turned_away"])


def test_a_preview_shows_the_amount_and_no_way_of_payment(small: Study) -> None:
    session = Session(study=small, origin="preview", state="finished", verdict="passed")
    session.participant_id = small.participants.create().pk
    session.slot = small.slots.order_by("ordinal").first()
    session.token_hash, session.media_id = "h" * 64, "m" * 16
    session.save()
    session.gates.create(kind="consent", attempt=0, value={}, passed=True)
    assert ending_for(session, None, None).pay == ("You are paid 1.00 USD for this study.",)


@pytest.mark.parametrize(("cents", "english", "german"), [
    (140, "1.40 USD", "1,40 USD"), (5, "0.05 USD", "0,05 USD"), (123450, "1,234.50 USD", "1.234,50 USD"),
])  # fmt: skip
def test_it_writes_amounts_as_each_language_does(cents: int, english: str, german: str) -> None:
    assert (money(cents, definition()), money(cents, definition(language="de"))) == (english, german)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_of_an_exit_speaks_of_a_control(language: str) -> None:
    """The page adds the code, the way back and the second consent by itself, if there are any."""
    table = table_of(language)
    texts = {key: table["pages"][key] for key in ("declined", "screened", "turned_away", "withdrawn")}
    texts |= table["pay"]
    assert {
        key: list(find_promises(text, table["promises"])) for key, text in texts.items()
    } == dict.fromkeys(texts, [])
