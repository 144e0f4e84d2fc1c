"""Reading: what a stored plan says, as immutable cards that may be cached, since plans never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from django.db import models
from django.utils import timezone

from experiments.definition import StudyDefinition
from experiments.models import Rendering, Session, Slot, Study, Trial
from experiments.paradigms.base import Check as CheckKind
from experiments.paradigms.base import Phase, TrialKind, TrialView


@dataclass(frozen=True, slots=True)
class Picture:
    """A stored file with its size in pixels."""

    file: str
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class Card:
    """One trial with all that serving and judging need. Never sent anywhere as it is."""

    id: int
    view: TrialView
    choices: tuple[dict[str, str], ...]
    label: str | None
    reservoir: tuple[int, ...]
    explained: bool
    image: Picture | None
    explanation: Picture | None
    tile: Picture | None
    tile_explanation: Picture | None
    prompt: str | None


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
        Trial.objects.filter(slot_id=slot_id).select_related("item", "condition").order_by("position")
    )
    wanted = {(t.item_id, t.condition_id) for t in trials if t.item_id}
    renderings = Rendering.objects.filter(
        item_id__in={item for item, _ in wanted}, condition_id__in={condition for _, condition in wanted}
    ).select_related("stimulus")
    stimuli = {(r.item_id, r.condition_id): r.stimulus for r in renderings}
    return tuple(_card(trial, stimuli.get((trial.item_id or 0, trial.condition_id or 0))) for trial in trials)


def _card(trial: Trial, stimulus: Any) -> Card:
    item = trial.item
    view = TrialView(
        position=trial.position,
        block=trial.block,
        phase=cast(Phase, trial.phase),
        kind=cast(TrialKind, trial.kind),
        check=cast(CheckKind, trial.check_kind),
        condition=trial.condition.name if trial.condition else "",
        choices=tuple(choice["value"] for choice in trial.choices),
        expected=trial.expected,
        truth=item.truth if item else None,
        predicted=item.predicted if item else None,
        extra=trial.extra,
    )

    def picture(file: str, tile: bool = False) -> Picture | None:
        if not file:
            return None
        if tile:
            return Picture(file, stimulus.tile_width_px, stimulus.tile_height_px)
        return Picture(file, stimulus.width_px, stimulus.height_px)

    shown = stimulus is not None
    return Card(
        id=trial.pk,
        view=view,
        choices=tuple(trial.choices),
        label=trial.label,
        reservoir=tuple(trial.reservoir),
        explained=trial.explained,
        image=picture(stimulus.image_file) if shown else None,
        explanation=picture(stimulus.explanation_file) if shown and trial.explained else None,
        tile=picture(stimulus.image_tile_file, tile=True) if shown else None,
        tile_explanation=picture(stimulus.explanation_tile_file, tile=True)
        if shown and trial.explained
        else None,
        prompt=trial.extra.get("prompt"),
    )


def next_position(session: Session) -> int:
    """How many responses are stored; positions are contiguous, so this is the next one too."""
    last = session.responses.aggregate(last=models.Max("position"))["last"]
    return 0 if last is None else int(last) + 1


def free_slots(study: Study, lane: str = "participant", pilot: bool = False) -> models.QuerySet[Slot]:
    """Slots that may be claimed now: no holder, or the lease over and the holder has not passed."""
    return Slot.objects.filter(study=study, lane=lane, pilot=pilot, kept=False).filter(
        models.Q(holder__isnull=True) | models.Q(lease_ends_at__lt=timezone.now())
    )


def slot_counts(study: Study) -> dict[str, dict[str, int]]:
    """Per condition: slots wanted, kept, in progress, free."""
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
    return {
        row["condition__name"] or row["arm"]: {
            "wanted": row["wanted"],
            "passed": row["passed"],
            "in_progress": row["in_progress"],
            "free": row["wanted"] - row["passed"] - row["in_progress"],
        }
        for row in rows
    }


def views_of(cards: Sequence[Card]) -> tuple[TrialView, ...]:
    return tuple(card.view for card in cards)
