"""A model beside people: the command, the participants' API on a running server, a stand-in for the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError

from analysis.stored_reports.refresh import make_report
from analysis.tables.response_reader import read_frames, study_facts
from crowd.dashboard.rows.places_and_exclusions import flows_of, places_of
from crowd.dashboard.rows.rater_review import raters_of
from crowd.dashboard.views.study_overview import snapshot
from crowd.joining.model_entry import model_query
from crowd.models import Payout, Posting
from experiments.asking.request_plan import Manner, seats_of
from experiments.models import Participant, Response, Session, Slot, Study, Trial
from experiments.sessions.slot_assignment import places_left
from tests.experiments.protocols import RATING, TWO_MODELS, write
from tests.stand_in import Asked, StandIn, saying, stand_in, usual
from tests.world import Person, opened_study

pytestmark = pytest.mark.django_db(transaction=True)
ALLOWED = "\nmodels_may_see = true\n"
UNTAUGHT = "[training]\nshare_min = 0.0\n"
"""Every try at the training is enough: the stand-in does not understand what it sees."""


@pytest.fixture
def model() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = write(tmp_path, "ratings", "rating", RATING + UNTAUGHT, sources=TWO_MODELS)
    contact = 'contact = "lab@example.org"'
    made.write_text(made.read_text().replace(contact, contact + ALLOWED))
    return made


@pytest.fixture
def study(path: Path) -> Study:
    return opened_study(path)


@pytest.fixture
def ask(study: Study, path: Path, model: StandIn, live_server: Any) -> Callable[..., None]:
    def run(*more: str) -> None:
        call_command("ask_model", str(path), "--address", model.url, "--model", "stand-in",
                     "--url", live_server.url, "--yes", *more)  # fmt: skip

    return run


def models() -> list[Session]:
    return list(Session.objects.filter(origin="model").order_by("started_at"))


def test_it_rates_every_explanation_once_and_takes_no_place(
    study: Study, ask: Callable[..., None], model: StandIn, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = (places_left(study), places_of(study))
    ask()
    told = capsys.readouterr().out
    first_round = Slot.objects.filter(study=study, lane="round-0")
    sessions = models()
    assert len(sessions) == first_round.count() > 1 and {s.verdict for s in sessions} == {"passed"}
    rated = Response.objects.filter(session__in=sessions, trial__kind="rate")
    wanted = Trial.objects.filter(slot__in=first_round, kind="rate")
    assert sorted(rated.values_list("trial", flat=True)) == sorted(wanted.values_list("pk", flat=True))
    assert {point for value in rated.values_list("value", flat=True) for point in value.values()} <= {
        *range(1, 6)
    }
    # Nothing of a person's is taken, counted or owed.
    assert (places_left(study), places_of(study)) == before
    assert not Slot.objects.exclude(holder=None).exists() and not Slot.objects.filter(kept=True).exists()
    assert not Payout.objects.exists()
    assert Participant.objects.filter(sessions__in=sessions).distinct().count() == 1, "one rater"
    what_was_announced_has_left(told, model)
    what_is_stored_of_it(sessions, model)
    it_is_shown_apart(study, len(sessions))
    its_data_are_its_own(study, len(rated), tmp_path)
    ask()
    assert "has ended" in capsys.readouterr().out and len(models()) == len(sessions)


def what_was_announced_has_left(told: str, model: StandIn) -> None:
    """The line before the first request and the one after the last name the same numbers, and the stand-in
    counted the same."""
    announced, sent = (line.split(": ", 1)[1] for line in told.splitlines() if " requests with " in line)
    assert announced == sent
    pictures = [picture for asked in model.asked for picture in asked.pictures]
    of = f"{len(model.asked):,} requests with {len(pictures):,} pictures ({sum(map(len, pictures)):,} bytes"
    assert sent.startswith(of), sent


def what_is_stored_of_it(sessions: list[Session], model: StandIn) -> None:
    (facts,) = {json.dumps({k: v for k, v in s.asked.items() if k != "name"}) for s in sessions}
    stored = json.loads(facts)
    assert (stored["model"], stored["prompt"], stored["order"]) == ("stand-in", "plain", "given")
    assert stored["host"] == model.url.split("/")[2] and stored["trained_on_data"] == "unknown"
    assert stored["faults"] == {}


def it_is_shown_apart(study: Study, sessions: int) -> None:
    assert [(flow.word, flow.arrived) for flow in flows_of(study)] == [("Models", sessions)]
    assert raters_of(study) == [] and len(raters_of(study, "model")) == 1
    pages = snapshot(study)
    assert (pages["passed"], pages["screened"], pages["whose"]) == (0, 0, "models")
    assert pages["money"].people == 0


def its_data_are_its_own(study: Study, answers: int, folder: Path) -> None:
    """No cleaned data of people hold it, and its report is its own."""
    frames = read_frames(study)
    assert frames.origins == ["model"] and study_facts(study).kept == 0
    assert (frames.trials["kind"] == "rate").sum() == answers
    with pytest.raises(CommandError, match="No session has the origin 'human'"):
        call_command("export", study.slug, "--out", str(folder / "people"), "--cleaned")
    report = make_report(study, "model")
    assert report.heading == "A model answered, not people." and not report.seal.sealed
    (manner,) = next(s.content for s in report.sections if s.key == "models")["manners"]
    assert manner["passed"] == manner["sessions"] and manner["model"] == "stand-in"


def test_it_sees_what_the_wire_gives_and_no_name_of_a_condition(
    study: Study, ask: Callable[..., None], model: StandIn
) -> None:
    ask("-n", "1")
    systems = [asked.body["messages"][0]["content"] for asked in model.asked]
    said = " ".join([*systems, *(asked.text for asked in model.asked)]).lower()
    for word in ("saliency", "coarse", "fine", "toy", "condition"):
        assert word not in said, word
    assert "picture:" in said and "explanation:" in said


def test_prompts_and_orders_are_raters_of_their_own(
    study: Study, ask: Callable[..., None], model: StandIn
) -> None:
    ask("-n", "1", "--prompts", "plain,layperson", "--orders", "given,reversed", "--concurrency", "2")
    asked = {(s.asked["prompt"], s.asked["order"]): s.participant_id for s in models()}
    assert len(asked) == 4 == len(set(asked.values()))
    assert len({a.body["messages"][0]["content"].split("\n")[0] for a in model.asked}) == 2
    # The stand-in answers by the pictures alone, so the order must not have moved an answer.
    by_order = [dict(s.responses.values_list("position", "value")) for s in models()]
    assert all(values == by_order[0] for values in by_order)


def test_it_goes_on_after_it_was_cut_off(study: Study, ask: Callable[..., None], model: StandIn) -> None:
    def dies(asked: Asked) -> Any:
        return usual(asked) if len(model.asked) <= 11 else (401, {})

    model.answer = dies
    with pytest.raises(CommandError, match="not finished .*401.*same command again"):
        ask("-n", "2")
    (cut,) = models()
    kept = dict(cut.responses.values_list("position", "value"))
    assert cut.state == "running" and kept and cut.verdict == ""
    model.answer = usual
    before = len(model.asked)
    ask("-n", "2")
    done = models()
    assert len(done) == 2 and {s.verdict for s in done} == {"passed"} and done[0].pk == cut.pk
    assert dict(done[0].responses.filter(position__in=kept).values_list("position", "value")) == kept
    # Two questions of each explanation, one of each check; those that were answered are not asked again.
    trials = Trial.objects.filter(slot__in=[s.slot_id for s in done])
    all_asked = sum(2 if kind == "rate" else 1 for kind in trials.values_list("kind", flat=True))
    answered = trials.filter(slot=cut.slot_id, position__in=kept)
    skipped = sum(2 if trial.kind == "rate" else 1 for trial in answered)
    assert len(model.asked) - before == len(study.practice) + all_asked - skipped > 0


def test_an_answer_that_was_told_stands_if_the_model_says_otherwise_later(
    study: Study, ask: Callable[..., None], model: StandIn
) -> None:
    """The training tells each answer at once; a model that draws its replies may say otherwise afterwards."""
    model.answer = lambda asked: saying("2") if len(model.asked) <= 2 else (401, {})
    with pytest.raises(CommandError, match="not finished"):
        ask("-n", "1")
    model.answer = lambda asked: saying("4") if asked.answers[0][0] == "1" else usual(asked)
    ask("-n", "1")
    (session,) = models()
    (page,) = session.gates.filter(kind="training").values_list("value", flat=True)
    assert list(page.values()) == ["2", "2", "4"] and session.verdict == "passed"


def test_a_model_that_gives_no_answer_ends_as_incomplete_with_the_reason(
    study: Study, ask: Callable[..., None], model: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty = tmp_path / "faulty.jsonl"
    model.answer = lambda asked: "I would rather not." if len(model.asked) > 3 else usual(asked)
    ask("-n", "1", "--faulty", str(faulty))
    (session,) = models()
    assert (session.state, session.verdict) == ("finished", "incomplete")
    assert session.asked["faults"] == {"no_json": 3}
    (reason,) = session.reasons
    assert reason["rule"] == "unanswered" and "3 replies could not be read" in reason["evidence"]
    rows = [json.loads(line) for line in faulty.read_text().splitlines()]
    assert [(row["fault"], row["reply"]) for row in rows] == [("no_json", "I would rather not.")] * 3
    assert "1 incomplete" in capsys.readouterr().out
    model.answer = lambda asked: saying(17)
    ask("-n", "1", "--first", "1")
    assert models()[-1].asked["faults"] == {"out_of_scale": 3}


def test_a_model_that_misses_the_checks_is_screened_and_its_speed_is_no_ground(
    path: Path, model: StandIn, live_server: Any
) -> None:
    rules = "\n[screening]\ninstructed_share_min = 1.0\ntotal_minutes = [2, 60]\nfastest_rating_ms = 500\n"
    path.write_text(path.read_text().replace("instructed = 1", "instructed = 2") + rules)
    study = opened_study(path)
    options = ("--address", model.url, "--model", "m", "--url", live_server.url, "--yes", "-n", "1")
    call_command("ask_model", str(path), *options)
    assert models()[0].verdict == "passed"
    model.answer = lambda asked: saying(
        next(v for v, text in asked.answers if v != json.loads(usual(asked).split("\n")[2])["answer"])
    )
    call_command("ask_model", str(path), *options, "--first", "1")
    last = models()[-1]
    assert last.verdict == "screened" and [r["rule"] for r in last.reasons] == ["instructed_share_min"]
    assert study.slots.filter(kept=True).count() == 0


def test_what_it_is_told_at_the_training_goes_into_the_second_try(
    study: Study, path: Path, model: StandIn, live_server: Any
) -> None:
    """Of two tries the first goes wrong everywhere; the stand-in reads in the second what it was told."""
    path.write_text(path.read_text().replace(UNTAUGHT, "").replace('slug = "ratings"', 'slug = "taught"'))
    taught = opened_study(path)

    def reads(asked: Asked) -> str:
        if "At the last try you were told: " in asked.text:
            return saying(next(c for c in asked.text.split("you were told: ")[1] if c.isdigit()))
        return saying("3") if [v for v, _ in asked.answers][:1] == ["1"] else usual(asked)

    model.answer = reads
    options = ("--address", model.url, "--model", "m", "--url", live_server.url, "--yes", "-n", "1")
    call_command("ask_model", str(path), *options)
    (session,) = models()
    tries = session.gates.filter(kind="training").order_by("attempt").values_list("passed", flat=True)
    assert list(tries) == [False, True] and taught.practice and session.verdict == "passed"


# Refusals


def test_it_is_refused_without_permission_and_beside_a_live_posting(
    study: Study, path: Path, ask: Callable[..., None], model: StandIn
) -> None:
    whole = path.read_text()
    path.write_text(whole.replace(ALLOWED, "\n"))
    with pytest.raises(CommandError, match=r"folder.*not drawn by Legible.*models_may_see = true"):
        ask()
    path.write_text(whole)
    live = Posting.objects.create(study=study, platform="prolific", mode="live", state="open", key="live")
    with pytest.raises(CommandError, match="live posting"):
        ask()
    assert not model.asked and not models()
    Posting.objects.filter(pk=live.pk).update(state="closed")
    ask("-n", "1")
    assert models()


def test_the_entry_lets_in_signed_models_alone(study: Study) -> None:
    (seat, *_) = seats_of(study, [Manner("m", "h", "plain", "given")], None, 0)
    query = model_query(study, seat)

    def joins(query: str) -> Any:
        body = {"study": study.slug, "platform": "local", "query": query}
        return Person("x", slug=study.slug).call("POST", "/api/sessions/", body, "none")

    assert joins(query[:-2]).status_code == 403 and not models()
    assert joins(query).status_code == 201
    assert joins(query).status_code == 200 and len(models()) == 1, "a second run goes on"
    Posting.objects.create(study=study, platform="prolific", mode="live", state="open", key="live")
    assert joins(query).status_code == 403, "a posting that opened meanwhile shuts the door"


def test_nothing_leaves_without_a_yes(
    study: Study, path: Path, model: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: "no")
    with pytest.raises(CommandError, match="Nothing was sent"):
        call_command("ask_model", str(path), "--address", model.url, "--model", "m")
    assert not model.asked and not models()


def test_the_key_goes_into_the_header_and_nowhere_else(
    study: Study, ask: Callable[..., None], model: StandIn, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.MODEL_KEY = "sk-very-secret"
    ask("-n", "1")
    assert {asked.headers["Authorization"] for asked in model.asked} == {"Bearer sk-very-secret"}
    stored = json.dumps([[s.asked, s.reasons, s.device] for s in models()])
    assert "secret" not in capsys.readouterr().out + stored


def test_the_database_knows_no_other_origin(study: Study) -> None:
    person = Participant.objects.create(study=study)
    with pytest.raises(IntegrityError):
        Session.objects.create(study=study, participant=person, origin="modell", token_hash="t", media_id="m")
