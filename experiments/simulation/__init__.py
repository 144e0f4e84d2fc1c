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

KINDS_SAID = {
    "learner": "compares with all examples, evenly (the first observer, kept for earlier runs)",
    "exemplar": "remembers every example, answers as the most similar ones",
    "prototype": "remembers the average of each answer's examples, answers as the nearer one",
    "one_reason": "looks for the one feature that told the examples apart best",
    "word_exemplar": "remembers every example text, answers as the most similar ones",
    "word_prototype": "adds up what words and endings say for each answer",
    "word_reason": "looks for the one word or ending that told the examples apart best",
    "rater": "rates by how much is marked, in how many pieces, and where",
    "plate_reader": "reads colour plates; few have eyes that are weak for red or green",
    "weak_reader": "reads colour plates with eyes that are weak for red or green",
    "guesser": "answers at random and fast, reads most checks",
    "careless": "presses one key or is away, misses most checks",
    "leaver": "closes the page in the middle",
}
"""What each kind does, for who never read of them; docs/science.md has it whole."""
OBSERVERS = ("exemplar", "prototype", "one_reason")
"""Those that stand side by side in every run; `learner` is version 1, kept for what was run with it."""


TEXT_OBSERVERS = ("word_exemplar", "word_prototype", "word_reason")
"""Those that stand side by side on texts."""
RATERS = ("rater",)
"""The observer of explanations, if nothing is right or wrong."""


def person_class(kind: str) -> type[Person]:
    """The class of a kind of person; UnknownName lists the known ones."""
    return PEOPLE.load(kind)
