"""What is to be made for a draft: a specification for every item under every condition."""

from __future__ import annotations

from experiments.definition.study import StudyDefinition
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.perturbed_copies import copy_specs
from experiments.drafting.solution_stage_items import Variant, solution_specs
from stimuli.spec import StimulusSpec
from stimuli.store import Store


def specs_of(definition: StudyDefinition, gathered: MaterialSet) -> dict[tuple[str, str], StimulusSpec]:
    """(item, condition) -> what is to be made, for the whole study."""
    specs: dict[tuple[str, str], StimulusSpec] = {}
    for condition in definition.conditions:
        source = condition.source
        # A blank item shows nothing that could be explained.
        chosen = [i for i in gathered.material.chosen[source] if not condition.explainer or i.use != "blank"]
        views = [gathered.view(source, item) for item in chosen]
        for item, view, explainer in zip(
            chosen, views, gathered.explainers(condition, views, definition.seed), strict=True
        ):
            canvas = gathered.canvases.get(source, {}).get(item.key)
            specs[item.key, condition.name] = gathered.spec(
                definition, condition, source, view, explainer, canvas
            )
    return specs


def every_spec(
    definition: StudyDefinition, gathered: MaterialSet, store: Store
) -> dict[Variant, StimulusSpec]:
    """What is to be made for all stimuli of a study."""
    if gathered.material.pool.solutions:
        return solution_specs(definition, gathered, store)
    specs = specs_of(definition, gathered) | copy_specs(definition, gathered)
    return {(*place, ""): spec for place, spec in specs.items()}
