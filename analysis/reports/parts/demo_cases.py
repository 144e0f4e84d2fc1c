"""What a demo sets beside its report of simulated people: a comparison with controls, and two planted cases.

Only a demo keeps them (analysis.stored_reports.demo_case_file), so that no other study's report has them, and
no export: exports make their reports from rows alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from analysis.any_table.formats import NONE, interval, level, number, p_sentence, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Data, Figure, Main, Section
from analysis.reports.drawing import figures
from analysis.reports.report import SIMULATED_HEADING, Report
from analysis.stats.intervals_and_checks import mean_interval

NOT_YET = "controls: not yet run; nothing is read from this table without them"
CONTROLS, PLANTED = "controls", "planted_cases"
EXPLANATIONS = {
    "baseline": "none",
    "shown": "as shown",
    "permuted": "permuted in place",
    "other_image": "of another item",
    "oracle": "planted region",
    "ceiling": "unseen items",
}
COLUMNS = ("Observer", "Explanation", "Answers", "Accuracy %", "95 %", "Gain", "95 %")
GROUPS = {
    "marked": "Evidence marked",
    "null": "Null: the same masks\non other pictures",
    "baseline": "No explanation",
}
"""The groups of the planted cases, as the figure has them from above."""
GROUP_COLOURS = {"marked": "#0072B2", "null": figures.CONTROL, "baseline": figures.BASELINE}


def with_beside(report: Report, kept: Mapping[str, Any]) -> Report:
    """The report of simulated people with what its demo kept: `controls` (None: not yet run), `without` (why
    there are none) and `planted`. Without that it is as it was."""
    if not kept:
        return report
    under = controls_section(kept)
    more = (under, *([planted_section(kept["planted"], report.facts)] if kept.get("planted") else []))
    main = [*report.main]
    place = next((at for at, each in enumerate(main) if each.table is not None), None)
    table = main[place].table if place is not None else None
    if table is None or place is None:
        return replace(report, sections=(*report.sections, *more))
    main.insert(place + 1, Main(None, under.paragraphs) if not under.tables else Main(under.tables[0]))
    after = 1 + next(
        at for at, section in enumerate(report.sections) if table.key in {each.key for each in section.tables}
    )
    sections = (*report.sections[:after], *more, *report.sections[after:])
    return replace(report, sections=sections, main=tuple(main))


def controls_section(kept: Mapping[str, Any]) -> Section:
    """The comparison with controls, or the line that stands until it is there."""
    title, run = "Comparison with controls", kept.get("controls")
    if not run:
        return Section(CONTROLS, title, None, (kept.get("without") or NOT_YET,))
    faults = tuple(run["faults"])
    reading = (
        "The same observers on the first sittings, with spoiled and with perfect explanations: what the "
        "table above is read against."
    )
    return Section(CONTROLS, title, run, (reading, *faults), (controls_table(run["rows"]),))


def controls_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """All conditions of a control together; a study of one condition has them alone."""
    conditions = {row["condition"] for row in rows if row["condition"]}
    shown = [row for row in rows if not row["condition"] or len(conditions) == 1]
    return Table(
        "controls",
        "Controls of the observers",
        COLUMNS,
        tuple(_control_cells(row) for row in shown),
        f"{SIMULATED_HEADING} Accuracy: answers that match the model's. Gain: over no explanation, in "
        "points, paired by sitting.",
        left=2,
    )


def _control_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    ends = interval((row["low"], row["high"]), 1, 100)
    gain = _signed_points(row["gain"]), interval((row["gain_low"], row["gain_high"]), 1, 100)
    return (
        row["observer"],
        EXPLANATIONS[row["control"]],
        str(row["answers_count"]),
        percent(row["accuracy"]),
        ends,
        *((NONE, NONE) if row["control"] == "baseline" else gain),
    )


def _signed_points(share: float) -> str:
    """In points, with its sign."""
    text = percent(share)
    return f"+{text}" if share > 0 and text != "0.0" else text


def planted_section(planted: Mapping[str, Any], facts: StudyFacts) -> Section:
    """Two cases with a figure of their own: they stand in no table, and beside no method."""
    title = "Two planted cases"
    if "why_not" in planted:
        return Section(PLANTED, title, None, (planted["why_not"],))
    look = figures.Look.of(facts, "simulated")
    look = replace(look, stamp=f"{look.stamp}, planted: no result about a method")
    rows = tuple((name, 100 * value) for name in GROUPS for value in planted["scores"][name])
    figure = Figure(
        "planted_cases",
        planted_caption(planted),
        "Accuracy of each observer and mean of each group, for marked evidence, its null and no explanation.",
        partial(_draw_scores, planted["scores"], look),
        Data(("group", "accuracy"), rows),
    )
    return Section(PLANTED, title, dict(planted), (), (), (figure,))


def planted_caption(planted: Mapping[str, Any]) -> str:
    """Simulated, planted, by whom it is to be found, the power, and how often others find it."""
    people, kind = planted["people"], planted["kind"].replace("_", " ")
    alpha = level(planted["alpha"])
    counted = planted["counted"]
    other = (
        f"Power at n = {people} per group: {number(counted['power'], 2).replace('0.', '.')}. Of "
        f"{counted['runs']} other seeds {counted['marked']} found the first and {counted['null']} the second "
        f"(make prove PARTS=planted, at commit {counted['commit']})."
        if counted
        else "How often other seeds find them was not counted for this version."
    )
    return (
        f"Simulated and planted: no result of this study, and none about a method. {3 * people} {kind} "
        f"observers, {people} per group, in memory and not over HTTP, predicted a network that answers by "
        "the colour of one stone in drawn pictures. First: the stone is marked in the examples (the oracle "
        "mask), and these observers are to find it. Second, its null: the same masks on other pictures. "
        f"Against no explanation: {_difference_text(planted['cases']['marked'])}; the null "
        f"{_difference_text(planted['cases']['null'])} (Dunnett, two-sided, at {alpha}). {other} "
        "Network, observers, n and seed were frozen before the first run (digest "
        f"{planted['digest'][:12]}). Bars: 95 % intervals of means."
    )


def _difference_text(case: Mapping[str, Any]) -> str:
    ends = interval((case["low"], case["high"]), 1, 100)
    return f"{_signed_points(case['difference'])} points {ends}, {p_sentence(case['p'])}"


def _draw_scores(scores: Mapping[str, Sequence[float]], look: figures.Look) -> Any:
    figure, axes = figures.canvas(7.2, 2.5, look)
    rng = np.random.default_rng(0)
    for place, name in enumerate(GROUPS):
        y, values, colour = len(GROUPS) - 1 - place, 100 * np.asarray(scores[name]), GROUP_COLOURS[name]
        axes.plot(
            values, y + rng.uniform(-0.2, 0.2, values.size), ".", color=colour, alpha=0.45, markersize=6,
            markeredgewidth=0, zorder=1,
        )  # fmt: skip
        ends = mean_interval(values, level=0.95)
        figures.mark_mean(axes, values.mean(), y, [ends.low, ends.high] if ends else None, colour)
    axes.axvline(50, color=figures.BASELINE, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    figures.name_lines(axes, list(GROUPS.values()), spine=False)
    axes.set_xlabel("Accuracy per observer (%)")
    axes.set_xlim(-1, 101)
    return figure
