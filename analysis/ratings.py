"""Single ratings of a study as one long table, and what is counted of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import Frames
from analysis.stats.intervals_and_checks import Floats
from analysis.stats.ratings.agreement import modes
from experiments.paradigms.rating import RatingQuestion

SCALE = (1, 2, 3, 4, 5)
"""The points of every scale, in their order."""
COLUMNS = (
    "participant",
    "session",
    "sitting",
    "condition",
    "item",
    "question",
    "asked",
    "value",
    "is_anchor",
    "is_shared",
    "trial_index",
    "rt_ms",
)
EXPLANATION = ["item", "condition"]


def question_label(question: RatingQuestion) -> str:
    """Its id, as PASTA prints it if it is one of the six."""
    return question.id.upper() if question.id[0] == "q" and question.id[1:].isdigit() else question.id


def rating_rows(frames: Frames, reversed_questions: Collection[str] = ()) -> pd.DataFrame:
    """One row per single rating: `asked` is the point that was chosen, 1-5, `value` the same with high as
    good (6 less the point for `reversed_questions`). `is_anchor`: of an explanation that every list holds,
    and so outside the wanted number of raters. `sitting` counts the person's sessions from 0.
    """
    trials = frames.trials
    given = trials[trials["scored_index"].notna() & trials["response"].str.startswith("{")]
    sitting = frames.participants.set_index("session")["sitting"].to_dict()
    anchors = given["anchor"].fillna(False) if "anchor" in given else pd.Series(False, index=given.index)
    rows: list[tuple[Any, ...]] = []
    fields = ("participant", "session", "condition", "item", "trial_index", "rt_ms", "response")
    for is_anchor, (person, session, condition, item, index, rt_ms, response) in zip(
        anchors.astype(bool), zip(*(given[name] for name in fields), strict=True), strict=True
    ):
        for question, point in json.loads(response).items():
            turned = SCALE[0] + SCALE[-1] - point if question in reversed_questions else point
            rows.append(
                (person, session, sitting.get(session), condition, item, question, point, turned, is_anchor,
                 False, index, rt_ms)
            )  # fmt: skip
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.astype({"asked": "float64", "value": "float64", "is_anchor": bool, "is_shared": bool})


def shared_with(stimuli: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(item, condition) -> the condition whose picture is the same and whose ratings stand for it."""
    if "rated_as" not in stimuli:
        return {}
    rows = stimuli[stimuli["rated_as"].fillna("") != ""]
    return {
        (str(item), str(condition)): str(other)
        for item, condition, other in zip(rows["item"], rows["condition"], rows["rated_as"], strict=True)
    }


def with_shared(rows: pd.DataFrame, stimuli: pd.DataFrame) -> pd.DataFrame:
    """The rows, and once more those of a picture that is also another condition's, under that condition."""
    known = shared_with(stimuli)
    if not known or rows.empty:
        return rows
    pairs = [(item, of, name) for (item, name), of in known.items()]
    twins = pd.DataFrame(pairs, columns=["item", "condition", "twin"]).astype(
        {"item": rows["item"].dtype, "condition": rows["condition"].dtype}
    )
    copied = rows.merge(twins, on=EXPLANATION)
    copied = copied.assign(condition=copied["twin"], is_shared=True).drop(columns="twin")
    return pd.concat([rows, copied[list(COLUMNS)]], ignore_index=True)


def rated_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Without anchors and copies: the ratings that raters gave of the explanations of their lists."""
    return rows[~rows["is_anchor"] & ~rows["is_shared"]]


def as_units(rows: pd.DataFrame) -> Floats:
    """Points of one question as (explanations, most raters), NaN if fewer raters rated; the order of raters
    says nothing."""
    unit = rows.groupby(EXPLANATION, sort=True).ngroup().to_numpy()
    if not unit.size:
        return np.empty((0, 0))
    rater = rows.groupby(EXPLANATION).cumcount().to_numpy()
    table = np.full((unit.max() + 1, rater.max() + 1), np.nan)
    table[unit, rater] = rows["asked"]
    return table


def mode_of(points: Sequence[float]) -> float | None:
    """The commonest point; of equally common ones the smallest. None without points."""
    return float(modes([points])[0]) if len(points) else None


def missing_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each condition (row) and question (column) the share of rated explanations that it was not asked
    of."""
    each = rows.drop_duplicates([*EXPLANATION, "question"])
    explained = rows.drop_duplicates(EXPLANATION).groupby("condition").size()
    counts = each.groupby(["condition", "question"]).size().unstack("question").fillna(0)
    return 1 - counts.div(explained, axis=0)


def repeated_anchors(rows: pd.DataFrame) -> pd.DataFrame:
    """Anchors that a person rated in an earlier and in a later session: columns participant, item,
    condition, question, first, later; the first and the last time."""
    anchors = rows[rows["is_anchor"]].sort_values(["sitting", "trial_index"])
    keys = ["participant", *EXPLANATION, "question"]
    by = anchors.groupby(keys, sort=True)
    both = by.agg(first=("asked", "first"), later=("asked", "last"), sessions=("session", "nunique"))
    return both[both["sessions"] > 1].drop(columns="sessions").reset_index()
