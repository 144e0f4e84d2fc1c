"""Changed copies of a study's pictures: looked for as a draft is built, stored as items of their own that no
plan draws from, and shown beside their pictures under the conditions that explain them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.definition.study import ConditionTable, StudyDefinition
from experiments.drafting.item_pictures import longest_px_of
from experiments.drafting.material_set import Copy, MaterialSet, item_row
from experiments.errors import StudyError
from experiments.models import Item, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Aim, CopiesWanted, Pool, Source, Survey, SurveyItem
from experiments.paradigms.material import as_asked
from stimuli.errors import BadSpec
from stimuli.explainers import is_recorded
from stimuli.spec import StimulusSpec, content_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stimuli.spec_derivation import PredictedItem
    from stimuli.store import Store
    from stimuli.types import Progress

WORDS: Mapping[Aim, str] = {"light": "a small change that keeps", "strong": "a large change that changes"}
NOT_RIGHT = "the model is wrong about the picture itself"


def copies_of(
    definition: StudyDefinition, gathered: MaterialSet, store: Store, progress: Progress
) -> tuple[Copy, ...]:
    """Every copy that the study's questions ask for, of every chosen item and for every model of it; () if
    they ask for none. StudyError if no picture at all has one of a kind."""
    wanted = get_paradigm(definition.paradigm).copies(definition)
    if wanted is None:
        return ()
    total = len(wanted.aims) * sum(len(items) for items in gathered.material.chosen.values())
    copies: list[Copy] = []
    for source, items in gathered.material.chosen.items():
        if gathered.opened[source].predictor.modality != "image":
            raise StudyError(
                f"{definition.slug!r}: questions that compare with a changed copy are about pictures, and "
                f"{_source_name(source)} takes texts. Leave these questions out of [design] asked."
            )
        for item in items:
            for aim in wanted.aims:
                copies.append(_copy(definition, gathered, source, item, aim, wanted, store))
                progress("looking for changed copies", len(copies), total)
    for aim in wanted.aims:
        if not any(copy.item for copy in copies if copy.aim == aim):
            reasons = Counter(str(copy.record["reason"]) for copy in copies if copy.aim == aim)
            raise StudyError(
                f"{definition.slug!r}: a question compares with {WORDS[aim]} the prediction, and no picture "
                f"has such a copy ({reasons.most_common(1)[0][0]}). Change {aim} or names of "
                "[design.perturbations], or leave the question out of [design] asked."
            )
    return tuple(copies)


def _copy(
    definition: StudyDefinition,
    gathered: MaterialSet,
    source: Source,
    item: SurveyItem,
    aim: Aim,
    wanted: CopiesWanted,
    store: Store,
) -> Copy:
    from stimuli.perturbing.copies import Display, copy_of

    before: dict[str, Any] = {"aim": aim, "rule": wanted.search.rule, "original": item.predicted}
    if aim == "light" and wanted.light_correct and item.truth != item.predicted:
        return Copy(source, item.key, aim, {**before, "tried": 0, "reason": NOT_RIGHT})
    recipe, raw = definition.render, gathered.views[source][item.key]
    labels = gathered.surveys[source].labels

    def changes(logits: NDArray[np.float32]) -> bool | None:
        told = _classify_logits(definition, labels, raw, tuple(float(value) for value in logits))
        return None if told is None else told.predicted != item.predicted

    display = Display(
        longest_px_of(definition), recipe.view, recipe.interpolation, is_view=recipe.absolute is not None
    )
    view, seed = gathered.view(source, item), definition.seed
    made = copy_of(view, gathered.opened[source], store, aim, wanted.search, seed, changes, display)
    record = before | {"tried": made.searched.tried}
    if made.view is None:
        return Copy(source, item.key, aim, {**record, "reason": made.searched.reason})
    key = f"{aim}~{content_key([*source, item.key])[:32]}"
    told = _classify_logits(definition, labels, raw, made.view.logits)
    assert told is not None
    said = replace(told, key=key, truth=item.truth, group=item.group, confidence=made.view.confidence)
    view = replace(made.view, predicted=said.predicted, index=said.index)
    record |= {
        "perturbation": made.searched.perturbation,
        "magnitude": made.searched.magnitude,
        "label": said.predicted,
        "predictor": source[1],
    }
    return Copy(source, item.key, aim, record, said, view, made.canvas)


def _classify_logits(
    definition: StudyDefinition, labels: tuple[str, ...], item: PredictedItem, logits: tuple[float, ...]
) -> SurveyItem | None:
    """What a picture of these logits counts as in the study's question; None if as none of its answers."""
    index = int(np.argmax(logits))
    said = SurveyItem(item.key, item.truth, item.group, labels[index], index, item.confidence, logits)
    return next(iter(as_asked(definition, Survey(labels, (said,)))), None)


def copy_specs(definition: StudyDefinition, gathered: MaterialSet) -> dict[tuple[str, str], StimulusSpec]:
    """(copy, condition) -> what is to be made. Explanations that were made elsewhere have none of copies, nor
    has a control without another item to borrow from."""
    specs: dict[tuple[str, str], StimulusSpec] = {}
    for condition, copy in _copies_to_explain(definition, gathered):
        assert copy.item is not None and copy.view is not None and condition.explainer is not None
        chosen = gathered.material.chosen[copy.source]
        # A control that borrows from another item does so among the study's, in the place of the original.
        place, views = 0, [copy.view]
        if _is_bound(condition):
            place = [item.key for item in chosen].index(copy.of)
            views = [gathered.view(copy.source, item) for item in chosen]
            views[place] = copy.view
        try:
            explainer = gathered.explainers(condition, views, definition.seed)[place]
        except BadSpec:
            continue
        specs[copy.item.key, condition.name] = gathered.spec(
            definition, condition, copy.source, copy.view, explainer, copy.canvas
        )
    return specs


def _copies_to_explain(
    definition: StudyDefinition, gathered: MaterialSet
) -> Iterator[tuple[ConditionTable, Copy]]:
    by_source: dict[Source, list[Copy]] = defaultdict(list)
    for copy in gathered.copies:
        if copy.item is not None:
            by_source[copy.source].append(copy)
    for condition in definition.conditions:
        if condition.explainer is not None and not is_recorded(condition.explainer.component()):
            for copy in by_source[condition.source]:
                yield condition, copy


def _is_bound(condition: ConditionTable) -> bool:
    from stimuli.explainers import open_explainer

    assert condition.explainer is not None
    return hasattr(open_explainer(condition.explainer.component()), "bound")


def pool_with_copies(definition: StudyDefinition, gathered: MaterialSet) -> Pool:
    """The planner's pool with the copies that will be rendered."""
    of = {copy.item.key: copy for copy in gathered.copies if copy.item is not None}
    specs = copy_specs(definition, gathered)
    copies = {(of[key].of, condition, str(of[key].aim)): key for key, condition in specs}
    return replace(gathered.material.pool, copies=copies)


def store_copies(study: Study, gathered: MaterialSet, items: Mapping[str, Item]) -> dict[str, Item]:
    """The copies as items of their own, by key. `items` are the study's, by key."""
    rows = [
        item_row(study, copy.item, copy.view, copy_of=items[copy.of], perturbation=dict(copy.record))
        for copy in gathered.copies
        if copy.item is not None and copy.view is not None
    ]
    return {item.key: item for item in Item.objects.bulk_create(rows)}


def copies_json(copies: tuple[Copy, ...]) -> dict[str, Any]:
    """What a study keeps of the search: (dataset, predictor, aim, made, of), and of which item there is no
    copy, with the reason; empty if none was looked for."""
    if not copies:
        return {}
    of = Counter((*copy.source, copy.aim) for copy in copies)
    made = Counter((*copy.source, copy.aim) for copy in copies if copy.item is not None)
    return {
        "counts": [[*cell, made[cell], count] for cell, count in of.items()],
        "missing": [
            [*copy.source, copy.aim, copy.of, copy.record["reason"]] for copy in copies if copy.item is None
        ],
    }


def copies_sentences(stored: Mapping[str, Any]) -> list[str]:
    """For the commands: per model and kind of copy how many pictures have none, and why."""
    sentences = []
    for dataset, predictor, aim, made, of in stored.get("counts", ()):
        where = _source_name((dataset, predictor))
        words = f"{made} of {of} pictures have {WORDS[aim]} the prediction of {where}"
        reasons = Counter(
            reason
            for *source, kind, _, reason in stored["missing"]
            if (*source, kind) == (dataset, predictor, aim)
        )
        if reasons:
            left = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
            words += f"; the question is not asked of the others ({left})"
        sentences.append(f"{words}.")
    return sentences


def _source_name(source: Source) -> str:
    dataset, predictor = source
    return " on ".join(filter(None, (predictor, dataset))) or "the model"
