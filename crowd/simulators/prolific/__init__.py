"""A simulated Prolific: studies, submissions, bonuses and webhooks as documented, over real HTTP."""

from crowd.simulators.prolific.simulation import START, Simulator, simulator
from crowd.simulators.prolific.world import REHEARSAL, Options

__all__ = ["REHEARSAL", "START", "Options", "Simulator", "simulator"]
