"""Any trial of any condition: a slot's plan with its pictures, and the way to take it as a participant."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from analysis.any_table.formats import condition_label
from crowd.dashboard.access import study_page
from crowd.dashboard.layout import choices, study_response
from crowd.joining.entry_and_exit import preview_query
from experiments.kinds.base import INSTRUCTED, REPEAT, Check
from experiments.models import Slot, Study, Trial


@dataclass(frozen=True, slots=True)
class ShownTrial:
    """One trial of the plan."""

    trial: Trial
    what: str
    prompt: str
    take: str


@study_page("view")
def preview(request: HttpRequest, study: Study) -> HttpResponse:
    slots = Slot.objects.filter(study=study, pilot=False).order_by("ordinal")
    ordered = slots.order_by("condition__ordinal", "ordinal").values_list("arm", flat=True)
    arms = list(dict.fromkeys(ordered))
    arm = request.GET.get("condition", "")
    if arm not in arms:
        # Who looks for the first time wants to see an explanation.
        explained = Trial.objects.filter(slot__in=slots, explained=True).order_by("condition__ordinal")
        arm = explained.values_list("slot__arm", flat=True).first() or (arms[0] if arms else "")
    ordinals = list(slots.filter(arm=arm).values_list("ordinal", flat=True))
    rank = _whole(request.GET.get("plan", "1"), 1, max(1, len(ordinals)))
    slot = slots.get(ordinal=ordinals[rank - 1]) if ordinals else None
    content = {
        "arms": choices(request, "condition", {name: condition_label(name) for name in arms}, arm),
        "arm": arm,
        "rank": rank,
        "ranks": len(ordinals),
        "slot": slot,
        "parts": _parts(study, slot) if slot else [],
        "take_part": _join(study, slot.ordinal) if slot else "",
        "command": f"python manage.py preview {study.slug}",
    }
    return study_response(request, study, "preview", content)


def _whole(text: str, low: int, high: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else low
    return min(max(number, low), high)


def _join(study: Study, ordinal: int, position: int | None = None) -> str:
    return f"{reverse('join', args=[study.slug])}?{preview_query(study, ordinal, position)}"


def _parts(study: Study, slot: Slot) -> list[list[ShownTrial]]:
    """The trials of each block of a slot."""
    trials = slot.trials.select_related("item", "condition", "stimulus").order_by("block", "position")
    return [
        [ShownTrial(t, _what(t), _prompt(t), _join(study, slot.ordinal, t.position)) for t in of_block]
        for _, of_block in groupby(trials, key=attrgetter("block"))
    ]


def _what(trial: Trial) -> str:
    if trial.check_kind:
        return {INSTRUCTED: "Instructed check", REPEAT: "Repeat check"}.get(
            cast(Check, trial.check_kind), trial.check_kind
        )
    return {"train": "Training", "test": "Test", "practice": "Practice"}.get(trial.phase, trial.phase)


def _prompt(trial: Trial) -> str:
    if trial.check_kind == INSTRUCTED:
        return f"Asks for the key {trial.expected.upper()}"
    return str(trial.extra.get("prompt") or "")
