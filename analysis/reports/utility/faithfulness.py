"""Faithfulness of the explanations, twice: of the method's own map, and of what people saw drawn.

Neither stands in for the other. If the two put the methods in another order, one sentence says so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from stimuli.metrics import METRICS

FAITHFULNESS = ("deletion", "insertion", "road")
DRAWN = "_drawn"
OF_METHOD, OF_DRAWN = "method", "seen"
"""The two columns, as report.json names them."""
COLUMNS = ("The method", "What was seen", "Tied, the method", "Tied, what was seen")
TIED = (
    "The method: by the signed values of its own map. What was seen: by the field that is drawn, on the same "
    "items. Tied: the share of pixels with the value of another one, whose order was drawn by chance."
)
Values = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Condition -> column -> item -> what was measured."""


def sections(frames: Frames, facts: StudyFacts) -> list[Section]:
    """One section, if any faithfulness was measured. It holds no person's answer, so it is never sealed."""
    measured = _faithfulness_values(frames)
    if not measured:
        return []
    content = [_content(metric, parameters, by, facts) for (metric, parameters), by in measured.items()]
    tables = tuple(_table(place, measure, content) for place, measure in enumerate(content))
    return [Section("faithfulness", "Faithfulness of the explanations", content, sentences(content), tables)]


def _faithfulness_values(frames: Frames) -> dict[tuple[str, str], Values]:
    """By metric (without what it scores) and its parameters as JSON, in the order of `FAITHFULNESS`."""
    by_metric: dict[tuple[str, str], dict[str, dict[str, dict[str, Any]]]] = {}
    stimuli = frames.stimuli[frames.stimuli["metrics"] != ""]
    for condition, item, cell in zip(stimuli["condition"], stimuli["item"], stimuli["metrics"], strict=True):
        for measure in json.loads(cell):
            name = str(measure["metric"])
            if (metric := name.removesuffix(DRAWN)) in FAITHFULNESS:
                key = metric, json.dumps(measure["parameters"], sort_keys=True)
                by = by_metric.setdefault(key, defaultdict(lambda: defaultdict(dict)))
                column = by[str(condition)][OF_DRAWN if name.endswith(DRAWN) else OF_METHOD]
                if measure["version"] >= column.get(str(item), measure)["version"]:
                    column[str(item)] = measure
    return {
        key: by_metric[key] for key in sorted(by_metric, key=lambda key: (FAITHFULNESS.index(key[0]), key[1]))
    }


def newest(stimuli: pd.DataFrame) -> dict[tuple[str, str], dict[str, dict[tuple[str, str], float]]]:
    """(metric, parameters) -> column -> (item, condition) -> value of the newest version."""
    by: dict[tuple[str, str], dict[str, dict[tuple[str, str], tuple[int, float]]]] = {}
    for item, condition, cell in zip(stimuli["item"], stimuli["condition"], stimuli["metrics"], strict=True):
        for measure in json.loads(cell) if cell else ():
            name = str(measure["metric"])
            seen = name.endswith(DRAWN) or measure.get("scores") == "drawn"
            key = name.removesuffix(DRAWN), json.dumps(measure["parameters"], sort_keys=True)
            column = by.setdefault(key, {}).setdefault("seen" if seen else "method", {})
            told = int(measure["version"]), float(measure["value"])
            place = str(item), str(condition)
            column[place] = max(column.get(place, told), told, key=lambda pair: pair[0])
    return {
        key: {column: {at: value for at, (_, value) in of.items()} for column, of in columns.items()}
        for key, columns in sorted(by.items())
    }


def _content(metric: str, parameters: str, by: Values, facts: StudyFacts) -> dict[str, Any]:
    rows = [_row(c.name, c.label, c.role, by[c.name]) for c in facts.conditions if c.name in by]
    better = METRICS.load(metric).better
    methods = [row for row in rows if row["role"] == "method"]
    orders = {column: _order(methods, column, better) for column in (OF_METHOD, OF_DRAWN)}
    return {
        "metric": metric,
        "parameters": json.loads(parameters),
        "better": better,
        "conditions": rows,
        "order": orders,
        "differs": _differs(methods) if all(orders.values()) else None,
    }


def _row(name: str, label: str, role: str, of: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Means over the items that both columns have, or that the only one has."""
    columns = {column: of[column] for column in (OF_METHOD, OF_DRAWN) if column in of}
    items = sorted(set.intersection(*(set(column) for column in columns.values())))
    row: dict[str, Any] = {"condition": name, "label": label, "role": role, "n": len(items)}
    for column in (OF_METHOD, OF_DRAWN):
        measured = [columns[column][item] for item in items] if column in columns else []
        row[column] = mean_of(measure["value"] for measure in measured)
        row[f"tied_{column}"] = mean_of(measure.get("tied") for measure in measured)
    return row


def mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _order(methods: Sequence[Mapping[str, Any]], column: str, better: str) -> list[str]:
    """Labels of the methods, most faithful first; none unless at least two are known and no one is not."""
    if len(methods) < 2 or any(row[column] is None for row in methods):
        return []
    ranked = sorted(methods, key=lambda row: row[column], reverse=better == "higher")
    return [str(row["label"]) for row in ranked]


def _differs(methods: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any two methods change places between the columns; equal means are in no order."""
    return any(
        (a[OF_METHOD] - b[OF_METHOD]) * (a[OF_DRAWN] - b[OF_DRAWN]) < 0 for a, b in combinations(methods, 2)
    )


def sentences(content: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """One for each metric: whether its two columns put the methods in one order."""
    return tuple(
        _sentence(measure, metric_name(measure, content))
        for measure in content
        if measure["differs"] is not None
    )


def differing(content: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Those of the sentences that a reader must not miss."""
    return tuple(
        _sentence(measure, metric_name(measure, content)) for measure in content if measure["differs"]
    )


def _sentence(measure: Mapping[str, Any], name: str) -> str:
    if not measure["differs"]:
        return f"By {name}, the methods stand in one order by their own maps and by what was seen."
    by_map, seen = (", ".join(measure["order"][column]) for column in (OF_METHOD, OF_DRAWN))
    methods = [row for row in measure["conditions"] if row["role"] == "method"]
    tied = [mean_of(row[f"tied_{column}"] for row in methods) for column in (OF_METHOD, OF_DRAWN)]
    said = (
        f"By {name}, the methods stand in another order by what was seen ({seen}) than by their own maps "
        f"({by_map})"
    )
    if None in tied:
        return f"{said}."
    return f"{said}; tied are {percent(tied[1])} % and {percent(tied[0])} % of the pixels."


def metric_name(measure: Mapping[str, Any], content: Sequence[Mapping[str, Any]]) -> str:
    """The metric, with the parameters in which it differs from others of its name."""
    others = [other["parameters"] for other in content if other["metric"] == measure["metric"]]
    told = [
        f"{key} {value}"
        for key, value in measure["parameters"].items()
        if any(other.get(key) != value for other in others)
    ]
    return f"{measure['metric']} ({', '.join(told)})" if told else str(measure["metric"])


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The numbers of one condition, under `COLUMNS`."""
    return tuple(
        number(row[key], digits)
        for key, digits in ((OF_METHOD, 3), (OF_DRAWN, 3), (f"tied_{OF_METHOD}", 2), (f"tied_{OF_DRAWN}", 2))
    )


def _table(place: int, measure: Mapping[str, Any], content: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple((str(row["label"]), str(row["n"]), *cells(row)) for row in measure["conditions"])
    lacking = [
        f"{measure['metric']}{suffix}"
        for column, suffix in ((OF_METHOD, ""), (OF_DRAWN, DRAWN))
        if all(row[column] is None for row in measure["conditions"])
    ]
    note = f"{TIED} Not measured: {', '.join(lacking)}; name it in [[metrics]]." if lacking else TIED
    name = metric_name(measure, content)
    title = f"{name[0].upper()}{name[1:]}: mean over items, {measure['better']} is more faithful"
    return Table(f"faithfulness_{place}", title, ("Condition", "Items", *COLUMNS), rows, note)


def across(scenarios: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[Table, tuple[str, ...]]:
    """The same of several studies: one table, and the sentences on orders that differ. `scenarios` holds the
    content of each study's section by its slug, empty if nothing was measured."""
    rows = [
        (slug, metric_name(measure, content), str(row["label"]), *cells(row))
        for slug, content in scenarios.items()
        for measure in content
        for row in measure["conditions"]
    ]
    short = ("Scenario", "Metric", "Condition", "own", "seen", "tied", "seen")
    table = Table(
        "scenario_faithfulness",
        "Faithfulness, of the method and of what was seen",
        ("Scenario", "Metric", "Condition", *COLUMNS),
        tuple(rows),
        TIED,
        left=3,
        short=short,
    )
    said = [f"{slug}: {sentence}" for slug, content in scenarios.items() for sentence in differing(content)]
    return table, tuple(said)
