"""The observers of texts: reading and each rule of decision against closed forms and plain computations, and
the planted words found again."""

from __future__ import annotations

from functools import cache
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, ttest_rel
from sklearn.naive_bayes import BernoulliNB

from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Plan, PlanCondition, Pool, PoolItem
from experiments.simulation import HEADING, TEXT_OBSERVERS, person_class
from experiments.simulation.controls.substitute_explanations import ALL, ControlReport, run_controls, sit
from experiments.simulation.controls.text_markings import Texts, cue_shades, stretch_shades
from experiments.simulation.declared import declared, declared_value
from experiments.simulation.passage import FILE, Passage, passage_of, read_text, signs_of, word_shades
from experiments.simulation.people import ExampleView, TestView
from experiments.simulation.readers import (
    Remembered,
    TextObserver,
    distance,
    exemplar_evidence,
    known_text,
    log_length,
    one_reason_evidence,
    prototype_evidence,
)
from stimuli.datasets import open_dataset
from stimuli.spec import Component

pytestmark = pytest.mark.pure
SITTINGS = 60
SIDES = (Choice("past", "Past", "f"), Choice("now", "Now", "j"))
every_kind = pytest.mark.parametrize("kind", TEXT_OBSERVERS)


def passage(text: str, *marked: str) -> Passage:
    words = text.split()
    return passage_of(words, [float(word in marked) for word in words])


def test_a_text_is_read_from_its_pieces() -> None:
    pieces: list[dict[str, Any]] = [{"text": "The old men ", "shade": None}, {"text": "Walked", "shade": 0.5},
              {"text": ", tired", "shade": 0.2}, {"text": ".", "shade": None}]  # fmt: skip
    assert word_shades(pieces) == (["The", "old", "men", "Walked", "tired"], [0, 0, 0, 0.5, 0.2])
    read = read_text(pieces)
    assert read.led and read.words == ("the", "old", "men", "walked", "tired")
    # Six and five letters: 3/5 and 2/5 of the way from 1/4 to 1, times the shade in shares of the darkest.
    assert_allclose(read.notice, [0, 0, 0, 0.7, 0.55 * 0.4])


def test_without_marks_long_words_are_read_and_short_ones_skipped() -> None:
    read = read_text([{"text": "we understand a crowd", "shade": None}])
    assert not read.led
    assert_allclose(read.notice, [0.25, 1.0, 0.25, 0.55])
    assert passage("one two three").notice == passage_of(["one", "two", "three"], [0.3] * 3).notice, (
        "grey that is everywhere leads nowhere"
    )


def test_marks_that_hardly_differ_are_not_seen() -> None:
    least = declared_value(FILE, "marks", "least_span")
    assert not passage_of(["a", "b"], [0.5, 0.5 + 0.9 * least]).led
    assert passage_of(["a", "b"], [0.5, 0.5 + 1.1 * least]).led


def test_a_word_has_its_form_and_its_endings() -> None:
    assert signs_of("walked") == ("=walked", "-d", "-ed", "-ked")
    assert signs_of("cat") == ("=cat", "-t") and signs_of("we") == ("=we",)
    assert passage("cats hats", "cats").signs == pytest.approx(
        dict.fromkeys(("=cats", "-s", "-ts"), 0.25 + 0.75 / 5)
    )


def test_the_distance_is_the_mean_of_three_parts() -> None:
    first, second = {"=a": 1.0, "-s": 0.5}, {"=a": 0.5, "=b": 0.5, "-s": 0.5}
    # Forms: 1/2 of 3/2 are shared; endings: all; length: e times as many words.
    weber = declared_value(FILE, "length", "weber")
    assert_allclose(distance(first, second, 1.0), (2 / 3 + 0 + 1 - np.exp(-1 / weber)) / 3)
    assert distance(first, first, 0.0) == 0


def remembered(*texts: tuple[Passage, int]) -> Remembered:
    return Remembered(
        tuple(t.signs for t, _ in texts), np.array([log_length(t) for t, _ in texts]),
        np.array([label for _, label in texts]),
    )  # fmt: skip


MIND = remembered(
    (passage("they walked home", "walked"), 0),
    (passage("she jumped far away", "jumped"), 0),
    (passage("he walks home now today", "walks"), 1),
    (passage("it jumps", "jumps"), 1),
)
NEW = passage("we climbed up", "climbed")


def test_the_exemplar_averages_similarities_per_label() -> None:
    similar = [
        np.exp(-3 * distance(NEW.signs, signs, log(3) - length))
        for signs, length in zip(MIND.signs, MIND.lengths, strict=True)
    ]
    wanted = [np.log(np.mean(similar[:2])), np.log(np.mean(similar[2:])), np.nan]
    assert_allclose(exemplar_evidence(MIND, NEW, 3, 3.0), wanted)
    assert wanted[0] > wanted[1], "the ending is shared"


def test_the_prototype_is_naive_bayes_with_laplace_s_rule() -> None:
    """With certain notice the evidence of what stands in the text is scikit-learn's; length apart."""
    sure = [dict.fromkeys(signs, 1.0) for signs in MIND.signs]
    mind = Remembered(tuple(sure), MIND.lengths, MIND.labels)
    text = Passage(("walked",), (1.0,), True)
    bayes = BernoulliNB(alpha=1.0).fit(mind.matrix, mind.labels)
    present = [mind.names.index(name) for name in text.signs if name in mind.names]
    words = bayes.feature_log_prob_[:, present].sum(axis=1)
    spread = max(declared_value(FILE, "length", "weber"), mind.lengths.std())
    means = [mind.lengths[mind.labels == k].mean() for k in (0, 1)]
    lengths = norm.logpdf(log_length(text), means, spread) - norm.logpdf(0, 0, spread)
    assert_allclose(prototype_evidence(mind, text, 2), words + lengths)


def test_one_reason_takes_the_sign_that_tells_them_apart() -> None:
    evidence = one_reason_evidence(MIND, NEW, 2)
    assert evidence[0] > evidence[1]
    # "-ed" (and "-d") stands in both of one label and in none of the other; in "climbed" as well.
    assert evidence[0] > -1 and evidence[1] < -1.5
    assert np.isnan(one_reason_evidence(MIND, NEW, 3)[2])


def test_length_alone_can_be_the_reason() -> None:
    mind = remembered(*((passage(" ".join(["xx"] * n)), int(n > 9)) for n in (5, 6, 12, 14)))
    for count, label in ((5, 0), (13, 1)):
        assert int(one_reason_evidence(mind, passage(" ".join(["xx"] * count)), 2).argmax()) == label


@every_kind
def test_it_guesses_at_first_and_learns_from_what_is_revealed(kind: str) -> None:
    people: list[TextObserver] = [person_class(kind).drawn(3, number) for number in range(200)]  # type: ignore[misc]
    training = [("they walked home", "Past", "walked"), ("he walks home", "Now", "walks"),
                ("we jumped far", "Past", "jumped"), ("it jumps far", "Now", "jumps")] * 2  # fmt: skip
    examples = tuple(
        ExampleView(place, label, SIDES, text=passage(text, mark))
        for place, (text, label, mark) in enumerate(training)
    )
    new = [("she moved away", "moved", "past"), ("he moves away", "moves", "now")]

    def agreed(seen: tuple[ExampleView, ...]) -> float:
        views = [(TestView(9 + i, SIDES, seen, text=passage(text, mark)), right)
                 for i, (text, mark, right) in enumerate(new)]  # fmt: skip
        return float(
            np.mean([p.answer(view).value["choice"] == right for p in people for view, right in views])
        )

    # Of 400 answers, 0.06 is more than two standard errors of a fair coin.
    assert 0.44 < agreed(()) < 0.56 and agreed(examples) > 0.56


def test_it_recognises_a_text_that_it_has_seen() -> None:
    example = ExampleView(0, "Now", SIDES, text=passage("it jumps far", "jumps"))
    assert known_text(passage("it jumps far"), [example], SIDES) == SIDES[1]
    assert known_text(passage("it jumps away"), [example], SIDES) is None


@every_kind
def test_it_answers_alike_from_the_same_seed(kind: str) -> None:
    view = TestView(4, SIDES, (), text=NEW)
    assert person_class(kind).drawn(1, 2).answer(view) == person_class(kind).drawn(1, 2).answer(view)


def test_marks_of_another_text_keep_number_and_shades() -> None:
    assert stretch_shades([0, 1.0, 0, 0.5], 8) == [0, 0, 0, 1.0, 0, 0, 0, 0.5]
    assert stretch_shades([0.2, 0.4, 1.0], 2) == [0.4, 1.0], "the strongest are kept in a shorter text"
    assert cue_shades("The men walked.", [(8, 14)]) == [0, 0, 1]


@cache
def planted() -> tuple[ControlReport, list[Plan], Texts]:
    """Sentences whose verbs' endings are the answer, a model that knows it, and all controls on them."""
    params = {"task": "tense", "count": 160, "model_count": 64, "seed": 21}
    data: Any = open_dataset(Component("sentences", params), Path("."))
    items = data.items("people")
    predicted = {item.key: item.truth for item in items}
    marked = {
        item.key: [
            {"text": data.text(item.key)[start:end], "shade": shade}
            for (start, end), shade in _parts(data.text(item.key), data.cues(item.key))
        ]
        for item in items
    }
    conditions = (PlanCondition("none", "baseline", SITTINGS), PlanCondition("cue", "method", SITTINGS))
    pool_items = tuple(PoolItem(i.key, i.truth, i.truth, 0.9, i.group) for i in items)
    pool = Pool(pool_items, conditions, tuple((a, a) for a in data.labels), "none", 2, 0)
    paradigm = get_paradigm("reverse_turing")
    plans = list(paradigm.plans(paradigm.Design(), pool, Streams(8)))
    texts = Texts(data.text, lambda item, condition: marked[item], predicted, True, data.cues)
    return run_controls(plans, ["cue"], texts, seed=4, sittings_max=SITTINGS), plans, texts


def _parts(text: str, cues: tuple[tuple[int, int], ...]) -> list[tuple[tuple[int, int], float | None]]:
    ((start, end),) = cues
    return [((0, start), None), ((start, end), 1.0), ((end, len(text)), None)]


def sittings(kind: str, control: str) -> np.ndarray:
    """The accuracy of each sitting, computed apart from the report."""
    _, plans, texts = planted()
    mine = [plan for plan in plans if plan.condition == "none"]
    eye = texts.eye(
        Streams(4), sorted({t.item for p in mine for t in p.trials if t.phase == "train" and t.item})
    )
    rows = []
    for number, plan in enumerate(mine):
        chosen = sit(
            person_class(kind).drawn(4, number),
            plan,
            eye.looking(control, "cue"),
            eye.testing(control, "cue"),
            told=texts.predicted,
        )
        rows.append(np.mean([chosen[t.position] == texts.predicted[t.item or ""] for t in plan.trials
                             if t.position in chosen]))  # fmt: skip
    return np.array(rows)


@every_kind
def test_it_needs_to_be_shown_the_right_words(kind: str) -> None:
    """Recovery: the planted words help, the same marks among other words do not."""
    right, wrong = sittings(kind, "oracle"), sittings(kind, "permuted")
    assert ttest_rel(right, wrong, alternative="greater").pvalue < 0.01
    report = planted()[0]
    assert_allclose(report.row("oracle", observer=kind).accuracy, right.mean(), atol=1e-6)
    assert report.row("permuted", observer=kind, condition="cue").gain < 0.02
    assert report.row("other_image", observer=kind, condition="cue").gain < 0.05


def test_the_controls_are_all_there_and_say_what_they_are() -> None:
    report = planted()[0]
    assert report.heading == HEADING
    for kind in (*TEXT_OBSERVERS, ALL):
        assert {row.control for row in report.rows if row.observer == kind} == {
            "baseline", "shown", "permuted", "other_image", "oracle",
        }  # fmt: skip
    # The method of this study is the planted word itself.
    assert report.row("shown", "cue").accuracy == report.row("oracle").accuracy


def test_every_parameter_has_its_source() -> None:
    for group in declared(FILE).values():
        for name, parameter in group.items():
            assert parameter.kind in ("literature", "baseline") and len(parameter.source) > 20, name
