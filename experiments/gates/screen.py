"""How large a pixel is, by a card held to the screen, and how far away the screen is, by the blind spot.

The page measures (frontend/src/pages/gates/screen.ts). Nothing is judged: who has no card, or cannot find the
spot, goes on, and the size or the distance stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.errors import InvalidRequest
from experiments.gates import base
from experiments.models import Session, Study
from experiments.selectors import definition_of

NAME = "screen"
PX_PER_MM = (0.5, 100.0)
"""Device pixels per millimetre: a projector on a wall has fewer than 1, a telephone some 20."""
DISTANCE_MM = (50.0, 5000.0)
TRIES_MAX = 20


class Screen(base.BaseGate):
    """Met if the study asks for the calibration."""

    name: ClassVar[str] = NAME

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        is_asked = definition_of(study).presentation.calibration != "off"
        return (base.Stop(self.name, self.name, "start"),) if is_asked else ()

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        return base.JudgedTry(measured_screen(value), None)


def measured_screen(value: Mapping[str, Any]) -> dict[str, Any]:
    """{"px_per_mm", "distance_mm", "tries"}: device pixels per millimetre, millimetres to the screen, the
    distance by each try. Null: unknown. InvalidRequest names each member that does not fit."""
    names = ("px_per_mm", "distance_mm", "tries")
    problems = {f"value.{name}"[:80]: "is not a field" for name in value if name not in names}
    px_per_mm, distance_mm, tries = (value.get(name) for name in names)
    if px_per_mm is not None and not _is_within(px_per_mm, PX_PER_MM):
        problems["value.px_per_mm"] = f"null, or {PX_PER_MM[0]:g} to {PX_PER_MM[1]:g} pixels per millimetre"
    if distance_mm is not None and not _is_within(distance_mm, DISTANCE_MM):
        problems["value.distance_mm"] = f"null, or {DISTANCE_MM[0]:g} to {DISTANCE_MM[1]:g} mm"
    if px_per_mm is None and distance_mm is not None:
        problems["value.distance_mm"] = "must be null if px_per_mm is"
    if not _are_tries(tries):
        problems["value.tries"] = f"a list of at most {TRIES_MAX} distances in mm"
    if problems:
        raise InvalidRequest("The measures of the screen do not fit.", fields=problems)
    return {name: value.get(name) for name in names}


def _are_tries(tries: object) -> bool:
    return (
        isinstance(tries, list)
        and len(tries) <= TRIES_MAX
        and all(_is_within(each, (0, 10 * DISTANCE_MM[1])) for each in tries)
    )


def _is_within(number: object, limits: tuple[float, float]) -> bool:
    return (
        isinstance(number, int | float) and not isinstance(number, bool) and limits[0] <= number <= limits[1]
    )
