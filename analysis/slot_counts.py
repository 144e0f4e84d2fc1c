"""How many slots of a study are wanted and kept: by condition, and by lane if slots mix conditions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Count, Q, QuerySet

from analysis.any_table.formats import condition_label
from analysis.facts import ConditionFacts, SlotFacts
from experiments.models import Condition, Session, Slot, Study
from stimuli.errors import BadSpec
from stimuli.explainers import kind_of
from stimuli.spec import Component


class SlotCounts(NamedTuple):
    """Slots that are wanted, and how many of them a person who passed has kept."""

    wanted: int = 0
    kept: int = 0

    def plus(self, other: SlotCounts) -> SlotCounts:
        return SlotCounts(self.wanted + other.wanted, self.kept + other.kept)


def slot_counts(study: Study, origin: str) -> tuple[tuple[ConditionFacts, ...], tuple[SlotFacts, ...]]:
    """The study's slots, or those of its pilot, as people of one origin kept them.

    Returns conditions and groups. Every slot stands in one group; a slot that mixes conditions counts for
    each condition that it shows.
    """
    is_pilot = origin == Session.Origin.PILOT
    slots = Slot.objects.filter(study=study, pilot=is_pilot)
    # Models take no slots: what people have kept decides when a comparison with them is open.
    counted = Session.Origin.HUMAN if origin == Session.Origin.MODEL else origin
    is_kept = Q(kept=True, holder__origin=counted)
    conditions = list(study.conditions.order_by("ordinal"))
    pure, lanes = _count_slots(slots, is_kept)
    if not pure and not lanes and not is_pilot:
        # A draft: slots are planned when it opens.
        pure = {c.pk: SlotCounts(c.slots) for c in conditions}
    mixed = _shown_beside_others(slots, is_kept) if lanes else {}
    labels = {c["name"]: c.get("label") or "" for c in study.definition.get("conditions", [])}
    named = _dataset_and_model(study)
    facts = {c.pk: _facts(c, labels, pure, mixed, named) for c in conditions}
    groups = [
        SlotFacts(facts[c.pk].name, facts[c.pk].label, *pure.get(c.pk, SlotCounts()))
        for c in conditions
        if c.pk in pure or not lanes
    ]
    groups += [SlotFacts(lane, condition_label(lane), *n, by="lane") for lane, n in sorted(lanes.items())]
    return tuple(facts.values()), tuple(groups)


def _count_slots(slots: QuerySet[Slot], is_kept: Q) -> tuple[dict[int, SlotCounts], dict[str, SlotCounts]]:
    """Slots of one condition by condition, and the others by lane."""
    pure: dict[int, SlotCounts] = defaultdict(SlotCounts)
    lanes: dict[str, SlotCounts] = {}
    rows = slots.order_by().values_list("condition", "lane")
    for condition, lane, wanted, kept in rows.annotate(n=Count("id"), k=Count("id", filter=is_kept)):
        if condition is None:
            lanes[lane] = SlotCounts(wanted, kept)
        else:
            pure[condition] = pure[condition].plus(SlotCounts(wanted, kept))
    return dict(pure), lanes


def _shown_beside_others(slots: QuerySet[Slot], is_kept: Q) -> dict[int, SlotCounts]:
    """For each condition the slots that mix it with others."""
    rows = slots.filter(condition=None, trials__condition__isnull=False).order_by()
    counts = rows.values_list("trials__condition").annotate(
        n=Count("id", distinct=True), k=Count("id", distinct=True, filter=is_kept)
    )
    return {condition: SlotCounts(wanted, kept) for condition, wanted, kept in counts}


def _dataset_and_model(study: Study) -> tuple[str, str]:
    """The name of the study's only dataset and of its only model; empty if it has several."""
    stimuli = study.definition.get("stimuli") or {}
    dataset, predictor = ((stimuli.get(key) or {}).get("name", "") for key in ("dataset", "predictor"))
    return dataset, predictor


def _facts(
    condition: Condition,
    labels: Mapping[str, str],
    pure: Mapping[int, SlotCounts],
    mixed: Mapping[int, SlotCounts],
    named: tuple[str, str],
) -> ConditionFacts:
    counted = pure.get(condition.pk, SlotCounts()).plus(mixed.get(condition.pk, SlotCounts()))
    label = labels.get(condition.name) or condition_label(condition.name)
    return ConditionFacts(
        condition.name,
        label,
        condition.role,
        *counted,
        method=(condition.explainer or {}).get("name", ""),
        predictor=condition.predictor or named[1],
        dataset=condition.dataset or named[0],
        shows=_explanation_kind(condition.explainer),
    )


def _explanation_kind(explainer: Mapping[str, Any] | None) -> str:
    """What the method explains with; empty for none, and for one of a package that is gone."""
    if explainer is None:
        return ""
    try:
        return str(kind_of(Component.from_json(explainer)))
    except BadSpec:
        return ""
