"""Decisions in two steps over the API: what reaches the browser when, and what is stored and exported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.tables.response_reader import read_frames
from crowd.money.policy_endings import matches_of
from experiments.models import HandOut, Session, Slot, Study
from experiments.sessions.lifecycle import start_session
from experiments.sessions.previews import skip_to
from tests.experiments.protocols import ASSISTED, opened, take_part, write
from tests.world import Person, opened_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return opened(tmp_path / "a", "advised", "assisted_decision", ASSISTED)


def people(study: Study) -> Iterator[tuple[str, Person]]:
    """One person in every slot, at the first trial, with their condition."""
    for number in range(Slot.objects.filter(study=study).count()):
        person = Person(f"p{number}", slug=study.slug)
        person.arrive()
        slot = person.session().slot
        assert slot is not None and slot.condition is not None
        yield slot.condition.name, person


def shown(person: Person) -> list[dict[str, Any]]:
    """The trials that the page has now and that are still to be answered."""
    state = person.refresh()
    return [t for t in state["block"]["trials"] if t["position"] >= state["next"]]


def answer(person: Person, trial: dict[str, Any], choice: str) -> Any:
    return person.respond({"trial": trial["id"], "value": {"choice": choice}, "rt_ms": 900, "shown_ms": 900})


def to_the_first_decision(person: Person) -> dict[str, Any]:
    while (trial := shown(person)[0])["kind"] != "decide":
        assert answer(person, trial, trial["content"]["choices"][0]["value"]).status_code == 200
    return trial


def test_nothing_of_the_second_step_is_sent_before_the_first_is_stored(study: Study) -> None:
    for condition, person in people(study):
        first = to_the_first_decision(person)
        (only,) = shown(person)
        assert only["id"] == first["id"] and only["content"]["step"] == "first"
        content = first["content"]
        assert content["advice"] is content["earlier"] is content["explanation"] is None
        block = person.state["block"]
        assert json.dumps(block["trials"]).count("/m/") == 1, "the picture's address, and no other"
        assert len(block["examples"]) == 2, "what was trained, and no item of a decision"
        assert answer(person, first, content["choices"][1]["value"]).status_code == 200
        (second,) = shown(person)
        told = second["content"]
        assert (told["step"], told["earlier"]) == ("second", content["choices"][1]["text"])
        assert told["choices"] == content["choices"]
        assert told["image"]["url"] != content["image"]["url"], "no address occurs twice"
        assert (told["advice"] is not None) == (condition != "alone")
        assert (told["explanation"] is not None) == (condition in ("marked", "unrelated"))
        if told["advice"] is not None:
            assert told["advice"] in [button["text"] for button in told["choices"]]


def test_the_first_answer_is_there_after_a_reload_and_is_this_persons_own(study: Study) -> None:
    told = {}
    for number, (_, person) in enumerate(people(study)):
        first = to_the_first_decision(person)
        chosen = first["content"]["choices"][number % 2]
        answer(person, first, chosen["value"])
        before = shown(person)
        back = Person(person.name, slug=study.slug)
        assert back.join().status_code == 200
        (again,) = shown(back)
        assert again["content"]["earlier"] == before[0]["content"]["earlier"] == chosen["text"]
        told[number] = chosen["text"]
    assert len(set(told.values())) == 2


def test_the_second_decision_cannot_come_first_and_neither_can_be_changed(study: Study) -> None:
    _, person = next(people(study))
    first = to_the_first_decision(person)
    slot = person.session().slot
    assert slot is not None
    second = slot.trials.get(position=first["position"] + 1)
    values = [button["value"] for button in first["content"]["choices"]]
    early = answer(person, {"id": str(second.pk)}, values[0])
    assert (early.status_code, early.json()["error"]["code"]) == (409, "out_of_turn")
    assert answer(person, first, values[0]).status_code == 200
    changed = answer(person, first, values[1])
    assert (changed.status_code, changed.json()["error"]["code"]) == (409, "contradiction")
    assert HandOut.objects.filter(trial_id=int(first["id"])).exists(), "the time of handing out is stored"


def test_a_previewed_second_step_has_a_first_answer(study: Study) -> None:
    """What lies before a previewed trial is filled in, and stands there as the first answer."""
    slot = Slot.objects.get(study=study, condition__name="marked")
    for trial in slot.trials.filter(kind="decide", extra__step="second"):
        session, token = start_session(study, study.participants.create(), origin="preview")
        Session.objects.filter(pk=session.pk).update(slot=slot, state="running")
        session.refresh_from_db()
        skip_to(session, trial.position)
        (looked,) = shown(Person("x", slug=study.slug, token=token))
        content = looked["content"]
        assert looked["id"] == str(trial.pk) and content["earlier"] == content["choices"][0]["text"]
        assert content["advice"] is not None and content["explanation"] is not None


def test_both_decisions_count_and_the_export_tells_them_apart(study: Study) -> None:
    for number in range(4):
        take_part(Person(f"p{number}", slug=study.slug))
    study.refresh_from_db()
    trials = read_frames(study).trials
    rows = trials[trials["kind"] == "decide"]
    steps = rows.groupby(["session", "item"])["step"].agg(tuple)
    assert set(steps) == {("first", "second")} and len(steps) == 16
    advised = rows[(rows["step"] == "second") & (rows["condition"] != "alone")]
    assert (advised["advice"] == advised["model_label"]).all() and len(advised) == 12
    assert (rows.drop(advised.index)["advice"] == "").all()
    assert rows["matches_truth"].notna().all() and rows["scored_index"].notna().all()
    explained = rows[rows["explained"]]
    assert set(explained["condition"]) == {"marked", "unrelated"} and set(explained["step"]) == {"second"}
    sessions = Session.objects.filter(study=study)
    paid = matches_of([session.pk for session in sessions])
    assert sorted(paid.values()) == sorted(rows.groupby("session")["matches_truth"].sum().astype(int))


def test_the_pages_before_the_decisions_are_those_of_the_condition(tmp_path: Path) -> None:
    """Common instructions first; then what the second decision is for; areas before the decisions."""
    texts = {"again": "Look again", "advice": "A machine", "explained": "Coloured areas"}
    path = write(tmp_path / "t", "advised", "assisted_decision", ASSISTED)
    named = "".join(f'instructions_{name} = "{name}.md"\n' for name in texts)
    path.write_text(path.read_text().replace("[texts]\n", f"[texts]\n{named}"))
    for name, text in texts.items():
        (path.parent / f"{name}.md").write_text(f"# {text}\n")
    study = opened_study(path)
    read: dict[str, list[str]] = {}
    for number in range(4):
        person = Person(f"p{number}", slug=study.slug)
        person.join()
        met = []
        for _ in range(40):
            state = person.state
            if state["step"] == "trials":
                trial = shown(person)[0] if state["block"] else None
                if trial is None or trial["kind"] == "decide":
                    break
                answer(person, trial, trial["content"]["choices"][0]["value"])
                person.refresh()
                continue
            met += [name for name, text in texts.items() if text in str(state["page"]["html"])]
            assert person.gate(person.good_value()).status_code == 200
        slot = person.session().slot
        assert slot is not None and slot.condition is not None
        read[slot.condition.name] = met
    assert read == {
        "alone": ["again"],
        "plain": ["advice"],
        "marked": ["advice", "explained"],
        "unrelated": ["advice", "explained"],
    }
