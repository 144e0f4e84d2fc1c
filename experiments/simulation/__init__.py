"""Simulated people: the kinds there are, and the words that must stand wherever their numbers are shown."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.simulation.people import Person

HEADING = "Computational observers, not people."
SPEECH_MARK = "[simulated]"
"""Stands at the start of everything that a simulated person writes."""

PEOPLE = {
    "learner": "experiments.simulation.learner:Learner",
    "guesser": "experiments.simulation.people:Guesser",
    "careless": "experiments.simulation.people:Careless",
    "leaver": "experiments.simulation.people:Leaver",
}
"""Kinds that take a study over HTTP. Planted and ideal people know what never leaves the server: not here."""


def person_class(kind: str) -> type[Person]:
    """The class of a kind of person. Raises ValueError that names the known kinds."""
    if kind not in PEOPLE:
        raise ValueError(f"{kind!r} is no kind of simulated person; choose among {', '.join(PEOPLE)}.")
    module, _, name = PEOPLE[kind].partition(":")
    found: type[Person] = getattr(import_module(module), name)
    return found
