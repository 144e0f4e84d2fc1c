"""Opening a study: every slot is planned, and all plans are stored."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

from django.db import transaction
from django.utils import timezone

from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.drafting.extension_parent import parent_of, refuse_other_items
from experiments.drafting.model_answers import reasons_of
from experiments.errors import StudyError, sentence
from experiments.kinds import get_kind
from experiments.models import Condition, Item, OtherStimulus, Rendering, Slot, Study, Trial
from experiments.opening.identical_pages import coinciding, mark
from experiments.opening.picture_lengths import rooms_of
from experiments.opening.preregistration import store_plan, store_stamp
from experiments.opening.timestamps import StampFiles
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import Plan, PlanCondition, PlanError, PlannedTrial, Pool, PoolItem
from experiments.paradigms.blind import ModelAnswers, shortage
from experiments.selectors import definition_of
from experiments.stages.solution_freeze import solutions_of
from experiments.stages.solution_sources import planted_cells
from stimuli.spec import canonical_json, content_key

if TYPE_CHECKING:
    from stimuli.types import Progress, Use

BATCH = 64


def stored_pool(study: Study, definition: StudyDefinition) -> Pool:
    """The planner's view of a draft, from its rows alone."""
    items = Item.objects.filter(study=study, copy_of=None).order_by("key").prefetch_related("predictions")
    conditions = list(study.conditions.all())
    explanations: tuple[tuple[str, str], ...] = ()
    predictions: dict[tuple[str, str], str] = {}
    if any(condition.dataset or condition.predictor for condition in conditions):
        # Not every item has a stimulus under every condition, nor has every model seen it.
        explained = Rendering.objects.filter(item__study=study, condition__explainer__isnull=False)
        explained = explained.filter(item__copy_of=None)
        pairs = explained.order_by("condition__ordinal", "item__key")
        explanations = tuple(pairs.values_list("item__key", "condition__name"))
        for item in items:
            said = {row.predictor: row.predicted for row in item.predictions.all()}
            for c in conditions:
                predictions[item.key, c.name] = said.get(c.predictor, item.predicted)
    side = getattr(design_of(definition), "grid", None)
    planted = planted_cells(study, int(side), ["known"]) if side is not None else {}
    return Pool(
        items=tuple(
            PoolItem(
                *(i.key, i.truth, i.predicted, i.confidence, i.group),
                use=cast("Use", i.use),
                planted=planted.get(i.key, ()),
            )
            for i in items
        ),
        conditions=tuple(PlanCondition(c.name, c.role, c.slots) for c in conditions),
        choices=definition.choices,
        balance=definition.stimuli.balance,
        check_instructed=definition.checks.instructed,
        check_repeat=definition.checks.repeat,
        explanations=explanations,
        solutions=solutions_of(study, definition),
        predictions=predictions,
        copies=_copies(study),
        shared=coinciding(study) if get_paradigm(study.paradigm).merges_coinciding else {},
    )


def _copies(study: Study) -> dict[tuple[str, str, str], str]:
    """The key of each rendered copy, by its item, the condition and what it is for."""
    rows = Rendering.objects.filter(item__study=study, item__copy_of__isnull=False)
    fields = ("item__copy_of__key", "condition__name", "item__perturbation", "item__key")
    return {(of, name, how["aim"]): key for of, name, how, key in rows.values_list(*fields).iterator(5000)}


def open_study(study: Study, progress: Progress, stamp: StampFiles | None = None) -> Study:
    """Plans every slot and freezes the study, unless people cannot be asked for its model's answers (see
    `ModelAnswers`) or the time stamp of its plan does not verify. Repeating it on an open study
    changes nothing but adds a stamp that comes later; one that was opened before pictures were padded gets
    its `picture_bytes`."""
    if study.state == Study.State.OPEN:
        store_stamp(study, stamp)
        if not study.picture_bytes:
            study.picture_bytes = rooms_of(study, progress)
            Study.objects.filter(id=study.pk).update(picture_bytes=study.picture_bytes)
        return study
    if study.state == Study.State.CLOSED:
        raise StudyError(f"{study.slug!r} is closed. Choose a new slug, or extend the study.")
    unfinished = Rendering.objects.filter(item__study=study).exclude(stimulus__state="done").count()
    if unfinished:
        raise StudyError(
            f"{study.slug!r}: {unfinished} stimuli are not rendered yet. Run build_stimuli {study.slug}."
        )
    definition = definition_of(study)
    if parent := parent_of(definition):
        refuse_other_items(study, parent)
    paradigm = get_paradigm(definition.paradigm)
    pool, answers, reasons = stored_pool(study, definition), ModelAnswers(), reasons_of(study)
    plans = answers.watched(paradigm.plans(design_of(definition), pool, Streams(definition.seed)))
    picture_bytes = rooms_of(study, progress)
    with transaction.atomic():
        claimed = Study.objects.filter(id=study.pk, state=Study.State.DRAFT).update(
            state=Study.State.OPEN, opened_at=timezone.now(), picture_bytes=picture_bytes
        )
        if claimed != 1:
            raise StudyError(f"{study.slug!r} was opened or replaced at the same moment. Look again.")
        wanted = sum(condition.slots for condition in definition.conditions)
        try:
            study.plan_digest = store_plans(study, plans, wanted, progress)
        except PlanError as error:
            why = f"{study.slug!r} cannot be planned: {shortage(error, reasons)}"
            raise StudyError(sentence(why)) from error
        if unfit := answers.unfit(pool, reasons):
            raise StudyError(
                f"{study.slug!r} may not open: {'; '.join(unfit)}. study_check measures the usual causes."
            )
        Study.objects.filter(id=study.pk).update(plan_digest=study.plan_digest)
        mark(study, pool.shared)
        store_plan(study, definition)
        store_stamp(study, stamp)
    study.refresh_from_db()
    return study


def plan_pilot(study: Study, count: int, progress: Progress) -> int:
    """Plans pilot slots until there are `count`; returns how many are new. Repeating it changes nothing.

    They are planned as the main slots are, matched and in permuted blocks, but from a random stream of their
    own: each round of consecutive ordinals holds every condition once, so that any number of places is spread
    as evenly as possible. Asking for more later leaves the earlier ones as they were.
    """
    definition = definition_of(study)
    with transaction.atomic():
        # Two at once would give their slots the same ordinals.
        locked = Study.objects.select_for_update().get(id=study.pk)
        if locked.state != Study.State.OPEN:
            raise StudyError(
                f"{study.slug!r} is {locked.state}; only an open study has a pilot. Open it first."
            )
        known = Slot.objects.filter(study=study, pilot=True).count()
        if known >= count:
            return 0
        plans = itertools.islice(_pilot_plans(study, definition, count), known, count)
        store_plans(study, plans, count - known, progress, pilot=True)
    return count - known


def _pilot_plans(study: Study, definition: StudyDefinition, count: int) -> Iterator[Plan]:
    pool, paradigm, design = (
        stored_pool(study, definition),
        get_paradigm(study.paradigm),
        design_of(definition),
    )
    slots = paradigm.pilot_slots(design, pool, count)
    pool = replace(pool, conditions=tuple(replace(c, slots=slots) for c in pool.conditions))
    # Streams are keyed by names alone, so another seed makes every one of them another stream.
    seed = int(content_key([definition.seed, "pilot"])[:12], 16)
    return iter(paradigm.plans(design, pool, Streams(seed)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that plans name, by their names: of stimuli item, condition and variant."""

    items: dict[str, Item]
    conditions: dict[str, Condition]
    stimuli: dict[tuple[str, str, str], int]

    @classmethod
    def of(cls, study: Study) -> _Rows:
        renderings = Rendering.objects.filter(item__study=study)
        rows = renderings.values_list("item__key", "condition__name", "variant", "stimulus_id")
        return cls(
            items={i.key: i for i in Item.objects.filter(study=study).defer("logits")},
            conditions={c.name: c for c in Condition.objects.filter(study=study)},
            stimuli={(item, name, variant): at for item, name, variant, at in rows.iterator(5000)},
        )

    def stimulus(self, item: str, condition: str, where: str, variant: str = "") -> int:
        """The stimulus of an item under a condition. Raises StudyError if nothing of the kind is rendered."""
        try:
            return self.stimuli[item, condition, variant]
        except KeyError:
            of = f", solution {variant!r}" if variant else ""
            raise StudyError(
                f"{where} shows item {item!r} under condition {condition!r}{of}, which has no stimulus. "
                "Build the stimuli again, or mend the paradigm's material."
            ) from None


def store_plans(
    study: Study, plans: Iterable[Plan], wanted: int, progress: Progress, *, pilot: bool = False
) -> str:
    """Inserts slots and trials in batches; returns the digest of all plans. `wanted` is how many are
    expected."""
    rows = _Rows.of(study)
    digests: list[str] = []
    stored = 0
    for batch in _batches(plans, BATCH):
        slots = Slot.objects.bulk_create(
            Slot(
                study=study,
                ordinal=plan.ordinal,
                pilot=pilot,
                lane=plan.lane,
                arm=plan.arm,
                condition=rows.conditions[plan.condition] if plan.condition else None,
                matched=plan.matched,
            )
            for plan in batch
        )
        pairs = [(slot, plan, t) for slot, plan in zip(slots, batch, strict=True) for t in plan.trials]
        trials = Trial.objects.bulk_create(
            [_trial_row(slot, trial, len(plan.trials), rows) for slot, plan, trial in pairs], batch_size=500
        )
        OtherStimulus.objects.bulk_create(
            _other_row(row, role, place, trial.explained, rows)
            for row, (_, _, trial) in zip(trials, pairs, strict=True)
            for role, place in trial.others.items()
        )
        digests.extend(content_key(plan_json(plan)) for plan in batch)
        stored += len(batch)
        progress("plan slots", stored, max(wanted, stored))
    return content_key(digests)


def _batches(plans: Iterable[Plan], size: int) -> Iterator[list[Plan]]:
    iterator = iter(plans)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def plan_json(plan: Plan) -> dict[str, object]:
    """A plan as JSON values, for its digest and for the preregistration."""
    return asdict(plan)


def accepted_values(trial: PlannedTrial) -> str:
    """Every value that may be stored for a trial, canonical JSON between newlines; empty: judge it in Python.

    Trials whose answer reveals something (guess first) are judged in Python too, for they have to be read
    anyway.
    """
    values = get_kind(trial.kind).accepted(trial.view())
    return "".join(f"\n{canonical_json(dict(value))}\n" for value in values)


def _trial_row(slot: Slot, trial: PlannedTrial, count: int, rows: _Rows) -> Trial:
    stimulus = None
    if trial.item is not None:
        where = f"slot {slot.ordinal}, trial {trial.position}"
        stimulus = rows.stimulus(trial.item, trial.condition, where, trial.variant)
    return Trial(
        slot=slot,
        position=trial.position,
        remaining=count - trial.position - 1,
        block=trial.block,
        phase=trial.phase,
        kind=trial.kind,
        check_kind=trial.check,
        item=rows.items[trial.item] if trial.item is not None else None,
        condition=rows.conditions.get(trial.condition),
        stimulus_id=stimulus,
        explained=trial.explained,
        choices=[choice.as_json() for choice in trial.choices],
        accepts=accepted_values(trial),
        label=trial.label,
        expected=trial.expected,
        right=trial.right,
        reservoir=list(trial.reservoir),
        extra=dict(trial.extra),
    )


def _other_row(
    trial: Trial, role: str, place: tuple[str, str], is_explained: bool, rows: _Rows
) -> OtherStimulus:
    stimulus = rows.stimulus(*place, f"trial {trial.position}, role {role!r}")
    return OtherStimulus(trial=trial, role=role, stimulus_id=stimulus, explained=is_explained)
