"""A draft of which only the first places are planned: what a preview shows, within seconds, of a study that
has not been built. Planner, specs and pictures are those of a build; which items a place gets may differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from django.utils import timezone

from experiments.definition.study import ConditionTable, Stimuli, StudyDefinition
from experiments.design.rng import Streams
from experiments.drafting.draft import store_draft, with_copies
from experiments.drafting.item_choice import choose, refuse_inapplicable
from experiments.drafting.item_pictures import canvases_of
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.model_survey import open_models, predictions_of
from experiments.drafting.solution_stage_items import Variant
from experiments.drafting.stimulus_specs import every_spec
from experiments.errors import StudyError, sentence
from experiments.models import Study
from experiments.opening.opening import store_plans
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import Plan, PlanError, PlannedTrial, Source
from experiments.stages.solution_freeze import source_of
from stimuli.explainers import needs_all_items
from stimuli.types import silent

if TYPE_CHECKING:
    from stimuli.spec import StimulusSpec
    from stimuli.spec_derivation import PredictedItem
    from stimuli.spec_derivation import Source as Opened
    from stimuli.store import Store
    from stimuli.types import Progress

STEP = 64
"""So many items of each dataset are asked about at a time, until a place can be planned."""
PLANS_MAX = 200
"""Among so many plans are all conditions, lanes and kinds of trials that a study has."""


@dataclass(frozen=True, slots=True)
class PreviewDraft:
    """The plans that show everything once, and the specs of all that they show. `notes` are sentences about
    what differs from a build, and what is missing.
    """

    definition: StudyDefinition
    gathered: MaterialSet
    plans: tuple[Plan, ...]
    specs: Mapping[Variant, StimulusSpec]
    notes: tuple[str, ...]


class PreviewModels:
    """The models of a previewed study and what they have said so far. They are opened again only when
    [stimuli] has changed, and asked only about further items."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        self._of: Stimuli | None = None
        self._opened: dict[Source, Opened] = {}
        self._said: dict[Source, dict[str, PredictedItem]] = {}

    def open(self, definition: StudyDefinition, progress: Progress) -> Mapping[Source, Opened]:
        if self._of != definition.stimuli:
            self._of = None
            self._opened = open_models(definition, self.folder, self.store, progress)
            self._said = {source: {} for source in self._opened}
            self._of = definition.stimuli
        return self._opened

    def answers(
        self, seed: int, progress: Progress
    ) -> Iterator[tuple[dict[Source, list[PredictedItem]], bool]]:
        """What each has said of more and more items of its dataset, in an order drawn by the seed, and
        whether these are all."""
        from stimuli.spec_derivation import survey

        keys = {s: [item.key for item in model.dataset.items("people")] for s, model in self._opened.items()}
        drawn: dict[Source, list[str]] = {}
        for source, names in keys.items():
            order = Streams(seed)("preview", source[0]).permutation(len(names))
            drawn[source] = [names[at] for at in order]
        for start in itertools.count(0, STEP):
            for source, model in self._opened.items():
                said, among = self._said[source], set(drawn[source][start : start + STEP])
                if among := among - said.keys():
                    said |= {i.key: i for i in survey(model, self.store, progress, among=among)}
            ordered = {s: [self._said[s][key] for key in keys[s] if key in self._said[s]] for s in keys}
            is_whole = all(len(ordered[s]) == len(keys[s]) for s in keys)
            yield ordered, is_whole
            if is_whole:
                return


def draft_preview(definition: StudyDefinition, models: PreviewModels, progress: Progress) -> PreviewDraft:
    """Asks the models about as many items as the first places need, and plans these. Makes no row. StudyError
    if all items are too few, or a method does not fit its model.
    """
    if slug := source_of(definition):
        raise StudyError(
            f"{definition.slug!r} starts from the solutions of {slug!r}, which people make: a preview has "
            f"none. Preview {slug!r}; of this stage the dashboard shows any trial once it is open."
        )
    opened, store = models.open(definition, progress), models.store
    for source, model in opened.items():
        refuse_inapplicable(definition, source, model)
    for said, is_whole in models.answers(definition.seed, progress):
        asked = _without_what_is_missing(definition, is_whole)
        try:
            known = predictions_of(asked, opened, said)
            gathered = choose(asked, known, models.folder, store, progress, drawn=False)
            gathered = with_copies(asked, gathered, store, progress)
            plans = tuple(_telling(_plans(asked, gathered)))
            break
        except (StudyError, PlanError) as error:
            if is_whole:
                raise StudyError(sentence(f"{definition.slug!r} cannot be planned: {error}")) from error
    notes = _notes(definition, asked, said, opened, is_whole)
    return _of_plans(asked, gathered, plans, store, notes)


def _without_what_is_missing(definition: StudyDefinition, is_whole: bool) -> StudyDefinition:
    """The definition without rules and conditions for which every item would have to be looked at."""
    stimuli = definition.stimuli.model_copy(update={"drop_flagged": ()})
    is_built_so = is_whole and not definition.stimuli.drop_flagged
    kept = tuple(c for c in definition.conditions if is_built_so or not _needs_all(c))
    return definition.model_copy(update={"stimuli": stimuli, "conditions": kept})


def _needs_all(condition: ConditionTable) -> bool:
    return condition.explainer is not None and needs_all_items(condition.explainer.component())


def _plans(definition: StudyDefinition, gathered: MaterialSet) -> Iterator[Plan]:
    paradigm = get_paradigm(definition.paradigm)
    plans = paradigm.plans(design_of(definition), gathered.material.pool, Streams(definition.seed))
    return itertools.islice(plans, PLANS_MAX)


def _telling(plans: Iterable[Plan]) -> Iterator[Plan]:
    """Those that show a condition, lane or kind of trial that none before them has shown."""
    seen: set[object] = set()
    for plan in plans:
        shows = {(plan.lane, plan.condition, t.condition, t.kind, t.phase) for t in plan.trials if t.item}
        if not shows <= seen:
            seen |= shows
            yield plan


def _of_plans(
    definition: StudyDefinition,
    gathered: MaterialSet,
    plans: tuple[Plan, ...],
    store: Store,
    notes: tuple[str, ...],
) -> PreviewDraft:
    """Pictures and specs of what the plans show, and of nothing else; explanations that are bound to other
    items are bound among all."""
    shown = {place for plan in plans for trial in plan.trials for place in shown_in(trial)}
    keys = {item for item, _, _ in shown}
    copies = tuple(copy for copy in gathered.copies if copy.item is not None and copy.item.key in keys)
    keys |= {copy.of for copy in copies}
    chosen = {s: tuple(i for i in items if i.key in keys) for s, items in gathered.material.chosen.items()}
    pool = gathered.material.pool
    pool = replace(pool, solutions=tuple(solved for solved in pool.solutions if solved.item in keys))
    material = replace(gathered.material, pool=pool, chosen=chosen)
    few = replace(gathered, material=material, copies=copies)
    canvases = canvases_of(definition, few, store, silent)
    every = every_spec(definition, replace(gathered, canvases=canvases), store)
    specs = {place: spec for place, spec in every.items() if place in shown}
    return PreviewDraft(definition, replace(few, canvases=canvases), plans, specs, notes)


def shown_in(trial: PlannedTrial) -> set[Variant]:
    """(item, condition, variant) of every stimulus on the page of a trial."""
    places = {(*place, "") for place in trial.others.values()}
    return places | ({(trial.item, trial.condition, trial.variant)} if trial.item is not None else set())


def _notes(
    definition: StudyDefinition,
    asked: StudyDefinition,
    said: Mapping[Source, Sequence[PredictedItem]],
    opened: Mapping[Source, Opened],
    is_whole: bool,
) -> tuple[str, ...]:
    notes = []
    if not is_whole:
        of = sum(len(model.dataset.items("people")) for model in opened.values())
        notes.append(
            f"The model was asked about {sum(map(len, said.values())):,} of {of:,} items, so that the built "
            "study may show others in these places. The pictures of these are those of a build."
        )
    kept = {condition.name for condition in asked.conditions}
    missing = [condition.name for condition in definition.conditions if condition.name not in kept]
    if missing:
        notes.append(
            f"Missing here: {', '.join(missing)}. It shows the map of another item, and which one is known "
            "when all items are."
        )
    if definition.stimuli.drop_flagged:
        notes.append("Items that [stimuli] drop_flagged would leave out are not looked for.")
    if get_paradigm(definition.paradigm).merges_coinciding:
        notes.append("Explanations that look the same are rated once in the study; here each has its trial.")
    notes.append("What is measured on all items, such as the target leak, is measured by study_check alone.")
    return tuple(notes)


def store_preview(draft: PreviewDraft, slug: str, store: Store) -> Study:
    """The rows of an open study with these places alone, under a name of its own. Only for a database that is
    thrown away."""
    definition = draft.definition.model_copy(update={"slug": slug})
    study = store_draft(definition, draft.gathered, draft.specs, store)
    study.plan_digest = store_plans(study, draft.plans, len(draft.plans), silent)
    study.state, study.opened_at = Study.State.OPEN, timezone.now()
    study.save()
    return study
