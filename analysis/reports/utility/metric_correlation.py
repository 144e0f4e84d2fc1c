"""Utility of the methods beside what automatic metrics say of their explanations: faithfulness, complexity
and similarity, over the conditions of one study. It describes; a few methods decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import PermutationMethod, pearsonr, rankdata

from analysis.any_table.formats import NONE, confidence, interval, number, p_value
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Data, Figure, Section
from analysis.reports.drawing import figures
from analysis.reports.utility.faithfulness import (
    FAITHFULNESS,
    OF_DRAWN,
    OF_METHOD,
    differing,
    mean_of,
    metric_name,
    newest,
)
from analysis.reports.utility.scenarios import REVERSED
from analysis.stats.cluster_correlation import Kind, correlation
from analysis.stats.intervals_and_checks import StatsError

PREDICTED = "predicted_"
"""Begins the name of a rating that a scorer predicts (`score --keep`), behind it the question."""
METRICS = (
    *FAITHFULNESS,
    "sparsity",
    "entropy",
    "jpeg_complexity",
    "diagnostic_similarity",
    "method_similarity",
)
"""Faithfulness is measured of the method's own map and of what was seen, the others of what was seen."""
COLUMNS = {OF_METHOD: "the method", OF_DRAWN: "what was seen"}
P_MIN = 5
"""With fewer methods a p is given of no correlation."""
ORDERS = 50_000
"""All orders of up to 8 methods; of more, so many are drawn."""
Rows = Sequence[Mapping[str, Any]]


def sections(
    frames: Frames, rows: Rows, facts: StudyFacts, look: figures.Look, faithful: Sequence[Section]
) -> list[Section]:
    """One section, if any of `METRICS` was measured; it holds Utility, so only for a report that is not
    sealed. `rows` are the conditions as in report.json, `faithful` is the section on faithfulness, if any.
    """
    content = [
        _content(metric, parameters, column, columns, rows)
        for (metric, parameters), columns in sorted(
            newest(frames.stimuli).items(), key=lambda pair: (_place(pair[0][0]), pair[0][1])
        )
        if metric in METRICS or metric.startswith(PREDICTED)
        # Neither column of faithfulness stands in for the other, so one that lacks is shown to lack.
        for column in COLUMNS
        if column in columns or metric in FAITHFULNESS
    ]
    if not content:
        return []
    methods = max(measure["n"] for measure in content)
    said = (_sentence(methods), *(line for section in faithful for line in differing(section.content)))
    tables = (_table(content, rows, facts), _correlations(content))
    drawn = (_figure(content, facts, look),) if methods else ()
    title = "Utility beside automatic metrics"
    return [Section("metrics", title, {"methods": methods, "metrics": content}, said, tables, drawn)]


def _place(metric: str) -> int:
    return METRICS.index(metric) if metric in METRICS else len(METRICS)


def _content(
    metric: str,
    parameters: str,
    column: str,
    columns: Mapping[str, Mapping[tuple[str, str], float]],
    conditions: Rows,
) -> dict[str, Any]:
    rows = []
    for condition in conditions:
        by = {
            of: {item: value for (item, name), value in values.items() if name == condition["name"]}
            for of, values in columns.items()
        }
        # As for faithfulness: over the items that both columns have, or that the only one has.
        held = [set(values) for values in by.values() if values]
        items = set.intersection(*held) if held else set()
        mean = mean_of(by[column][item] for item in sorted(items)) if by.get(column) else None
        if mean is not None:
            ends = condition["intervals"]["utility_simultaneous"]
            row = {"condition": condition["name"], "label": condition["label"], "role": condition["role"]}
            value = 1 - mean if metric in REVERSED else mean
            row |= {"items": len(items), "value": value, "utility": condition["utility"], "interval": ends}
            rows.append(row)
    points = [(row["value"], row["utility"]) for row in _method_rows(rows)]
    told: dict[str, Any] = {"metric": metric, "parameters": json.loads(parameters), "column": column}
    return told | {"conditions": rows, "n": len(points)} | _together(points)


def _method_rows(rows: Rows) -> list[Mapping[str, Any]]:
    """The methods with Utility, without the control."""
    return [row for row in rows if row["role"] == "method" and row["utility"] is not None]


def _together(points: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    """Both correlations, None if not defined, and from P_MIN methods on their p, two-sided over the orders of
    the methods: twice the smaller tail."""
    made: dict[str, float | None] = {}
    kinds: tuple[Kind, ...] = ("pearson", "spearman")
    for kind in kinds:
        made |= {kind: None, f"p_{kind}": None}
        x, y = np.array(points, dtype=np.float64).reshape(len(points), 2).T
        try:
            made[kind] = correlation(x, y, kind=kind, draws=1).r
        except StatsError:
            continue
        if len(points) >= P_MIN:
            x, y = (x, y) if kind == "pearson" else (rankdata(x), rankdata(y))
            orders = PermutationMethod(n_resamples=ORDERS, rng=np.random.default_rng(0))
            made[f"p_{kind}"] = float(pearsonr(x, y, method=orders).pvalue)
    return made


def _sentence(methods: int) -> str:
    if methods < 3:
        return "Over fewer than 3 methods no correlation is given; the values stand side by side."
    return (
        f"A correlation over {methods} methods of one study says little: another method can turn its sign. "
        "Colin et al. (2022) looked at the methods of three scenarios."
    )


def _name(measure: Mapping[str, Any], content: Rows) -> str:
    minus = "1 \N{MINUS SIGN} " if measure["metric"] in REVERSED else ""
    name = f"{minus}{metric_name(measure, content)}"
    return f"{name}, {COLUMNS[measure['column']]}" if measure["metric"] in FAITHFULNESS else name


def _table(content: Rows, conditions: Rows, facts: StudyFacts) -> Table:
    by = [{row["condition"]: row["value"] for row in measure["conditions"]} for measure in content]
    rows = tuple(
        (
            str(condition["label"]),
            NONE if condition["role"] == "baseline" else number(condition["utility"]),
            interval(condition["intervals"]["utility_simultaneous"]),
            *(number(values.get(condition["name"]), 3) for values in by),
        )
        for condition in conditions
        if any(condition["name"] in values for values in by)
    )
    lacking = [
        measure["metric"] + ("_drawn" if measure["column"] == OF_DRAWN else "")
        for measure in content
        if not measure["conditions"]
    ]
    note = (
        "Mean of each metric over items. The method: of its own map. What was seen, and all others: of the "
        "field that is drawn."
    )
    note += f" Not measured: {', '.join(dict.fromkeys(lacking))}; name it in [[metrics]]." if lacking else ""
    held = f"{confidence(facts.level)}, together"
    names = (_name(measure, content) for measure in content)
    return Table(
        "metrics", "Utility and metrics by condition", ("Condition", "Utility", held, *names), rows, note
    )


def _correlations(content: Rows) -> Table:
    rows = tuple(
        (
            _name(measure, content),
            str(measure["n"]),
            number(measure["pearson"]),
            p_value(measure["p_pearson"]),
            number(measure["spearman"]),
            p_value(measure["p_spearman"]),
        )
        for measure in content
    )
    return Table(
        "metrics_correlations",
        "Correlation of Utility with each metric, over methods",
        ("Metric", "Methods", "Pearson's r", "p", "Spearman's rho", "p"),
        rows,
        "Without the control. A dash: fewer than 3 methods, or values that do not differ. p: over all orders "
        f"of the methods (of more than 8, {ORDERS:,} drawn orders), from {P_MIN} methods on, not corrected "
        "for the number of metrics.",
    )


def _figure(content: Rows, facts: StudyFacts, look: figures.Look) -> Figure:
    shown = ("label", "value", "utility")
    marks = [
        (_name(measure, content), *(row[key] for key in shown), *(row["interval"] or (None, None)))
        for measure in content
        for row in _method_rows(measure["conditions"])
    ]
    return Figure(
        "metrics",
        "Utility of each method against the mean of each metric over its explanations. Bars: simultaneous "
        f"{confidence(facts.level)} intervals of Utility, which hold together. Line: as without explanation.",
        "Utility against automatic metrics; the numbers stand in the tables.",
        partial(_draw, content, look),
        Data(("metric", "condition", "value", "utility", "low", "high"), tuple(marks)),
    )


def _draw(content: Rows, look: figures.Look) -> Any:
    """One panel per metric, a numbered point per method, and the numbers with their methods below."""
    shown = [measure for measure in content if measure["n"]]
    figure, grid = figures.panels(len(shown), look, alike=False, height=1.9)
    labels = {row["condition"]: row["label"] for m in shown for row in _method_rows(m["conditions"])}
    places = {name: place for place, name in enumerate(labels, 1)}
    for axes, measure in zip(grid, shown, strict=False):
        axes.axhline(1, color=figures.BASELINE, linewidth=1, zorder=1)
        for row in _method_rows(measure["conditions"]):
            at, colour = (row["value"], row["utility"]), look.colours[row["condition"]]
            ends = row["interval"]
            if ends and None not in ends:
                axes.plot([at[0]] * 2, ends, color=colour, linewidth=2, solid_capstyle="butt", zorder=2)
            axes.plot(*at, "o", color=colour, markersize=5.5, markeredgecolor="white", zorder=3)
            number_of = str(places[row["condition"]])
            axes.annotate(number_of, at, xytext=(4, 3), textcoords="offset points", fontsize=7.5)
        axes.set_xlabel(figures.fold_label(_name(measure, content)), fontsize=8)
        axes.tick_params(labelsize=8)
        axes.margins(x=0.2)
    low, high = (end(axes.get_ylim()[at] for axes in grid[: len(shown)]) for at, end in ((0, min), (1, max)))
    for axes in grid[: len(shown)]:
        axes.set_ylim(low, high)
    lines = [grid[0].plot([], [], "o", color=look.colours[name])[0] for name in labels]
    words = [f"{places[name]} {label}" for name, label in labels.items()]
    figure.legend(lines, words, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.supylabel("Utility", fontsize=9.5)
    return figure
