"""The plates of a study's colour check: stored with the draft, and what a person's answers say.

What they say is computed when it is needed and stored nowhere: of a person who takes part only the lane
remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet

from experiments.definition.colour_vision_verdict import (
    FILTER,
    GATE,
    NOTHING,
    OFF,
    Vision,
    vision_from_answers,
)
from experiments.definition.study import StudyDefinition
from experiments.drafting.item_pictures import longest_px_of, store_view
from experiments.errors import StudyError
from experiments.gates.plates import ANSWERS
from experiments.models import Gate, Session, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import GateTry, Route
from experiments.selectors import definition_of
from experiments.wording.sentence_tables import words_for
from stimuli.errors import BadSpec
from stimuli.store import Store
from stimuli.types import Pixels

DIGITS = tuple("0123456789")


def store_plates(definition: StudyDefinition, store: Store) -> list[dict[str, Any]]:
    """Draws and stores the plates that the study asks for; none if it has no check. Their ids tell nothing
    but their order."""
    nothing = (NOTHING, words_for(definition)["plates_nothing"])
    choices = [[value, text] for value, text in (*((digit, digit) for digit in DIGITS), nothing)]
    rows = []
    for number, plate in enumerate(drawn_plates(definition), 1):
        shown = {**store_view(plate.pixels, store), "choices": choices}
        told = {"answer": plate.answer, "control": plate.control}
        rows.append({"id": f"plate-{number}", **shown, **told})
    return rows


def vision_of(study: Study, tries: Sequence[GateTry]) -> Vision | None:
    """What the check says of a person with these tries; None if the study has none."""
    plates = definition_of(study).plates
    if plates is None:
        return None
    answers = next((each.value for each in reversed(tries) if each.kind == GATE), {})
    return vision_from_answers(study.plates, answers, plates.limits)


def wanted_answers(study: Study) -> dict[str, str]:
    """What a person for whom the study has slots answers to its plates; nothing if it has no check."""
    lanes = dict.fromkeys(study.slots.values_list("lane", flat=True), 1)
    lane = get_paradigm(study.paradigm).lane
    is_ordinary = lane(Route((), "", lanes, "ordinary")) is not None
    read = {
        str(row["id"]): str(row["answer"]) if is_ordinary or row["control"] else NOTHING
        for row in study.plates
    }
    return {FILTER: OFF, **read} if read else {}


def remove_answers(sessions: QuerySet[Session, Session]) -> int:
    """Removes what these people answered in the check; that they met it stays. Returns how many answers were
    removed. Repeatable."""
    rows = Gate.objects.filter(session__in=sessions, kind__in=ANSWERS).exclude(value={})
    return rows.update(value={})


class Plate(NamedTuple):
    """A plate as drawn: uint8 (H, W, 3), the digit in it, whether all people read it."""

    pixels: Pixels
    answer: str
    control: bool


def drawn_plates(definition: StudyDefinition) -> Iterator[Plate]:
    """The plates of the study's check; none if it has no check."""
    from stimuli.datasets.plates.screening import screening_plates

    asked = definition.plates
    if asked is None:
        return
    size_px = longest_px_of(definition)
    try:
        drawn = screening_plates(
            definition.seed, asked.count, asked.controls, asked.axis, asked.severity, size_px
        )
    except BadSpec as error:
        raise StudyError(f"[plates] {error}") from error
    yield from (Plate(plate.pixels, plate.answer, plate.is_control) for plate in drawn)
