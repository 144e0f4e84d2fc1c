"""People who know answers that never leave the server: for recovery tests, on plans in memory only.

They answer with a planted probability of agreeing with the model, so that an analysis can be asked to find it
again. They have no place in the registry of people, cannot take a study over HTTP, and are never used in a
demonstration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from experiments.design.rng import Streams
from experiments.paradigms.base import Answer, Plan, PlannedTrial
from experiments.simulation.timing import DECIDE, OBEY, STUDY_PICTURE


@dataclass(frozen=True, slots=True)
class Planted:
    """Agrees with the model on test trials with a given probability, by condition and block; passes every
    check.

    `accuracy` maps (condition, block) to a probability 0-1. `person_sd` spreads people around it: one normal
    deviate per slot, added to the probability and cut to 0-1. `predicted` maps an item to the model's answer.
    A repeat check asks again for a training picture and is answered as the test trials are.
    """

    predicted: Mapping[str, str]
    accuracy: Callable[[str, int], float]
    streams: Streams
    person_sd: float = 0.0

    def answers(self, plan: Plan) -> tuple[Answer, ...]:
        """One answer per trial of the plan, in order."""
        shift = self.person_sd * float(self.streams("person", plan.ordinal).normal())
        return tuple(self._answer(plan.ordinal, trial, shift) for trial in plan.trials)

    def _answer(self, ordinal: int, trial: PlannedTrial, shift: float) -> Answer:
        rng = self.streams("answer", ordinal, trial.position)
        if trial.kind == "learn":
            took_ms = STUDY_PICTURE.draw_ms(rng)
            value = {"seen": True} if trial.label is not None else {"choice": _any_of(trial, rng)}
            return Answer(trial.position, value, took_ms, took_ms)
        if trial.check == "instructed":
            took_ms = OBEY.draw_ms(rng)
            return Answer(trial.position, {"choice": trial.expected}, took_ms, took_ms)
        took_ms = DECIDE.draw_ms(rng)
        right = self._model_says(trial)
        wrong = [choice.value for choice in trial.choices if choice.value != right]
        agrees = rng.random() < float(np.clip(self.accuracy(trial.condition, trial.block) + shift, 0, 1))
        choice = right if agrees or not wrong else wrong[int(rng.integers(len(wrong)))]
        return Answer(trial.position, {"choice": choice}, took_ms, took_ms)

    def _model_says(self, trial: PlannedTrial) -> str:
        if trial.kind != "predict" or trial.item is None:
            raise ValueError(
                f"planted people answer learn and predict trials; trial {trial.position} is {trial.kind!r}."
            )
        return self.predicted[trial.item]


def ideal(predicted: Mapping[str, str], streams: Streams) -> Planted:
    """A person who always agrees with the model: accuracy 1 in every condition and block."""
    return Planted(predicted, lambda condition, block: 1.0, streams)


def _any_of(trial: PlannedTrial, rng: np.random.Generator) -> str:
    return trial.choices[int(rng.integers(len(trial.choices)))].value
