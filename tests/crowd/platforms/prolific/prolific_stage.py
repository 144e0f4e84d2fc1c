"""A simulated Prolific with our market beside it, over real HTTP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from crowd.platforms.base import (
    Account,
    ListedSubmission,
    Payment,
    PlatformError,
    PlatformPosting,
    PostingSpec,
    Site,
    Unread,
)
from crowd.platforms.prolific.service import Prolific
from crowd.rehearsal import prolific
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.prolific import ProlificSimulator, ProlificWorldOptions
from crowd.rehearsal.serving import Call
from tests.crowd.platforms.prolific.prolific_spec import spec

Done = TypeVar("Done")


@contextmanager
def played(
    seed: int = 1, faults: Faults | None = None, **options: Any
) -> Iterator[tuple[ProlificSimulator, Prolific]]:
    """A simulator, and our market beside it. Waiting moves the simulator's clock."""
    with prolific.simulator(seed=seed, faults=faults, options=ProlificWorldOptions(**options)) as sim:
        with service_at(sim) as service:
            yield sim, service
        assert sim.world.violations == []


def service_at(sim: ProlificSimulator) -> Prolific:
    site = Site("rehearsal", sim.url)
    account = Account(site, token="rehearsal", workspace="rehearsal", project="rehearsal")
    return Prolific(account, sim.clock.advance, sim.clock.seconds)


def wanted(service: Prolific, places: int = 5, **changes: Any) -> PostingSpec:
    options = service.check_options(changes.pop("options", {}))
    return replace(spec(places), options=options, **changes)


def rows(service: Prolific, posted: PlatformPosting) -> list[ListedSubmission]:
    """What is listed; every row can be read."""
    listed = list(service.submissions(posted))
    assert [row for row in listed if isinstance(row, Unread)] == []
    return [row for row in listed if not isinstance(row, Unread)]


def finished(
    sim: ProlificSimulator, posted: PlatformPosting, count: int, outcome: str = "complete"
) -> list[Payment]:
    """`count` people take a place and enter the code of an outcome; a possible bonus payment for each."""
    payments = []
    for number in range(count):
        taken = sim.control.take(posting=posted.external_id)
        sim.control.complete(taken["submission"], spec().codes[outcome])  # type: ignore[index]
        payments.append(Payment(f"r{number}", taken["submission"], taken["person"], 100 + number, "bonus"))
    sim.clock.advance(60)
    return payments


def drafted(sim: ProlificSimulator, service: Prolific, wanted: PostingSpec) -> None:
    """Leaves a draft: the money goes away between making and opening it."""
    held = int(sim.control.state()["available"])

    def emptied(call: Call) -> None:
        if call.operation == "studies.create":
            sim.control.fund(-held)

    sim.before_reply.append(emptied)
    with pytest.raises(PlatformError, match="balance"):
        service.publish(wanted)
    sim.before_reply.clear()
    sim.control.fund(held)


def told(sim: ProlificSimulator, payment: Payment) -> dict[str, Any]:
    state: dict[str, Any] = sim.control.state()["submissions"][payment.submission]
    return state


def calls(sim: ProlificSimulator, ending: str) -> list[Call]:
    return [call for call in sim.log if f"{call.method} {call.path}".endswith(ending)]


def repeated(act: Callable[[], Done], times: int = 20) -> Done:
    """Repeats the call as long as the failure may pass."""
    for _ in range(times):
        try:
            return act()
        except PlatformError as error:
            assert not error.permanent or error.uncertain, error
    raise AssertionError("It never came through.")
