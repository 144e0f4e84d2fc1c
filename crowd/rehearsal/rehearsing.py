"""A whole study with simulated people and simulated money: the real server, adapter and ledger, against a
simulated platform on this machine that fails as often as asked."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from django.conf import settings
from django.utils import timezone

from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting, Submission
from crowd.money.needs_hand import hands_of, in_brief
from crowd.money.payout_grace import grace
from crowd.money.platform_statement import name_of
from crowd.money.run import look
from crowd.recruiting.publishing import close, publish_posting
from crowd.rehearsal import SIMULATORS, RunningSimulator
from crowd.rehearsal.clock import Clock
from crowd.rehearsal.demo.folder_and_port import check_port
from crowd.rehearsal.demo.server import serving
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.visitors import Control, Visit, send_crowd
from experiments.errors import StudyError
from experiments.models import Study
from experiments.paradigms import design_of, get_paradigm
from experiments.selectors import definition_of
from experiments.sessions.pseudonyms import namer
from experiments.simulation import HEADING
from experiments.simulation.people import Person
from experiments.simulation.population import parse_mix, populate, usual_mix
from experiments.terminal import Terminal

ROUNDS_MAX = 25
PUBLISH_TRIES = 10
WORK_IS_IN_S = 3600.0
"""After this time the platform has processed every entered code, and pays."""
CONFIRMS_NOTHING = "SETTLE_CONFIRM_CENTS=1000000000"
"""No person is there to type a total."""
RESEARCHER = "rehearsal"
KNOWN = "The simulator does not show it after the waiting time of a live study."


class RehearsalFailed(StudyError):
    """The rehearsal did not end as it should; the message says what differs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One person's money: what the ledger says was sent, and what the platform really paid."""

    name: str
    ledger: tuple[int, ...]
    platform: tuple[int, ...]


def rehearse(
    study: Study, platform: str, terminal: Terminal, *, people: int, seed: int, faults: float, port: int
) -> None:
    """Publishes on a simulated platform, sends people, pays them, and compares both sides to the cent.

    Raises RehearsalFailed if the ledger and the platform differ.
    """
    check_port(port)
    simulate = SIMULATORS.load(platform)
    url = f"http://127.0.0.1:{port}"
    terminal.line(f"{HEADING} Simulated {platform}, simulated money; {faults:.0%} of its calls fail.")
    with (
        simulate(
            _fresh(study, seed),
            timezone.now(),
            Faults(seed, faults),
            currency=definition_of(study).reward.currency,
        ) as simulated,
        serving(port, url),
        moving(simulated) as time,
    ):
        posting = _publish_with_retries(study, platform, simulated.url)
        try:
            lines = _rehearse_posting(posting, simulated, time, url, people, seed, terminal)
            close(posting, "rehearsal")
        finally:
            _end(posting)
    wrong = [line.name for line in lines if line.ledger != line.platform]
    if wrong:
        raise RehearsalFailed(
            f"{len(wrong)} people were paid otherwise than the ledger says: {', '.join(wrong[:10])}."
        )


def _rehearse_posting(
    posting: Posting,
    simulated: RunningSimulator,
    time: Time,
    url: str,
    people: int,
    seed: int,
    terminal: Terminal,
) -> list[Comparison]:
    """Sends the people, pays them, and compares."""
    study = posting.study
    visits = send_crowd(
        simulated.url,
        url,
        study.slug,
        posting.platform,
        _people(study, people, seed),
        {question.id: question.answer for question in definition_of(study).quiz},
        progress=terminal.progress,
        before_take=lambda: keep_time(simulated.clock),
    )
    terminal.table("What they did", ("habit", "how it ended", "people"), visit_rows(visits))
    time.pass_by(WORK_IS_IN_S)
    by_name = _settle(posting, time)
    if by_name:
        terminal.line(
            f"{by_name} bonuses without an answer were not on the platform's list, and were sent again in "
            f"the name of {RESEARCHER!r}. With real money a person asks the platform first."
        )
    simulated.faults.share = 0.0
    look(posting, everything=True)
    with httpx.Client() as client:
        truth = Control(simulated.url, client)("state")
    lines = compare(posting, truth["submissions"])
    _tell(terminal, posting, truth, lines)
    return lines


def keep_time(clock: Clock) -> None:
    """Moves a simulator's clock, which does not run by itself, up to ours: its signatures are checked here by
    our clock, and are valid for two minutes."""
    with clock.lock:
        clock.advance(max(0.0, (timezone.now() - clock.now()).total_seconds()))


def _fresh(study: Study, seed: int) -> int:
    """A simulator's ids come from its seed, and people of an earlier rehearsal have taken part."""
    earlier = Posting.objects.filter(study=study, mode=Posting.Mode.REHEARSAL).count()
    return seed * 10_000 + earlier


def _end(posting: Posting) -> None:
    """The simulator ends with this command, so no more people can arrive by this posting, in any state that
    it reports."""
    Posting.objects.filter(id=posting.pk).exclude(state=Posting.State.CLOSED).update(
        state=Posting.State.CLOSED, closed_at=timezone.now()
    )


def _publish_with_retries(study: Study, platform: str, site: str) -> Posting:
    """Publishes in spite of faults: a repeat finds what exists."""
    for tries_left in reversed(range(PUBLISH_TRIES)):
        try:
            return publish_posting(study, platform, "rehearsal", site=site, by="rehearsal")
        except Exception as error:
            if not tries_left or isinstance(error, StudyError):
                raise
    raise AssertionError("the last try returns or raises")


def _people(study: Study, count: int, seed: int) -> Sequence[Person]:
    mix = usual_mix(get_paradigm(study.paradigm), design_of(definition_of(study)))
    return populate(parse_mix(mix), count, seed)


def visit_rows(visits: Sequence[Visit]) -> list[tuple[str, str, int]]:
    counted = Counter(
        (visit.habit or "-", visit.outcome.status if visit.outcome else "no place left") for visit in visits
    )
    return [(habit, status, count) for (habit, status), count in sorted(counted.items())]


@dataclass(frozen=True, slots=True)
class Time:
    """The clock of a simulated platform and ours, which only move together: a rehearsal waits as long as a
    live study does, and no person has to."""

    simulated: RunningSimulator
    file: Path

    def pass_by(self, seconds: float) -> None:
        self.simulated.clock.advance(seconds)
        self.file.write_text(str(float(self.file.read_text()) + seconds))


@contextmanager
def moving(simulated: RunningSimulator) -> Iterator[Time]:
    """Our clock of payments, in this process and in those that it starts, moves with the platform's."""
    before = settings.CLOCK_FILE
    with TemporaryDirectory() as folder:
        file = Path(folder, "seconds")
        file.write_text("0")
        settings.CLOCK_FILE = str(file)
        try:
            yield Time(simulated, file)
        finally:
            settings.CLOCK_FILE = before


def _settle(posting: Posting, time: Time) -> int:
    """Runs the same command as a researcher, until nothing is left to pay or to reconcile, with the waiting
    times of a live study. Returns how many bonuses had to be sent again by name.
    """
    settle = ["manage.py", "settle", posting.study.slug, "--platform", posting.platform]
    command = ["env", CONFIRMS_NOTHING, f"CLOCK_FILE={time.file}", sys.executable, *settle]
    command += ["--mode", "rehearsal", "--yes", "--by", RESEARCHER]
    again: list[str] = []
    said, by_name = "", 0
    for _ in range(ROUNDS_MAX):
        words = ["--again", *again, "--reason", KNOWN] if again else []
        run = subprocess.run([*command, *words], cwd=settings.BASE_DIR, capture_output=True, text=True)
        said = (run.stderr or run.stdout)[-2000:]
        if run.returncode == 0:
            return by_name
        by_name += len(again) if "Made due again" in run.stdout else 0
        time.pass_by(grace(posting).total_seconds() + 1)
        again = needs_a_name(posting)
    raise RehearsalFailed(f"settle did not come to an end in {ROUNDS_MAX} runs. It said last:\n{said}")


def needs_a_name(posting: Posting) -> list[str]:
    """The participants whose bonuses got no answer, and who must be named before these are sent again."""
    missing = [hand for hand in hands_of(posting) if hand.kind == "missing"]
    rows = Submission.objects.filter(pk__in=[hand.submission for hand in missing])
    return sorted(name_of(row) for row in rows.select_related("posting__study", "session__participant"))


def compare(posting: Posting, truth: Mapping[str, Any]) -> list[Comparison]:
    """Per submission of the platform: the cents sent by the ledger, and the cents really paid."""
    sent: dict[str, list[int]] = {}
    names: dict[str, str] = {}
    name = namer(posting.study)
    for row in Submission.objects.filter(posting=posting).select_related("identity__participant"):
        if row.external_id and row.identity is not None:
            names[row.external_id] = name(row.identity.participant.pseudonym)
    paid = Payout.objects.filter(posting=posting, state=Payout.State.SENT)
    for submission, cents in paid.values_list("submission__external_id", "cents"):
        sent.setdefault(submission, []).append(cents)
    lines = []
    for submission in sorted({*truth, *sent}):
        there = truth.get(submission, {})
        rewards = int(there.get("reward_paid_cents", 0))
        amounts = [*([rewards] if rewards else []), *there.get("bonuses", [])]
        lines.append(
            Comparison(
                names.get(submission, "nobody here"),
                tuple(sorted(sent.get(submission, []))),
                tuple(sorted(amounts)),
            )
        )
    return lines


def _tell(
    terminal: Terminal, posting: Posting, truth: Mapping[str, Any], lines: Sequence[Comparison]
) -> None:
    currency = posting.currency
    states = Counter(
        Payout.objects.filter(posting=posting).values_list("kind", "state").order_by("kind", "state")
    )
    terminal.table(
        "The ledger",
        ("kind", "state", "payouts"),
        [(kind, state, count) for (kind, state), count in sorted(states.items())],
    )
    ledger, paid = sum(sum(line.ledger) for line in lines), sum(sum(line.platform) for line in lines)
    terminal.table(
        "Both sides",
        ("", "people paid", "amount"),
        [
            ("ledger: sent", sum(1 for line in lines if line.ledger), amount_of(ledger, currency)),
            ("platform: paid", sum(1 for line in lines if line.platform), amount_of(paid, currency)),
            ("difference", sum(line.ledger != line.platform for line in lines),
             amount_of(abs(ledger - paid), currency)),
        ],
    )  # fmt: skip
    met = truth.get("faults", {})
    terminal.line(f"Faults met: {', '.join(f'{n} {kind}' for kind, n in sorted(met.items())) or 'none'}.")
    _tell_hands(terminal, posting)


def _tell_hands(terminal: Terminal, posting: Posting) -> None:
    """What a researcher would have to do now, and who is unpaid."""
    hands = hands_of(posting)
    terminal.line(in_brief(posting, hands))
    for hand in hands:
        amount = "" if hand.cents is None else f", {amount_of(hand.cents, hand.currency)}"
        terminal.line(f"  {hand.who}{amount}: {hand.why} {hand.remedy}")
