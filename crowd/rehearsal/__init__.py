"""Stateful servers that behave as the platforms do, over real HTTP, with their people: for rehearsals and
tests. Their money is simulated, and everything they print says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from stimuli.registry import Table

if TYPE_CHECKING:  # They import NumPy, which each demo would wait for, twice.
    from crowd.rehearsal.clock import Clock
    from crowd.rehearsal.faults import Faults


class RunningSimulator(Protocol):
    """One running simulator. `control` has the verbs by which people act: at least `people` and `state`."""

    url: str
    faults: Faults
    control: Any

    @property
    def clock(self) -> Clock: ...


Simulate = Callable[..., AbstractContextManager[RunningSimulator]]
"""Serves a simulated platform until the block ends: (seed, start, faults, *, currency, port). Its account is
in that currency if the platform has accounts in several."""

SIMULATORS: Table[Simulate] = Table(
    "simulated platform",
    {
        "prolific": "crowd.rehearsal.prolific:simulate",
        "mturk": "crowd.rehearsal.mturk:simulate",
    },
)
