"""Methods that are spoilt on purpose, for what has to find it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stimuli.explainers.gradients.pixel_gradients import Saliency
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject


def empty_for_the_first_answer(patch: pytest.MonkeyPatch, method: type = Saliency) -> None:
    """Its form then codes the answer: for the first one it marks nothing, for the other what it marks."""
    honest = method.explain  # type: ignore[attr-defined]

    def explain(self: Any, predictor: Any, subject: Subject) -> Steps:
        made = yield from honest(self, predictor, subject)
        return replace(made, values=np.zeros_like(made.values)) if subject.target == 0 else made

    patch.setattr(method, "explain", explain)
