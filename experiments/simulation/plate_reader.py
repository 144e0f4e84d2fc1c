"""The observers of plates: they solve and review with eyes of their own, and know no truth and no source.

A person's eyes (axis and severity) are drawn once. To solve and to review, the person reads the plate and
collects evidence over time until one of two bounds is reached (a diffusion, Ratcliff and McKoon 2008): less
evidence takes longer and errs more often. Solving: a digit or none; the region is what was taken as its
figure. Reviewing: the answer or another one. A marked area draws looks, and does nothing else. Parameters,
each with its source: plates.toml. No model of people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from experiments.kinds.base import Choice, Reply
from experiments.simulation.declared import declared_value
from experiments.simulation.dots import FILE, Eyes, marked_area, read, see
from experiments.simulation.parameters import value
from experiments.simulation.people import (
    JudgeView,
    Located,
    LocateView,
    Someone,
    TestView,
    Traits,
    any_of,
    share_around,
    slowness_of,
)
from experiments.simulation.timing import DECIDE, MARK_CELL_MS, OBEY
from stimuli.regions.grid import cells_of, covered
from stimuli.render.png import decode

STEP_S = 0.001
"""Of the diffusion."""


@dataclass(frozen=True, slots=True)
class PlateReader(Someone):
    """Of all people: a few of them are weak for red or green."""

    kind: ClassVar[str] = "plate_reader"

    @classmethod
    def weak_share(cls) -> float:
        return declared_value(FILE, "eyes", "prevalence")

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        return Traits(
            lapse_share=share_around(rng, value("answer", "lapse_mean"), 30),
            noise=float(np.exp(rng.normal(0.0, value("answer", "person_spread")))),
            capacity_count=0,
            slowness=slowness_of(rng),
            reads_share=share_around(rng, 0.985, 200),
            consults_share=0.0,
        )

    @property
    def looks(self) -> bool:
        return True

    @property
    def eyes(self) -> Eyes:
        """Drawn once: ordinary, or weak by a shifted or a missing kind of cone."""
        rng = self._rng("eyes")
        is_weak, is_deutan, is_dichromat = rng.random(3) < [
            self.weak_share(),
            declared_value(FILE, "eyes", "deutan_share"),
            declared_value(FILE, "eyes", "dichromat_share"),
        ]
        low, high = (declared_value(FILE, "eyes", f"{end}_severity") for end in ("least", "most"))
        shifted = float(rng.uniform(low, high))
        severity = (1.0 if is_dichromat else shifted) if is_weak else 0.0
        return Eyes("deutan" if is_deutan else "protan", severity)

    def answer(self, view: TestView) -> Reply:
        rng = self._rng("answer", view.position)
        asked = self._obeys(view, rng)
        timing = DECIDE if asked is None else OBEY
        took_ms = timing.draw_ms(rng, self.traits.slowness)
        return Reply({"choice": (asked or any_of(view.choices, rng)).value}, took_ms, took_ms)

    def read_plate(self, plate: str, picture: bytes, choices: Sequence[Choice]) -> Choice:
        """The digit that is seen; else the answer that is no digit."""
        rng = self._rng("plate", plate)
        reading = read(see(decode(picture), self.eyes), None, self.traits.noise, rng)
        is_seen, _ = decided(float(reading.evidence.max()), rng)
        named = {choice.value: choice for choice in choices}
        nothing = next((choice for choice in choices if not choice.value.isdigit()), choices[-1])
        return named.get(str(reading.digit), nothing) if is_seen else nothing

    def locate(self, view: LocateView) -> Located:
        rng = self._rng("locate", view.position)
        is_of_digits = any(answer.isdigit() for answer in view.answers)
        if view.picture is None or not is_of_digits or rng.random() < self.traits.lapse_share:
            return self._anywhere(view, rng)
        reading = read(see(view.picture, self.eyes), None, self.traits.noise, rng)
        is_seen, took_s = decided(float(reading.evidence.max()), rng)
        took_ms = self._ms(took_s)
        answer = str(reading.digit)
        if not is_seen or answer not in view.answers:
            return Located(view.nothing, None, took_ms)
        cells = cells_of(covered(reading.figures[reading.digit], view.grid))
        return Located(answer, cells, took_ms + self._ms(len(cells) * MARK_CELL_MS / 1000))

    def judge(self, view: JudgeView) -> tuple[bool, int]:
        rng = self._rng("judge", view.position)
        evidence = 0.0
        if view.picture is not None and view.answer.isdigit() and rng.random() >= self.traits.lapse_share:
            area = None if view.mark is None else marked_area(view.picture, view.mark)
            reading = read(see(view.picture, self.eyes), area, self.traits.noise, rng)
            evidence = reading.favours(int(view.answer) % len(reading.evidence))
        accepts, took_s = decided(evidence, rng)
        return accepts, self._ms(took_s)

    def _ms(self, seconds: float) -> int:
        return round(1000 * seconds * self.traits.slowness)


@dataclass(frozen=True, slots=True)
class WeakReader(PlateReader):
    """Of people who were invited because they are weak for red or green, from hardly to fully."""

    kind: ClassVar[str] = "weak_reader"

    @classmethod
    def weak_share(cls) -> float:
        return 1.0


def decided(evidence: float, rng: np.random.Generator) -> tuple[bool, float]:
    """Whether the upper bound is reached first, and after how many seconds: a diffusion from the middle,
    whose drift grows with the evidence (nats; negative: towards the lower bound) up to the largest one."""
    drift = declared_value(FILE, "decision", "most_drift")
    drift *= evidence / (abs(evidence) + declared_value(FILE, "decision", "half_evidence"))
    half = declared_value(FILE, "decision", "separation") / 2
    steps = round(declared_value(FILE, "decision", "longest_s") / STEP_S)
    spread = declared_value(FILE, "decision", "within_sd") * STEP_S**0.5
    path = np.cumsum(rng.normal(drift * STEP_S, spread, steps))
    out = np.flatnonzero(np.abs(path) >= half)
    at = int(out[0]) if len(out) else steps - 1
    return bool(path[at] > 0), declared_value(FILE, "decision", "outside_s") + (at + 1) * STEP_S
