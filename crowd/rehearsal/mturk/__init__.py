"""A simulated Mechanical Turk on this machine, made from the service model of botocore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.mturk.api import Api
from crowd.rehearsal.mturk.control import TurkControl
from crowd.rehearsal.mturk.worker_pages import Pages
from crowd.rehearsal.mturk.world import TurkOptions, TurkWorld
from crowd.rehearsal.platform_control import PREFIX
from crowd.rehearsal.serving import Answer, IncomingRequest, serving

__all__ = ["START", "TurkOptions", "TurkSimulator", "simulate", "simulator"]

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
ACCOUNTS = {"rehearsal": "rehearsal"}


class TurkSimulator(Api):
    """One running platform. `control` has the verbs; `log` every API call in order of effect."""

    def __init__(self, world: TurkWorld, faults: Faults, accounts: Mapping[str, str]) -> None:
        super().__init__(world, faults, accounts)
        self.control = TurkControl(world, faults)
        self.pages = Pages(self.control)
        self.url = ""

    @property
    def clock(self) -> Clock:
        return self.world.clock

    def answer(self, request: IncomingRequest) -> Answer | None:
        """Answers every request to this platform."""
        if request.path.startswith(PREFIX):
            return self.control.answer(request)
        if request.path == "/" and request.method == "POST":
            return self.call(request)
        return self.pages.answer(request)


@contextmanager
def simulator(
    seed: int = 0,
    start: datetime = START,
    faults: Faults | None = None,
    public: str = "",
    *,
    port: int = 0,
    options: TurkOptions = TurkOptions(),  # noqa: B008 - a frozen value
    accounts: Mapping[str, str] = ACCOUNTS,
) -> Iterator[TurkSimulator]:
    """Serves a simulated Mechanical Turk until the block ends. `public` is its address for others, if it
    differs from the listening address."""
    running = TurkSimulator(TurkWorld(Clock(start), seed, options), faults or Faults(seed), accounts)
    with serving(running.answer, port) as url:
        running.url = running.control.url = public or url
        yield running


def simulate(
    seed: int, start: datetime, faults: Faults, *, currency: str = "", port: int = 0
) -> AbstractContextManager[TurkSimulator]:
    """As the table of simulators asks for it. Mechanical Turk pays in one currency."""
    return simulator(seed, start, faults, port=port)
