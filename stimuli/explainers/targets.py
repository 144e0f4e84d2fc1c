"""Which number of a model is explained: of which class, and what is made of its logit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stimuli.errors import BadSpec
from stimuli.planner.values import ExplainedNumber, Operator
from stimuli.registry import closest

Of = Literal["predicted", "true", "runner_up", "label"]


@dataclass(frozen=True, slots=True)
class Target:
    """The explained number of every item, before the item is known.

    `of` names the class: the predicted one, the item's true one, the runner-up (the largest logit but the
    predicted class's), or the one called `label`. `operator` is what is explained of it, see
    `ExplainedNumber`; a margin is taken against the largest other logit of the item. Runner-up and other are
    looked for `among` these labels, or among all of the model if there are none.
    """

    of: Of = "predicted"
    label: str = ""
    operator: Operator = "logit"
    among: tuple[str, ...] = ()

    def words(self, output: str = "") -> str:
        """The number, as people say it; `output` is what a method itself makes of the logit, if it does."""
        classes = {"predicted": "the predicted class", "true": "the true class", "runner_up": "the runner-up"}
        of = classes.get(self.of, f"class {self.label!r}")
        rest = f" of {', '.join(self.among)}" if self.among else ""
        over = f" over the largest other logit{rest}" if self.operator == "margin" else ""
        number = output.replace("_", " ") if output and self.operator == "logit" else self.operator
        return f"the {number} of {of}{over}"

    def refuse(self, labels: Sequence[str], truths: Sequence[str]) -> None:
        """BadSpec if a model with these `labels` has no such number for items of the classes `truths`."""
        if self.of == "label" and self.label not in labels:
            raise BadSpec(
                f"[explained] label is {self.label!r}{closest(self.label, labels)}, which the model does not "
                f"know: name one of {', '.join(labels)}"
            )
        unknown = [name for name in truths if name not in labels]
        if self.of == "true" and unknown:
            raise BadSpec(
                f"[explained] of is 'true', but the model has no class {', '.join(unknown)} (it has "
                f"{', '.join(labels)}): give both the same class names, or set of = 'predicted'"
            )
        count = len(self._rivals(labels))
        if (self.of == "runner_up" or self.operator == "margin") and count < 2:
            raise BadSpec(
                f"[explained] compares two classes, but the model has {count} of {', '.join(self.among)} (it "
                f"has {', '.join(labels)}): ask about classes that it has, or explain the predicted class's "
                "logit or probability"
            )

    def number(
        self, labels: Sequence[str], predicted: int, truth: str, logits: Sequence[float]
    ) -> ExplainedNumber:
        """The number of one item with these `logits`, of which `predicted` is the predicted label's place."""
        if self.of == "runner_up":
            index = self._largest_but(predicted, labels, logits)
        elif self.of == "predicted":
            index = predicted
        else:
            index = labels.index(self.label if self.of == "label" else truth)
        if self.operator != "margin":
            return ExplainedNumber(index, operator=self.operator)
        return ExplainedNumber(index, operator="margin", against=self._largest_but(index, labels, logits))

    def _rivals(self, labels: Sequence[str]) -> list[int]:
        return [at for at, name in enumerate(labels) if not self.among or name in self.among]

    def _largest_but(self, index: int, labels: Sequence[str], logits: Sequence[float]) -> int:
        """Of equal logits the first."""
        others = [at for at in self._rivals(labels) if at != index]
        return others[int(np.argmax([logits[at] for at in others]))]
