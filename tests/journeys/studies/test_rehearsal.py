"""People on each platform, every fault of the simulators in some of the calls that can meet it, and the
settling process killed (-9) at random points: each person is paid what the policy owes, once, to the cent,
with the waiting times of a live study on one moved clock. `make test` has 12 people, three kills, and each
fault in one of fifty calls; `make prove` has 300 on Prolific, 60 on Mechanical Turk, twenty kills, one of
twenty calls, and then each fault alone.

What is due is computed here again, in a simple way, from the stored sittings; what was paid, and what the
list shows of it, is the simulated platform's own count.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connection

from crowd.models import Payout, PayoutBatch, Posting, StatementLine, Submission
from crowd.money.needs_hand import Hand, hands_of
from crowd.money.payout_grace import grace
from crowd.money.platform_statement import name_of
from crowd.platforms.base import PlatformError
from crowd.recruiting.publishing import publish_posting
from crowd.rehearsal.faults import ALL, LATE_S, Fault, Faults
from crowd.rehearsal.mturk import TurkOptions
from crowd.rehearsal.prolific import ProlificWorldOptions
from crowd.rehearsal.rehearsing import Time, moving
from crowd.rehearsal.serving import Call
from crowd.rehearsal.visitors import Control, Visit, send_crowd
from experiments.design.rng import Streams
from experiments.models import Response, Session, Study
from experiments.simulation.population import parse_mix, populate
from tests import services
from tests.proofs.scale import Scale
from tests.services import WebServer
from tests.world import opened_study, write_study

PEOPLE, PEOPLE_PLANTED, PEOPLE_ALONE = 12, 6, 24
PEOPLE_FULL = {"prolific": 300, "mturk": 60}
KILLS, KILLS_FULL, KILLS_ALONE = 3, 20, 2
EFFECTS_MIN = 2
"""At least this many kills come between a change on the platform and its answer."""
PAYS_BONUSES = frozenset({"bonuses.pay", "SendBonus"})
"""What the simulated platforms call the one request that a careless repeat pays twice."""
SETTLE = ("manage.py", "settle")
SHARE, SHARE_SHORT = 0.05, 0.02
"""Of the calls that can meet a fault, for each fault. A run with more faults waits and repeats more."""
FORCED_ALONE = 2
RUNS_MAX = 120
ACCEPTED_KINDS = frozenset({"surplus", "other_amount"})
SLOTS, SLOTS_FULL = 20, 140
REWARD, PER_MATCH, BONUS_MAX = 100, 2, 9
MIX = "guesser=0.8,careless=0.2"
OPTIONS: dict[str, Any] = {
    "prolific": ProlificWorldOptions(currency="USD"),
    "mturk": TurkOptions(),
}
PLATFORMS = """
[policy]
withdrawn = "full"
[platforms.prolific]
project = "rehearsal"
[platforms.mturk]
base_share = 0.25
"""


@pytest.fixture
def study(server_env: dict[str, str], tmp_path: Path, scale: Scale) -> Study:
    return study_at(tmp_path / "study", scale.of(SLOTS, SLOTS_FULL))


def study_at(folder: Path, slots: int, slug: str = "small") -> Study:
    path = write_study(folder, slug, slots)
    bonus = f"bonus_per_match_cents = {PER_MATCH}\nbonus_max_cents = {BONUS_MAX}\nexpected_minutes = 4"
    text = path.read_text().replace("expected_minutes = 4", bonus)
    path.write_text(text + PLATFORMS)
    return opened_study(path)


@dataclass
class Settler:
    """Runs `settle` (or another `program`) as a process, and kills it at a chosen point."""

    env: Mapping[str, str]
    simulated: Any
    posting: Posting
    rng: Any
    time: Time
    program: tuple[str, ...] = SETTLE
    process: subprocess.Popen[str] | None = None
    left: int = -1
    is_aimed: bool = False
    killed: Counter[str] = field(default_factory=Counter)
    said: str = ""

    def __post_init__(self) -> None:
        self.simulated.before_reply.append(self._on_call)

    def _on_call(self, call: Call) -> None:
        """After the effect of a call that changes something and before its answer: the worst moment."""
        counts = call.effect and (not self.is_aimed or call.operation in PAYS_BONUSES)
        self.left -= counts
        if self.left == 0 and counts and self.process is not None:
            self.process.send_signal(signal.SIGKILL)

    def run(self, *words: str) -> int:
        command = [
            sys.executable,
            *self.program,
            self.posting.study.slug,
            "--platform",
            self.posting.platform,
            "--yes",
            *words,
        ]
        environment = {**os.environ, **self.env, "SETTLE_CONFIRM_CENTS": "100000000"}
        environment["CLOCK_FILE"] = str(self.time.file)
        self.process = subprocess.Popen(
            command, cwd=services.ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.said, _ = self.process.communicate()
        return self.process.returncode

    def run_killed_at_a_call(self) -> None:
        self.left = int(self.rng.integers(1, 4))
        self._count("after an effect")

    def run_killed_at_a_bonus(self) -> None:
        """At the first payment of bonuses: it has been carried out, and the process cannot know it."""
        self.left, self.is_aimed = 1, True
        self._count("after a bonus")

    def run_killed_at_a_moment(self) -> None:
        """At any moment between the start of the process and its end."""
        self.left = -1
        alarm = threading.Timer(float(self.rng.uniform(0.8, 3.0)), self._strike)
        alarm.start()
        self._count("at a moment")
        alarm.cancel()

    def _strike(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)

    def _count(self, moment: str) -> None:
        if self.run() == -signal.SIGKILL:
            self.killed[moment] += 1
        self.left, self.is_aimed = -1, False

    def finish(self) -> None:
        """With a researcher who waits, looks again, and does what the list says: a payment that the platform
        still does not list after any late effect was never made; what it lists otherwise is accepted."""
        words: list[str] = []
        for _ in range(RUNS_MAX):
            if self.run(*words) == 0 and not words:
                return
            self.time.pass_by(max(grace(self.posting).total_seconds(), LATE_S) + 1)
            words = [] if words else self.decided()
        raise AssertionError(f"settle does not come to an end:\n{self.said[-3000:]}")

    def decided(self) -> list[str]:
        """The words for the most urgent kind of line; none if only time helps."""
        hands = hands_of(self.posting)
        for flag, kinds in (("--accept", ACCEPTED_KINDS), ("--again", {"missing"})):
            names = names_of([hand for hand in hands if hand.kind in kinds])
            if names:
                return [flag, *names, "--by", "ada", "--reason", "the platform said so"]
        return []


def names_of(hands: Sequence[Hand]) -> list[str]:
    rows = Submission.objects.filter(pk__in=[hand.submission for hand in hands])
    return sorted(name_of(row) for row in rows.select_related("posting__study", "session__participant"))


def published(study: Study, platform: str, site: str) -> Posting:
    """Publishing has faults too; a repeat finds what an earlier try made."""
    for _ in range(20):
        try:
            return publish_posting(study, platform, "rehearsal", site=site, by="test")
        except PlatformError:
            continue
    raise AssertionError("publishing never succeeds")


def owed_cents(session: Session) -> int:
    """The policy by hand: finished people get the reward and two cents per match up to nine, people screened
    before they got a place get the reward, people who left get nothing."""
    if session.state == "turned_away":
        return REWARD // 4
    if session.state != "finished" or session.verdict == "incomplete":
        return 0
    if session.slot_id is None:
        return REWARD
    matches = sum(
        row.value["choice"] == row.trial.item.predicted
        for row in Response.objects.filter(session=session).select_related("trial__item")
        if row.trial.phase == "test" and not row.trial.check_kind and row.trial.item is not None
    )
    return int(REWARD + min(PER_MATCH * matches, BONUS_MAX))


def paid_cents(there: Mapping[str, Any]) -> list[int]:
    assert there["reward_paid_count"] <= 1, f"a reward was paid twice: {there}"
    return [*([there["reward_paid_cents"]] if there["reward_paid_count"] else []), *there["bonuses"]]


def listed_cents(there: Mapping[str, Any]) -> int:
    """What the platform's list shows of one person's money."""
    return int(there["reward_paid_cents"] + sum(there["listed_bonuses"]))


def accepted_cents(posting: Posting, submission: str = "") -> int:
    lines = StatementLine.objects.filter(submission__posting=posting, accepted__gt=0)
    lines = lines.filter(submission__external_id=submission) if submission else lines
    return sum(cents * count for cents, count in lines.values_list("cents", "accepted"))


def table(posting: Posting, visits: list[Visit], settler: Settler, truth: Mapping[str, Any]) -> str:
    kinds = Counter(Payout.objects.filter(posting=posting).values_list("kind", "state"))
    cents = Counter[str]()
    for kind, amount in Payout.objects.filter(posting=posting, state="sent").values_list("kind", "cents"):
        cents[kind] += amount
    platform = sum(sum(paid_cents(there)) for there in truth["submissions"].values())
    listed = sum(listed_cents(there) for there in truth["submissions"].values())
    hands = Counter(hand.kind for hand in hands_of(posting))
    lines = [
        f"Rehearsal on {posting.platform} ({connection.vendor}): {len(visits)} simulated people and money",
        f"  calls to the platform {truth['calls_count']}, faults {dict(settler.simulated.faults.met)}",
        f"  settle killed (-9): {dict(settler.killed)}",
        *(f"  {kind:<13}{state:<9}{count:>5}" for (kind, state), count in sorted(kinds.items())),
        *(f"  sent {kind:<13}{amount / 100:>10.2f} USD" for kind, amount in sorted(cents.items())),
        f"  ledger, sent      {sum(cents.values()) / 100:>10.2f} USD",
        f"  accepted          {accepted_cents(posting) / 100:>10.2f} USD that the platform lists otherwise",
        f"  platform, lists   {listed / 100:>10.2f} USD",
        f"  platform, paid    {platform / 100:>10.2f} USD",
        f"  needs your hand   {dict(hands) or 'nothing'}",
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A platform on which simulated people have finished, and nothing is paid yet."""

    simulated: Any
    posting: Posting
    visits: list[Visit]
    time: Time

    def state(self) -> dict[str, Any]:
        """The platform's own count of everything."""
        with httpx.Client() as client:
            truth = Control(self.simulated.url, client)("state")
        assert not truth.get("violations"), "a request differs from the documented schema"
        return truth | {"calls_count": self.simulated.calls_count}


@contextmanager
def rehearsed(
    study: Study, platform: str, server: WebServer, count: int, seed: int, faults: Faults
) -> Iterator[Rehearsed]:
    simulators = import_module(f"crowd.rehearsal.{platform}")
    with simulators.simulator(seed=seed, faults=faults, options=OPTIONS[platform]) as simulated:
        posting = published(study, platform, simulated.url)
        people = populate(parse_mix(MIX), count, seed=seed)
        visits = send_crowd(
            simulated.url, server.url, study.slug, platform, people, {"task": "machine"}, concurrency=4
        )
        assert sum(visit.outcome is not None for visit in visits) == len(people)
        with moving(simulated) as time:
            time.pass_by(3600)
            yield Rehearsed(simulated, posting, visits, time)


@pytest.mark.both_databases("locks")
@pytest.mark.parametrize(
    "platform",
    [
        "prolific",
        pytest.param("mturk", marks=pytest.mark.long(stays="test_it_pays_everybody_once_whatever_dies")),
    ],
)
def test_it_pays_everybody_once_whatever_dies(
    platform: str,
    study: Study,
    server: WebServer,
    server_env: dict[str, str],
    scale: Scale,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed, kills = 5 + scale.seed, scale.of(KILLS, KILLS_FULL)
    count = scale.of(PEOPLE, PEOPLE_FULL[platform])
    share = SHARE if scale.is_full else SHARE_SHORT
    faults = Faults(seed, share * len(ALL), ALL)
    with rehearsed(study, platform, server, count, seed, faults) as world:
        settler = paid_with_deaths(world, server_env, seed, kills)
        truth = world.state()
    with capsys.disabled():
        print("\n" + table(world.posting, world.visits, settler, truth))
    check(world.posting, truth)


@pytest.mark.parametrize(
    "platform",
    [
        pytest.param(
            "prolific", marks=pytest.mark.long(stays="test_it_pays_everybody_once_with_each_fault_alone")
        ),
        "mturk",
    ],
)
def test_it_pays_everybody_once_with_each_fault_alone(
    platform: str,
    tmp_path: Path,
    server: WebServer,
    server_env: dict[str, str],
    scale: Scale,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In `make test` the fault that once paid twenty of twenty people twice; in `make prove` every one."""
    alone: tuple[Fault, ...] = ALL if scale.is_full else ("late_effect",)
    for number, fault in enumerate(alone):
        study = study_at(tmp_path / fault, SLOTS, f"alone-{number}")
        seed = 50 + number + scale.seed
        faults = Faults(seed, SHARE, (fault,))
        people = scale.of(PEOPLE_PLANTED, PEOPLE_ALONE)
        with rehearsed(study, platform, server, people, seed, faults) as world:
            faults.set(forced=[fault] * FORCED_ALONE)
            settler = paid_with_deaths(world, server_env, seed, KILLS_ALONE if scale.is_full else 0)
            truth = world.state()
        assert set(faults.met) == {fault}
        with capsys.disabled():
            print(f"\n{fault} alone. {table(world.posting, world.visits, settler, truth)}")
        check(world.posting, truth)


def paid_with_deaths(world: Rehearsed, env: Mapping[str, str], seed: int, kills: int) -> Settler:
    """Everybody paid, by a process that is killed so often, half of the times in the middle of a payment."""
    rng = Streams(4 + seed)("kills", world.posting.platform)
    settler = Settler(env, world.simulated, world.posting, rng, world.time)
    for number in range(RUNS_MAX):
        if settler.killed.total() >= kills:
            break
        settler.run_killed_at_a_moment() if number % 2 else settler.run_killed_at_a_call()
    assert settler.killed.total() >= kills
    # Two kills may both fall between calls; of many some must fall in the middle of a payment.
    assert settler.killed["after an effect"] >= min(EFFECTS_MIN, kills // 4)
    settler.finish()
    return settler


FORGETFUL = """
import os, sys
import django
from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
django.setup()

from crowd.money import run
from crowd.models import Payout, new_key

def recover(posting):
    rows = Payout.objects.filter(posting=posting, state=Payout.State.SENDING)
    for row in rows:
        fresh = {"state": Payout.State.DUE, "batch": None, "called_at": None, "attempts": 0}
        Payout.objects.filter(pk=row.pk).update(**fresh, reference=new_key())
    return 0

run.recover = recover
execute_from_command_line(["manage.py", "settle", *sys.argv[1:]])
"""
"""A settle that believes that a killed process has sent nothing: the fault that costs a laboratory most."""


@pytest.mark.parametrize(
    "platform",
    [
        "prolific",
        pytest.param(
            "mturk", marks=pytest.mark.long(stays="test_it_notices_a_settle_that_forgets_what_it_sent")
        ),
    ],
)
def test_it_notices_a_settle_that_forgets_what_it_sent(
    platform: str, study: Study, server: WebServer, server_env: dict[str, str]
) -> None:
    with rehearsed(study, platform, server, PEOPLE_PLANTED, 5, Faults(5)) as world:
        rng = Streams(9)("kills", platform)
        settler = Settler(server_env, world.simulated, world.posting, rng, world.time, ("-c", FORGETFUL))
        settler.run_killed_at_a_bonus()
        assert settler.killed["after a bonus"] == 1
        for _ in range(3):
            assert settler.run() != 0
            world.time.pass_by(1000)
        assert "a bonus that the ledger did not send" in settler.said
        truth = world.state()
    with pytest.raises(AssertionError, match="assert "):
        check(world.posting, truth)
    bonuses = sum(len(there["bonuses"]) for there in truth["submissions"].values())
    ledger = Payout.objects.filter(posting=world.posting, kind="bonus", state="sent").count()
    assert bonuses > ledger > 0, "the planted fault must have paid somebody twice"


def check(posting: Posting, truth: Mapping[str, Any]) -> None:
    """No person twice, none due without a reason, and the ledger is the platform's list to the cent."""
    rows = {row.external_id: row for row in Submission.objects.filter(posting=posting) if row.external_id}
    sessions = {s.pk: s for s in Session.objects.filter(study=posting.study)}
    named = {hand.submission for hand in hands_of(posting)}
    for outside, there in truth["submissions"].items():
        paid = paid_cents(there)
        row = rows.get(outside)
        session = sessions.get(row.session_id) if row and row.session_id else None
        owed = owed_cents(session) if session else 0
        sent = Payout.objects.filter(submission=row, state="sent").values_list("cents", flat=True)
        shown = accepted_cents(posting, outside)
        assert (sum(sent) if row else 0) + shown == listed_cents(there), (outside, session)
        assert shown or sorted(sent if row else []) == sorted(paid), (outside, session)
        if sum(paid) != owed:
            check_unpayable(posting, session, there, paid)
            assert row is not None and row.pk in named, "due, and no line says why"
    assert not Payout.objects.filter(posting=posting, state__in=["sending", "unknown"]).exists()
    assert not PayoutBatch.objects.filter(posting=posting, state__in=["paying", "unknown"]).exists()
    batches = truth.get("batches", {}).values()
    assert all(batch["paid_count"] <= 1 for batch in batches)


def check_unpayable(
    posting: Posting, session: Session | None, there: Mapping[str, Any], paid: list[int]
) -> None:
    """Mechanical Turk alone cannot pay a person who never submitted; the ledger keeps the payout open."""
    assert posting.platform == "mturk" and not paid and session is not None, (session, there)
    assert there["state"] not in ("Submitted", "Approved"), there
    states = set(Payout.objects.filter(session=session).values_list("state", flat=True))
    assert states and states <= {"due", "failed"}
