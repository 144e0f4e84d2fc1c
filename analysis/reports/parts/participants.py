"""Besides the result: arrivals over time, durations, results of the checks, answers to questions."""

from __future__ import annotations

import json
from typing import Any, get_args

import pandas as pd

from analysis.any_table.formats import NONE, number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import QuestionFacts, StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.reports.parts.flow import group_content, group_head, members
from analysis.reports.parts.simulated_observers import by_observer, population
from analysis.timing_and_visual_angle import FRAMES_MIN, Timing
from experiments.drafting.dropped_items import COLUMNS
from experiments.kinds.base import INSTRUCTED, REPEAT

TIMES = ("first", "median", "last")
RESERVOIR, TRUTH = "Reservoir opened %", "Agrees with truth %"
SHARES = {
    RESERVOIR: "reservoir_share",
    "Instructed checks %": "instructed_share",
    "Repeat checks %": "repeat_share",
    TRUTH: "truth_share",
}


def sections(frames: Frames, facts: StudyFacts) -> list[Section]:
    """Results per condition, so only for a report that is not sealed."""
    return [*by_observer(frames, facts), _behaviour(frames, facts), *questions(frames, facts)]


def open_sections(frames: Frames, facts: StudyFacts) -> list[Section]:
    """What may be seen while data are collected."""
    parts = [_arrival(frames, facts), *_display(frames), *population(frames), *_stimuli(facts)]
    return [*parts, *_answers(facts)]


def _answers(facts: StudyFacts) -> list[Section]:
    """What stands behind the names of answers that do not say it."""
    named = [answer for answer in facts.answers if answer.means]
    if not named:
        return []
    rows = tuple((answer.text, answer.value, answer.means) for answer in named)
    table = Table("answers", "Names of the answers", ("People read", "Stored as", "Stands for"), rows, left=3)
    content = {answer.value: answer.means for answer in named}
    return [Section("answers", "The answers", content, (), (table,))]


def _stimuli(facts: StudyFacts) -> list[Section]:
    """What is known of the stimuli themselves: no person's answer is in it."""
    if not facts.stimuli:
        return []
    labels = facts.labels
    rows = tuple((labels.get(name, name), *counts) for name, *counts in facts.dropped)
    tables = (Table("dropped", "Empty explanations", COLUMNS, rows, left=2),) if rows else ()
    content = {"sentences": list(facts.stimuli), "dropped": [list(row) for row in facts.dropped]}
    return [Section("stimuli", "The stimuli", content, facts.stimuli, tables)]


def _behaviour(frames: Frames, facts: StudyFacts) -> Section:
    trials = frames.kept().trials
    rows: list[dict[str, Any]] = []
    for c in facts.conditions:
        shown = trials[trials["condition"] == c.name]
        scored, train = shown[shown["scored_index"].notna()], shown[shown["phase"] == "train"]
        rows.append(
            {
                "condition": c.name,
                "label": c.label,
                "test_median_ms": _median(scored["rt_ms"]),
                "train_median_ms": _median(train["shown_ms"]),
                "reservoir_share": _mean(scored["reservoir_ms"].fillna(0) > 0),
                "instructed_share": _mean(shown.loc[shown["check"] == INSTRUCTED, "check_passed"]),
                "repeat_share": _mean(shown.loc[shown["check"] == REPEAT, "check_passed"]),
                "truth_share": _mean(scored["matches_truth"]),
            }
        )
    return Section("behaviour", "How people worked", rows, (), (_behaviour_table(rows, trials),))


def _behaviour_table(rows: list[dict[str, Any]], trials: pd.DataFrame) -> Table:
    """Only the columns of which the study has something: ratings have no training and no true answer."""
    heads = {"Test answer, median s": "test_median_ms", "Training, median s": "train_median_ms"}
    seconds = {
        head: [number(None if row[key] is None else row[key] / 1000, 1) for row in rows]
        for head, key in heads.items()
    }
    shares = {head: [percent(row[key]) for row in rows] for head, key in SHARES.items()}
    has_reservoir = trials.empty or bool(trials["reservoir_ms"].notna().any())
    columns = {
        head: cells
        for head, cells in {**seconds, **shares}.items()
        if trials.empty or (set(cells) != {NONE} and (has_reservoir or head != RESERVOIR))
    }
    told = "Agreement with the truth shows who answered for the world instead of the model."
    return Table(
        "behaviour",
        "Time, reservoir and checks" if has_reservoir else "Time and checks",
        ("Condition", *columns),
        tuple(zip([row["label"] for row in rows], *columns.values(), strict=True)),
        " ".join(("Of the sittings that were kept.", *([told] if TRUTH in columns else []))),
    )


def questions(frames: Frames, facts: StudyFacts) -> list[Section]:
    """Answers to the study's questions by condition, so only for a report that is not sealed."""
    if not facts.questions:
        return []
    people = frames.kept().participants
    answers = people["answers"].map(lambda text: json.loads(text) if text else {})
    tables, content = [], {}
    for question in facts.questions:
        given = answers.map(lambda values, key=question.id: values.get(key))
        rows, data = _tabulate_answers(question, given, people, facts)
        content[question.id] = {"prompt": question.prompt, "when": question.when, "answers": data}
        columns = ("Answer", *(group.label for group in facts.slots))
        tables.append(Table(f"question_{question.id}", question.prompt, columns, rows))
    return [Section("questions", "Questions before and after", content, (), tuple(tables))]


def _tabulate_answers(
    question: QuestionFacts, given: pd.Series, people: pd.DataFrame, facts: StudyFacts
) -> tuple[tuple[tuple[str, ...], ...], dict[str, Any]]:
    """Counts of choices in the order of the question, those never chosen too; mean of numbers, number of
    texts; by condition."""
    by = {group.key: given[members(people, group) & given.notna()] for group in facts.slots}
    if question.kind == "choice":
        others = {str(value) for value in given.dropna()} - set(question.choices)
        levels = [*question.choices, *sorted(others)]
        data: dict[str, Any] = {
            level: {name: int((values.astype(str) == level).sum()) for name, values in by.items()}
            for level in levels
        }
        return tuple((level, *(str(n) for n in data[level].values())) for level in levels), data
    if question.kind == "number":
        data = {"mean": {name: _mean(values) for name, values in by.items()}}
        return (("Mean", *(number(value, 1) for value in data["mean"].values())),), data
    data = {"answered": {name: int((values.astype(str) != "").sum()) for name, values in by.items()}}
    return (("Texts written", *(str(n) for n in data["answered"].values())),), data


def _arrival(frames: Frames, facts: StudyFacts) -> Section:
    people = frames.participants
    rows = []
    for group in facts.slots:
        at = people.loc[members(people, group) & people["claimed_at"].notna(), "claimed_at"]
        ends: list[str | None] = (
            [f"{end:%Y-%m-%d %H:%M}" for end in (at.min(), at.median(), at.max())] if len(at) else []
        )
        row = group_content(group) | {"label": group.label, "n": len(at)}
        rows.append(row | dict(zip(TIMES, ends or [None] * 3, strict=True)))
    table = Table(
        "arrival",
        "When places were claimed (UTC)",
        (group_head(facts), "n", "First", "Median", "Last"),
        tuple((str(r["label"]), str(r["n"]), *(str(r[key] or NONE) for key in TIMES)) for r in rows),
        "Places that were freed are filled later; a drift over time would show here.",
    )
    return Section("arrival", f"Arrival by {group_head(facts).lower()}", rows, (), (table,))


TIMING_WORDS = {
    "ok": "As planned",
    "dropped": "Frames were lost",
    "short": f"Fewer than {FRAMES_MIN} frames",
    "hidden": "The page was out of sight",
    "unknown": "Not known",
}


def _display(frames: Frames) -> list[Section]:
    """How well the scored trials were timed, and the displays' rates; nothing if no page counted frames."""
    scored = frames.trials[frames.trials["scored_index"].notna()]
    counts = {flag: int((scored["timing"] == flag).sum()) for flag in get_args(Timing)}
    if sum(counts.values()) == counts["unknown"]:
        return []
    rates = frames.participants["refresh_hz"].dropna().astype("float64")
    told = [float(rates.min()), float(rates.median()), float(rates.max())] if len(rates) else None
    table = Table(
        "display",
        "Timing of the scored trials",
        ("Timing", "Trials", "%"),
        tuple((TIMING_WORDS[flag], str(n), percent(n / sum(counts.values()))) for flag, n in counts.items()),
        "By the browser's frames; the lag of panels, keyboards and mice is not measured.",
    )
    low, middle, high = (number(rate, 0) for rate in told or (None, None, None))
    said = (f"Rates of the displays: median {middle} Hz, from {low} to {high}.",) if told else ()
    return [Section("display", "The display", {"timing": counts, "refresh_hz": told}, said, (table,))]


def _median(values: pd.Series) -> float | None:
    values = values.dropna()
    return float(values.median()) if len(values) else None


def _mean(values: pd.Series) -> float | None:
    values = values.dropna()
    return float(values.astype("float64").mean()) if len(values) else None
