"""Beside the main results of a review: uncertain labels, regions alone, audits, time, what was suspected."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.any_table.formats import NONE, interval, number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.reports.blind_review.acceptance_contrasts import AS_ABOVE, difference, problems, share
from analysis.reports.blind_review.rows import ALONE, FLAGS, KNOWN, DeclaredDesign, groups_of, of_group, real
from analysis.stats.shares.proportions import wilson

ITEMS_SHOWN = 40
AUC_LIMIT = 0.60
"""Sources are as good as hidden if the upper end of the AUC's interval is no higher (and n has the power)."""
UNCOMPARED = (
    " {} of {} are not compared: simulated people answer at once, and say how long they would have taken."
)
SUSPECT = "suspect"
"""Ids of the questions on what leads suspected begin so."""


def labels_section(rows: pd.DataFrame, facts: StudyFacts) -> Section:
    """Tasks whose human answers leads reject: their labels are uncertain."""
    people = groups_of(facts)[0]
    told = real(rows)
    told = told[of_group(told, people) & ~told["cannot_say"]]
    content: list[dict[str, Any]] = []
    for (item, answer), part in told.groupby(["item", "answer"], sort=True):
        rejected = int((part["accepted"] == 0).sum())
        content.append(
            {
                "item": str(item),
                "answer": str(answer),
                "right": None if part["right"].isna().all() else bool(part["right"].iloc[0]),
                "reviews": len(part),
                "rejected": rejected,
                "share": rejected / len(part),
                "wilson": wilson(rejected, len(part)).as_json(),
            }
        )
    content.sort(key=lambda row: (-row["share"], -row["reviews"], row["item"], row["answer"]))
    answers = Counter(row["item"] for row in content)
    doubted = {row["item"] for row in content if row["rejected"]}
    half = {row["item"] for row in content if row["reviews"] > 1 and row["share"] >= 0.5}
    several = sum(count > 1 for count in answers.values())
    summary = {"items": len(answers), "rejected": len(doubted), "by_half": len(half), "several": several}
    sentence = (
        f"Of {len(answers)} tasks with a reviewed answer of {people.label}, {len(doubted)} had one that some "
        f"lead rejected, and {len(half)} one that at least half of two or more leads rejected; {several} had "
        "several different answers."
    )
    shown = [row for row in content if row["rejected"]][:ITEMS_SHOWN]
    title = "Most rejected first"
    if len(shown) < len(content):
        title = f"{title}: {len(shown)} of {len(content)} answers, all in report.json"
    lines = tuple(
        (
            row["item"],
            row["answer"],
            {None: "", True: "yes", False: "no"}[row["right"]],
            str(row["reviews"]),
            percent(row["share"]),
            interval(row["wilson"], 1, 100),
        )
        for row in shown
    )
    columns = ("Task", "Answer", "True", "Reviews", "Rejected %", "95 %")
    note = "Wilson's interval over the leads who reviewed this answer. A rejected answer may still be true."
    table = Table("labels", title, columns, lines, note, left=3)
    made = {"summary": summary, "answers": content}
    return Section("labels", "Uncertain labels", made, (sentence,) if content else (), (table,))


def alone_section(rows: pd.DataFrame, facts: StudyFacts) -> Section:
    """What is accepted of a region on a plate that shows nothing."""
    told = rows[rows["use"] == ALONE]
    if told.empty:
        return Section("region_alone", "", None)
    made = [(group, share(told, of_group(told, group), seed=facts.seed)) for group in groups_of(facts)]
    lines = tuple(
        (group.label, str(row.estimate.answers) if row.estimate else "0", *row.cells()) for group, row in made
    )
    table = Table(
        "region_alone",
        "Accepted although there is nothing to see",
        ("Region of", "Reviews", "Accepted %", "95 %"),
        lines,
        f"Plates without a figure, with an answer and a region of the source. {AS_ABOVE}",
    )
    sentences = problems((group.label, row) for group, row in made if row.estimate)
    content = {
        "sources": [{"name": group.name, "label": group.label, **row.as_json()} for group, row in made],
        "answers": _by_answer(told),
    }
    tables = (table, _answers_table(content["answers"], facts))
    return Section("region_alone", "Regions alone", content, sentences, tables)


def _by_answer(told: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "answer": str(answer),
            "name": str(name),
            "reviews": len(part),
            "accepted": int(part["accepted"].sum()),
        }
        for (answer, name), part in told.groupby(["answer", "condition"], sort=True)
    ]


def _answers_table(content: list[dict[str, Any]], facts: StudyFacts) -> Table:
    conditions = [c for group in groups_of(facts) for c in group.conditions if len(group.conditions) == 1]
    labels = facts.labels
    by = {(row["answer"], row["name"]): f"{row['accepted']} of {row['reviews']}" for row in content}
    answers = dict.fromkeys(row["answer"] for row in content)
    lines = tuple((answer, *(by.get((answer, name), "") for name in conditions)) for answer in answers)
    columns = ("Answer", *(labels[name] for name in conditions))
    return Table("region_alone_answers", "Accepted by answer", columns, lines)


def audits_section(rows: pd.DataFrame) -> Section:
    """Whether leads accept what everybody sees to be right, and reject what everybody sees to be wrong."""
    told = rows[(rows["use"] == KNOWN) & rows["right"].notna()]
    if told.empty:
        return Section("audits", "", None)
    told = told.assign(met=told["accepted"] == told["right"])
    kinds = {"accept": told[told["right"] == 1], "reject": told[told["right"] == 0]}
    lines = tuple(
        (f"To be {name}ed", str(len(part)), str(int(part["met"].sum())), percent(_mean(part["met"])))
        for name, part in kinds.items()
    )
    by_lead = [
        {"participant": str(person), "known": len(part), "met": int(part["met"].sum())}
        for person, part in told.groupby("participant", sort=True)
    ]
    all_met = sum(row["known"] == row["met"] for row in by_lead)
    content = {
        **{name: {"reviews": len(part), "met": int(part["met"].sum())} for name, part in kinds.items()},
        "leads": by_lead,
    }
    sentence = f"{all_met} of {len(by_lead)} leads judged every known task as expected."
    table = Table(
        "audits",
        "Known tasks",
        ("Known tasks", "Reviews", "As expected", "%"),
        lines,
        "Plates that everybody can read, with the right or a wrong answer; in no other number.",
    )
    return Section("audits", "Audits of leads", content, (sentence,), (table,))


def timing_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """Reviews whose time or exposure is in doubt, and the main numbers without them."""
    counts = {name: int(rows[name].sum()) for name in (*FLAGS, "flagged")}
    not_stored, uncompared = int(rows["server_ms"].isna().sum()), int(rows["uncompared"].sum())
    words = {**FLAGS, "flagged": "Any of these"}
    flags = Table(
        "flags",
        "Reviews in doubt",
        ("Flag", "Reviews", "%"),
        tuple(
            (words[name], NONE, NONE)
            if name == "ahead" and uncompared == len(rows)
            else (words[name], str(count), percent(count / len(rows) if len(rows) else None))
            for name, count in counts.items()
        ),
        "The server measures from handing the task out to storing the answer, which cannot be less than the "
        f"response time.{f' It has no time for {not_stored} of {len(rows)} reviews.' if not_stored else ''}"
        f"{UNCOMPARED.format(uncompared, len(rows)) if uncompared else ''}",
    )
    clean = real(rows[~rows["flagged"]])
    content: dict[str, Any] = {
        **{"reviews": len(rows), **counts},
        **{"server_ms_missing": not_stored, "uncompared": uncompared},
    }
    if not counts["flagged"]:
        return Section("timing", "Time and exposure", {**content, "without_flagged": None}, (), (flags,))
    people, *others = groups_of(facts)
    lines, made = [], []
    for group in (people, *others):
        mask = of_group(clean, group)
        accepted, in_time = (
            share(clean, mask, seed=facts.seed, budget_ms=budget) for budget in (None, told.budget_ms)
        )
        less = difference(clean, mask, of_group(clean, people), seed=facts.seed)
        cells = ("", "") if group.is_people else less.cells()
        lines.append((group.label, str(int(mask.sum())), *accepted.cells(), *in_time.cells(), *cells))
        row = {"name": group.name, "accepted": accepted.as_json(), "within_budget": in_time.as_json()}
        made.append(row | {"difference": None if group.is_people else less.as_json()})
    columns = ("Solutions of", "Reviews", "Accepted %", "95 %", "In budget %", "95 %",
               f"Less {people.label}", "95 %")  # fmt: skip
    table = Table(
        "without_flagged", "The main numbers without reviews in doubt", columns, tuple(lines), AS_ABOVE
    )
    return Section("timing", "Time and exposure", {**content, "without_flagged": made}, (), (flags, table))


def suspicion_section(frames: Frames, facts: StudyFacts) -> Section:
    """What leads answered when they were asked, before anything was disclosed, what they suspected."""
    prompts = {question.id: (question.prompt, question.kind) for question in facts.questions}
    given: dict[str, list[str]] = {}
    for cell in frames.participants["answers"]:
        for key, value in (json.loads(cell) if cell else {}).items():
            if key.startswith(SUSPECT) and str(value).strip():
                given.setdefault(key, []).append(str(value))
    if not given:
        return Section("suspicion", "", {})
    tables = []
    for key in sorted(given, key=lambda key: (list(prompts).index(key) if key in prompts else 999, key)):
        prompt, kind = prompts.get(key, (key, "text"))
        if kind == "choice":
            counted = sorted(Counter(given[key]).items())
            lines: tuple[tuple[str, ...], ...] = tuple((answer, str(n)) for answer, n in counted)
        else:
            lines = tuple((answer,) for answer in given[key])
        columns = ("Answer", "Leads") if kind == "choice" else ("As it was typed",)
        tables.append(Table(f"suspicion_{key}", prompt, columns, lines))
    sentence = "Asked before anything was disclosed, from the general to the particular."
    return Section("suspicion", "What leads suspected", given, (sentence,), tuple(tables))


def source_section(facts: StudyFacts) -> Section:
    """How well the source of a solution can be told by the form of its region, as measured at freezing."""
    told: Mapping[str, Any] = facts.frozen.get("told", {})
    if not told:
        return Section("source_auc", "", None)
    labels = facts.labels
    people = groups_of(facts)[0].label
    sentences = tuple(
        _source_sentence(labels.get(name, name), people, row) for name, row in sorted(told.items())
    )
    title = "Can the source be told by the region?"
    return Section("source_auc", title, dict(told), sentences, _frozen_tables(facts, labels))


def _source_sentence(name: str, people: str, told: Mapping[str, Any] | None) -> str:
    if told is None:
        return f"{name}: not known, as too few items have regions of both."
    limit = number(AUC_LIMIT)
    what = f"the upper end is no higher than {limit}"
    if told["high"] > AUC_LIMIT:
        what = f"the upper end is above {limit}, so leads may have told sources by their regions"
    return (
        f"{name}: a decoder that saw the form of regions alone told them from those of {people} with an AUC "
        f"of {number(told['auc'])}, 95 % {interval([told['low'], told['high']])}, over {told['pictures']} "
        f"items: {what}. By chance it would be 0.50."
    )


def _frozen_tables(facts: StudyFacts, labels: Mapping[str, str]) -> tuple[Table, ...]:
    """What was frozen of each source, and under which settings."""
    lines = tuple(
        (
            labels.get(row["source"], row["source"]),
            str(row["solutions"]),
            str(row["abstained"]),
            *((number(part, 0) for part in row["areas"]) if row["areas"] else [NONE] * 3),
        )
        for row in facts.frozen.get("sources", ())
    )
    settings = ", ".join(f"{name} = {value}" for name, value in facts.frozen.get("settings", {}).items())
    columns = ("Solutions of", "Solutions", "Cannot say", "Area, 25 %", "Median", "75 %")
    note = f"Areas in cells of the grid, of regions as leads saw them. Settings: {settings}."
    return (Table("frozen", "What was frozen", columns, lines, note),) if lines else ()


def _mean(values: pd.Series) -> float | None:
    return float(values.mean()) if len(values) else None
