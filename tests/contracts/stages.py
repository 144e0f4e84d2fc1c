"""A platform under test: its real adapter, its simulator over real HTTP, and the simulator's true state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from crowd.platforms import entry_of, service_class
from crowd.platforms.base import (
    Account,
    Entry,
    ListedSubmission,
    Outcome,
    Payment,
    PlatformPosting,
    PostingSpec,
    Service,
    Settlement,
    Site,
    Unread,
)
from crowd.rehearsal import mturk, prolific
from crowd.rehearsal.faults import Fault, Faults
from crowd.rehearsal.mturk.records import TurkRefusal
from crowd.rehearsal.mturk.request_shapes import read

REFERENCE = "wolf-or-husky-0a1b2c"
CODES: dict[str, str] = {
    "complete": "CODECOMPLETE",
    "failed_checks": "CODECHECKS",
    "screened": "CODESCREENED",
    "declined": "CODEDECLINED",
    "device": "CODEDEVICE",
    "turned_away": "CODETURNED",
    "failure": "CODEFAILURE",
    "withdrawn": "CODEWITHDRAWN",
}
SPEC = PostingSpec(
    reference=REFERENCE,
    title="Can you predict the machine?",
    description="Look at pictures and say what a program will answer.",
    url="https://lab.example/join/wolf-or-husky/?via=0123456789",
    places=20,
    reward_cents=200,
    currency="GBP",
    expected_minutes=7,
    maximum_minutes=30,
    codes=cast(Mapping[Outcome, str], CODES),
    screened_cents=200,
    turned_away_cents=200,
    withdrawn="full",
    bonus_max_cents=55,
)
REWARD = 200
MESSAGE = (
    "You failed two instructed checks: item 3 asked for Never, and item 9 asked for Always. "
    "You chose other answers."
)
"""It is long enough for every platform and names the failed checks."""
SETTLE_S = 60.0
"""Time after which the simulators have done their delayed work."""


@dataclass(frozen=True)
class Case:
    """How one platform differs from the others. `reviewed`, `rejected`: what it calls these states."""

    name: str
    simulator: Callable[..., AbstractContextManager[Any]]
    spec: PostingSpec
    account: Callable[[str], Account]
    handle: Callable[[PlatformPosting], str]
    mark: str
    reviewed: str
    approved: str
    rejected: str
    watch: Callable[[Any, Any], list[str]]
    """A list that fills with the requests that break the platform's own description."""


def _watched_by_schema(sim: Any, service: Any) -> list[str]:
    """The simulator of Prolific compares every body with the documented schema."""
    violations: list[str] = sim.world.violations
    return violations


def _watched_by_model(sim: Any, service: Any) -> list[str]:
    """Every request of the real client, read with botocore's service model just before it leaves."""
    errors: list[str] = []

    def check(request: Any, **_: Any) -> None:
        operation = request.headers["X-Amz-Target"].decode().partition(".")[2]
        try:
            read(operation, request.body)
        except TurkRefusal as error:
            errors.append(f"{operation}: {error}")

    service.wire.client.meta.events.register("before-send.mturk", check)
    return errors


def settled(results: Sequence[Settlement]) -> list[str]:
    return [result.state for result in results]


def _rehearsal(url: str) -> Account:
    secret = "rehearsal"
    return Account(
        Site("rehearsal", url), token=secret, workspace=secret, project=secret, key_id=secret, secret=secret
    )


def _mturk(batch: str) -> Case:
    return Case(
        name="mturk",
        simulator=mturk.simulator,
        spec=replace(SPEC, currency="USD", options={"batch": batch}),
        account=_rehearsal,
        handle=lambda posted: str(posted.facts["hit_type"]),
        mark="annotation",
        reviewed="Submitted",
        approved="Approved",
        rejected="Rejected",
        watch=_watched_by_model,
    )


CASES = {
    "prolific": Case(
        name="prolific",
        simulator=prolific.simulator,
        spec=SPEC,
        account=_rehearsal,
        handle=lambda posted: posted.external_id,
        mark="internal_name",
        reviewed="AWAITING REVIEW",
        approved="APPROVED",
        rejected="REJECTED",
        watch=_watched_by_schema,
    ),
    "mturk in nines": _mturk("nine"),
    "mturk in one": _mturk("one"),
}


@dataclass
class Stage:
    """One simulator with one account on it."""

    case: Case
    sim: Any
    service: Service
    entry: Entry
    site: Site
    waited_s: list[float] = field(default_factory=list)

    @property
    def spec(self) -> PostingSpec:
        return self.case.spec

    def act(self, verb: str, **members: Any) -> dict[str, Any]:
        return dict(self.sim.control(verb, **members))

    def wait(self, seconds: float) -> None:
        self.waited_s.append(seconds)
        self.sim.clock.advance(seconds)

    def fail(self, *faults: Fault) -> None:
        """The fault of each of the next calls; an empty fault lets the call succeed."""
        self.sim.faults.forced = list(faults)

    def fail_at(self, number: int, fault: Fault) -> None:
        """`number` calls succeed, then one fails."""
        calm: list[Fault] = [""]
        self.fail(*calm * number, fault)

    def truth(self, submission: str) -> dict[str, Any]:
        state: dict[str, Any] = self.act("state")["submissions"][submission]
        return state

    def spent(self) -> int:
        state = self.act("state")
        return int(state["initial_balance"]) - int(state["balance"])

    def postings(self) -> list[dict[str, Any]]:
        """The postings on the platform under our reference."""
        postings = self.act("state")["postings"].values()
        return [posting for posting in postings if str(posting[self.case.mark]).startswith(REFERENCE)]

    def places(self) -> int:
        return sum(posting["places"] for posting in self.postings())

    def take(self, posted: PlatformPosting) -> dict[str, Any]:
        return self.act("take", posting=self.case.handle(posted))

    def worked(self, posted: PlatformPosting, count: int, outcome: Outcome = "complete") -> list[str]:
        """`count` people take a place and hand in their work; their submissions, which await a decision."""
        taken = [self.take(posted)["submission"] for _ in range(count)]
        for submission in taken:
            self.act("complete", submission=submission, code=CODES[outcome])
        self.sim.clock.advance(SETTLE_S)
        return taken

    def rows(self, posted: PlatformPosting) -> list[ListedSubmission]:
        """What the platform lists; every row can be read."""
        listed = list(self.service.submissions(posted))
        assert [row for row in listed if isinstance(row, Unread)] == []
        return [row for row in listed if not isinstance(row, Unread)]

    def listed(self, posted: PlatformPosting) -> dict[str, ListedSubmission]:
        return {listed.submission: listed for listed in self.rows(posted)}

    def shown(self, posted: PlatformPosting, submissions: Sequence[str]) -> dict[str, list[int]]:
        """The bonuses on the platform's statement, in cents: of each submission that was asked for."""
        answers = list(self.service.statement(posted, submissions))
        assert [answer for answer in answers if isinstance(answer, Unread)] == []
        return {
            answer.submission: sorted(line.cents for line in answer.lines for _ in range(line.count))
            for answer in answers
            if not isinstance(answer, Unread)
        }

    def payments(
        self, posted: PlatformPosting, submissions: Sequence[str], cents: int = 55, tag: str = "r"
    ) -> list[Payment]:
        listed = self.listed(posted)
        return [
            Payment(
                f"{tag}{number:04d}",
                submission,
                listed[submission].person,
                cents,
                "Answers that match the model",
            )
            for number, submission in enumerate(submissions)
        ]

    def bonuses(self, submissions: Sequence[str]) -> list[list[int]]:
        """The bonuses that each person really got."""
        return [list(self.truth(submission)["bonuses"]) for submission in submissions]


@contextmanager
def stage(case: Case, faults: Faults | None = None, seed: int = 7) -> Iterator[Stage]:
    with case.simulator(seed=seed, faults=faults) as sim:
        account = case.account(sim.url)
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            sim.clock.advance(seconds)

        service: Any = service_class(case.name)(account, wait, sim.clock.seconds)
        violations = case.watch(sim, service)
        try:
            yield Stage(case, sim, service, entry_of(case.name, {}), account.site, waits)
        finally:
            service.disconnect()
        assert violations == []
