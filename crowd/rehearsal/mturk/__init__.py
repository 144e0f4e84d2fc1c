"""A simulated Mechanical Turk on this machine, made from the service model of botocore."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.mturk.api import Api
from crowd.rehearsal.mturk.control import PREFIX, Control, control_answer
from crowd.rehearsal.mturk.pages import Pages
from crowd.rehearsal.mturk.signing import Signatures
from crowd.rehearsal.mturk.world import Options, World
from crowd.rehearsal.serving import Answer, Asked, Call, serving

__all__ = ["START", "Options", "Simulator", "simulate", "simulator"]

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
ACCOUNTS = {"rehearsal": "rehearsal"}


@dataclass(slots=True)
class Simulator:
    """One running platform. `control` has the verbs; `log` every API call in order of effect."""

    world: World
    faults: Faults
    api: Api
    control: Control
    pages: Pages
    url: str = ""

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def log(self) -> list[Call]:
        return self.api.log

    @property
    def calls_count(self) -> int:
        return len(self.api.log)

    @property
    def before_reply(self) -> list[Callable[[Call], None]]:
        return self.api.before_reply

    def answer(self, request: Asked) -> Answer | None:
        """Answers every request to this platform."""
        if request.path.startswith(PREFIX):
            return control_answer(self.control, request)
        if request.path == "/" and request.method == "POST":
            return self.api.answer(request)
        return self.pages.answer(request)


@contextmanager
def simulator(
    seed: int = 0,
    start: datetime = START,
    faults: Faults | None = None,
    public: str = "",
    *,
    port: int = 0,
    options: Options = Options(),  # noqa: B008 - a frozen value
    accounts: Mapping[str, str] = ACCOUNTS,
) -> Iterator[Simulator]:
    """Serves a simulated Mechanical Turk until the block ends. `public` is its address for others, if it
    differs from the listening address."""
    world = World(Clock(start), seed, options)
    faulty = faults or Faults(seed)
    control = Control(world, faulty)
    running = Simulator(world, faulty, Api(world, faulty, Signatures(accounts)), control, Pages(control))
    with serving(running.answer, port) as url:
        running.url = control.url = public or url
        yield running


def simulate(
    seed: int, start: datetime, faults: Faults, *, currency: str = "", port: int = 0
) -> AbstractContextManager[Simulator]:
    """As the table of simulators asks for it. Mechanical Turk pays in one currency."""
    return simulator(seed, start, faults, port=port)
