"""Explanations of a study that is only planned, as people would see them: small, in rows, what is striking
first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from crowd.study_check.stimulus_quality import Quality, QualitySample
from experiments.definition.study import StudyDefinition
from experiments.drafting.material_set import MaterialSet
from stimuli.errors import StimulusError
from stimuli.quality.explanation_form import form_of
from stimuli.render.explanation_drawing import draw
from stimuli.store import Store
from stimuli.types import Progress

WORDS = {"empty": "empty", "lattice": "lattice {:.2f}", "cut away": "cut away {:.2f}"}


@dataclass(frozen=True, slots=True)
class Small:
    """An explanation at reservoir size: a PNG file, or a text in pieces with their shades (0-1). `words` say
    what is striking of it; empty if nothing is.
    """

    item: str
    truth: str
    answer: str
    png: bytes = b""
    pieces: tuple[tuple[str, float], ...] = ()
    words: str = ""

    @property
    def is_empty(self) -> bool:
        return self.words == WORDS["empty"]

    @property
    def is_right(self) -> bool:
        return self.truth == self.answer


def thumbnails(
    definition: StudyDefinition,
    gathered: MaterialSet,
    store: Store,
    looked: QualitySample,
    measured: Sequence[Quality],
    progress: Progress,
) -> dict[str, tuple[Small, ...]]:
    """All that was looked at, by condition: empty ones first, then others that are striking, then the rest by
    answer. Drawn into `store`; what cannot be drawn is left out, for the build names it."""
    striking = {
        (s.item, quality.condition): WORDS[s.kind].format(s.value)
        for quality in measured
        for s in quality.striking
    }
    sources = {condition.name: condition.source for condition in definition.conditions}
    items = {
        (source, item.key): item for source, chosen in gathered.material.chosen.items() for item in chosen
    }
    rows: dict[str, list[Small]] = {quality.condition: [] for quality in measured}
    for done, ((key, name), spec) in enumerate(looked.shown.items(), 1):
        made, item = looked.made.get(spec.attribution_key), items[sources[name], key]
        with suppress(StimulusError):
            if made is not None and name in rows:
                file = str(draw(spec, made, store).explanation_tile_file)
                png, pieces = _content(file, store.get(file))
                empty = form_of(made, definition.render.spec(), ()).is_flat
                words = WORDS["empty"] if empty else striking.get((key, name), "")
                rows[name].append(Small(key, item.truth, item.predicted, png, pieces, words))
        progress("drawing thumbnails", done, len(looked.shown))
    return {name: tuple(sorted(row, key=_first)) for name, row in rows.items()}


def _first(small: Small) -> tuple[bool, bool, str, str]:
    return not small.is_empty, not small.words, small.answer, small.item


def _content(file: str, data: bytes) -> tuple[bytes, tuple[tuple[str, float], ...]]:
    if not file.endswith(".json"):
        return data, ()
    tokens: Sequence[Mapping[str, object]] = json.loads(data)["tokens"]
    return b"", tuple((str(token["text"]), float(str(token["shade"]))) for token in tokens)
