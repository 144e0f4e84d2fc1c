"""Simulated people: the kinds there are, and the words that must stand wherever their numbers are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.registry import Table

if TYPE_CHECKING:
    from experiments.simulation.people import Person

HEADING = "Computational observers, not people."
SPEECH_MARK = "[simulated]"
"""Stands at the start of everything that a simulated person writes."""

PEOPLE: Table[type[Person]] = Table(
    "kind of simulated person",
    {
        "learner": "experiments.simulation.learner:Learner",
        "exemplar": "experiments.simulation.observers:Exemplar",
        "prototype": "experiments.simulation.observers:Prototype",
        "one_reason": "experiments.simulation.observers:OneReason",
        "word_exemplar": "experiments.simulation.readers:WordExemplar",
        "word_prototype": "experiments.simulation.readers:WordPrototype",
        "word_reason": "experiments.simulation.readers:WordReason",
        "rater": "experiments.simulation.raters:Rater",
        "plate_reader": "experiments.simulation.plate_reader:PlateReader",
        "weak_reader": "experiments.simulation.plate_reader:WeakReader",
        "guesser": "experiments.simulation.people:Guesser",
        "careless": "experiments.simulation.people:Careless",
        "leaver": "experiments.simulation.leaver:Leaver",
    },
)
"""Kinds that take a study over HTTP."""

OBSERVERS = ("exemplar", "prototype", "one_reason")
"""Those that stand side by side in every run; `learner` is version 1, kept for what was run with it."""


TEXT_OBSERVERS = ("word_exemplar", "word_prototype", "word_reason")
"""Those that stand side by side on texts."""
RATERS = ("rater",)
"""The observer of explanations, if nothing is right or wrong."""


def person_class(kind: str) -> type[Person]:
    """The class of a kind of person; UnknownName lists the known ones."""
    return PEOPLE.load(kind)
