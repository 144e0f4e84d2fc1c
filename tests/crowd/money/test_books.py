"""Both books, ours and the simulated platform's, under each entry of the table of what the platform's pages
leave open: a settle that dies at a call before each that ends, and the time until a person's hand is asked
for. `make test` has 8 people and three entries, `make prove` 60 and all, late effects by 1 h, 30 h and 10
days.

A death is here an exception that nothing catches, thrown once a call has taken effect; `kill -9` itself is
the proof "crashes".
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from crowd.ground import platform_accounts
from crowd.models import Payout, Submission
from crowd.money.needs_hand import hands_of
from crowd.platforms.prolific.wire import ProlificWire
from crowd.rehearsal.faults import ALL
from crowd.rehearsal.rehearsing import moving
from tests.crowd import paid
from tests.crowd.reference import LOADS, OPEN, PAY, Open
from tests.proofs.scale import Scale

pytestmark = pytest.mark.django_db
HOUR_S = 3600
MOMENTS_H = (0.0, 0.5, 2.0, 31.0, 241.0)
"""When settle is run: before a late effect that comes after 1 or 30 hours or 10 days, and after it."""
LATE_H = (1, 30, 240)
LATE = ("late_effect", "refused_late")
SHORT = ("refused_late", "refuse", "raise_reward")
FORCED = 3
"""So many of the coming calls that can meet a fault do."""
REWARD, PER_MATCH, MOST = 140, 5, 30
"""The reward of tests/crowd/paid.py, by hand."""
FEW = 4
"""People whom a verb is about."""


class Dead(BaseException):
    """The process is gone."""


def named(case: tuple[Open, int]) -> str:
    entry, late_h = case
    return f"{entry.fault} {late_h} h" if entry.fault in LATE else entry.fault


CASES = [
    pytest.param((entry, late_h), marks=() if entry.fault in SHORT and late_h == 1 else pytest.mark.full)
    for entry in OPEN
    for late_h in (LATE_H if entry.fault in LATE else LATE_H[:1])
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between two tries."""
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (lambda seconds: None,))


def aim(stage: paid.Stage, call: Any, fault: Any) -> None:
    """The call that pays, which follows the one that sets up, meets the fault until it has."""
    if "submissions/bonus-payments" in call.path and not stage.sim.faults.met[fault]:
        stage.sim.faults.forced = [fault]


def begin(stage: paid.Stage, entry: Open) -> None:
    """What the entry is about, from now on."""
    control, fault = stage.sim.control, entry.fault
    listed = list(control.state()["submissions"])
    if entry.page in (PAY, LOADS):
        stage.sim.before_reply.append(lambda call: aim(stage, call, fault))
    elif fault in ALL:
        stage.sim.faults.forced = [fault] * FORCED
    elif fault == "refuse":
        for number, submission in enumerate(listed[:FEW]):
            control.refuse(submission, number % 2 == 0)
    elif fault == "call_by":
        for submission in listed[:FEW]:
            control.call_by("UNDER INVESTIGATION", submission=submission)
    else:
        getattr(control, fault)(stage.posting.external_id, 200)


def die(stage: paid.Stage, monkeypatch: pytest.MonkeyPatch, at: int) -> bool:
    """Runs settle until its call number `at` that changes something; whether there was one."""
    once, calls = ProlificWire._once, Counter[str]()

    def dying(self: ProlificWire, method: str, *arguments: Any) -> Any:
        try:
            return once(self, method, *arguments)
        finally:
            calls[method] += 1
            if method == "POST" and calls["POST"] == at:
                raise Dead

    with monkeypatch.context() as patch:
        patch.setattr(ProlificWire, "_once", dying)
        try:
            paid.settle(stage.study)
        except Dead:
            return True
    return False


@pytest.mark.parametrize("case", CASES, ids=named)
def test_books_agree_and_nobody_is_paid_twice(
    case: tuple[Open, int], scale: Scale, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry, late_h = case
    people = scale.of(8, 60)
    with paid.offered(paid.paying(slots=people)) as stage, moving(stage.sim) as time:
        matches = {stage.person(matches=number % 6): number % 6 for number in range(people)}
        owed = {row: (REWARD, min(PER_MATCH * count, MOST)) for row, count in matches.items()}
        stage.sim.faults.late_s = late_h * HOUR_S
        begin(stage, entry)
        deaths, seen = 0, dict[str, tuple[float, int]]()
        for number, moment in enumerate(MOMENTS_H):
            if number:
                time.pass_by((moment - MOMENTS_H[number - 1]) * HOUR_S)
            for at in (2, 1) if number < 2 else ():
                deaths += die(stage, monkeypatch, at)
            paid.settle(stage.study)
            stage.posting.refresh_from_db()
            for kind, count in Counter(hand.kind for hand in hands_of(stage.posting)).items():
                seen.setdefault(kind, (moment, count))
            for row, (reward, bonus) in owed.items():
                got, bonuses = stage.paid(row)
                assert got <= (200 if entry.fault == "raise_reward" else reward), "a reward twice"
                assert sum(bonuses) <= bonus, "a bonus twice"
        paid.agree(stage)
        hands = hands_of(stage.posting)
        left, holds_all = {hand.submission for hand in hands}, any(hand.kind == "reward" for hand in hands)
        assert holds_all == (entry.fault == "raise_reward")
        for row, (reward, bonus) in owed.items():
            is_whole = stage.paid(row) == (reward, [bonus] if bonus else [])
            assert is_whole or row.pk in left or holds_all, "unpaid, and nobody is told"
        met = stage.sim.faults.met[entry.fault]
        assert met or entry.fault not in ALL, "the fault was not met"
        sent = sum(Payout.objects.filter(state="sent").values_list("cents", flat=True))
        there = sum(sum([got, *more]) for got, more in map(stage.paid, Submission.objects.all()))
        hand = ", ".join(f"{kind}: {count} after {hours:g} h" for kind, (hours, count) in seen.items())
    with capsys.disabled():
        row_of = [entry.page, entry.says, named(case), met or "-", deaths, f"{sent / 100:.2f}"]
        print("| " + " | ".join(map(str, [*row_of, f"{there / 100:.2f}", hand or "nothing"])) + " |")
