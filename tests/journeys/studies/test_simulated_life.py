"""Simulated people take the small study over real HTTP from the production server; the ledger adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import httpx
import pytest
from django.core.management import CommandError, call_command

from crowd.models import Identity, Posting
from crowd.rehearsal.demo.folder_and_port import DemoFailed
from crowd.rehearsal.demo.steps import send_people
from experiments.models import Gate, Participant, Response, Session, Slot, Study, Trial
from experiments.selectors import definition_of
from experiments.sessions.lifecycle import mark_left
from experiments.simulation import OBSERVERS, SPEECH_MARK
from experiments.simulation.browser.participant_run import run_people
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.people import Person
from experiments.simulation.population import DEFAULT_MIX, parse_mix, populate
from experiments.terminal import Terminal
from experiments.tokens import keyed_hash
from tests import services
from tests.journeys.conftest import serving
from tests.run.guard import Service
from tests.services import WebServer
from tests.world import opened_study, write_study

if TYPE_CHECKING:
    pass

QUIZ = {"task": "machine"}
SLOTS = 6
DIFFICULT = "careless=0.6,leaver=0.4"


@pytest.fixture
def study(server_env: dict[str, str], tmp_path: Path) -> Study:
    return opened_study(write_study(tmp_path / "study", slots=SLOTS))


@contextmanager
def served_again(env: Mapping[str, str], port: int) -> Iterator[Service]:
    """The production server on the same port as before."""
    command = [*services.WEB, "--bind", f"127.0.0.1:{port}", "--workers", "1"]
    with services.project_process("web", command, env) as service:
        service.wait_until(lambda: services.listening_url(service) is not None)
        yield service


def population(difficult: int = 10) -> list[Person]:
    """The usual mix, with more people who cause trouble."""
    usual = populate(parse_mix(DEFAULT_MIX), 24, seed=1)
    return [*populate(parse_mix(DIFFICULT), difficult, seed=2), *usual]


def session_of(outcome: Outcome) -> Session | None:
    identity = Identity.objects.filter(person_hash=keyed_hash("person", "local", outcome.person)).first()
    return None if identity is None else Session.objects.get(participant=identity.participant)


def assert_answered_once(outcomes: Sequence[Outcome]) -> None:
    """The stored responses are those that people sent: each position of a sitting once, from the first on."""
    for outcome in outcomes:
        session = session_of(outcome)
        if session is None:
            assert (outcome.status, outcome.step, outcome.answered_count) == ("turned_away", "join", 0)
            continue
        stored = list(session.responses.order_by("position").values_list("position", "trial__position"))
        assert stored == [(n, n) for n in range(outcome.answered_count)]
        if outcome.status == "finished":
            assert len(stored) == Trial.objects.filter(slot=session.slot).count()
        elif outcome.status == "left":
            assert 0 < len(stored) < Trial.objects.filter(slot=session.slot).count()
    assert Response.objects.count() == sum(outcome.answered_count for outcome in outcomes)


def assert_ledger(outcomes: Sequence[Outcome]) -> None:
    """Each person has finished, left or been turned away; only those who passed keep a slot."""
    ways = Counter(outcome.status for outcome in outcomes)
    states = Counter(Session.objects.values_list("state", flat=True))
    assert states["finished"] == ways["finished"] + ways["screened"]
    assert states["running"] == ways["left"]
    at_the_door = sum(outcome.step == "join" for outcome in outcomes)
    assert states["turned_away"] == ways["turned_away"] - at_the_door
    assert states.total() == len(outcomes) - at_the_door == Participant.objects.count()
    slots = Slot.objects.filter(kept=True)
    assert {slot.holder_id for slot in slots} == set(
        Session.objects.filter(verdict="passed").values_list("pk", flat=True)
    )
    held = Slot.objects.filter(kept=False, holder__isnull=False)
    assert set(held.values_list("holder__state", flat=True)) <= {"running"}
    claims = sum(Slot.objects.values_list("claimed_count", flat=True))
    assert claims == Session.objects.filter(slot__isnull=False).count()


def broken_rules(session: Session) -> list[str]:
    """The expected verdict of the study's only rule about answers, from the rows alone."""
    checks = Response.objects.filter(session=session, trial__check_kind="instructed")
    followed = [value == {"choice": asked} for value, asked in checks.values_list("value", "trial__expected")]
    assert len(followed) == 2
    return [] if all(followed) else ["instructed_share_min"]


@pytest.mark.both_databases("claims")
def test_it_serves_a_crowd_and_every_number_adds_up(server: WebServer, study: Study) -> None:
    people = population()
    outcomes = run_people(server.url, study.slug, people, quiz=QUIZ)
    assert [outcome.person for outcome in outcomes] == [person.name for person in people]
    assert set(Session.objects.values_list("origin", flat=True)) == {"simulated"}
    assert_answered_once(outcomes)
    assert_ledger(outcomes)
    for outcome in outcomes:
        session = session_of(outcome)
        assert session is None or session.simulated_kind == outcome.kind
        if session is not None and outcome.status == "finished":
            rules = broken_rules(session)
            assert [reason["rule"] for reason in session.reasons] == rules
            assert session.verdict == ("screened" if rules else "passed")
            assert session.comment.startswith(SPEECH_MARK)
    # People who were turned away late have no verdict either, but did not leave.
    came = Session.objects.exclude(state="turned_away")
    verdicts = Counter(came.values_list("simulated_kind", "verdict"))
    told = {verdict: sum(verdicts[kind, verdict] for kind in OBSERVERS) for verdict in ("passed", "screened")}
    # Who finds a place depends on who is first; what becomes of people who answer does not.
    passed, screened = verdicts["careless", "passed"], verdicts["careless", "screened"]
    assert screened * told["passed"] > passed * told["screened"], "careless people are screened more often"
    assert verdicts["leaver", ""] == sum(outcome.status == "left" for outcome in outcomes) > 0
    strategies = Gate.objects.filter(kind="questions_after").values_list("value__strategy", flat=True)
    assert all(text is None or text.startswith(SPEECH_MARK) for text in strategies)
    assert_ends_full(server, study)


def assert_ends_full(server: WebServer, study: Study) -> None:
    """People who left are reported; the slots are served again until each is kept, and none twice."""
    for session in Session.objects.filter(state="running").select_related("slot"):
        assert mark_left(session)
        session.refresh_from_db()
        assert (session.state, session.verdict) == ("finished", "incomplete")
        assert session.slot is not None and session.slot.holder_id is None
    wanted = 3 * SLOTS
    with Terminal() as terminal:
        send_people(study, definition_of(study), server.url, wanted, 9, terminal)
    assert Slot.objects.filter(kept=True).count() == wanted
    passed = Session.objects.filter(verdict="passed")
    per_condition = Counter(passed.values_list("slot__condition__name", flat=True))
    assert per_condition == dict.fromkeys(("baseline", "control", "saliency"), SLOTS)


@pytest.mark.long(stays="test_it_serves_a_crowd_and_every_number_adds_up")
@pytest.mark.both_databases("claims")
def test_it_loses_and_doubles_nothing_when_the_server_is_killed(
    server_env: dict[str, str], study: Study
) -> None:
    people, done, before = population(difficult=2), list[Outcome](), list[int]()
    with ExitStack() as stack:
        server = stack.enter_context(services.web_server(server_env))
        port = urlparse(server.url).port
        assert port is not None

        def interrupt(outcome: Outcome) -> None:
            done.append(outcome)
            if len(done) == 4:
                server.service.kill()
                before.append(Response.objects.count())
                stack.enter_context(served_again(server_env, port))

        outcomes = run_people(server.url, study.slug, people, quiz=QUIZ, concurrency=6, on_result=interrupt)
    assert 0 < before[0] < Response.objects.count()
    assert len(done) == len(outcomes) == len(people)
    assert_answered_once(outcomes)
    assert_ledger(outcomes)
    assert Session.objects.filter(verdict="passed").count() > SLOTS


@pytest.fixture
def endless(server_env: dict[str, str], tmp_path: Path) -> Study:
    """No observer takes 500 minutes over a small study."""
    text = {"total_minutes": "total_minutes = [500, 600]"}
    return opened_study(write_study(tmp_path / "endless", slots=2, **text))


def test_nobody_else_is_sent_after_a_wave_of_which_nobody_passes(
    endless: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as site, Terminal() as terminal, pytest.raises(DemoFailed) as stopped:
        send_people(endless, definition_of(endless), site.url, 5, 0, terminal)
    printed = capsys.readouterr().out
    assert "5 people came for 5 sessions, of which 0 passed, with" in printed
    finished = Session.objects.filter(verdict="screened").count()
    assert 1 <= finished <= 5 and Session.objects.count() == 5
    said = str(stopped.value)
    assert said.startswith("None of the last 5 people passed, so nobody else is sent.")
    assert f"total_minutes (minutes from arrival to the end): {finished}" in said
    assert "[screening]" in said and "start again" in said and "server.log" in said


def test_it_keeps_simulated_people_out_of_a_live_study(
    server: WebServer, study: Study, tmp_path: Path
) -> None:
    sentence = "A study with a live posting takes no simulated people."
    Posting.objects.filter(study=study).update(mode="live")
    query = "person=robot&submission=robot-1&simulated=learner"
    body = {"study": study.slug, "platform": "local", "query": query}
    reply = httpx.post(f"{server.url}/api/sessions/", json=body, timeout=60)
    assert reply.status_code == 403
    assert (reply.json()["error"]["code"], reply.json()["error"]["message"]) == ("not_admitted", sentence)
    with pytest.raises(CommandError, match=sentence):
        call_command("simulate", str(tmp_path / "study" / "study.toml"), "-n", "3", "--url", server.url)
    assert not Session.objects.exists()
