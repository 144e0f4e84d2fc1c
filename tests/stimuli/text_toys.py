"""Text predictors in closed form, and small trained ones that several tests share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.datasets.synthetic.sentences import SentencesDataset, open_sentences
from stimuli.explainers import open_explainer
from stimuli.planner.bill import Bill
from stimuli.planner.drive import Job, JobResult
from stimuli.planner.text import drive_texts
from stimuli.planner.values import ExplainedNumber, Subject, TextTrace, softmax
from stimuli.predictors.text.base import TextPredictor
from stimuli.predictors.text.trained_text import open_trained_text
from stimuli.spec import Component
from stimuli.types import silent
from tests.trained import trained_once

Logits = NDArray[np.float32]


@dataclass
class ToyText:
    """Logits in closed form; keeps note of every batch it was given."""

    logits_of: Callable[[str], Sequence[float]]
    labels: tuple[str, ...] = ("no", "yes")
    batches: list[list[str]] = field(default_factory=list)

    def words(self, text: str) -> tuple[tuple[int, int], ...]:
        return tuple(match.span() for match in re.finditer(r"\w+", text))

    def text_logits(self, texts: Sequence[str]) -> Logits:
        return np.array([self.logits_of(text) for text in texts], np.float32)

    def text_batches(self, texts: Sequence[str], rows: int) -> Iterator[tuple[list[int], Logits]]:
        for start in range(0, len(texts), rows):
            part = list(range(start, min(start + rows, len(texts))))
            self.batches.append([texts[place] for place in part])
            yield part, self.text_logits(self.batches[-1])

    def text_gradient(self, text: str, explained: ExplainedNumber) -> TextTrace:
        """Two tokens per word, with gradients and embeddings that are easily multiplied."""
        spans, gradients, embeddings = [], [], []
        for number, (start, end) in enumerate(self.words(text), 1):
            middle = (start + end + 1) // 2
            spans += [(start, middle), (middle, end)] if middle < end else [(start, end)]
            count = 2 if middle < end else 1
            gradients += [[number, -1.0]] * count
            embeddings += [[1.0, 0.5]] * count
        arrays = (np.array(rows, np.float32).reshape(-1, 2) for rows in (gradients, embeddings))
        return TextTrace(tuple(spans), *arrays)


def bag_of_words(weights: dict[str, float], scale: float = 1.0) -> ToyText:
    """The logit of "yes" is the sum of the weights of the words that are there, each as often as it is."""
    return ToyText(
        lambda text: (0.0, scale * sum(weights.get(w, 0.0) for w in re.findall(r"\w+", text.lower())))
    )


def subject_of(text: str, target: int = 1, seed: int = 7) -> Subject:
    return Subject(target, f"key of {text}", seed, text=text)


def explained(
    net: Any, texts: Sequence[str | Subject], component: Component, rows: int = 32, bill: Bill | None = None
) -> list[Any]:
    """What one method says about each text; the first error is raised."""
    method = open_explainer(component)
    subjects = [text if isinstance(text, Subject) else subject_of(text) for text in texts]
    jobs = [Job(at, text, lambda s=text: method.explain(net, s)) for at, text in enumerate(subjects)]  # type: ignore[misc]
    done: dict[Any, JobResult] = {result.name: result for result in drive_texts(jobs, net, rows, bill)}
    for result in done.values():
        if result.error:
            raise result.error
    return [done[at].result for at in range(len(subjects))]


def probabilities_of(net: Any) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    return lambda texts: softmax(net.text_logits(list(texts)))


@cache
def trained(task: str, pooling: str = "lstm", model_count: int = 1500, epochs: int = 12) -> TextPredictor:
    component = Component("trained_text", {"pooling": pooling, "epochs": epochs, "train_items": model_count})
    predictor = trained_once(
        f"{task}-{pooling}-{model_count}-{epochs}",
        lambda: open_trained_text(component, Path(), task_of(task, model_count), silent),
    )
    assert isinstance(predictor, TextPredictor)
    return predictor


@cache
def task_of(task: str, model_count: int = 1500) -> SentencesDataset:
    params = {"task": task, "model_count": model_count, "count": 120}
    return open_sentences(Component("sentences", params), Path())


def people_of(task: str, model_count: int = 1500) -> list[str]:
    dataset = task_of(task, model_count)
    return [dataset.text(item.key) for item in dataset.items("people")]
