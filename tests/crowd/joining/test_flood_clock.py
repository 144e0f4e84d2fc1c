"""Places under a flood, with a clock: invented people from one network of 48 bits and from fifty addresses of
IPv4, and people whom the platform lists, some behind the very same addresses. The study has no place more
than the platform offers. `make test` has 6 listed people, `make prove` 60."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from crowd import tasks
from crowd.models import Posting
from crowd.recruiting.publishing import publish_posting
from experiments.models import Session, Slot
from tests import world
from tests.crowd.arrivals import Visitor
from tests.crowd.offered_studies import POLICY, arrive, changed, public, simulated
from tests.proofs.scale import Scale

__all__ = ["public"]
pytestmark = pytest.mark.django_db
TICK_S, SYNC_S, GRACE_S = 10, 120, 60
PATIENCE = 3
"""So often an invented person is refused before another one comes in their place."""
TAKES_S = 300
"""How long a listed person holds a slot."""


@dataclass
class Clock:
    """Ours and the platform's, which move together; and one client for all, since a new one reads every file
    of the page."""

    now: datetime
    sim: Any = None
    client: Client = field(default_factory=Client)

    def tick(self) -> None:
        self.now += timedelta(seconds=TICK_S)
        self.sim.clock.advance(TICK_S)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(timezone.now())
    monkeypatch.setattr(timezone, "now", lambda: made.now)
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)
    return made


@pytest.fixture
def quarter(settings: Any) -> None:
    """What a server has by default; the tests of other things let everybody in."""
    settings.UNVERIFIED_PERCENT = 25


def address_of(rng: Random) -> str:
    """One of the flood's: of fifty of IPv4, or of one network of 48 bits."""
    if rng.random() < 0.5:
        return f"203.0.113.{rng.randrange(50)}"
    return "2001:db8:5:" + ":".join(f"{rng.randrange(1, 65536):x}" for _ in range(5))


@dataclass
class Page:
    """A page that waits and tries again as it is told, as the real one does."""

    visitor: Visitor
    address: str
    came: datetime
    due: datetime
    waited_s: float | None = None
    tries: Counter[int] = field(default_factory=Counter)

    @property
    def group(self) -> str:
        who = "listed" if self.visitor.simulated else "invented"
        return f"{who}, IPv{6 if ':' in self.address else 4}"

    def step(self, clock: Clock) -> None:
        """One try, if it is time for one; with a session on to the consent and, at once, to a slot."""
        gave_up = not self.visitor.simulated and self.tries[429] >= PATIENCE
        if gave_up or self.waited_s is not None or clock.now < self.due:
            return
        self.visitor.client.defaults["HTTP_X_FORWARDED_FOR"] = self.address
        reply = self.visitor.join() if not self.visitor.token else None
        if reply is None or reply.status_code in (200, 201):
            reply = self.on()
        self.tries[reply.status_code] += 1
        if reply.status_code == 429:
            self.due = clock.now + timedelta(seconds=int(reply["Retry-After"]))
        elif reply.status_code == 200:
            self.waited_s = (clock.now - self.came).total_seconds()
        else:
            self.due = clock.now + timedelta(days=1)

    def on(self) -> Any:
        while self.visitor.state["step"] != "trials":
            reply = self.visitor.gate(self.visitor.good_value())
            if reply.status_code != 200:
                return reply
        return reply


def page(visitor: Visitor, address: str, clock: Clock) -> Page:
    visitor.client = clock.client
    return Page(visitor, address, clock.now, clock.now)


def invented(number: int, offered: Posting, address: str, clock: Clock) -> Page:
    fields = {"PROLIFIC_PID": f"n{number}", "STUDY_ID": offered.external_id, "SESSION_ID": f"s{number}"}
    return page(Visitor(f"n{number}", offered.study.slug, via=offered.key, fields=fields), address, clock)


def rows_of(pages: list[Page]) -> Iterator[str]:
    """A line of the table for each group."""
    groups: dict[str, list[Page]] = {}
    for each in pages:
        groups.setdefault(each.group, []).append(each)
    for name, members in sorted(groups.items()):
        let_in = sorted(each.waited_s for each in members if each.waited_s is not None)
        longest = f"{let_in[-1]:.0f} s" if let_in else "-"
        middle = f"{let_in[len(let_in) // 2]:.0f} s" if let_in else "-"
        tries = sum(each.tries.total() for each in members)
        yield f"| {name} | {len(members)} | {tries} | {len(let_in)} | {middle} | {longest} |"


@pytest.mark.usefixtures("quarter")
def test_nobody_whom_the_platform_lists_waits_for_those_whom_it_does_not(
    tmp_path: Path, store_folder: Path, clock: Clock, scale: Scale, capsys: pytest.CaptureFixture[str]
) -> None:
    count, flood = scale.of(6, 60), scale.of(1, 40)
    takes_s = scale.of(60, TAKES_S)
    path = world.write_study(tmp_path / "s", slots=count // 3)
    study, rng = changed(world.opened_study(path), policy=POLICY), Random(5 + scale.seed)
    with simulated("prolific") as sim:
        clock.sim = sim
        offered = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=count)
        # There is no broker here, without which no list is read by itself.
        assert tasks.sync_postings() == 1
        pages = [invented(n, offered, address_of(rng), clock) for n in range(20 * flood)]
        listed: list[Page] = []
        seconds = 0

        def at_work(each: Page) -> bool:
            ends = each.came + timedelta(seconds=(each.waited_s or 0) + takes_s)
            return each.waited_s is None or clock.now < ends

        while len(listed) < count or any(at_work(each) for each in listed):
            if seconds % SYNC_S == 0 and seconds:
                assert tasks.sync_postings() == 1
            if len(listed) < count and seconds:
                person = arrive(offered, sim, f"p{len(listed)}")
                listed.append(page(person, address_of(rng), clock))
            pages += [invented(len(pages), offered, address_of(rng), clock) for _ in range(flood)]
            for each in rng.sample([*pages, *listed], len(pages) + len(listed)):
                each.step(clock)
            clock.tick()
            seconds += TICK_S
            assert seconds < 3600, "somebody listed never comes in"
        for each in listed:
            each.visitor.answer()
            assert offered.codes["complete"] in each.visitor.end().json()["exit"]["url"]
        held = Slot.objects.filter(kept=True)
        assert held.filter(holder__arrival="verified").count() == held.count() == count
        assert max(each.waited_s or 0 for each in listed) <= SYNC_S + GRACE_S
        assert not Session.objects.filter(arrival="unverified", state="running").exists()
    with capsys.disabled():
        print("\n| who | people | tries | let in | median wait | longest wait |")
        print("\n".join(["| --- | --- | --- | --- | --- | --- |", *rows_of([*listed, *pages])]))


@pytest.mark.usefixtures("quarter")
def test_while_it_is_silent_others_hold_a_share_and_whoever_consented_keeps_the_place(
    tmp_path: Path, store_folder: Path, clock: Clock
) -> None:
    path = world.write_study(tmp_path / "s", slots=4)
    study, rng = changed(world.opened_study(path), policy=POLICY), Random(7)
    with simulated("prolific") as sim:
        clock.sim = sim
        offered = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=9)
        # Two are listed before it falls silent; one of them comes only afterwards.
        early, late = (page(arrive(offered, sim, name), address_of(rng), clock) for name in ("a", "b"))
        early.step(clock)
        assert tasks.sync_postings() == 1
        sim.faults.down = True
        # A real person, whom the platform would list.
        unlisted = page(arrive(offered, sim, "c"), address_of(rng), clock)
        unlisted.step(clock)
        assert unlisted.waited_s == 0 and unlisted.visitor.session().arrival == "unverified"
        crowd = [invented(n, offered, address_of(rng), clock) for n in range(30)]
        # All of them join before one of them consents.
        for each in crowd:
            each.visitor.join()
        for each in [each for each in crowd if each.visitor.token]:
            each.step(clock)
        strangers = Slot.objects.filter(holder__arrival="unverified")
        # A quarter of the eleven places that were free.
        assert strangers.count() == 2
        refused = next(each for each in crowd if each.visitor.token and each.waited_s is None)
        reply = refused.visitor.gate(refused.visitor.good_value())
        assert reply.status_code == 429 and int(reply["Retry-After"]) == 30
        error = reply.json()["error"]
        assert "has not told us of you" in error["message"] and "tries again by itself" in error["message"]
        late.step(clock)
        assert late.waited_s == 0, "the stored list answers first"
        sim.faults.down = False
        assert tasks.sync_postings() == 1
        assert unlisted.visitor.session().arrival == "verified"
        before = dict(strangers.values_list("pk", "holder"))
        more = [page(arrive(offered, sim, f"d{n}"), address_of(rng), clock) for n in range(6)]
        for each in more:
            each.step(clock)
        assert [each.waited_s for each in more] == [0] * 6
        assert dict(strangers.values_list("pk", "holder")) == before, "no slot changes hands"
        assert settings.UNVERIFIED_PERCENT == 25
