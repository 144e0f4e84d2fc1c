"""Reviews as one table: who judged which solution of whom, and what may be wrong with the time of it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from analysis.facts import ReportError, StudyFacts
from analysis.frames import Frames
from experiments.kinds.review import Review
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms.blind_review import BlindReviewDesign

SOURCE = "source"
"""Role of the condition whose solutions are people's."""
TASK, LURE, KNOWN, ALONE = "task", "lure", "known", "alone"
MODEL = "all_methods"
MODEL_LABEL = "The model, all explainers"
FLAGS = {
    "reloaded": "The page was reloaded",
    "ahead": "The answer came sooner at the server than its response time allows",
    "untimed": "No response time above 0",
}
SHORT_MS = (1000, 2000, 5000, 10_000)
"""Budgets that are shown beside the primary one."""
TEXTS = ("participant", "session", "condition", "item", "solution", "answer", "use")
NUMBERS = ("block", "rt_ms", "server_ms", "reloads")
TRUTHS = ("explained", "accepted", "answer_right", "rt_over_server")


@dataclass(frozen=True, slots=True)
class DeclaredDesign:
    """What the study declared before it opened; `budget_ms` is the primary budget."""

    role: str
    runs: int
    budget_ms: int
    margin: float
    order: str

    @property
    def budgets_ms(self) -> list[float]:
        """The primary budget and those beside it, ascending."""
        return sorted({*map(float, SHORT_MS), float(self.budget_ms)} - {0.0})


DECLARED = ("role", "runs", "budget_ms", "margin", "order")


def read_design(facts: StudyFacts) -> DeclaredDesign:
    """What the `[design]` says, or leaves at its default."""
    fields = BlindReviewDesign.model_fields
    return DeclaredDesign(**{name: facts.design.get(name, fields[name].default) for name in DECLARED})


@dataclass(frozen=True, slots=True)
class Group:
    """Solutions that are counted together: of people, of one explainer, or of the model with any."""

    name: str
    label: str
    conditions: tuple[str, ...]
    is_people: bool = False


def groups_of(facts: StudyFacts) -> list[Group]:
    """People first, then the model with all explainers if it has several, then each of them.

    Raises ReportError if there are no people's solutions, or no others.
    """
    people = [c for c in facts.conditions if c.role == SOURCE]
    methods = [c for c in facts.conditions if c.role != SOURCE]
    if len(people) != 1 or not methods:
        raise ReportError(
            f"Study '{facts.slug}' has {len(people)} conditions of role '{SOURCE}' and {len(methods)} "
            "others; a review compares the solutions of one with those of at least one other."
        )
    made = [Group(people[0].name, people[0].label, (people[0].name,), is_people=True)]
    if len(methods) > 1:
        made.append(Group(MODEL, MODEL_LABEL, tuple(c.name for c in methods)))
    return made + [Group(c.name, c.label, (c.name,)) for c in methods]


def review_rows(frames: Frames) -> pd.DataFrame:
    """One row per review: `participant`, `session`, `condition` (the source), `item`, `solution`, `answer`
    (the value judged), `use`, `block` (the run), `explained`, `accepted` 1 or 0, `right` 1 or 0 (NaN if the
    item has no truth), `rt_ms`, `server_ms`, `reloads`; `cannot_say`: the source gave no answer;
    `with_first`: this session had its run with explanations first (NaN without two runs); `reloaded`,
    `ahead`, `untimed` and `flagged` (any of them); `uncompared`: nothing is known of `ahead`, although both
    times are.
    """
    trials = frames.trials[frames.trials["kind"] == Review.name]
    given = trials.reindex(columns=[*TEXTS, *NUMBERS, *TRUTHS])
    rows = pd.DataFrame({name: given[name].astype("string").fillna("").astype(object) for name in TEXTS})
    for name in (*NUMBERS, "accepted"):
        rows[name] = given[name].astype("float64")
    # A study without uses of its items has tasks alone.
    rows["use"] = rows["use"].replace("", TASK)
    rows["explained"] = given["explained"].fillna(False).astype(bool)
    rows["right"] = given["answer_right"].astype("float64")
    rows["over"] = given["rt_over_server"].astype("float64")
    rows = rows[rows["accepted"].notna()].reset_index(drop=True)
    over = rows.pop("over")
    rows["cannot_say"] = rows["answer"] == CANNOT_SAY
    rows["with_first"] = rows["session"].map(_with_first(rows)).astype("float64")
    rows["reloaded"] = rows["reloads"].fillna(0) > 0
    rows["ahead"] = over == 1
    rows["uncompared"] = over.isna() & rows["server_ms"].notna() & (rows["rt_ms"] > 0)
    rows["untimed"] = ~(rows["rt_ms"] > 0)
    rows["flagged"] = rows[list(FLAGS)].any(axis=1)
    return rows


def _with_first(rows: pd.DataFrame) -> dict[str, float]:
    """Of each session with both runs, 1 if the first one showed explanations, else 0."""
    shown = rows.groupby(["session", "block"])["explained"].mean().unstack("block")
    if shown.shape[1] < 2:
        return {}
    both = shown.dropna()
    return {str(session): float(first) for session, first in both.iloc[:, 0].items()}


def of_group(rows: pd.DataFrame, group: Group) -> pd.Series:
    """Which reviews are of solutions of the group."""
    return rows["condition"].isin(group.conditions)


def real(rows: pd.DataFrame) -> pd.DataFrame:
    """Reviews of what a source really gave for a task, "cannot say" too: the solutions of the paper."""
    return rows[rows["use"] == TASK]


def answered_reviews(rows: pd.DataFrame) -> pd.DataFrame:
    """Reviews of answers that are right or wrong: real ones and lures, without "cannot say"."""
    return rows[rows["use"].isin([TASK, LURE]) & ~rows["cannot_say"] & rows["right"].notna()]
