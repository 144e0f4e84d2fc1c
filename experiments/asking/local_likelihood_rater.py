"""A model in a local folder as a rater: of the listed answers it gives the most probable."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from experiments.asking.chat import Part
from experiments.asking.choice_dialogue import Answers, question_messages
from experiments.asking.prompts import Order
from stimuli.predictors.vision_language import VisionLanguage
from stimuli.render.png import decode


class LikeliestAsker:
    """Puts the very questions that a model at an address gets; each listed answer is a reply in the form that
    they ask for. Of equally probable answers the first listed stands."""

    def __init__(self, model: VisionLanguage, order: Order) -> None:
        self.model, self.order = model, order
        self.system, self.took_ms = "", 0

    def ask(self, parts: Sequence[Part], answers: Answers) -> str:
        """Raises BadSpec for a question that the model cannot take."""
        began = time.monotonic()
        turns = [
            (message.role, [part if isinstance(part, str) else decode(part) for part in message.parts])
            for message in question_messages(self.system, parts, answers, self.order)
        ]
        values = [value for value, _ in answers]
        told = self.model.log_likelihoods(turns, [json.dumps({"answer": value}) for value in values])
        if self.order == "reversed":
            values, told = values[::-1], told[::-1]
        self.took_ms = round(1000 * (time.monotonic() - began))
        return values[told.index(max(told))]
