"""How long a session takes, and how far a person is: by the study's plan, the same for every condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from experiments.definition.study import StudyDefinition
from experiments.gates.device import NAME as DEVICE
from experiments.gates.plan import gate_plan
from experiments.kinds import get_kind
from experiments.models import Session, Trial
from experiments.paradigms import design_of, get_paradigm
from experiments.selectors import cards_of, definition_of
from experiments.sessions.lifecycle import Step

READING_MINUTES = 2.0
"""Every page outside the trials: consent, instructions, quiz, practice, questions."""
PLATE_S = 5.0
"""A plate of the colour check: most people read one within 3 s [Ishihara], and press a key."""
TRIALS = "trials"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is. `step` counts from 1 to `steps`; all trials are one step. `done` is the share of
    the whole that lies behind the person, `trials` the share that all trials have (0-1); `minutes` is what
    the whole takes, as the study tells its people."""

    step: int
    steps: int
    done: float
    trials: float
    minutes: float


def trials_minutes(definition: StudyDefinition, kinds: Sequence[str]) -> float:
    """Trials of these kinds, each with its minimum viewing time and an answer."""
    design = design_of(definition)
    told = get_paradigm(definition.paradigm).seconds(design)
    waiting_s = (getattr(design, "min_view_ms", 0) + getattr(design, "gap_ms", 0)) / 1000
    return sum(told.get(kind, get_kind(kind).seconds) + waiting_s for kind in kinds) / 60


def reading_minutes(definition: StudyDefinition) -> float:
    """Every page outside the trials."""
    plates = 0 if definition.plates is None else definition.plates.count
    return READING_MINUTES + plates * PLATE_S / 60


def progress_of(session: Session, step: Step) -> Progress | None:
    """None at the look at the device, which takes no time, and at the end."""
    if step.name in (DEVICE, "finish"):
        return None
    definition = definition_of(session.study)
    kinds = _kinds(session)
    in_trials, reading = trials_minutes(definition, kinds), reading_minutes(definition)
    stops = [stop for stop in gate_plan(session.study, None) if stop.gate != DEVICE]
    before = [stop.kind for stop in stops if stop.place == "start"]
    after = [stop.kind for stop in stops if stop.place == "end"]
    steps = [*before, TRIALS, *after, "comment"]
    at = _place(steps, step)
    pages_done = at - (at > len(before))
    done = pages_done * reading / (len(steps) - 1)
    if at > len(before):
        done += in_trials
    elif at == len(before):
        done += trials_minutes(definition, kinds[: step.next])
    whole = reading + in_trials
    return Progress(at + 1, len(steps), done / whole, in_trials / whole, definition.reward.expected_minutes)


def _place(steps: Sequence[str], step: Step) -> int:
    """The position of a step. Pages that belong to the slot stand with its trials: who meets which of them
    depends on the condition."""
    name = step.stop.kind if step.stop is not None else step.name
    return steps.index(name) if name in steps else steps.index(TRIALS)


def _kinds(session: Session) -> tuple[str, ...]:
    if session.slot is not None:
        return tuple(card.view.kind for card in cards_of(session.slot, session.study))
    return _first_kinds(session.study_id, session.study.digest)


@lru_cache(maxsize=64)
def _first_kinds(study: int, digest: str) -> tuple[str, ...]:
    """The kinds of the trials of the study's first slot, for people who have none yet."""
    rows = Trial.objects.filter(slot__study=study, slot__pilot=False).order_by("slot__ordinal", "position")
    first = rows.values_list("slot", flat=True)[:1]
    return tuple(Trial.objects.filter(slot__in=first).order_by("position").values_list("kind", flat=True))
