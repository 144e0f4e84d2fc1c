"""Raw answers and marks of all sources in one form: solutions, lures, and regions without a figure.

One path for people and models. What a source gave is an answer and a mark: the cells that a person painted,
or how strongly a map marks each cell, cut to the area of a mark that a person painted for this answer. From
there on nothing knows any more where a mark came from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.design.rng import Streams
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms.base import BadDesign, SolvedUse
from stimuli.regions.grid import cells_of, mask_of, strongest
from stimuli.regions.mark_smoothing import RegionKind, shape_region
from stimuli.spec import content_key
from stimuli.types import Mask, Use

KEY_LENGTH = 24
REVIEWED: tuple[Use, ...] = ("task", "known")
"""What a lead may meet a solution of."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How marks become regions. `abstain_below`: a model whose confidence (0-1) is below it says that it
    cannot say; 0: it always answers."""

    region: RegionKind = "hull"
    smooth_cells: int = 1
    abstain_below: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class SolvedItem(NamedTuple):
    """An item of the stage, as far as solutions depend on it."""

    key: str
    truth: str
    group: str
    use: Use


class LabelledItem(NamedTuple):
    """An item with the answers that its annotators and the model give; no annotator is named."""

    key: str
    truth: str
    predicted: str
    labels: tuple[str, ...]
    use: Use


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What a source gave for an item; `number` counts its several answers to one item.

    `mark` bool (side, side): the cells that were painted. Numbers (side, side): how strongly each cell is
    marked, to be cut; None: nothing. `confidence` 0-1 of a model; people's is 1.
    """

    item: str
    source: str
    choice: str
    number: int
    mark: NDArray[Any] | None
    confidence: float = 1.0

    @property
    def is_painted(self) -> bool:
        return self.mark is not None and self.mark.dtype == np.bool_


@dataclass(frozen=True, slots=True)
class FrozenSolution:
    """A solution as it is stored. `region` are ascending cells, None if there is none; `use` and `donor` as
    of `Solution`; `made` says how the region came about."""

    key: str
    item: str
    source: str
    choice: str
    region: tuple[int, ...] | None
    use: SolvedUse = "solution"
    donor: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)


def key_of(*names: object) -> str:
    """A key that names a solution and tells nothing."""
    return content_key([str(name) for name in names])[:KEY_LENGTH]


def freeze_given(
    given: Sequence[SourceAnswer],
    items: Sequence[SolvedItem],
    settings: Settings,
    name: str,
    streams: Streams,
) -> tuple[FrozenSolution, ...]:
    """Every solution, lure and transplant of a stage called `name`. Raises BadDesign for an answer of a model
    for which no mark was painted."""
    solutions = tuple(solutions_of_given(given, settings, name, streams))
    by_key = {item.key: item for item in items}
    made = [*solutions]
    for source in sorted({solution.source for solution in solutions}):
        marked = [s for s in solutions if s.source == source and s.region and by_key[s.item].use in REVIEWED]
        answers = defaultdict(set)
        for solution in solutions:
            if solution.source == source:
                answers[solution.item].add(solution.choice)
        for item in items:
            if item.use in REVIEWED and item.key in answers:
                made.extend(_lure(item, source, answers[item.key], marked, by_key, name, streams))
            elif item.use == "blank":
                made.extend(_alone(item, source, marked, name, streams))
    return tuple(made)


def solutions_of_given(
    given: Sequence[SourceAnswer], settings: Settings, name: str, streams: Streams
) -> Iterator[FrozenSolution]:
    """What each source really gave, in the order of `given`."""
    painted = painted_by_choice(given, name)
    for each in given:
        key = key_of(name, "solution", each.item, each.source, each.number)
        choice = CANNOT_SAY if each.confidence < settings.abstain_below else each.choice
        if choice == CANNOT_SAY or each.mark is None:
            yield FrozenSolution(key, each.item, each.source, choice, None)
            continue
        mark, made = _cut(each, choice, painted, streams)
        region = shape_region(mark, settings.region, settings.smooth_cells)
        made |= {"marked": int(mark.sum()), "area": int(region.sum())}
        yield FrozenSolution(key, each.item, each.source, choice, cells_of(region), made=made)


def painted_by_choice(given: Sequence[SourceAnswer], name: str) -> dict[str, list[tuple[int, str]]]:
    """Answer -> (area in cells, key of the solution) of every mark that was painted for it."""
    painted: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for each in given:
        if each.mark is not None and each.is_painted and each.choice != CANNOT_SAY:
            key = key_of(name, "solution", each.item, each.source, each.number)
            painted[each.choice].append((int(each.mark.sum()), key))
    return {choice: sorted(areas) for choice, areas in painted.items()}


def solutions_of_labels(
    items: Sequence[LabelledItem],
    answers: Sequence[str],
    people: str,
    models: Sequence[str],
    name: str,
    streams: Streams,
) -> tuple[FrozenSolution, ...]:
    """Solutions without regions, for a study that starts from labels: those of every annotator, or the truth
    of an item that has none, as the source `people`; and the predicted label as each of `models`. Each
    source has one lure per item: a false answer that it did not give, the same for all if that can be."""
    made = []
    for item in items:
        if item.use not in REVIEWED:
            continue
        for source in (people, *models):
            labels = (item.labels or (item.truth,)) if source == people else (item.predicted,)
            for number, label in enumerate(labels):
                key = key_of(name, "solution", item.key, source, number)
                made.append(FrozenSolution(key, item.key, source, label, None))
            false = [c for c in _drawn_order(item.key, answers, streams) if c not in (item.truth, *labels)]
            if false:
                key = key_of(name, "lure", item.key, source)
                made.append(FrozenSolution(key, item.key, source, false[0], None, "lure"))
    return tuple(made)


def region_mask(solution: FrozenSolution, side: int) -> Mask:
    """The region of a solution, bool (side, side); empty if it has none."""
    return mask_of(solution.region or (), side)


def _cut(
    each: SourceAnswer, choice: str, painted: Mapping[str, Sequence[tuple[int, str]]], streams: Streams
) -> tuple[Mask, dict[str, Any]]:
    """The mark as cells. That of a map has the area of a mark that was painted for this answer, drawn for the
    item: the same for every method."""
    assert each.mark is not None
    if each.is_painted:
        return np.asarray(each.mark, np.bool_), {}
    if choice not in painted:
        raise BadDesign(
            f"{each.source} answers {choice!r} to {each.item!r}, and no mark was painted for this answer, so "
            "that no area is known for it: have more tasks solved that show it"
        )
    area, key = painted[choice][int(streams("area", each.item).integers(len(painted[choice])))]
    mark = strongest(each.mark, area)
    return mark, {"area_of": key, "threshold": float(each.mark[mark].min())}


def _lure(
    item: SolvedItem,
    source: str,
    given: set[str],
    marked: Sequence[FrozenSolution],
    by_key: Mapping[str, SolvedItem],
    name: str,
    streams: Streams,
) -> Iterator[FrozenSolution]:
    """A false answer with the region of another solution of the same source that gave it; none if the source
    gave none. The answers are tried in an order drawn for the item, so that sources get the same if they
    can."""
    offered: dict[str, list[FrozenSolution]] = defaultdict(list)
    for solution in marked:
        if by_key[solution.item].group != item.group:
            offered[solution.choice].append(solution)
    for choice in _drawn_order(item.key, offered, streams):
        if choice == item.truth or choice in given:
            continue
        drawn = offered[choice][int(streams("donor", item.key, source).integers(len(offered[choice])))]
        key = key_of(name, "lure", item.key, source)
        yield FrozenSolution(key, item.key, source, choice, drawn.region, "lure", drawn.key)
        return


def _drawn_order(item: str, answers: Iterable[str], streams: Streams) -> list[str]:
    """The answers in an order drawn for the item, in which an answer that is added moves no other."""
    return sorted(answers, key=lambda choice: (streams("lure", item, choice).random(), choice))


def _alone(
    item: SolvedItem, source: str, marked: Sequence[FrozenSolution], name: str, streams: Streams
) -> Iterator[FrozenSolution]:
    """Answer and region of another solution of the source, on an item that shows no answer. Its items are
    tried in an order drawn for the blank one, so that sources get that of the same item if they can."""
    if not marked:
        return
    rank = {other: streams("alone", item.key, other).random() for other in {s.item for s in marked}}
    drawn = min(marked, key=lambda solution: (rank[solution.item], solution.key))
    key = key_of(name, "alone", item.key, source)
    yield FrozenSolution(key, item.key, source, drawn.choice, drawn.region, "alone", drawn.key)
