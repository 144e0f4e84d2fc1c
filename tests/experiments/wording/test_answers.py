"""What answers stand for: own names, neutral ones in a drawn order, a target, and several classes in one."""

from __future__ import annotations

from collections import Counter

import pytest

from experiments.wording.answer_meanings import answers_of, meanings
from tests.experiments.definitions import answers, definition

pytestmark = pytest.mark.pure
BINS = ["5-8", "9-12", "13-16", "17-20", "21-25", "26-28"]


def mapping(seed: int) -> dict[str, str]:
    made = definition({"classes": BINS, "label_names": "drawn"}, seed=seed)
    return {answer.value: answer.means for answer in answers_of(made)}


def test_drawn_names_stand_for_each_class_once_in_an_order_of_the_seed() -> None:
    """Numbers that follow the lengths would tell what the sentences are sorted by."""
    places: Counter[tuple[str, str]] = Counter()
    for seed in range(300):
        made = mapping(seed)
        assert made == mapping(seed) and list(made) == [f"class_{n}" for n in range(1, 7)]
        assert sorted(made.values()) == sorted(BINS)
        places.update(made.items())
    # 36 pairs, 50 times each on average; 23 and 83 are beyond four standard deviations.
    assert len(places) == 36 and min(places.values()) > 23 and max(places.values()) < 83
    study = definition({"classes": BINS, "label_names": "drawn"}, seed=4)
    assert {study.value_of(name): name for name in BINS} == mapping(4), (
        "the material's classes map the same way"
    )


def test_own_names_need_no_word_and_neutral_ones_keep_the_order() -> None:
    assert meanings(definition()) == ""
    neutral = definition({"label_names": "neutral"})
    assert (
        meanings(neutral) == "Answers stand for classes of the material: class_1 is husky, class_2 is wolf."
    )
    assert [answer.text for answer in answers_of(neutral)] == ["Class 1", "Class 2"]


def test_a_target_and_answers_for_several_classes_are_told() -> None:
    asked = answers_of(definition({"classes": None, "target": "wolf"}))
    assert [(a.value, a.means) for a in asked] == [("target", "wolf"), ("other", "every class but wolf")]
    rows = answers("wild", "tame", wild=("wolf", "fox"), tame=("husky",))
    made = definition({"classes": ["husky", "wolf", "fox"]}, answers=rows)
    assert [(a.value, a.text, a.means) for a in answers_of(made)] == [
        ("wild", "Wild", "wolf or fox"),
        ("tame", "Tame", "husky"),
    ]


def test_a_study_that_asks_for_nothing_has_no_answers() -> None:
    assert answers_of(definition({"classes": None}, paradigm="rating")) == ()
