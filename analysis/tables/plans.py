"""The rows of `plans`: every planned trial of every slot, with all that the digest of the plans goes over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.tables.trials import Named
from experiments.models import Item, OtherStimulus, Rendering, Slot, Study, Trial
from stimuli.spec import canonical_json

SLOTS = 100
"""Slots that are read together."""
CHUNK = 5000
Row = tuple[object, ...]
Rendered = tuple[int, int, int]
"""A stimulus, an item, a condition."""


def plan_rows(study: Study, named: Named) -> Iterator[Row]:
    """In the order of the slots and of the trials, those of the pilot last."""
    keys = list(Slot.objects.filter(study=study).order_by("pilot", "ordinal").values_list("pk", flat=True))
    items = dict(Item.objects.filter(study=study).values_list("pk", "key").iterator(CHUNK))
    variants = _variants(study)
    for start in range(0, len(keys), SLOTS):
        chosen = keys[start : start + SLOTS]
        others = _others(chosen, named)
        slots = Slot.objects.in_bulk(chosen)
        trials = Trial.objects.filter(slot__in=chosen).defer("accepts")
        for trial in trials.order_by("slot__pilot", "slot__ordinal", "position").iterator(CHUNK):
            slot = slots[trial.slot_id]
            rendered = (trial.stimulus_id or 0, trial.item_id or 0, trial.condition_id or 0)
            yield (
                study.slug,
                slot.pilot,
                slot.ordinal,
                slot.lane,
                slot.arm,
                named(slot.condition_id)[0],
                slot.matched,
                trial.position,
                trial.block,
                trial.phase,
                trial.kind,
                trial.check_kind,
                items.get(trial.item_id or 0, ""),
                *named(trial.condition_id),
                trial.explained,
                canonical_json(trial.choices),
                trial.label,
                trial.expected,
                trial.right,
                canonical_json(trial.reservoir),
                canonical_json(others.get(trial.pk, {})),
                variants.get(rendered, ""),
                canonical_json(trial.extra),
            )


def _variants(study: Study) -> Mapping[Rendered, str]:
    """What tells several stimuli of one item under one condition apart."""
    rows = Rendering.objects.filter(item__study=study).exclude(variant="")
    fields = ("stimulus_id", "item_id", "condition_id", "variant")
    return {(s, i, c): variant for s, i, c, variant in rows.values_list(*fields).iterator(CHUNK)}


def _others(slots: list[int], named: Named) -> Mapping[int, dict[str, list[str]]]:
    """Further stimuli of a trial's page by role, as item and condition."""
    others: dict[int, dict[str, list[str]]] = {}
    rows = OtherStimulus.objects.filter(trial__slot__in=slots)
    fields = ("trial_id", "role", "stimulus__renderings__item__key", "stimulus__renderings__condition_id")
    for trial, role, item, condition in rows.values_list(*fields).order_by("pk"):
        others.setdefault(trial, {}).setdefault(role, [item, named(condition)[0]])
    return others
