"""Frames of a blind review made in memory: leads with known or planted verdicts, without a database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.facts import ConditionFacts, QuestionFacts, SlotFacts, StudyFacts
from analysis.frames import Frames, frame
from analysis.reports.report import Report
from experiments.kinds.base import Column
from tests.analysis.worlds import person_row

SLUG = "seven-or-nothing"
PEOPLE, MODEL = "expert", "occlusion"
EXTRA = (
    Column("solution", "text", "Reviews: key of the solution."),
    Column("answer", "text", "Reviews: the answer that was judged."),
    Column("use", "text", "What the item is for."),
    Column("answer_right", "flag", "Reviews: whether the answer is the true one."),
    Column("accepted", "flag", "Reviews: whether the solution was accepted."),
    Column("server_ms", "integer", "Reviews: from handing out to storing.", "ms"),
    Column("rt_over_server", "flag", "Reviews: whether rt_ms is longer than server_ms."),
    Column("region_cells", "integer", "Solutions: how many cells were marked.", "cells"),
    Column("region", "json", "Solutions: the cells that were marked."),
)
LABELS = {PEOPLE: "Experts", MODEL: "Occlusion", "grad_cam": "Grad-CAM", "labels": "Labels"}


def review_facts(
    methods: Sequence[str] = (MODEL,),
    *,
    people: str = PEOPLE,
    state: str = "closed",
    kept: int = 16,
    questions: Sequence[QuestionFacts] = (),
    frozen: Mapping[str, Any] | None = None,
    **design: Any,
) -> StudyFacts:
    names = {people: "source", **dict.fromkeys(methods, "method")}
    return StudyFacts(
        slug=SLUG,
        title="Can you see it?",
        paradigm="blind_review",
        digest="b" * 64,
        seed=5,
        state=state,
        conditions=tuple(
            ConditionFacts(name, LABELS.get(name, name.capitalize()), role, 16, kept)
            for name, role in names.items()
        ),
        slots=(SlotFacts("lead", "Lead", 16, kept, by="lane"),),
        questions=tuple(questions),
        design={"role": "review", **design},
        frozen=frozen or {},
    )


def review(
    lead: str,
    item: str,
    source: str,
    *,
    accepted: bool,
    right: bool | None = True,
    explained: bool = False,
    block: int = 0,
    rt_ms: int | None = 2000,
    use: str = "task",
    answer: str = "7",
    **more: Any,
) -> dict[str, object]:
    """One row of `trials`. `right` None: the item has no truth."""
    server_ms = more.pop("server_ms", None if rt_ms is None else rt_ms + 40)
    is_over = None if rt_ms is None or server_ms is None else server_ms < rt_ms
    return {
        "study": SLUG,
        "participant": lead,
        "session": f"{lead}-0",
        "origin": "human",
        "condition": source,
        "role": "method",
        "arm": "x",
        "block": block,
        "phase": "test",
        "kind": "review",
        "check": "",
        "item": item,
        "explained": explained,
        "response": json.dumps({"accept": accepted}),
        "solution": f"{item}/{source}/{use}",
        "answer": answer,
        "use": use,
        "answer_right": right,
        "accepted": accepted,
        "rt_ms": rt_ms,
        "server_ms": server_ms,
        "rt_over_server": is_over,
        "reloads": 0,
        "late": False,
        **more,
    }


def review_frames(
    trials: Sequence[Mapping[str, object]],
    *,
    answers: Mapping[str, Mapping[str, object]] | None = None,
    origin: str = "human",
    stimuli: Sequence[Mapping[str, object]] = (),
) -> Frames:
    """Frames of these trials; everybody who answered one was kept. `answers`: to the questions, by lead."""
    leads = list(dict.fromkeys(str(row["participant"]) for row in trials))
    people = [
        {
            "study": SLUG,
            "participant": lead,
            "session": f"{lead}-0",
            "origin": origin,
            "lane": "lead",
            "arm": "x",
            "slot": place,
            "answers": json.dumps((answers or {}).get(lead, {})),
            **person_row(place),
        }
        for place, lead in enumerate(leads)
    ]
    counted = [
        {**row, "origin": origin, "trial_index": at, "scored_index": at} for at, row in enumerate(trials)
    ]
    return Frames(
        frame("trials", counted, EXTRA), frame("participants", people), frame("stimuli", stimuli), EXTRA
    )


@dataclass(frozen=True, slots=True)
class Planted:
    """Log odds of acceptance of right and of wrong answers, and what explanations add to each; the shares of
    tasks that people and the model solve rightly; standard deviations of leads, tasks and solutions."""

    right: float = 1.2
    wrong: float = -1.2
    right_gain: float = 0.0
    wrong_gain: float = 0.0
    solved: Mapping[str, float] = field(default_factory=lambda: {PEOPLE: 0.9, MODEL: 0.8})
    sds: tuple[float, float, float] = (0.6, 0.5, 0.3)


def planted(
    plan: Planted,
    *,
    leads: int,
    tasks: int,
    seed: int,
    per_run: int = 20,
    lures: int = 4,
    known: int = 2,
    alone: int = 2,
    runs: int = 2,
) -> Frames:
    """A whole study: half of a lead's tasks with people's solutions, the others with the methods' in turn;
    the order of the runs alternates; everything else as the arguments say."""
    rng = np.random.default_rng(seed)
    methods = [name for name in plan.solved if name != PEOPLE]
    sd_lead, sd_task, sd_solution = plan.sds
    of_task = rng.normal(0, sd_task, tasks)
    solved = {name: rng.random(tasks) < share for name, share in plan.solved.items()}
    of_solution = {name: rng.normal(0, sd_solution, tasks) for name in plan.solved}
    rows = []
    for lead in range(leads):
        person, liking = f"p{lead:03}", rng.normal(0, sd_lead)
        chosen = rng.permutation(tasks)[: runs * (per_run + lures)]

        def verdict(item: int, name: str, right: bool, explained: bool, more: float = 0.0) -> dict[str, Any]:
            odds = (plan.right + plan.right_gain * explained) if right else (
                plan.wrong + plan.wrong_gain * explained
            )  # fmt: skip
            odds += liking + of_task[item] + of_solution[name][item] + more  # noqa: B023
            rt_ms = int(np.exp(rng.normal(7.6, 0.5)))
            return {"accepted": bool(rng.random() < 1 / (1 + np.exp(-odds))), "rt_ms": rt_ms}

        for block in range(runs):
            explained = runs == 2 and (block == 0) == (lead % 2 == 0)
            mine = chosen[block * (per_run + lures) :][: per_run + lures]
            for place, item in enumerate(mine.tolist()):
                name = PEOPLE if (place + lead) % 2 else methods[(place // 2 + lead) % len(methods)]
                is_lure = place >= per_run
                right = bool(solved[name][item]) and not is_lure
                rows.append(
                    review(
                        person,
                        f"i{item:03}",
                        name,
                        right=right,
                        explained=explained,
                        block=block,
                        use="lure" if is_lure else "task",
                        answer=str(item % 10 if right else (item + 1) % 10),
                        **verdict(item, name, right, explained),
                    )
                )
            for place in range(known):
                rows.append(
                    review(person, f"k{place}", PEOPLE, accepted=place == 0, right=place == 0, block=block,
                           explained=explained, use="known")
                )  # fmt: skip
            for place in range(alone if explained else 0):
                name = PEOPLE if (place + lead) % 2 else methods[(place + lead) % len(methods)]
                rows.append(
                    review(
                        person, f"b{place}", name, accepted=bool(rng.random() < 0.2), right=None,
                        explained=True, block=block, use="alone", answer=str(place)
                    )
                )  # fmt: skip
    return review_frames(rows)


@dataclass(frozen=True, slots=True)
class Table:
    """Single answers of crossed leads and tasks: `yes` 0 or 1, the source of each, and the codes of both."""

    yes: NDArray[np.float64]
    source: list[str]
    leads: NDArray[np.intp]
    tasks: NDArray[np.intp]


def crossed_table(
    odds: Mapping[str, float],
    *,
    leads: int,
    tasks: int,
    per_lead: int,
    sds: tuple[float, float, float],
    seed: int,
) -> Table:
    """Each lead judges `per_lead` tasks, the sources in turn; `sds`: of leads, tasks, tasks by source."""
    rng = np.random.default_rng(seed)
    names = list(odds)
    of_lead, of_task = rng.normal(0, sds[0], leads), rng.normal(0, sds[1], tasks)
    of_solution = rng.normal(0, sds[2], (len(names), tasks))
    lead = np.repeat(np.arange(leads), per_lead)
    task = np.concatenate([rng.permutation(tasks)[:per_lead] for _ in range(leads)])
    place = (np.tile(np.arange(per_lead), leads) + lead) % len(names)
    logit = np.array(list(odds.values()))[place] + of_lead[lead] + of_task[task] + of_solution[place, task]
    yes = rng.random(lead.size) < 1 / (1 + np.exp(-logit))
    return Table(yes.astype(float), [names[p] for p in place], lead, task)


def marginal(logit: float, sds: Sequence[float]) -> float:
    """The share of yes over all leads, tasks and solutions: the logistic function over a normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    spread = float(np.sqrt(sum(sd**2 for sd in sds)))
    return float((1 / (1 + np.exp(-logit - spread * nodes))) @ weights / weights.sum())


def small(verdicts: Mapping[str, Sequence[tuple[bool, bool]]], leads: int = 2) -> Frames:
    """Each lead judges one task of each (accepted, right) pair, by source; nothing is explained."""
    return review_frames(
        [
            review(f"p{lead}", f"{source}-{at}", source, accepted=accepted, right=right)
            for lead in range(leads)
            for source, pairs in verdicts.items()
            for at, (accepted, right) in enumerate(pairs)
        ]
    )


def rows_of(made: Report, section: str = "acceptance") -> dict[str, dict[str, Any]]:
    content = made.json()[section]
    return {row["name"]: row for row in (content["rows"] if isinstance(content, Mapping) else content)}
