"""The report of a study of advice: does the model's answer help people decide, and does its explanation?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from analysis.any_table.formats import NONE, finding, interval, number, p_sentence, p_value, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.assisted_decision.accuracy_and_reliance import (
    MEASURES,
    SHARES,
    AccuracyRow,
    AdviceContrast,
    Beside,
    RelianceRow,
    Share,
    accuracy_rows,
    contrasts,
    decision_rows,
    reliance_rows,
)
from analysis.reports.base import Figure, Headline, Main, Section
from analysis.reports.drawing import figures
from analysis.reports.drawing.figure_files import INK
from analysis.reports.parts import participants
from analysis.reports.parts.basis import ReportBasis, difference_cells
from analysis.reports.report import Report
from analysis.stats.ratings.clustered_means import ClusteredEstimate
from analysis.stats.shares.pigeonhole import CrossedEstimate
from experiments.paradigms.assisted_decision import BASELINE

INTERVALS = (
    "Intervals: 95 %, people and pictures both drawn at random (two-way clustered errors, Student's t); they "
    "speak of people and pictures like these."
)
OF_PEOPLE = (
    "Intervals: 95 %, whole people drawn at random (bootstrap-t on log odds); they speak of people before "
    "the pictures of this study."
)
POST_TREATMENT = (
    "From the second picture on, first decisions come after advice that was seen before. So the decisions "
    "of which RAIR and RSR are shares are not chosen by chance, and may differ between conditions: compare "
    "their numbers as well."
)
NOT_SHOWN = "advice not shown"


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Flow, accuracy of first and second decisions against the advice and the better of both, planned
    contrasts, reliance, following, switches without advice; sealed while the study collects."""
    basis = ReportBasis.of(frames, definition)
    rows = decision_rows(basis.kept)
    pooled = _pooled_section(rows)
    if basis.seal.sealed:
        results = [basis.sealed_section(rows, "participant")]
    else:
        reliance = reliance_rows(rows, definition)
        every = [c for measure in MEASURES for c in contrasts(rows, definition, measure)]
        results = [
            _conditions(accuracy_rows(rows, definition), definition, basis.look),
            _contrasts(every, definition),
            _reliance(reliance),
            _following(reliance),
            _without_advice(reliance),
            _sets(every, basis.confirmed, definition),
            *participants.questions(basis.kept, definition),
        ]
    sections = (pooled, *results, *basis.open_sections(), basis.flow)
    return basis.report(sections, made_at, [_headline(pooled)], _main(sections), _opening(pooled, basis.look))


def _pooled_section(rows: pd.DataFrame) -> Section:
    """What may always be seen: all conditions together."""
    content = {
        "people": int(rows["participant"].nunique()),
        "decisions": len(rows),
        "final": float(rows["final"].mean()) if len(rows) else None,
    }
    return Section("pooled", "", content)


def _headline(pooled: Section) -> Headline:
    return Headline(percent(pooled.content["final"]), "of second decisions are right, all conditions", " %")


def _opening(pooled: Section, look: figures.Look) -> str:
    told = pooled.content
    if told["final"] is None:
        return ""
    return f"{look.counted(told['people'])} kept; {percent(told['final'])} % of second decisions are right."


def _main(sections: Sequence[Section]) -> tuple[Main, ...]:
    tables = {table.key: table for section in sections for table in section.tables}
    said = {section.key: section.paragraphs for section in sections}
    return (
        Main(tables["conditions"], said.get("conditions", ())),
        Main(tables.get("beside")),
        Main(tables.get("gain_contrasts"), said.get("contrasts", ())),
        Main(tables.get("reliance")),
    )


def _conditions(made: Sequence[AccuracyRow], facts: StudyFacts, look: figures.Look) -> Section:
    lines = tuple(
        (
            row.condition.label,
            str(row.people),
            _percent(row.initial),
            _percent(row.final),
            _ends(row.final),
            *_points_and_ends(row.gain),
        )
        for row in made
    )
    columns = ("Condition", "n", "First %", "Second %", "95 %", "Gain", "95 %")
    note = (
        "Share of decisions that name what the picture shows. Gain: second less first, percentage points. "
        f"{INTERVALS} {' '.join(facts.stimuli)}"
    ).rstrip()
    table = Table("conditions", "Accuracy of first and second decisions", columns, lines, note)
    drawn = [row for row in made if row.initial is not None]
    figure = Figure(
        "accuracy",
        "First (open) and second decisions (filled) that are right, with 95 % intervals; the line is the "
        "accuracy of the advice alone.",
        "Two points with intervals for each condition, and a line.",
        partial(accuracy_figure, drawn, look),
    )
    said = tuple(_team(row) for row in made if row.is_advised and row.over_better is not None)
    content = [row.as_json() for row in made]
    tables = (table, _beside_table(made))
    return Section("conditions", "Accuracy", content, said, tables, (figure,) if drawn else ())


def _beside_table(made: Sequence[AccuracyRow]) -> Table:
    """Second decisions against people alone, the advice alone, and the better of both; without advice nothing
    is held against it."""
    advised = [row for row in made if row.is_advised]
    lines = tuple(
        (
            row.condition.label,
            *(
                cell
                for told in (row.gain, row.over_advice, row.over_better)
                for cell in _points_and_ends(told)
            ),
        )
        for row in advised
    )
    columns = ("Condition", "Less first", "95 %", "Less advice alone", "95 %", "Less better of both", "95 %")
    advice = sorted({row.advice for row in advised if row.advice is not None})
    note = (
        "Accuracy of second decisions, percentage points, less that of people's own first decisions, less "
        f"that of the advice ({', '.join(percent(share) for share in advice) or NONE} % by design), and "
        "less the higher of both."
    )
    return Table("beside", "Second decisions beside people alone and advice alone", columns, lines, note)


def _team(row: AccuracyRow) -> str:
    assert row.initial is not None and row.final is not None
    told = (
        f"{row.condition.label}: {percent(row.final.estimate)} % of second decisions are right, of first "
        f"ones {percent(row.initial.estimate)} %, and of the advice {percent(row.advice)} %"
    )
    if row.is_above_both:
        return f"{told}: people with advice are above both."
    return f"{told}: that people with advice are above both was not shown."


def _percent(told: ClusteredEstimate | None) -> str:
    return percent(told.estimate) if told else NONE


def _points(told: ClusteredEstimate | Beside | None) -> str:
    return number(100 * told.estimate, 1) if told else NONE


def _ends(told: ClusteredEstimate | Beside | None) -> str:
    return interval(told.interval if told else None, 1, 100)


def _points_and_ends(told: ClusteredEstimate | Beside | None) -> tuple[str, str]:
    return _points(told), _ends(told)


def accuracy_figure(made: Sequence[AccuracyRow], look: figures.Look) -> Any:
    """A line per condition from the first to the second decisions, each with its interval."""
    figure, axes = figures.canvas(7.2, 1.2 + 0.5 * len(made), look)
    for y, row in enumerate(reversed(made)):
        colour = look.colours[row.condition.name]
        for told, shift, fill in ((row.initial, 0.13, "white"), (row.final, -0.13, colour)):
            assert told is not None
            if ends := told.interval:
                across = [100 * ends.low, 100 * ends.high]
                axes.plot(across, [y + shift] * 2, color=colour, linewidth=2.4, zorder=2)
            dot = {"color": colour, "markerfacecolor": fill, "markeredgecolor": colour, "markersize": 7}
            axes.plot(100 * told.estimate, y + shift, "o", zorder=3, **dot)
    for share in {row.advice for row in made if row.advice is not None}:
        axes.axvline(100 * share, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    figures.name_lines(axes, [row.condition.label for row in made])
    axes.set_xlabel("Right decisions (%)")
    return figure


def _contrasts(made: Sequence[AdviceContrast], facts: StudyFacts) -> Section:
    tables = []
    for measure, words in MEASURES.items():
        part = [c for c in made if c.measure == measure]
        if part:
            tables.append(_contrast_table(f"{measure}_contrasts", f"Planned contrasts: {words}", part, facts))
    problems = tuple(dict.fromkeys(f"{c.problem}." for c in made if c.problem))
    said = tuple(_contrast_sentence(c, facts) for c in made if c.measure == "gain" and c.p_holm is not None)
    content = [c.as_json() for c in made]
    return Section("contrasts", "Planned contrasts", content, (*said, *problems), tuple(tables))


def _contrast_table(key: str, title: str, made: Sequence[AdviceContrast], facts: StudyFacts) -> Table:
    lines = tuple(
        (
            *_names(c, facts),
            str(c.result.people if c.result else 0),
            str(c.result.items if c.result else 0),
            *difference_cells(c.result, c.p_holm, 1, 100),
        )
        for c in made
    )
    note = (
        "Percentage points, on the pictures that both have, at the declared accuracy of the advice: pictures "
        "of right advice count alike, those of wrong advice too, and both kinds as often as they are met. "
        f"{INTERVALS} Holm: over the contrasts with a second look without advice, "
        "and over those with unexplained advice."
    )
    columns = ("Condition", "Less", "People", "Pictures", "Difference", "95 %", "p", "p, Holm")
    return Table(key, title, columns, lines, note, left=2)


def _names(contrast: AdviceContrast, facts: StudyFacts) -> tuple[str, str]:
    return facts.labels[contrast.first], facts.labels[contrast.second]


def _contrast_sentence(contrast: AdviceContrast, facts: StudyFacts) -> str:
    assert contrast.result is not None and contrast.p_holm is not None
    names = " and ".join(_names(contrast, facts))
    points = f"{number(100 * contrast.result.estimate, 1)} points"
    told = finding(contrast.p_holm, "the accuracy gain", names)
    return f"{told[0].upper()}{told[1:]} ({points}, {p_sentence(contrast.p_holm)} by Holm)."


def _label(row: RelianceRow) -> str:
    return row.condition.label + ("" if row.condition.role != BASELINE else f" ({NOT_SHOWN})")


def _undefined_notes(made: Sequence[RelianceRow], names: Sequence[str]) -> tuple[str, ...]:
    said = [(row.condition.label, ", ".join(row.undefined(names))) for row in made]
    return tuple(
        f"{label}: {what} not defined, as there is no decision that it would be a share of."
        for label, what in said
        if what
    )


def _reliance(made: Sequence[RelianceRow]) -> Section:
    """Always with the numbers of decisions, and with what they cannot say."""
    names = ("rair", "rsr")
    lines = tuple(
        (_label(row), *(cell for name in names for cell in _cells(row.shares[name]))) for row in made
    )
    columns = ("Condition", "RAIR %", "95 %", "Taken", "RSR %", "95 %", "Kept")
    note = (
        "RAIR, relative AI reliance: of first decisions that were wrong while the advice was right, those "
        "changed to the advice. RSR, relative self-reliance: of first decisions that were right while the "
        "advice was wrong, those kept. Both at 100 % is ideal. Pooled over decisions. Without advice they "
        f"are what people change by themselves. {OF_PEOPLE}"
    )
    title = "Appropriateness of reliance, after Schemmer et al. 2023"
    table = Table("reliance", title, columns, lines, note)
    content = [row.as_json() for row in made]
    said = (POST_TREATMENT, *_undefined_notes(made, names))
    return Section("reliance", "Reliance on advice", content, said, (table,))


def _cells(told: Share) -> tuple[str, str, str]:
    """The share, its interval, and how many of how many."""
    if told.told is None:
        return NONE, NONE, "0 of 0"
    ends = interval(told.told.interval, 1, 100)
    return percent(told.told.share), ends, f"{told.told.yes} of {told.told.total}"


def _following(made: Sequence[RelianceRow]) -> Section:
    advised = [row for row in made if row.condition.role != BASELINE]
    names = ("over_reliance", "under_reliance", "to_right", "to_wrong")
    cells = {row.condition.label: [_cells(row.shares[name]) for name in names] for row in advised}
    lines = tuple((label, *(f"{share} ({of})" for share, _, of in told)) for label, told in cells.items())
    columns = (
        "Condition",
        "Followed wrong advice %",
        "Did not follow right advice %",
        "Switched to right advice %",
        "Switched to wrong advice %",
    )
    note = (
        "Followed wrong advice: over-reliance; did not follow right advice: under-reliance. Switched: of "
        "first decisions that were not the advice."
    )
    table = Table("following", "Over-reliance and under-reliance", columns, lines, note)
    signal = (
        "Of following: the signal is that the advice is right, the response that the second decision is the "
        "advice; d' 0: right advice is followed no more than wrong advice; criterion below 0: more is "
        "followed than not. Log-linear correction; "
        "intervals by people and pictures together (pigeonhole bootstrap-t)."
    )
    told = Table(
        "discrimination",
        "Right advice told from wrong advice",
        ("Condition", "d'", "95 %", "Criterion", "95 %"),
        tuple(
            (row.condition.label, *_estimate_cells(row.d_prime), *_estimate_cells(row.criterion))
            for row in advised
        ),
        signal,
    )
    intervals = Table(
        "following_intervals",
        "Their intervals",
        ("Condition", *(f"{SHARES[name][0]}, 95 %" for name in names)),
        tuple((label, *(ends for _, ends, _ in told)) for label, told in cells.items()),
        OF_PEOPLE,
    )
    problems = tuple(f"{row.condition.label}: {row.problem}." for row in advised if row.problem)
    said = (*_undefined_notes(advised, names), *problems)
    return Section("following", "Following advice", None, said, (table, intervals, told))


def _estimate_cells(told: CrossedEstimate | None) -> tuple[str, str]:
    return (NONE, NONE) if told is None else (number(told.estimate), interval(told.interval()))


def _without_advice(made: Sequence[RelianceRow]) -> Section:
    """How often people change a decision by themselves."""
    names = ("switched", "from_right", "from_wrong")
    lines = tuple(
        (SHARES[name][0], *_cells(row.shares[name]))
        for row in made
        if row.condition.role == BASELINE
        for name in names
    )
    columns = ("Second look without advice", "%", "95 %", "Decisions")
    table = Table("spontaneous", "Switches without advice", columns, lines, OF_PEOPLE)
    said = ("What people change on a second look alone is no effect of advice: contrasts are against it.",)
    return Section("spontaneous", "Spontaneous switching", None, said, (table,))


def _sets(made: Sequence[AdviceContrast], frames: Frames, facts: StudyFacts) -> Section:
    """The gain contrasts once more, with those left out by hand, and as assigned."""
    sets = {
        "Kept": [c for c in made if c.measure == "gain"],
        "With those left out by hand": contrasts(decision_rows(frames.passed()), facts, "gain"),
        "As assigned": contrasts(decision_rows(frames), facts, "gain"),
    }
    lines = tuple(
        (
            *_names(c, facts),
            name,
            str(c.result.people if c.result else 0),
            *difference_cells(c.result, None, 1, 100)[:2],
            p_value(c.p_holm),
        )
        for place in range(len(sets["Kept"]))
        for name, c in ((name, every[place]) for name, every in sets.items())
    )
    columns = ("Condition", "Less", "People are", "n", "Difference", "95 %", "p, Holm")
    note = (
        "Accuracy gain, percentage points. As assigned: everybody who got a place and decided about some "
        "picture twice, without the rules that act after assignment."
    )
    content = {name: [c.as_json() for c in every] for name, every in sets.items()}
    table = Table("sets", "The gain by who is counted", columns, lines, note, left=3)
    return Section("sets", "Who is counted", content, (), (table,))
