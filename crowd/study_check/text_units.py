"""The texts that people read: whether the model reads all of them, and whether they have enough to mark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from experiments.definition.study import StudyDefinition
from experiments.drafting.material_set import MaterialSet
from stimuli.errors import first_of
from stimuli.explainers import is_recorded, open_explainer
from stimuli.predictors.text.units import cutter_name
from stimuli.store import Store
from stimuli.store.files import read_text, read_units

UNITS_PER_MARK = 3
"""With fewer units than so many times the marks, random marks often fall on those of the method."""


@dataclass(frozen=True, slots=True)
class TextLength:
    """A chosen text: `units` are what methods can mark, `unread` tokens what the model does not read."""

    item: str
    units: int
    unread: int


@dataclass(frozen=True, slots=True)
class TextLengths:
    """The chosen texts of a study, and the most marks that its methods set; 0 if they mark all units. `by`
    says what cut them, if the study declares its units.
    """

    texts: tuple[TextLength, ...] = ()
    marks: int = 0
    by: str = ""

    @property
    def warnings(self) -> Iterator[str]:
        """What a careful researcher would correct about the texts."""
        if cut := [text for text in self.texts if text.unread]:
            yield (
                f"{self._count(cut)} are longer than what the model reads, by up to "
                f"{max(text.unread for text in cut)} tokens ({_named(cut)}): people read what can never be "
                "marked; raise the predictor's max_tokens, take another model, or shorten these texts"
            )
        if single := [text for text in self.texts if text.units < 2]:
            yield (
                f"{self._count(single)} have one unit to be marked or none ({_named(single)}): every method "
                "and its control mark all of it; leave them out, declare other [stimuli] units, or take a "
                'model of smaller tokens (trained_text: pieces = "letters")'
            )

    @property
    def lines(self) -> Iterator[str]:
        """What the units are, if they are declared, and which texts are short for the marks."""
        if self.by:
            counts = sorted(text.units for text in self.texts)
            yield f"Units of texts: {self.by}; {counts[0]} to {counts[-1]} in a text."
        least = UNITS_PER_MARK * self.marks
        if few := [text for text in self.texts if 2 <= text.units < least]:
            yield (
                f"{self._count(few)} have fewer than {least} units to be marked, {UNITS_PER_MARK} times the "
                f"{self.marks} marks ({_named(few)}): random marks often fall on those of a method."
            )

    def _count(self, texts: list[TextLength]) -> str:
        return f"{len(texts)} of {len(self.texts)} texts"


def text_lengths(definition: StudyDefinition, gathered: MaterialSet, store: Store) -> TextLengths:
    """Of each chosen text once, as its first model reads it; nothing if people look at pictures."""
    texts: dict[str, TextLength] = {}
    for source, chosen in gathered.material.chosen.items():
        predictor: Any = gathered.opened[source].predictor
        if predictor.modality != "text":
            continue
        for item in chosen:
            if item.key not in texts:
                key = gathered.views[source][item.key].image_key
                text, units = read_text(store, key), read_units(store, key)
                count = len(predictor.words(text) if units is None else units)
                texts[item.key] = TextLength(item.key, count, predictor.unread(text))
    by = cutter_name(definition.stimuli.units or "legacy") if texts else ""
    return TextLengths(tuple(texts.values()), max(_marks(definition), default=0), by)


def _marks(definition: StudyDefinition) -> Iterator[int]:
    """How many units each method marks at most, if it says so; a control marks as many as its method."""
    for condition in definition.conditions:
        if condition.explainer is not None and not is_recorded(condition.explainer.component()):
            method: Any = open_explainer(condition.explainer.component())
            yield getattr(getattr(method, "method", method), "top", 0)


def _named(texts: list[TextLength]) -> str:
    return first_of([text.item for text in texts])
