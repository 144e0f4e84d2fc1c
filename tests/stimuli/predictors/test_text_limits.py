"""What word attribution can say, and what it cannot: a decision by length has no words to show.

The sentence-length model of the reverse Turing test: which three words LIME marks is chance, while for tense
and number the marks return from seed to seed.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from stimuli.predictors.text.base import TextPredictor
from stimuli.spec import Component
from tests.stimuli.text_toys import (
    ToyText,
    explained,
    people_of,
    subject_of,
    task_of,
    trained,
)

pytestmark = pytest.mark.pure

LIME = Component("lime_text", {"stability_runs": 2})
MIN_WORDS = 12
"""Of fewer words 500 samples meet a large part of all subsets: the draws then differ little by seed."""


def above_chance(net: TextPredictor | ToyText, texts: list[str]) -> NDArray[np.float64]:
    """Per text, by how much two runs' marked words agree more than random ones would."""
    long = [text for text in texts if len(text.split()) >= MIN_WORDS][:24]
    targets = net.text_logits(long).argmax(1)
    subjects = [subject_of(text, int(target)) for text, target in zip(long, targets, strict=True)]
    results = explained(net, subjects, LIME)
    return np.array([result.checks["stability"] - result.checks["stability_by_chance"] for result in results])


def test_its_marks_are_chance_where_only_the_number_of_words_decides() -> None:
    def logits(text: str) -> tuple[float, float]:
        return 0.0, 3.0 - 0.5 * abs(len(text.split()) - 14)

    gains = above_chance(ToyText(logits), people_of("sentence_length"))
    assert abs(gains.mean()) < 2.6 * gains.std() / np.sqrt(len(gains))


@pytest.mark.long(stays="test_its_marks_are_chance_where_only_the_number_of_words_decides")
def test_its_marks_are_no_better_than_chance_for_the_sentence_length_model() -> None:
    net = trained("sentence_length", "mean", 6000, 20)
    texts = people_of("sentence_length", 6000)
    dataset = task_of("sentence_length", 6000)
    right = [
        dataset.labels[int(row.argmax())] == item.truth
        for row, item in zip(net.text_logits(texts), dataset.items("people"), strict=True)
    ]
    assert np.mean(right) > 0.85  # it does know: the paper's model has 0.846
    gains = above_chance(net, texts)
    assert gains.mean() < 2.6 * gains.std() / np.sqrt(len(gains))


@pytest.mark.long(stays="test_its_marks_are_chance_where_only_the_number_of_words_decides")
@pytest.mark.parametrize("task", ["tense", "subject_number"])
def test_its_marks_return_for_tense_and_number(task: str) -> None:
    gains = above_chance(trained(task), people_of(task))
    assert gains.mean() - 2.6 * gains.std() / np.sqrt(len(gains)) > 0.2
