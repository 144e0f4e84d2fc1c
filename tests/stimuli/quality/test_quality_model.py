"""What a model knows, by hand-made tables of answers, and by networks with planted faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from stimuli.quality.model_faults import causes, unknowing
from stimuli.quality.model_knowledge import (
    Accuracy,
    ColourCounts,
    LabelExchange,
    ModelLook,
    accuracy_of,
    accuracy_of_counts,
    best_label_exchange,
    confusion,
    probability_range,
)
from stimuli.quality.normalisation_probe import Probe

pytestmark = pytest.mark.pure
Table = dict[tuple[str, str], int]
"""(truth, answer): items."""


def items_of(table: Table) -> tuple[list[str], list[str], list[str]]:
    """Truths, answers, and a group for each item."""
    pairs = [pair for pair, count in table.items() for _ in range(count)]
    return [t for t, _ in pairs], [a for _, a in pairs], [str(place) for place in range(len(pairs))]


def look(table: Table, **more: object) -> ModelLook:
    """What is seen of a network whose answers are this table; its probabilities differ much."""
    truths, answers, groups = items_of(table)
    shuffled = np.random.default_rng(3).permutation(len(truths))
    truths, answers = [truths[i] for i in shuffled], [answers[i] for i in shuffled]
    commonest = max(sorted(set(answers)), key=answers.count)
    made = ModelLook(
        labels=("husky", "wolf"),
        table=confusion(truths, answers),
        asked=accuracy_of(truths, answers, groups),
        outside=0,
        commonest=commonest,
        commonest_share=answers.count(commonest) / len(answers),
        probability_range=0.9,
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        relabelled=best_label_exchange(truths, answers, groups),
    )
    return replace(made, **more)  # type: ignore[arg-type]


GOOD: Table = {("husky", "husky"): 50, ("husky", "wolf"): 10, ("wolf", "wolf"): 48, ("wolf", "husky"): 12}
SWAPPED: Table = {(t, {"husky": "wolf", "wolf": "husky"}[a]): n for (t, a), n in GOOD.items()}
EVEN: Table = {(t, a): 30 for t in ("husky", "wolf") for a in ("husky", "wolf")}
ONE: Table = {("husky", "husky"): 60, ("wolf", "husky"): 60}


def said(seen: ModelLook) -> str:
    return "; ".join([unknowing(seen), *causes(seen)])


@pytest.mark.parametrize(("right", "of"), [(0, 7), (6, 60), (62, 120), (60, 60)])
def test_its_interval_is_wilson_s_if_every_item_has_a_group_of_its_own(right: int, of: int) -> None:
    truths, answers, groups = items_of({("a", "a"): right, ("b", "a"): of - right})
    shown = accuracy_of(truths, answers, groups)
    assert (shown.low, shown.high) == pytest.approx(proportion_confint(right, of, method="wilson"), abs=1e-9)
    assert (shown.right, shown.of) == (right, of)


def test_two_equal_crops_of_each_photograph_count_for_one() -> None:
    truths, answers, groups = items_of(GOOD)
    once, twice = accuracy_of(truths, answers, groups), accuracy_of(2 * truths, 2 * answers, 2 * groups)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    assert twice.of == 2 * once.of
    apart = accuracy_of(2 * truths, 2 * answers, [str(place) for place in range(2 * len(groups))])
    assert apart.low > twice.low


@pytest.mark.parametrize(
    ("table", "guessing", "is_above"),
    [
        ({("a", "a"): 75, ("b", "a"): 25}, 0.75, False),  # one answer is right as often as it is true
        ({("a", "a"): 40, ("a", "b"): 10, ("b", "b"): 40, ("b", "a"): 10}, 0.5, True),
        ({("a", "a"): 10, ("a", "b"): 30, ("b", "a"): 10, ("b", "b"): 30}, 0.5, False),
    ],
)
def test_guessing_is_what_the_answers_get_by_chance(table: Table, guessing: float, is_above: bool) -> None:
    shown = accuracy_of(*items_of(table))
    assert shown.guessing == pytest.approx(guessing) and shown.is_above_guessing == is_above


def test_the_table_counts_every_item_once() -> None:
    truths, answers, _ = items_of(GOOD)
    assert {(truth, answer): count for truth, answer, count in confusion(truths, answers)} == GOOD
    none = accuracy_of([], [], [])
    assert confusion([], []) == () and (none.of, none.low, none.high) == (0, 0.0, 1.0)


def test_the_range_of_probabilities_is_that_of_the_softmax() -> None:
    logits = np.log(np.array([[1.0, 1.0], [3.0, 1.0], [1.0, 4.0]]))  # .5, .75, .2
    assert probability_range(logits) == pytest.approx(0.55)
    assert probability_range(logits + 7) == pytest.approx(0.55)
    assert probability_range(logits[:1]) == 0 and probability_range(np.zeros((5, 3))) == 0


def test_it_finds_labels_in_another_order() -> None:
    cycle = {"a": "b", "b": "c", "c": "a"}
    table: Table = {(truth, cycle[truth]): 12 for truth in cycle} | {(truth, truth): 3 for truth in cycle}
    truths, answers, groups = items_of(table)
    mixed = np.random.default_rng(1).permutation(len(truths))
    shown = best_label_exchange([truths[i] for i in mixed], [answers[i] for i in mixed], groups)
    assert shown is not None and dict(shown.named) == {"b": "a", "c": "b", "a": "c"}
    assert shown.accuracy.right == 36
    assert best_label_exchange(*items_of(GOOD)) is None


def test_chance_is_not_taken_for_labels_in_another_order() -> None:
    """The best of 24 orders beats chance on the items that it was chosen by; it is judged on others."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truths, answers = (list(rng.choice(list("abcd"), 60)) for _ in range(2))
        groups = [str(place) for place in range(60)]
        shown = best_label_exchange(truths, answers, groups)
        asked = accuracy_of(truths, answers, groups)
        limit = max(asked.high, shown.accuracy.guessing) if shown else 1.0
        alarms += shown is not None and shown.accuracy.low > limit
    assert alarms <= 10


def test_a_good_model_is_not_accused() -> None:
    assert said(look(GOOD)) == "" and said(look(GOOD, published=0.8)) == ""
    assert said(look(GOOD, probability_range=0.05)) == "", "unsure, but right"
    assert said(look(GOOD, untouched=True)) == "", "only its last layer was trained"


def test_swapped_labels_are_told() -> None:
    told = said(look(SWAPPED))
    assert "right on fewer than half" in told and "is the label order right? labels = [husky, wolf]" in told
    assert "does not know" not in told and "weights loaded" not in told
    three = look(SWAPPED, labels=("fox", "husky", "wolf"))
    assert '"husky" is "wolf", "wolf" is "husky"' in said(three)


@pytest.mark.parametrize(
    ("table", "more", "sign"),
    [
        (ONE, {}, 'it says "husky" on 120 of 120'),
        (EVEN, {"probability_range": 0.01}, "differ by no more than 0.01"),
        (EVEN, {"untouched": True}, "before any training"),
    ],
)
def test_a_network_that_knows_nothing_is_told_with_its_sign(
    table: Table, more: dict[str, object], sign: str
) -> None:
    told = said(look(table, **more))
    assert "0.50 (60 of 120" in told and "is what guessing gives (0.50)" in told and sign in told
    assert "were the trained weights loaded?" in told and "label order right" not in told


def test_a_model_that_errs_on_half_of_the_pictures_is_asked_about_not_refused() -> None:
    """As the shipped scenarios do, in which the ground tells the answer."""
    seen = look(EVEN)
    assert unknowing(seen) == "" and "chosen so that it errs" in said(seen)
    assert said(replace(seen, held_out=accuracy_of_counts(45, 60, 0.5))) == "", (
        "it knows what it was trained for"
    )


def test_another_normalisation_is_the_cause_before_the_weights_are() -> None:
    better = Probe("pictures in -1 to 1", (0.5,) * 3, (0.5,) * 3, right=55, before=30, of=60)
    told = said(look(ONE, better=better, mean=(0.0,) * 3, std=(1.0,) * 3))
    assert "does not know these pictures" in told and "weights loaded" not in told
    assert "it is right on 30 of 60 pictures, with pictures in -1 to 1" in told and "on 55" in told
    told = said(look(ONE, mean=(127.5,) * 3, std=(127.5,) * 3))
    assert "mean = [127.5, 127.5, 127.5] is on another scale" in told and "divide mean and std by 255" in told
    assert "another scale" not in said(look(GOOD, mean=(127.5,) * 3, std=(127.5,) * 3)), "it knows them so"


def test_an_accuracy_below_the_published_one_is_told() -> None:
    assert "published_accuracy is 0.95" in said(look(GOOD, published=0.95))
    assert "published" not in said(look(SWAPPED, published=0.95)), "the order of the labels explains it"


@pytest.mark.parametrize(
    ("training", "colour", "ways"),
    [
        ("numbers", "convert", ("bare numbers of the files", "colours converted to sRGB")),
        ("convert", "numbers", ("colours converted to sRGB", "bare numbers of the files")),
    ],
)
def test_other_colours_than_those_of_the_training_are_told(
    training: str, colour: str, ways: tuple[str, str]
) -> None:
    told = said(look(GOOD, colours=ColourCounts(9, 0, 0, colour, training)))
    trained, shown = (told.index(way) for way in ways)
    assert trained < shown and told.endswith(f'dataset set colour = "{training}"')
    for known in ("", colour):
        assert said(look(GOOD, colours=ColourCounts(9, 4, 4, colour, known))) == ""


def test_a_network_that_was_trained_in_vain_is_told() -> None:
    told = said(look(EVEN, held_out=accuracy_of_counts(28, 48, 0.5)))
    assert "0.58 (28 of 48" in told and "not above guessing" in told
    assert said(look(EVEN, held_out=accuracy_of_counts(35, 48, 0.5))) == ""


def test_a_model_whose_answers_the_study_lacks_is_told() -> None:
    none = Accuracy(0, 0, 0.0, 1.0, float("nan"))
    seen = look(GOOD, asked=none, outside=120, commonest="", commonest_share=0.0)
    assert "a class that the study lacks on all 120 pictures" in said(seen)
    shown = LabelExchange(accuracy_of(*items_of(GOOD)), (("bus", "wolf"), ("toaster", "husky")))
    told = said(replace(seen, labels=("bus", "toaster", "wolf", "husky"), relabelled=shown))
    assert '"bus" is "wolf", "toaster" is "husky": is the label order right?' in told
