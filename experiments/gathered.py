"""What is rendered of all that the models of a study were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from experiments.definition import ConditionTable
from experiments.dropping import Dropped
from experiments.looks import Asked
from experiments.paradigms.base import Aim, Material, Source, Surveyed
from stimuli.explainers import bound
from stimuli.render.recipe import Canvas
from stimuli.spec import Component

if TYPE_CHECKING:
    from stimuli.survey import PredictedItem


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that was looked for, of one item for one model. `item` and `view` are what that model says of
    it, with the copy's key; None if there is no such copy, and `record` then says why.
    """

    source: Source
    of: str
    aim: Aim
    record: Mapping[str, Any]
    item: Surveyed | None = None
    view: PredictedItem | None = None
    canvas: Canvas | None = None


@dataclass(frozen=True, slots=True)
class Gathered(Asked):
    """What is rendered of all that was asked. `recorded` names the stored explanation of each chosen item, by
    condition and key, of conditions whose explanations were made elsewhere. `canvases` are the pictures that
    people see of the chosen items, by source and key; none for texts, and none for a study of before they
    were other pictures than the views. `dropped` says which items were left out, and for which faults;
    None if the study does not ask for it. `copies` are the changed pictures that were looked for.
    """

    material: Material
    recorded: Mapping[str, Mapping[str, Component]] = field(default_factory=dict)
    canvases: Mapping[Source, Mapping[str, Canvas]] = field(default_factory=dict)
    dropped: Dropped | None = None
    copies: tuple[Copy, ...] = ()

    def view(self, source: Source, item: Surveyed) -> PredictedItem:
        """The stored view of a chosen item, with the class that is explained."""
        return replace(self.views[source][item.key], predicted=item.predicted, index=item.index)

    def explainers(
        self, condition: ConditionTable, views: Sequence[PredictedItem], seed: int
    ) -> Sequence[Component | None]:
        """What explains each of the chosen items under a condition, as their specs name it."""
        if condition.name in self.recorded:
            return [self.recorded[condition.name][view.key] for view in views]
        return bound(condition.explainer.component() if condition.explainer else None, views, seed)
