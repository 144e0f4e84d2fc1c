"""From what the models said to what is rendered and planned: which items, seen as which answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.paradigms.base import (
    BadDesign,
    Material,
    PlanCondition,
    Pool,
    PoolItem,
    Source,
    Survey,
    SurveyItem,
)
from stimuli.types import Use


def material_of(
    definition: StudyDefinition, surveys: Mapping[Source, Survey], beside: Collection[Use] = ()
) -> Material:
    """One dataset, one model: tasks as the question sees them, balanced over predicted answer x correct; and
    all items of the uses `beside`, unless they are flagged.

    Raises BadDesign for a study with several datasets or models, and for a class that the model lacks.
    """
    if len(surveys) != 1:
        raise BadDesign(
            f"{definition.paradigm} asks about one model on one dataset, this study has {len(surveys)} pairs "
            "of them: keep one dataset and one predictor"
        )
    ((source, survey),) = surveys.items()
    _refuse_unknown_classes(definition, survey.labels)
    asked = as_asked(definition, survey)
    others = [item for item in asked if item.use in beside and not item.flagged]
    chosen = sorted([*choose_items(definition, asked), *others], key=lambda item: item.key)
    return Material(pool_of(definition, chosen), {source: tuple(chosen)})


def material_by_condition(definition: StudyDefinition, surveys: Mapping[Source, Survey]) -> Material:
    """Several datasets and models: each condition has the items of its dataset, as its own model sees them.

    Items of a dataset are chosen once, by what its first model says, and shared by all its conditions. Their
    keys begin with the dataset's name if the study has several. Raises BadDesign for a class that every model
    lacks.
    """
    _refuse_unknown_classes(
        definition, list(dict.fromkeys(label for survey in surveys.values() for label in survey.labels))
    )
    used = list(dict.fromkeys(condition.source for condition in definition.conditions))
    chosen: dict[Source, tuple[SurveyItem, ...]] = {}
    items: dict[str, PoolItem] = {}
    for dataset in dict.fromkeys(name for name, _ in used):
        keys: set[str] = set()
        for source in (pair for pair in used if pair[0] == dataset):
            asked = as_asked(definition, surveys[source])
            part = asked if keys else choose_items(definition, asked)
            keys = keys or {item.key for item in part}
            chosen[source] = tuple(item for item in part if item.key in keys)
            for item in chosen[source]:
                items.setdefault(item.key, _pool_item(item))
    by_source = {source: {item.key: item for item in part} for source, part in chosen.items()}
    pairs = [(key, c) for c in definition.conditions for key in by_source[c.source]]
    pool = replace(
        pool_of(definition, ()),
        items=tuple(items[key] for key in sorted(items)),
        explanations=tuple((key, c.name) for key, c in pairs if c.explainer is not None),
        predictions={(key, c.name): by_source[c.source][key].predicted for key, c in pairs},
    )
    return Material(pool, chosen)


def pool_of(definition: StudyDefinition, items: Sequence[SurveyItem]) -> Pool:
    """The planner's view of the chosen items."""
    return Pool(
        items=tuple(_pool_item(item) for item in items),
        conditions=tuple(PlanCondition(c.name, c.role, c.slots) for c in definition.conditions),
        choices=definition.choices,
        balance=definition.stimuli.balance,
        check_instructed=definition.checks.instructed,
        check_repeat=definition.checks.repeat,
    )


def as_asked(definition: StudyDefinition, survey: Survey) -> list[SurveyItem]:
    """The items as the question sees them: classes as answers; predictions outside the classes are dropped
    or restricted to those of them that the model has. Blank items keep their empty truth, and all of them
    stay."""
    stimuli = definition.stimuli
    if stimuli.target is not None:
        target = stimuli.target

        def side(name: str) -> str:
            return name and ("target" if name == target else "other")

        return [replace(i, truth=side(i.truth), predicted=side(i.predicted)) for i in survey.items]
    classes = stimuli.classes or survey.labels
    within = [name for name in classes if name in survey.labels]
    kept = []
    for item in survey.items:
        if item.use == "blank":
            kept.append(replace(item, predicted=definition.value_of(item.predicted)))
            continue
        if item.truth not in classes:
            continue
        if item.predicted not in classes:
            if stimuli.outside == "drop" or not within:
                continue
            best = max(within, key=lambda name: item.logits[survey.labels.index(name)])
            item = replace(item, predicted=best, index=survey.labels.index(best))
        truth, predicted = definition.value_of(item.truth), definition.value_of(item.predicted)
        kept.append(replace(item, truth=truth, predicted=predicted))
    return kept


def choose_items(definition: StudyDefinition, items: Sequence[SurveyItem]) -> list[SurveyItem]:
    """At most `[stimuli] items` tasks that are not flagged, as equally as possible over predicted label x
    correct, by the study's seed. A flagged item's place goes to the next of its cell; the others stay."""
    tasks = [item for item in items if item.use == "task"]
    free = [item for item in tasks if not item.flagged]
    wanted = min(definition.stimuli.items, len(free))
    if len(tasks) <= definition.stimuli.items:
        return sorted(free, key=lambda item: item.key)
    streams = Streams(definition.seed)
    cells: dict[tuple[str, bool], list[SurveyItem]] = {}
    for item in sorted(tasks, key=lambda item: item.key):
        cells.setdefault((item.predicted, item.truth == item.predicted), []).append(item)
    for name, members in sorted(cells.items()):
        order = streams("pool", name[0], int(name[1])).permutation(len(members))
        cells[name] = [members[i] for i in order if not members[i].flagged]
    chosen: list[SurveyItem] = []
    # One from each cell in turn: a small cell gives all it has, the others make up for it.
    while len(chosen) < wanted:
        for _, members in sorted(cells.items()):
            if members and len(chosen) < wanted:
                chosen.append(members.pop())
    return sorted(chosen, key=lambda item: item.key)


def _pool_item(item: SurveyItem) -> PoolItem:
    return PoolItem(item.key, item.truth, item.predicted, item.confidence, item.group, item.use)


def _refuse_unknown_classes(definition: StudyDefinition, labels: Sequence[str]) -> None:
    stimuli = definition.stimuli
    for name in [stimuli.target] if stimuli.target else list(stimuli.classes or ()):
        if name not in labels:
            raise BadDesign(
                f"stimuli: the predictor has no class {name!r}; "
                f"it has {', '.join(labels)}. Name one of these."
            )
