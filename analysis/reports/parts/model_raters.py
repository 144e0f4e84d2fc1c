"""Models as raters: how each was asked, and its agreement with people beside people's with each other.

People and models are never pooled: a model's answer is compared with the usual answer of people, and no
number of people changes by it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import NONE, interval, number
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.ratings import (
    EXPLANATION,
    SCALE,
    as_units,
    mode_of,
    question_label,
    rated_once,
    rating_rows,
    with_shared,
)
from analysis.reports.base import Section
from analysis.reports.parts.rater_agreement import DRAWS, METRICS, value_or_problem
from analysis.seal import seal_of
from analysis.stats.intervals_and_checks import json_of
from analysis.stats.ratings.agreement import human_row
from analysis.stats.ratings.condition_order_agreement import rank_agreement
from experiments.asking.prompts import UNREAD
from experiments.paradigms.rating import RatingDesign

ORIGIN = "model"
MANNER = ("model", "host", "prompt", "order")
ANSWERING = {"written": "written", "likeliest": "likeliest", "predicted": "predicted"}
"""Where the answers of a model come from; sessions of before this was kept were all written."""
TRAINED = {
    "unknown": "Whether {model} was trained on these pictures or on ratings of them is unknown, so agreement "
    "may be memory.",
    "yes": "{model} is declared as trained on these pictures or on ratings of them: its agreement says "
    "nothing of others.",
    "no": "{model} is declared as not trained on these pictures nor on ratings of them.",
}


def sections(frames: Frames, facts: StudyFacts) -> tuple[Section, ...]:
    """What a report of models adds; `frames` hold every origin of a study of ratings. The comparison is left
    out if there are no people, and sealed as their results are."""
    there = frames.only(ORIGIN)
    rows = zip(there.participants["session"], there.participants["asked"], strict=True)
    manners = {str(session): json.loads(asked) for session, asked in rows}
    answers = _answers(there.kept(), manners)
    told = _manners_section(there.participants, manners, answers)
    if "human" not in frames.origins:
        return (told,)
    seal = seal_of(facts, "human")
    if seal.sealed:
        return told, Section("beside_people", "Models beside people", None, (seal.sentence,))
    return told, _beside(answers, frames.only("human").confirmed().kept(), frames.stimuli, facts)


def _answers(kept: Frames, manners: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """The ratings of the models, with the manner of each."""
    rows = rating_rows(kept)
    return rows.assign(manner=[name_of(manners[str(session)]) for session in rows["session"]])


def name_of(asked: Mapping[str, Any]) -> str:
    """A model as it was asked, in words; a scorer was not."""
    if asked["prompt"] == UNREAD:
        return str(asked["model"])
    return f"{asked['model']} at {asked['host']}, {asked['prompt']}, answers {asked['order']}"


def _manners_section(
    people: pd.DataFrame, manners: Mapping[str, Mapping[str, Any]], answers: pd.DataFrame
) -> Section:
    status = dict(zip(people["session"].astype(str), people["status"], strict=True))
    content = []
    for name in dict.fromkeys(map(name_of, manners.values())):
        given = {session: asked for session, asked in manners.items() if name_of(asked) == name}
        faults = Counter[str]()
        for asked in given.values():
            faults.update(asked["faults"])
        first = next(iter(given.values()))
        content.append(
            {
                **{key: first[key] for key in (*MANNER, "prompt_digest", "trained_on_data")},
                "name": name,
                "answering": first.get("answering", "written"),
                "sessions": len(given),
                "passed": sum(status[session] == "passed" for session in given),
                "faults": dict(faults),
            }
        )
    lines = tuple(
        (*(str(row[key]) for key in MANNER), ANSWERING[row["answering"]],
         str(row["sessions"]), str(row["passed"]),
         ", ".join(f"{n} {fault}" for fault, n in row["faults"].items()) or NONE)
        for row in content
    )  # fmt: skip
    table = Table(
        "models",
        "Models, and how they were asked",
        (
            "Model",
            "Address",
            "Prompt",
            "Order of answers",
            "Answers",
            "Sessions",
            "Passed",
            "Unreadable replies",
        ),
        lines,
        "Each line is one rater. Its answers are written replies, the likeliest of those listed, or the "
        "predictions of a scorer. The rules of screening are those of people, without the rules about time.",
        left=5,
    )
    trained = dict.fromkeys(TRAINED[row["trained_on_data"]].format(model=row["model"]) for row in content)
    told = {"manners": content, "same_point": _same(answers)}
    return Section("models", "Models as raters", told, (*trained, *_stable(answers)), (table,))


def _same(answers: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Of each model that was asked in several manners: over the explanations and questions that all of them
    answered, the share (0-1) with one and the same point, and how many there are."""
    points = _points(answers)
    made = {}
    for model, names in _models(answers).items():
        both = points[names].dropna() if len(names) > 1 else points.iloc[:0]
        if len(both):
            made[model] = {"share": float((both.nunique(axis=1) == 1).mean()), "answers": float(len(both))}
    return made


def _stable(answers: pd.DataFrame) -> Iterator[str]:
    for model, told in _same(answers).items():
        yield (
            f"{model} gave one and the same point in every manner to {100 * told['share']:.0f} % of the "
            f"{told['answers']:.0f} questions that it answered in all of them."
        )


def _models(answers: pd.DataFrame) -> dict[str, list[str]]:
    models: dict[str, list[str]] = {}
    for name in sorted(set(answers["manner"])):
        models.setdefault(name.rsplit(", ", 2)[0], []).append(name)
    return models


def _points(answers: pd.DataFrame) -> pd.DataFrame:
    """The usual point of each manner (column) for each explanation and question (row)."""
    once = rated_once(answers)
    if once.empty:
        return pd.DataFrame()
    return once.groupby([*EXPLANATION, "question", "manner"])["asked"].agg(mode_of).unstack("manner")


def _beside(answers: pd.DataFrame, people: Frames, stimuli: pd.DataFrame, facts: StudyFacts) -> Section:
    rows = rating_rows(people)
    labels = {row.id: question_label(row) for row in RatingDesign(**facts.design).rows}
    items, orders = [], []
    for question in labels:
        for manner in sorted(set(answers["manner"])):
            given = answers[(answers["manner"] == manner) & (answers["question"] == question)]
            theirs = rows[rows["question"] == question]
            about = {"question": question, "manner": manner}
            items.append(about | _on_items(given, theirs, facts.seed))
            orders.append(about | _on_conditions(given, theirs, stimuli, facts.seed))
    content = {"people": int(people.participants["participant"].nunique()), "items": items, "orders": orders}
    said = dict.fromkeys(
        f"{labels[row['question']]}, {row['manner']}: {row['problem']}"
        for row in (*items, *orders)
        if row["problem"]
    )
    tables = (_items_table(items, labels), _orders_table(orders, labels))
    return Section("beside_people", "Models beside people", content, tuple(said), tables)


def _on_items(given: pd.DataFrame, theirs: pd.DataFrame, seed: int) -> dict[str, Any]:
    """The model, and one person, against the mode of the other people, on the explanations that the model
    rated; both meet the same modes."""
    once = rated_once(theirs)
    units = as_units(once)
    keys = once.groupby(EXPLANATION, sort=True).size().index
    points = rated_once(given).groupby(EXPLANATION)["asked"].agg(mode_of).reindex(keys).to_numpy(np.float64)
    rated = ~np.isnan(points)
    call = partial(human_row, units[rated], SCALE, leave_one_out=True, draws=DRAWS, seed=seed)
    model, problem = value_or_problem(partial(call, answers=points[rated]))
    person, person_problem = value_or_problem(call)
    return {
        "model": model and model.table()[0],
        "person": person and person.table()[0],
        "problem": problem or person_problem,
    }


def _on_conditions(
    given: pd.DataFrame, theirs: pd.DataFrame, stimuli: pd.DataFrame, seed: int
) -> dict[str, Any]:
    """Spearman's correlation over conditions of the mean points of the model and of people."""
    mine, yours = (
        with_shared(rated_once(given)[theirs.columns], stimuli),
        with_shared(rated_once(theirs), stimuli),
    )
    of_people = {"groups": "condition", "people": "participant", "items": "item"}
    of_model = {"other_groups": "condition", "other_items": "item"}
    names: dict[str, Any] = {key: yours[column].to_list() for key, column in of_people.items()}
    names |= {key: mine[column].to_list() for key, column in of_model.items()}
    asked = yours["asked"].to_numpy(), mine["asked"].to_numpy()
    told, problem = value_or_problem(partial(rank_agreement, asked[0], other=asked[1], seed=seed, **names))
    empty = dict.fromkeys(("rho", "range", "groups", "undefined"))
    if told is None:
        return empty | {"problem": problem}
    return json_of(told, "rho", "range", "groups", "undefined") | {"problem": ""}


def _items_table(items: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Table:
    heads = [head for metric in METRICS.values() for head in (f"{metric}, model", f"{metric}, person")]
    lines = []
    for row in items:
        both = row["model"], row["person"]
        cells = [number(told and told[key]) for key in METRICS for told in both]
        units = str((row["model"] or {}).get("units", 0))
        lines.append((labels[row["question"]], row["manner"], units, *cells))
    return Table(
        "models_beside",
        "A model, and one person, against the usual answer of the other people",
        ("Question", "Model, as it was asked", "Explanations", *heads),
        tuple(lines),
        "Model: its point against the mode of people without one drawn at random. Person: that one against "
        f"the same mode. Mean of {DRAWS} draws over the explanations that the model rated; anchors are not "
        "in it. MSE in points of the scale.",
        left=2,
    )


def _orders_table(orders: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Table:
    told = [(str(row["groups"] or 0), number(row["rho"]), interval(row["range"])) for row in orders]
    lines = tuple((labels[r["question"]], r["manner"], *cells) for r, cells in zip(orders, told, strict=True))
    return Table(
        "models_orders",
        "Whether a model and people put the conditions into one order",
        ("Question", "Model, as it was asked", "Conditions", "Rank correlation", "95 % of draws"),
        lines,
        "Spearman's correlation of mean points over conditions. Draws: people and pictures drawn anew "
        "together, the model's answers with their pictures. With few conditions it can take few values.",
        left=2,
    )
