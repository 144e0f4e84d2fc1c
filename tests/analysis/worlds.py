"""Frames made in memory: people with known answers, without a database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from analysis.facts import ConditionFacts, SlotFacts, StudyFacts
from analysis.frames import Frames, frame

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
LABELS = {"grad_cam": "Grad-CAM", "smooth_grad": "SmoothGrad"}


def facts(
    names: tuple[str, ...], wanted: int = 30, *, kept: int | None = None, state: str = "closed"
) -> StudyFacts:
    roles = {"baseline": "baseline", "control": "control"}
    conditions = tuple(
        ConditionFacts(
            name,
            LABELS.get(name, name.replace("_", " ").capitalize()),
            roles.get(name, "method"),
            wanted,
            wanted if kept is None else kept,
        )
        for name in names
    )
    return StudyFacts(
        slug="wolf-or-husky",
        title="Can you predict the machine?",
        paradigm="meta_predictor",
        digest="d" * 64,
        seed=2022,
        state=state,
        conditions=conditions,
        slots=tuple(SlotFacts(c.name, c.label, c.wanted, c.kept) for c in conditions),
    )


def frames_of(correct: Mapping[str, NDArray[np.int64]], trials: int = 7, *, origin: str = "human") -> Frames:
    """Frames of people who gave `correct[condition][person, block]` right answers out of `trials` per
    block.
    """
    trial_rows: list[dict[str, object]] = []
    people_rows: list[dict[str, object]] = []
    for condition, counts in correct.items():
        for plan, person in enumerate(counts):
            session = f"{condition}-{plan}"
            shared = {
                "study": "wolf-or-husky",
                "participant": f"p-{session}",
                "session": session,
                "origin": origin,
                "condition": condition,
                "role": {"baseline": "baseline", "control": "control"}.get(condition, "method"),
                "arm": condition,
                "slot": plan,
                "plan": plan,
            }
            people_rows.append(shared | person_row(plan))
            trial_rows += [shared | row for row in answer_rows(person, trials)]
    return Frames(frame("trials", trial_rows), frame("participants", people_rows), frame("stimuli", []))


def person_row(plan: int) -> dict[str, object]:
    claimed = START + timedelta(minutes=7 * plan)
    return {
        "sitting": 0,
        "status": "passed",
        "reasons_detail": "[]",
        "consented": True,
        "admitted": True,
        "surplus": False,
        "started_at": claimed - timedelta(minutes=2),
        "claimed_at": claimed,
        "finished_at": claimed + timedelta(minutes=6),
    }


def answer_rows(person: NDArray[np.int64], trials: int) -> list[dict[str, object]]:
    """The scored trials of one person, the right answers first in each block."""
    return [
        {
            "block": block,
            "phase": "test",
            "kind": "predict",
            "check": "",
            "trial_index": block * trials + i,
            "scored_index": block * trials + i,
            "item": f"item-{block}-{i}",
            "explained": False,
            "response": "wolf" if i < right else "husky",
            "model_label": "wolf",
            "matches_model": float(i < right),
            "rt_ms": 1500,
            "shown_ms": 1500,
            "late": False,
        }
        for block, right in enumerate(person)
        for i in range(trials)
    ]
