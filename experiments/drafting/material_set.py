"""What is rendered of all that the models of a study were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from experiments.definition.study import ConditionTable, StudyDefinition
from experiments.drafting.dropped_items import DroppedItems
from experiments.drafting.model_answers import ModelPredictions
from experiments.models import Item, Study
from experiments.paradigms.base import Aim, Material, Source, SurveyItem
from stimuli.explainers import bind_to_items
from stimuli.render.recipe import Canvas
from stimuli.spec import Component, StimulusSpec

if TYPE_CHECKING:
    from stimuli.spec_derivation import PredictedItem


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that was looked for, of one item for one model. `item` and `view` are what that model says of
    it, with the copy's key; None if there is no such copy, and `record` then says why.
    """

    source: Source
    of: str
    aim: Aim
    record: Mapping[str, Any]
    item: SurveyItem | None = None
    view: PredictedItem | None = None
    canvas: Canvas | None = None


@dataclass(frozen=True, slots=True)
class MaterialSet(ModelPredictions):
    """What is rendered of all that was asked. `recorded` names the stored explanation of each chosen item, by
    condition and key, of conditions whose explanations were made elsewhere. `canvases` are the pictures that
    people see of the chosen items, by source and key; none for texts, and none for a study of before they
    were other pictures than the views. `dropped` says which items were left out, and for which faults;
    None if the study does not ask for it. `copies` are the changed pictures that were looked for.
    """

    material: Material
    recorded: Mapping[str, Mapping[str, Component]] = field(default_factory=dict)
    canvases: Mapping[Source, Mapping[str, Canvas]] = field(default_factory=dict)
    dropped: DroppedItems | None = None
    copies: tuple[Copy, ...] = ()

    def view(self, source: Source, item: SurveyItem) -> PredictedItem:
        """The stored view of a chosen item, with the class that is explained."""
        return replace(self.views[source][item.key], predicted=item.predicted, index=item.index)

    def explainers(
        self, condition: ConditionTable, views: Sequence[PredictedItem], seed: int
    ) -> Sequence[Component | None]:
        """What explains each of the chosen items under a condition, as their specs name it."""
        if condition.name in self.recorded:
            return [self.recorded[condition.name][view.key] for view in views]
        return bind_to_items(condition.explainer.component() if condition.explainer else None, views, seed)

    def spec(
        self,
        definition: StudyDefinition,
        condition: ConditionTable,
        source: Source,
        view: PredictedItem,
        explainer: Component | None,
        canvas: Canvas | None,
    ) -> StimulusSpec:
        """The stimulus of an item as this study draws it."""
        from stimuli.spec_derivation import spec_for

        return spec_for(
            view,
            self.opened[source],
            explainer,
            definition.render.spec(),
            definition.seed,
            definition.stimuli.precision,
            definition.target_of(condition),
            canvas,
        )


def item_row(study: Study, item: SurveyItem, view: PredictedItem, **more: Any) -> Item:
    """The row of an item with its view, not yet stored."""
    return Item(
        study=study,
        key=item.key,
        truth=item.truth,
        predicted=item.predicted,
        confidence=item.confidence,
        group=item.group,
        use=item.use,
        logits=list(item.logits),
        image_key=view.image_key,
        width_px=view.width_px,
        height_px=view.height_px,
        **more,
    )
