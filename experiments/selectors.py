"""Read access to stored plans, as immutable cards that may be cached, since plans never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from django.db import models
from django.utils import timezone

from experiments.definition.study import StudyDefinition
from experiments.kinds.base import Check, Phase, TrialView
from experiments.models import OtherStimulus, Prediction, Session, Slot, Study, Trial
from stimuli.models import Stimulus

MAIN = ""
"""The role of a trial's own stimulus, beside the others of its page."""


@dataclass(frozen=True, slots=True)
class File:
    """A stored file with its size in pixels; a text has none. `said` is what a drawn explanation says in
    words."""

    name: str
    width_px: int
    height_px: int
    said: str = ""

    @property
    def is_text(self) -> bool:
        return self.name.endswith(".json")


@dataclass(frozen=True, slots=True)
class ShownStimulus:
    """One stimulus on a page: what it is, and its explanation if the trial shows it."""

    image: File
    explanation: File | None
    tile: File
    tile_explanation: File | None

    @property
    def text(self) -> File | None:
        """The text in pieces, with its marks if they are shown."""
        return next((f for f in (self.explanation, self.image) if f is not None and f.is_text), None)


@dataclass(frozen=True, slots=True)
class Card:
    """One trial with all that serving and judging need. Never sent anywhere as it is.

    `shown` holds the stimuli of the page by role; the trial's own is under MAIN.
    """

    id: int
    view: TrialView
    choices: tuple[dict[str, str], ...]
    reservoir: tuple[int, ...]
    explained: bool
    shown: Mapping[str, ShownStimulus] = field(default_factory=dict)


@lru_cache(maxsize=64)
def _definition(study_id: int, digest: str) -> StudyDefinition:
    stored = Study.objects.values_list("definition", flat=True).get(id=study_id)
    return StudyDefinition.model_validate(stored)


def definition_of(study: Study) -> StudyDefinition:
    """The frozen definition, parsed once per process."""
    return _definition(study.pk, study.digest)


def cards_of(slot: Slot, study: Study) -> tuple[Card, ...]:
    """The trials of a slot in order of position."""
    return _cards(slot.pk, study.plan_digest)


@lru_cache(maxsize=1024)
def _cards(slot_id: int, plan_digest: str) -> tuple[Card, ...]:
    trials = list(
        Trial.objects.filter(slot_id=slot_id)
        .select_related("item", "condition", "stimulus")
        .order_by("position")
    )
    others: dict[int, dict[str, ShownStimulus]] = {}
    for row in OtherStimulus.objects.filter(trial__slot_id=slot_id).select_related("stimulus"):
        others.setdefault(row.trial_id, {})[row.role] = _shown_stimulus(row.stimulus, row.explained)
    models_of = {trial.condition.predictor for trial in trials if trial.condition} - {""}
    items = [trial.item_id for trial in trials if trial.item_id]
    said = _predictions_by_item(Prediction.objects.filter(item_id__in=items)) if models_of else {}
    return tuple(_card(trial, others.get(trial.pk, {}), said) for trial in trials)


def predictions_of(study: Study) -> dict[tuple[int, str], str]:
    """(item, model) -> what a further model of the study says of the item."""
    return _predictions_by_item(Prediction.objects.filter(item__study=study))


def _predictions_by_item(rows: models.QuerySet[Prediction]) -> dict[tuple[int, str], str]:
    triples = rows.values_list("item_id", "predictor", "predicted").iterator(5000)
    return {(item, predictor): predicted for item, predictor, predicted in triples}


def view_of(trial: Trial, said: Mapping[tuple[int, str], str]) -> TrialView:
    """A stored trial as kinds and paradigms judge it; `said` holds what further models say of the items."""
    item, condition = trial.item, trial.condition
    predicted = None
    if item is not None:
        model = condition.predictor if condition is not None else ""
        predicted = said.get((item.pk, model), item.predicted)
    return TrialView(
        position=trial.position,
        block=trial.block,
        phase=cast(Phase, trial.phase),
        kind=trial.kind,
        check=cast(Check, trial.check_kind),
        condition=condition.name if condition else "",
        choices=tuple(choice["value"] for choice in trial.choices),
        expected=trial.expected,
        truth=item.truth if item else None,
        predicted=predicted,
        extra=trial.extra,
        right=trial.right,
        label=trial.label,
    )


def _card(trial: Trial, others: Mapping[str, ShownStimulus], said: Mapping[tuple[int, str], str]) -> Card:
    main = {MAIN: _shown_stimulus(trial.stimulus, trial.explained)} if trial.stimulus is not None else {}
    return Card(
        id=trial.pk,
        view=view_of(trial, said),
        choices=tuple(trial.choices),
        reservoir=tuple(trial.reservoir),
        explained=trial.explained,
        shown={**main, **others},
    )


def _shown_stimulus(stimulus: Stimulus, is_explained: bool) -> ShownStimulus:
    size = (stimulus.width_px, stimulus.height_px)
    tile_size = (stimulus.tile_width_px, stimulus.tile_height_px)
    is_marked = is_explained and bool(stimulus.explanation_file)
    said = stimulus.explanation_text
    return ShownStimulus(
        image=File(stimulus.image_file, *size),
        explanation=File(stimulus.explanation_file, *size, said) if is_marked else None,
        tile=File(stimulus.image_tile_file, *tile_size),
        tile_explanation=File(stimulus.explanation_tile_file, *tile_size, said) if is_marked else None,
    )


def arm_of(slot: Slot, study: Study) -> tuple[bool, ...]:
    """For each block of the slot, whether any of its trials shows an explanation."""
    blocks: dict[int, bool] = {}
    for card in cards_of(slot, study):
        blocks[card.view.block] = blocks.get(card.view.block, False) or card.explained
    return tuple(blocks[block] for block in sorted(blocks))


def next_position(session: Session) -> int:
    """How many responses are stored; positions are contiguous, so this is the next one too."""
    last = session.responses.aggregate(last=models.Max("position"))["last"]
    return 0 if last is None else int(last) + 1


def free_slots(study: Study, lane: str | None = None, pilot: bool = False) -> models.QuerySet[Slot]:
    """Slots that may be claimed now: no holder, or the lease over and the holder has not passed. Of every
    lane unless one is named."""
    slots = Slot.objects.filter(study=study, pilot=pilot, kept=False)
    if lane is not None:
        slots = slots.filter(lane=lane)
    return slots.filter(models.Q(holder__isnull=True) | models.Q(lease_ends_at__lt=timezone.now()))


def slot_counts(study: Study) -> dict[str, dict[str, int]]:
    """Slots wanted, kept, in progress and free, per condition; per arm if a slot has not one condition."""
    now = timezone.now()
    held = models.Q(kept=False, holder__isnull=False, lease_ends_at__gte=now)
    rows = (
        Slot.objects.filter(study=study, pilot=False)
        .values("condition__name", "arm")
        .annotate(
            wanted=models.Count("id"),
            passed=models.Count("id", filter=models.Q(kept=True)),
            in_progress=models.Count("id", filter=held),
        )
        .order_by("condition__ordinal", "arm")
    )
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        # A condition may have several arms, such as the subsets of its items.
        name = row["condition__name"] or row["arm"]
        group = counts.setdefault(name, dict.fromkeys(("wanted", "passed", "in_progress", "free"), 0))
        for key in ("wanted", "passed", "in_progress"):
            group[key] += row[key]
        group["free"] = group["wanted"] - group["passed"] - group["in_progress"]
    return counts


def views_of(cards: Sequence[Card]) -> tuple[TrialView, ...]:
    return tuple(card.view for card in cards)
