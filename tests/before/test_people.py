"""People who began at f38355e continue on today's server until they are finished, judged and paid."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from crowd.rehearsal import prolific
from tests import services
from tests.before.goer import Goer, addresses
from tests.before.restored import Database, Place, json_of, manage

pytestmark = pytest.mark.both_databases("migrations of stored rows; who goes on holds locks")
REWARD, PER_MATCH, BONUS_MAX = 100, 5, 30
"""What the stored study promises, in cents."""


@dataclass(frozen=True, slots=True)
class Story:
    """The way of every person to the end, and the state afterwards."""

    database: Database
    env: dict[str, str]
    told: dict[str, Any]
    goers: dict[str, Goer]
    ends: dict[str, dict[str, Any]]
    pictures: dict[str, tuple[int, str]]
    platform: dict[str, Any]

    def key(self, name: str) -> str:
        return self.database.key(self.told["halfway"][name]["session"])

    def session(self, name: str) -> tuple[Any, ...]:
        [row] = self.database.ask(
            "SELECT state, verdict, slot_id, comment, reasons FROM experiments_session "
            f"WHERE id = '{self.key(name)}'"
        )
        return row

    def responses(self, name: str) -> int:
        where = f"session_id = '{self.key(name)}'"
        return int(self.database.ask(f"SELECT count(*) FROM experiments_response WHERE {where}")[0][0])

    def ledger(self, name: str) -> dict[str, tuple[str, int]]:
        where = f"session_id = '{self.key(name)}'"
        rows = self.database.ask(f"SELECT kind, state, cents FROM crowd_payout WHERE {where}")
        return {kind: (state, cents) for kind, state, cents in rows}

    def submission(self, outside: str) -> dict[str, Any]:
        return dict(self.platform["submissions"][outside])


@pytest.fixture(scope="module")
def story(going_on: Place) -> Iterator[Story]:
    database, env = going_on
    told = json_of(f"people-{database.kind}")
    with services.web_server(env) as server:
        goers = {name: Goer(server.url, known, told) for name, known in told["halfway"].items()}
        pictures = {
            url: looked_at(server.url + url)
            for goer in goers.values()
            if goer.known["state"] in ("assigned", "running")
            for url in addresses(goer.state())
        }
        ends = {name: goer.go_on() for name, goer in goers.items()}
    with on_prolific(database, told) as url:
        for name in ("vic", "wim", "xia"):
            control(url, "complete", submission=told["halfway"][name]["submission"],
                    code=told["simulator"]["codes"]["complete"])  # fmt: skip
        control(url, "advance", seconds=60)
        settle(env)
        for name, work in control(url, "state")["submissions"].items():
            if work["return_requested"]:
                control(url, "return", submission=name)
        control(url, "advance", seconds=60)
        settle(env)
        yield Story(database, env, told, goers, ends, pictures, control(url, "state"))


def looked_at(url: str) -> tuple[int, str]:
    reply = httpx.get(url, timeout=60)
    return reply.status_code, reply.headers.get("content-type", "")


@contextmanager
def on_prolific(database: Database, told: dict[str, Any]) -> Iterator[str]:
    """The simulated platform in its state of that day: every request that it had received is sent again."""
    record = told["simulator"]
    with prolific.simulator(
        seed=record["seed"], options=prolific.ProlificWorldOptions(**record["options"])
    ) as sim:
        for method, path, body, headers, status in record["tape"]:
            if status == "answer lost" or (status is not None and status < 400):
                sent = {"authorization", "content-type"}
                again = {name: value for name, value in headers.items() if name in sent}
                httpx.request(method, sim.url + path, content=body.encode(), headers=again, timeout=60)
        now = control(sim.url, "state")["submissions"]
        # A later simulator may tell more.
        same = {name: {key: now[name][key] for key in work} for name, work in record["submissions"].items()}
        assert same == record["submissions"] and now.keys() == same.keys(), "another platform than then"
        database.ask(f"UPDATE crowd_posting SET site = '{sim.url}' WHERE platform = 'prolific'")
        yield sim.url


def control(url: str, verb: str, **members: Any) -> dict[str, Any]:
    reply = httpx.post(f"{url}/_simulator/{verb}", json=members, timeout=60)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def settle(env: dict[str, str]) -> None:
    """Its exit status is ignored: it fails as long as a person has still to return a place."""
    command = [*("manage.py", "settle", "before", "--platform", "prolific"), "--yes", "--by", "grace"]
    subprocess.run([sys.executable, *command], cwd=services.ROOT, env={**os.environ, **env}, check=False)


def test_everybody_comes_to_the_end(story: Story) -> None:
    begun = {name: goer.known["step"] for name, goer in story.goers.items()}
    assert set(begun.values()) == {"device", "practice", "instructions", "trials", "questions", "consent"}
    for name, goer in story.goers.items():
        assert goer.steps[0] == goer.known["step"], name
        state, verdict, slot, comment, reasons = story.session(name)
        assert (state, verdict, comment) == ("finished", "passed", "Went on."), (name, reasons)
        assert story.responses(name) == goer.known["answered"] + goer.stored == 19
        holder = story.database.ask(
            f"SELECT kept, CAST(holder_id AS text) FROM experiments_slot WHERE id = {slot}"
        )
        assert [(bool(kept), key) for kept, key in holder] == [(True, story.key(name))], name


def test_the_pictures_of_that_day_are_still_there(story: Story) -> None:
    assert len(story.pictures) > 100
    assert set(story.pictures.values()) == {(200, "image/png")}


def test_everybody_is_sent_back_where_they_came_from(story: Story) -> None:
    ends = {name: end["exit"] for name, end in story.ends.items()}
    panel = ends.pop("max")
    assert panel["method"] == "GET"
    assert panel["url"].startswith("https://panel.example.org/done?code=") and panel["url"].endswith("max")
    code = story.told["simulator"]["codes"]["complete"]
    for name in ("vic", "wim", "xia"):
        assert code in json.dumps(ends.pop(name)), name
    assert {end["method"] for end in ends.values()} == {"none"}


@pytest.mark.parametrize("name", ["vic", "wim", "xia"])
def test_who_went_on_is_paid_what_the_policy_owes(story: Story, name: str) -> None:
    bonus = min(BONUS_MAX, PER_MATCH * int(story.told["halfway"][name]["matches"]))
    assert story.ledger(name) == {"base": ("sent", REWARD), "bonus": ("sent", bonus)}
    work = story.submission(story.told["halfway"][name]["submission"])
    assert (work["reward_paid_count"], work["reward_paid_cents"], work["bonuses"]) == (1, REWARD, [bonus])


def test_the_whole_ledger_agrees_with_the_platform(story: Story) -> None:
    """To the cent, no person twice, for every state of a payment when the engine was rebuilt."""
    rows = story.database.ask("SELECT state, cents FROM crowd_payout")
    assert {state for state, _ in rows} == {"sent", "withheld"}
    sent = sum(cents for state, cents in rows if state == "sent")
    works = story.platform["submissions"].values()
    assert sent == sum(work["reward_paid_cents"] + sum(work["bonuses"]) for work in works)
    assert max(work["reward_paid_count"] for work in works) == 1
    # quy, sam, tia, una, vic, wim, xia and zoe did the whole work; yve left after 6 of 19 trials, pro rata.
    assert sent == 8 * (REWARD + BONUS_MAX) + round(REWARD * 6 / 19)


def test_everybody_is_exported(story: Story, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    manage(
        "export", "before", "--out", str(folder), "--unseal-as", "Grace", "--reason", "a test", env=story.env
    )
    with (folder / "participants.csv").open(encoding="utf-8", newline="") as handle:
        people = list(csv.DictReader(handle))
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as handle:
        trials = list(csv.DictReader(handle))
    went_on = [row for row in people if row["comment"] == "Went on."]
    expected = [name for name, known in story.told["halfway"].items() if known["study"] == "before"]
    assert len(went_on) == len(expected) > 8
    for row in went_on:
        assert (row["status"], row["responses"]) == ("passed", "19")
        indices = [int(trial["trial_index"]) for trial in trials if trial["session"] == row["session"]]
        assert indices == list(range(19))
