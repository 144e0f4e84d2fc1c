"""Opening a study, and which session holds which slot."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Count, F
from django.utils import timezone

from experiments.definition import StudyDefinition
from experiments.design.rng import Streams
from experiments.errors import SessionFinished, StudyError, StudyFull
from experiments.gates.consent import NAME as CONSENT
from experiments.kinds import get_kind
from experiments.models import Condition, Item, OtherStimulus, Rendering, Session, Slot, Study, Trial
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import (
    GateTry,
    Plan,
    PlanCondition,
    PlanError,
    PlannedTrial,
    Pool,
    PoolItem,
    Route,
)
from experiments.selectors import definition_of, free_slots
from experiments.stages import solutions_of
from stimuli.spec import canonical_json, content_key

if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[str, int, int], None]

BATCH = 64
GATES_MINUTES = 15
"""How long a place is reserved for a person who is passing the gates."""


def stored_pool(study: Study, definition: StudyDefinition) -> Pool:
    """The planner's view of a draft, from its rows alone."""
    items = Item.objects.filter(study=study).order_by("key").prefetch_related("predictions")
    conditions = list(study.conditions.all())
    explanations: tuple[tuple[str, str], ...] = ()
    predictions: dict[tuple[str, str], str] = {}
    if any(condition.dataset or condition.predictor for condition in conditions):
        # Not every item has a stimulus under every condition, nor has every model seen it.
        explained = Rendering.objects.filter(item__study=study, condition__explainer__isnull=False)
        pairs = explained.order_by("condition__ordinal", "item__key")
        explanations = tuple(pairs.values_list("item__key", "condition__name"))
        for item in items:
            said = {row.predictor: row.predicted for row in item.predictions.all()}
            for c in conditions:
                predictions[item.key, c.name] = said.get(c.predictor, item.predicted)
    return Pool(
        items=tuple(PoolItem(i.key, i.truth, i.predicted, i.confidence, i.group) for i in items),
        conditions=tuple(PlanCondition(c.name, c.role, c.slots) for c in conditions),
        choices=definition.choices,
        balance=definition.stimuli.balance,
        check_instructed=definition.checks.instructed,
        check_repeat=definition.checks.repeat,
        explanations=explanations,
        solutions=solutions_of(study, definition),
        predictions=predictions,
    )


def open_study(study: Study, progress: Progress) -> Study:
    """Plans every slot and freezes the study. Repeating it on an open study changes nothing."""
    if study.state == Study.State.OPEN:
        return study
    if study.state == Study.State.CLOSED:
        raise StudyError(f"{study.slug!r} is closed. Choose a new slug, or extend the study.")
    unfinished = Rendering.objects.filter(item__study=study).exclude(stimulus__state="done").count()
    if unfinished:
        raise StudyError(
            f"{study.slug!r}: {unfinished} stimuli are not rendered yet. Run build_stimuli {study.slug}."
        )
    definition = definition_of(study)
    paradigm = get_paradigm(definition.paradigm)
    plans = paradigm.plans(design_of(definition), stored_pool(study, definition), Streams(definition.seed))
    with transaction.atomic():
        claimed = Study.objects.filter(id=study.pk, state=Study.State.DRAFT).update(
            state=Study.State.OPEN, opened_at=timezone.now()
        )
        if claimed != 1:
            raise StudyError(f"{study.slug!r} was opened or replaced at the same moment. Look again.")
        wanted = sum(condition.slots for condition in definition.conditions)
        try:
            study.plan_digest = _store_plans(study, plans, wanted, progress)
        except PlanError as error:
            raise StudyError(f"{study.slug!r} cannot be planned: {error}.") from error
        Study.objects.filter(id=study.pk).update(plan_digest=study.plan_digest)
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
        locked = Study.objects.select_for_update().get(id=study.pk)
        if locked.state != Study.State.OPEN:
            raise StudyError(
                f"{study.slug!r} is {locked.state}; only an open study has a pilot. Open it first."
            )
        known = Slot.objects.filter(study=study, pilot=True).count()
        if known >= count:
            return 0
        plans = itertools.islice(_pilot_plans(study, definition, count), known, count)
        _store_plans(study, plans, count - known, progress, pilot=True)
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
    """The rows that plans name, by their names."""

    items: dict[str, Item]
    conditions: dict[str, Condition]
    stimuli: dict[tuple[str, str], int]

    @classmethod
    def of(cls, study: Study) -> _Rows:
        renderings = Rendering.objects.filter(item__study=study)
        triples = renderings.values_list("item__key", "condition__name", "stimulus_id")
        return cls(
            items={i.key: i for i in Item.objects.filter(study=study).defer("logits")},
            conditions={c.name: c for c in Condition.objects.filter(study=study)},
            stimuli={(item, condition): stimulus for item, condition, stimulus in triples.iterator(5000)},
        )

    def stimulus(self, item: str, condition: str, where: str) -> int:
        """The stimulus of an item under a condition. Raises StudyError if nothing of the kind is rendered."""
        try:
            return self.stimuli[item, condition]
        except KeyError:
            raise StudyError(
                f"{where} shows item {item!r} under condition {condition!r}, which has no stimulus. "
                "Build the stimuli again, or mend the paradigm's material."
            ) from None


def _store_plans(
    study: Study, plans: Iterable[Plan], wanted: int, progress: Progress, *, pilot: bool = False
) -> str:
    """Inserts slots and trials in batches; returns the digest of all plans."""
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
    """Every value that may be stored for a trial, canonical JSON between newlines; empty: it is judged in
    Python. Trials whose answer reveals something (guess first) are judged in Python too, because they have to
    be read anyway.
    """
    values = get_kind(trial.kind).accepted(trial.view())
    return "".join(f"\n{canonical_json(dict(value))}\n" for value in values)


def _trial_row(slot: Slot, trial: PlannedTrial, count: int, rows: _Rows) -> Trial:
    stimulus = None
    if trial.item is not None:
        where = f"slot {slot.ordinal}, trial {trial.position}"
        stimulus = rows.stimulus(trial.item, trial.condition, where)
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


def places_left(study: Study, pilot: bool = False) -> int:
    """Free slots minus the people who are on their way to one: in the gates, consent given recently. The
    pilot has slots and people of its own. Opening the first page reserves nothing, so closed tabs cannot
    block a study; the claim is what enforces the limit. Lanes are counted together, because the lane of a
    person is known only at the claim.
    """
    since = timezone.now() - timedelta(minutes=GATES_MINUTES)
    on_the_way = Session.objects.filter(
        study=study,
        state=Session.State.GATES,
        started_at__gte=since,
        gates__kind=CONSENT,
        gates__passed=True,
    )
    if pilot:
        on_the_way = on_the_way.filter(origin=Session.Origin.PILOT)
    else:
        on_the_way = on_the_way.exclude(origin__in=[Session.Origin.PREVIEW, Session.Origin.PILOT])
    return free_slots(study, pilot=pilot).count() - on_the_way.count()


def route(session: Session) -> str | None:
    """The lane from which this session gets its slot, by the paradigm's own rule; None: it gets no slot."""
    earlier = (
        Session.objects.filter(participant=session.participant_id, slot__isnull=False)
        .exclude(pk=session.pk)
        .order_by("-started_at")
        .values_list("lane", flat=True)
        .first()
    )
    free = free_slots(session.study, pilot=session.origin == Session.Origin.PILOT)
    # No person gets the same slot twice, because its stimuli would no longer be new to them.
    free = free.exclude(sessions__participant=session.participant_id)
    counts = dict(free.values_list("lane").annotate(n=Count("id")).order_by())
    tries = session.gates.order_by("id").values_list("kind", "attempt", "passed", "value")
    facts = Route(tuple(GateTry(*row) for row in tries), earlier or "", counts)
    return get_paradigm(session.study.paradigm).lane(facts)


def claim_slot(session: Session) -> Slot:
    """Gives the session the next free slot by ordinal: a freed slot comes before an unused one, because slots
    are first claimed in that order. Raises StudyFull. One conditional update; on PostgreSQL concurrent claims
    skip each other's rows instead of waiting.
    """
    now = timezone.now()
    lease_ends_at = now + timedelta(minutes=definition_of(session.study).lease_minutes)
    with transaction.atomic():
        # Locks the session's row first: otherwise two requests of one session could claim two slots.
        waiting = Session.objects.filter(id=session.pk, state=Session.State.GATES, slot__isnull=True)
        if waiting.update(claimed_at=now, lease_ends_at=lease_ends_at) == 1:
            lane = route(session)
            slot_id = None if lane is None else _claim(session, lane, now, lease_ends_at)
            if slot_id is None:
                raise StudyFull("All places of this study are taken.")
            Session.objects.filter(id=session.pk).update(
                slot_id=slot_id, lane=lane, state=Session.State.ASSIGNED
            )
    session.refresh_from_db()
    if session.slot is None:
        raise SessionFinished("This session has ended.")
    return session.slot


def _claim(session: Session, lane: str, now: datetime, lease_ends_at: datetime) -> int | None:
    skip_locked = (
        "FOR UPDATE OF s SKIP LOCKED" if connection.features.has_select_for_update_skip_locked else ""
    )
    adapt = connection.ops.adapt_datetimefield_value
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE experiments_slot
            SET holder_id = %s, lease_ends_at = %s, claimed_count = claimed_count + 1
            WHERE id = (
                SELECT s.id FROM experiments_slot s
                WHERE s.study_id = %s AND s.lane = %s AND s.pilot = %s AND NOT s.kept
                  AND (s.holder_id IS NULL OR s.lease_ends_at < %s)
                  AND NOT EXISTS (SELECT 1 FROM experiments_session e
                                  WHERE e.slot_id = s.id AND e.participant_id = %s)
                ORDER BY s.ordinal
                LIMIT 1 {skip_locked}
            )
            RETURNING id
            """,
            [
                session.pk if connection.vendor == "postgresql" else session.pk.hex,
                adapt(lease_ends_at),
                session.study_id,
                lane,
                session.origin == Session.Origin.PILOT,
                adapt(now),
                session.participant_id,
            ],
        )
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def release_slot(session: Session) -> bool:
    """Frees the session's slot unless it was kept or another session has claimed it since."""
    return Slot.objects.filter(holder=session, kept=False).update(holder=None, lease_ends_at=None) == 1


def free_rehearsed_slots(study: Study) -> int:
    """Frees every slot that a simulated person holds or has filled: from now on the slots are for people."""
    simulated = Slot.objects.filter(study=study, holder__origin=Session.Origin.SIMULATED)
    return simulated.update(holder=None, lease_ends_at=None, kept=False)


def keep_slot(session: Session) -> bool:
    """Marks the session's slot as filled by it. False if another session has claimed the slot since
    (surplus)."""
    held = Slot.objects.filter(holder=session)
    return held.filter(kept=False).update(kept=True) == 1 or held.filter(kept=True).exists()


def peek_slot(study: Study, ordinal: int) -> Slot:
    """A slot for a preview: shown, never claimed."""
    slot = Slot.objects.filter(study=study, ordinal=ordinal, pilot=False).order_by(F("id")).first()
    if slot is None:
        raise StudyError(f"{study.slug!r} has no slot {ordinal}. Open the study, or choose a smaller number.")
    return slot
