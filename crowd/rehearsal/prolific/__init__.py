"""A simulated Prolific: studies, submissions, bonuses and webhooks as documented, over real HTTP."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime

from crowd.rehearsal.faults import Faults
from crowd.rehearsal.prolific.simulator_assembly import START, ProlificSimulator, simulator
from crowd.rehearsal.prolific.world import REHEARSAL, ProlificWorldOptions

__all__ = ["REHEARSAL", "START", "ProlificWorldOptions", "ProlificSimulator", "simulate", "simulator"]


def simulate(
    seed: int, start: datetime, faults: Faults, *, currency: str = "", port: int = 0
) -> AbstractContextManager[ProlificSimulator]:
    """As the table of simulators asks for it. The fees of every other seed have fractions."""
    options = ProlificWorldOptions(
        currency=currency or ProlificWorldOptions().currency, fee_parts=1 + seed % 2, newcomers_count=20_000
    )
    return simulator(seed, start, faults, port=port, options=options)
