"""The contact sheet: items down, conditions across, with one metric per cell, and in an order of choice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, QuerySet

from analysis.any_table.formats import condition_label
from analysis.models import Report
from experiments.models import Condition, Item, Rendering, Study
from stimuli.models import Measurement, Stimulus

OF = "stimulus__measurements__"
BY_NAME = {"": "Name"}
BY_CONFIDENCE = {"confidence": "Model unsure first", "-confidence": "Model sure first"}
BY_METRIC = {"metric": "Metric, low first", "-metric": "Metric, high first"}
BY_PEOPLE = {"people": "People wrong first", "-people": "People right first"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One item under one condition. `same_as` names a condition to the left whose picture is identical."""

    stimulus: Stimulus | None
    label: str
    kind: str
    same_as: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class StimulusRow:
    item: Item
    is_right: bool
    people: float | None
    """Share of people's answers that match the model, of all conditions together."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """Means of one metric by condition, in the order of the columns; empty if nothing is measured."""

    key: str
    metric: str
    settings: str
    unit: str
    better: str
    count: int
    means: tuple[str, ...]


def measures_of(study: Study, conditions: Sequence[Condition]) -> list[Measure]:
    """What the automatic metrics say of each condition: no person's answer is in it, so nothing is sealed."""
    names = [f"{OF}{name}" for name in ("key", "metric", "parameters", "unit", "better")]
    rows = Rendering.objects.filter(item__study=study, **{f"{OF}value__isnull": False})
    by_metric: defaultdict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in rows.values("condition_id", *names).annotate(mean=Avg(f"{OF}value"), count=Count("pk")):
        by_metric[row[f"{OF}key"]][row["condition_id"]] = row
    measures = []
    for key, by_condition in by_metric.items():
        first = next(iter(by_condition.values()))
        settings = ", ".join(
            f"{name} {json.dumps(value)}" for name, value in first[f"{OF}parameters"].items()
        )
        means = tuple(f"{by_condition[c.pk]['mean']:.4g}" if c.pk in by_condition else "" for c in conditions)
        count = sum(row["count"] for row in by_condition.values())
        measures.append(
            Measure(
                key, first[f"{OF}metric"], settings, first[f"{OF}unit"], first[f"{OF}better"], count, means
            )
        )
    return sorted(measures, key=lambda measure: (measure.metric, measure.settings))


def people_right(study: Study) -> dict[str, float]:
    """Item -> share of people's answers that match the model; empty while results are sealed, and for
    paradigms that score nothing."""
    stored = Report.objects.filter(study=study, origin="human", sealed=False).only("json").first()
    rows = stored.json.get("items") if stored else None
    return {
        row["item"]: row["accuracy"]
        for row in (rows if isinstance(rows, list) else [])
        if row.get("accuracy") is not None
    }


def orders_of(metric: str, people: Mapping[str, float]) -> dict[str, str]:
    """In which orders the items can stand, in words."""
    return BY_NAME | BY_CONFIDENCE | (BY_METRIC if metric else {}) | (BY_PEOPLE if people else {})


def sort_items(
    items: QuerySet[Item, Item], order: str, metric: str, people: Mapping[str, float]
) -> list[int]:
    """Primary keys of items in this order; those without a value last, equal ones by name."""
    name = order.removeprefix("-")
    if name == "metric":
        rows = Rendering.objects.filter(item__in=items, **{f"{OF}key": metric, f"{OF}value__isnull": False})
        means = dict(rows.values_list("item_id").annotate(mean=Avg(f"{OF}value")).order_by())
    listed = []
    for pk, key, confidence in items.values_list("pk", "key", "confidence"):
        value = {"confidence": confidence, "people": people.get(key)}.get(name)
        value = means.get(pk) if name == "metric" else value
        place = 0.0 if value is None else -value if order.startswith("-") else value
        listed.append((value is None, place, key, pk))
    return [row[-1] for row in sorted(listed)]


def lines_of(
    items: Sequence[Item], conditions: Sequence[Condition], metric: str, people: Mapping[str, float]
) -> list[StimulusRow]:
    rows = Rendering.objects.filter(item__in=items).select_related("stimulus").order_by("variant")
    by_cell: dict[tuple[int, int], Stimulus] = {}
    for row in rows:
        # Of several solutions of one source the first one stands for all.
        by_cell.setdefault((row.item_id, row.condition_id), row.stimulus)
    measured = Measurement.objects.filter(key=metric, stimulus__in=list(by_cell.values())) if metric else ()
    values = {row.stimulus_id: row.value for row in measured if row.value is not None}
    lines = []
    for item in items:
        seen: dict[str, str] = {}
        cells = []
        for condition in conditions:
            stimulus = by_cell.get((item.pk, condition.pk))
            label = condition_label(condition.name)
            digest = stimulus.picture_digest if stimulus else ""
            same_as = seen.get(digest, "") if digest else ""
            seen.setdefault(digest, label)
            kind = "explanation" if stimulus and stimulus.explanation_file else "image"
            value = values.get(stimulus.pk) if stimulus else None
            cells.append(Cell(stimulus, label, kind, same_as, "" if value is None else f"{value:.3g}"))
        lines.append(StimulusRow(item, item.truth == item.predicted, people.get(item.key), tuple(cells)))
    return lines
