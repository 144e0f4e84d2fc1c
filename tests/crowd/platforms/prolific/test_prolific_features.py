"""Groups, weightings, automatic approval, a time of publishing and demographics: the real adapter against the
simulated Prolific."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from crowd.platforms.base import (
    BadOptions,
    BonusStatement,
    Line,
    Payment,
    PlatformError,
    PlatformPosting,
    Site,
    Unread,
)
from crowd.platforms.prolific.arrival_and_exit import ProlificEntry
from crowd.platforms.prolific.demographics import demographics
from crowd.platforms.prolific.options import read_options
from crowd.platforms.prolific.specs import cells
from crowd.rehearsal.prolific import ProlificSimulator
from crowd.rehearsal.prolific.records import ProlificRefusal
from crowd.rehearsal.serving import Answer, serving
from tests.crowd.platforms.prolific.prolific_script import Script, closed_address, said, wired
from tests.crowd.platforms.prolific.prolific_spec import spec
from tests.crowd.platforms.prolific.prolific_stage import calls, finished, played, rows, told, wanted

pytestmark = pytest.mark.pure

QUOTA = {"filters": [{"filter_id": "sex", "selected_values": ["0", "1"], "weightings": {"0": 1, "1": 1}}]}
STUDY = "6394cee383e14a167638b300"
POSTED = PlatformPosting(STUDY, "open", "ACTIVE", 5, 5, {"currency": "GBP"}, names=(STUDY,))


# Quota and representative studies


def test_it_joins_pays_and_confirms_a_quota_study() -> None:
    """Each half of the people belongs to a part with an id of its own, which their addresses name."""
    with played() as (sim, service):
        posted = service.publish(wanted(service, 4, options=QUOTA))
        assert posted.names == (posted.external_id,)
        taken = [sim.control.take(posting=posted.external_id) for _ in range(4)]
        entry, site = ProlificEntry({}), Site("rehearsal", sim.url)
        arrivals = [entry.arrival(urlsplit(each["url"]).query, site) for each in taken]
        posted = service.look(posted)
        (study,) = sim.world.studies.values()
        assert len(study.parts) == 2
        assert set(posted.names) == {posted.external_id, *study.parts}
        assert {arrival.posting for arrival in arrivals} == set(study.parts)

        for each in taken:
            sim.control.complete(each["submission"], spec().codes["complete"])
        sim.clock.advance(60)
        people = [each["submission"] for each in taken]
        assert [row.submission for row in rows(service, posted)] == people
        assert [result.state for result in service.approve(posted, people)] == ["sent"] * 4
        due = [Payment(f"r{i}", each["submission"], each["person"], 50, "b") for i, each in enumerate(taken)]
        for _ in range(2):
            assert [r.state for r in service.pay(posted, service.prepare(posted, due), due)] == ["sent"] * 4
        shown = list(service.statement(posted, people))
        assert shown == [BonusStatement(submission, (Line("bonus", 50, 2),)) for submission in people]


def test_it_asks_no_more_for_parts_once_it_knows_them_all() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service, 8, options=QUOTA))
        assert service.look(posted).facts == posted.facts
        sim.control.take(posting=posted.external_id)
        first = service.look(posted)
        assert len(first.names) == 2
        sim.control.take(posting=posted.external_id)
        both = service.look(first)
        assert (len(both.names), both.names[:2]) == (3, first.names)
        before = sim.calls_count
        assert service.look(both) == both
        assert sim.calls_count == before + 1
        plain = service.publish(wanted(service, 2, reference="legible-plain"))
        sim.control.take(posting=plain.external_id)
        before = sim.calls_count
        assert service.look(plain).names == plain.names
        assert sim.calls_count == before + 1


def test_it_takes_no_submission_of_a_part_of_another_study() -> None:
    with played() as (sim, service):
        quota = service.publish(wanted(service, 4, options=QUOTA))
        plain = service.publish(wanted(service, 4, reference="legible-plain"))
        submission = sim.control.take(posting=quota.external_id)["submission"]
        (unread,) = service.statement(plain, [submission])
        assert isinstance(unread, Unread) and "another study" in unread.why
        with pytest.raises(PlatformError, match="another study"):
            service.request_return(plain, submission, "Did not finish.")


@pytest.mark.parametrize(
    ("weights", "count"),
    [([], 0), ([{}], 0), ([{"0": 1, "1": 2}], 2), ([{"0": 1, "1": 1}, {"0": 1, "3": 1, "5": 2}], 6)],
)
def test_it_knows_into_how_many_parts_weightings_divide(weights: list[dict[str, int]], count: int) -> None:
    rules = [{"filter_id": f"f{i}", "selected_values": ["0"], "weightings": w} for i, w in enumerate(weights)]
    assert cells([*rules, {"filter_id": "age", "selected_range": {"lower": 18}}]) == count


# Participant groups


def test_it_lets_only_a_group_in_and_keeps_another_out() -> None:
    with played() as (sim, service):
        people = [each["person"] for each in sim.control.people(3)["people"]]
        allowed = sim.control.group("finished part one", people[:2])["group"]
        blocked = sim.control.group("knows the trick", people[1:])["group"]
        options = {"groups_allow": [allowed], "groups_block": [blocked]}
        posted = service.publish(wanted(service, options=options))
        assert sim.control.take(posting=posted.external_id, person=people[0])["person"] == people[0]
        for barred in people[1:]:
            with pytest.raises(ProlificRefusal, match="participant_group"):
                sim.control.take(posting=posted.external_id, person=barred)


def test_it_puts_people_who_finished_into_a_group() -> None:
    """The next part of a longitudinal study lets in who is in it."""
    with played() as (sim, service):
        group = sim.control.group("finished part one")["group"]
        posted = service.publish(wanted(service, options={"add_to_group": group}))
        done = finished(sim, posted, 2)
        finished(sim, posted, 1, "failed_checks")
        finished(sim, posted, 1, "screened")
        assert sim.world.groups[group].members == [payment.person for payment in done]
        assert {told(sim, payment)["state"] for payment in done} == {"AWAITING REVIEW"}
        second = service.publish(wanted(service, reference="legible-two", options={"groups_allow": [group]}))
        assert sim.control.take(posting=second.external_id)["person"] == done[0].person


def test_it_publishes_nothing_for_a_group_that_is_not_there() -> None:
    with played() as (sim, service):
        with pytest.raises(PlatformError, match="No participant group") as caught:
            service.publish(wanted(service, options={"add_to_group": "5" * 24}))
        assert caught.value.permanent
        assert not sim.world.studies
        sim.world.violations.clear()


# What a quote says


@pytest.mark.parametrize(
    ("newcomers", "said"), [(0, "fewer than 25"), (24, "fewer than 25"), (25, "25"), (900, "900")]
)
def test_it_says_how_many_people_may_take_part(newcomers: int, said: str) -> None:
    with played(newcomers_count=newcomers) as (_, service):
        (note,) = service.quote(wanted(service)).notes
    assert note == f"Prolific counts {said} people who may take part, for 5 places."


def test_it_counts_only_people_whom_the_filters_let_in() -> None:
    with played(newcomers_count=900) as (sim, service):
        group = sim.control.group("a few", [each["person"] for each in sim.control.people(30)["people"]])[
            "group"
        ]
        (note,) = service.quote(wanted(service, options={"groups_allow": [group]})).notes
    assert "counts 30 people" in note


# Approval by the platform


def test_it_lets_the_platform_approve_people_who_finished() -> None:
    with played() as (sim, service):
        quote = service.quote(wanted(service, options={"approve": "automatic"}))
        assert "before any check" in quote.notes[-1]
        posted = service.publish(wanted(service, options={"approve": "automatic"}))
        (done,) = finished(sim, posted, 1)
        (failed,) = finished(sim, posted, 1, "failed_checks")
        assert [row.state for row in rows(service, posted)] == ["approved", "awaiting"]
        results = service.approve(posted, [done.submission, failed.submission])
        assert [result.state for result in results] == ["sent", "sent"]
        assert [told(sim, each)["reward_paid_count"] for each in (done, failed)] == [1, 1]
        assert rows(service, posted)[0].lines == (Line("reward", 300),)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"approve": "dynamic"}, "approve"),
        ({"dynamic_payment": True}, "the ledger cannot pay a share of the reward so"),
        ({"add_to_group": "a group"}, "add_to_group"),
        ({"groups_allow": ["x" * 65]}, "groups_allow"),
        ({"groups_block": "abc"}, "groups_block"),
        ({"publish_at": "tomorrow"}, "a moment with its zone"),
        ({"publish_at": "2026-05-04T09:00:00"}, "a moment with its zone"),
        ({"publish_at": "2026-05-04"}, "a moment with its zone"),
    ],
)
def test_it_refuses_an_option_with_a_sentence(options: dict[str, Any], why: str) -> None:
    with pytest.raises(BadOptions, match=why):
        read_options(options)


# A time of publishing


def scheduled(sim: ProlificSimulator, hours: float) -> dict[str, str]:
    return {"publish_at": (sim.clock.now() + timedelta(hours=hours)).isoformat()}


def test_it_publishes_at_its_time() -> None:
    with played() as (sim, service):
        offer = wanted(service, options=scheduled(sim, 5))
        posted = service.publish(offer)
        assert (posted.state, posted.raw) == ("draft", "SCHEDULED")
        assert service.publish(offer) == posted
        assert len(calls(sim, "/transition/")) == 1
        with pytest.raises(ProlificRefusal):
            sim.control.take(posting=posted.external_id)
        sim.clock.advance(5 * 3600)
        assert service.look(posted).state == "open"
        assert service.publish(offer).raw == "ACTIVE"
        assert len(calls(sim, "/transition/")) == 1
        assert sim.control.take(posting=posted.external_id)["person"]


def test_it_publishes_now_what_was_scheduled_before() -> None:
    with played() as (sim, service):
        offer = wanted(service, options=scheduled(sim, 5))
        service.publish(offer)
        now = replace(offer, options=service.check_options({}), reward_cents=350)
        assert service.publish(now).raw == "ACTIVE"
        assert [study.cents for study in sim.world.studies.values()] == [350]


def test_it_closes_what_was_scheduled() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service, options=scheduled(sim, 5)))
        assert service.close(posted).state == "closed"
        assert not sim.world.studies


def test_it_schedules_nothing_for_the_past() -> None:
    with played() as (sim, service):
        with pytest.raises(PlatformError, match="past") as caught:
            service.publish(wanted(service, options=scheduled(sim, -1)))
        assert caught.value.permanent
        assert [study.status for study in sim.world.studies.values()] == ["UNPUBLISHED"]


# Demographics


def test_it_exports_what_people_told_the_platform() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        assert list(service.demographics(posted)) == []
        done = finished(sim, posted, 2)
        exported = list(service.demographics(posted))
        people = [sim.world.people[payment.person] for payment in done]
        assert exported == [
            (
                payment.submission,
                {"age": person.age, "sex": person.sex, "country_of_residence": "United Kingdom"},
            )
            for payment, person in zip(done, people, strict=True)
        ]


def test_it_reads_an_export_as_it_comes() -> None:
    """A mark of the encoding, quoted line breaks, a short row, a row without a submission, a control
    character."""
    text = (
        "\ufeffParticipant id,Submission id,Country of birth,Fluent languages\r\n"
        f'p1,{"a" * 24},"Congo, the\nRepublic of",DATA_EXPIRED\r\n'
        f"p2,{'b' * 24},France\r\n"
        "p3,,Spain,Spanish\r\n"
        f"p4,{'c' * 24},Spain\u0007,{'x' * 300}\r\n"
    )
    with serving(Script(Answer(200, text.encode(), {"Content-Type": "text/csv"}))) as url:
        exported = list(demographics(wired(url), POSTED))
    assert exported == [
        ("a" * 24, {"country_of_birth": "Congo, the?Republic of", "fluent_languages": "DATA_EXPIRED"}),
        ("b" * 24, {"country_of_birth": "France", "fluent_languages": ""}),
        ("c" * 24, {"country_of_birth": "Spain?", "fluent_languages": "x" * 200}),
    ]


@pytest.mark.parametrize(
    "answer", [Answer(200, b"Age,Sex\n31,Female\n"), said({"status": "generating"}, 202)]
)
def test_it_refuses_an_export_without_submissions(answer: Answer) -> None:
    with serving(Script(answer)) as url, pytest.raises(PlatformError, match="no column of submissions"):
        list(demographics(wired(url), POSTED))


def test_it_says_that_an_export_cannot_be_had() -> None:
    with pytest.raises(PlatformError, match="nothing was sent") as caught:
        list(demographics(wired(closed_address()), POSTED))
    assert (caught.value.permanent, caught.value.uncertain) == (False, False)
