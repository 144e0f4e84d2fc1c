"""What a stage that starts from solutions shows: the items that were solved, and a stimulus for each
solution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from experiments.drafting.model_answers import ModelPredictions
from experiments.errors import StudyError
from experiments.models import Item, Solution, Study
from experiments.paradigms.base import Survey
from experiments.paradigms.material import as_asked
from experiments.stages.solution_freeze import frozen_source, solved_in
from stimuli.explainers import RECORDED
from stimuli.regions.grid import mask_of
from stimuli.spec import Component, StimulusSpec
from stimuli.store import Store
from stimuli.store.files import keep_recorded
from stimuli.types import RegionAttribution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from experiments.definition.study import StudyDefinition
    from experiments.drafting.material_set import MaterialSet

Variant = tuple[str, str, str]
"""(item key, condition name, key of a solution; empty if a condition has one stimulus per item)."""


def only_solved(definition: StudyDefinition, asked: ModelPredictions) -> ModelPredictions:
    """What was asked of the items that the earlier stage has solutions of; all of it if there is none.
    StudyError if this study's dataset lacks some of them, or has others under their names."""
    earlier = frozen_source(definition)
    if earlier is None:
        return asked
    solved = {solution.item for solution in solved_in(earlier)}
    known = {item.key for survey in asked.surveys.values() for item in survey.items}
    if missing := sorted(solved - known):
        raise StudyError(
            f"{definition.slug!r} starts from the solutions of {earlier.slug!r}, and its dataset lacks "
            f"{len(missing)} of the {len(solved)} items that were solved, the first is {missing[0]!r}. Name "
            "the same dataset, with the same parameters."
        )
    if changed := sorted(solved & _changed_items(definition, earlier, asked)):
        raise StudyError(
            f"{definition.slug!r} starts from the solutions of {earlier.slug!r}, and {len(changed)} of the "
            f"{len(solved)} items that were solved have another picture, truth or use in its dataset, the "
            f"first is {changed[0]!r}. Name the same dataset, with the same parameters."
        )
    surveys = {
        source: Survey(survey.labels, tuple(item for item in survey.items if item.key in solved))
        for source, survey in asked.surveys.items()
    }
    return replace(asked, surveys=surveys)


def _changed_items(definition: StudyDefinition, earlier: Study, asked: ModelPredictions) -> set[str]:
    """Items that are not what they were in the earlier stage. Views of another size say nothing of the
    picture: they are another network's."""
    changed = set()
    before = {item.key: item for item in earlier.items.filter(copy_of=None).defer("logits")}
    for source, survey in asked.surveys.items():
        for item in as_asked(definition, survey):
            row, view = before.get(item.key), asked.views[source][item.key]
            if row is None:
                continue
            is_of_size = (row.width_px, row.height_px) == (view.width_px, view.height_px)
            is_same = (row.truth, row.use) == (item.truth, item.use)
            if not is_same or (is_of_size and row.image_key != view.image_key):
                changed.add(item.key)
    return changed


def with_solutions(definition: StudyDefinition, gathered: MaterialSet) -> MaterialSet:
    """With a planner's pool that knows the solutions of the earlier stage, if there is one."""
    earlier = frozen_source(definition)
    if earlier is None:
        return gathered
    pool = replace(gathered.material.pool, solutions=solved_in(earlier))
    return replace(gathered, material=replace(gathered.material, pool=pool))


def solution_specs(
    definition: StudyDefinition, gathered: MaterialSet, store: Store
) -> dict[Variant, StimulusSpec]:
    """What is to be made for each solution that may be shown: its item, with its region by one path for every
    source. Without regions the item alone."""
    [(source, chosen)] = gathered.material.chosen.items()
    views = {item.key: gathered.view(source, item) for item in chosen}
    conditions = {condition.name: condition for condition in definition.conditions}
    marks = _marks(definition, store)
    specs: dict[Variant, StimulusSpec] = {}
    for solved in gathered.material.pool.solutions:
        if solved.item in views and solved.source in conditions:
            specs[solved.item, solved.source, solved.key] = gathered.spec(
                definition,
                conditions[solved.source],
                source,
                views[solved.item],
                marks.get(solved.key),
                gathered.canvases.get(source, {}).get(solved.item),
            )
    return specs


def _marks(definition: StudyDefinition, store: Store) -> dict[str, Component]:
    """The region of each solution, stored, by the solution's key. Who cannot say has an empty one, so that
    nothing but what is seen tells it from others."""
    earlier = frozen_source(definition)
    side = earlier.frozen.get("side") if earlier else None
    if earlier is None or side is None:
        return {}
    rows = Solution.objects.filter(study=earlier).values_list("key", "region")
    regions = {key: RegionAttribution(mask_of(region or (), side)) for key, region in rows.iterator(500)}
    return {
        key: Component(RECORDED, {"kind": "region", "digest": keep_recorded(store, made)})
        for key, made in regions.items()
    }


def store_own_solutions(
    study: Study, definition: StudyDefinition, gathered: MaterialSet, items: Mapping[str, Item]
) -> None:
    """The solutions of a study that makes its own, as rows."""
    if frozen_source(definition) is not None:
        return
    Solution.objects.bulk_create(
        Solution(study=study, key=s.key, item=items[s.item], source=s.source, choice=s.choice, use=s.use)
        for s in gathered.material.pool.solutions
    )
