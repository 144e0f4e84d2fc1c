"""SHAP, gradients and the random control for texts, against brute force and another library."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import numpy as np
import pytest
import shap

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import open_explainer
from stimuli.explainers.text.removable_words import scatter_values
from stimuli.explainers.text.shapley import all_coalitions, drawn_coalitions
from stimuli.planner.asks import Scores, TextScores
from stimuli.planner.drive import Job
from stimuli.planner.text import drive_texts
from stimuli.planner.values import ExplainedNumber
from stimuli.planner.variants import Windows
from stimuli.spec import Component
from tests.stimuli.text_toys import (
    ToyText,
    bag_of_words,
    explained,
    people_of,
    probabilities_of,
    subject_of,
    trained,
)
from tests.stimuli.tiny import linear_net

pytestmark = pytest.mark.pure

TEXT = "not a very good film, sadly"


def with_interactions() -> ToyText:
    """ "not" turns the words around, "very" makes them stronger."""

    def logits(text: str) -> tuple[float, float]:
        words = re.findall(r"\w+", text)
        value = 1.3 * words.count("good") - 0.8 * words.count("sadly") + 0.1 * len(words)
        return 0.0, value * (2 if "very" in words else 1) * (-1 if "not" in words else 1)

    return ToyText(logits)


def value_of(net: Any, shown: Any, output: str = "probability") -> float:
    words = [word for word, stays in zip(re.findall(r"\w+", TEXT), shown, strict=True) if stays]
    yes = float(probabilities_of(net)([" ".join(words)])[0, 1])
    return yes if output == "probability" else float(np.log(yes / (1 - yes)))


@pytest.mark.parametrize("output", ["probability", "log_odds"])
def test_it_has_the_shapley_values_of_brute_force(output: str) -> None:
    net = with_interactions()
    count = len(net.words(TEXT))
    brute = np.zeros(count)
    orders = list(itertools.permutations(range(count)))
    worth = {shown: value_of(net, shown, output) for shown in itertools.product((0, 1), repeat=count)}
    for order in orders:
        shown = [0] * count
        for word in order:
            before = worth[tuple(shown)]
            shown[word] = 1
            brute[word] += worth[tuple(shown)] - before
    attribution = explained(net, [TEXT], Component("shap_text", {"output": output}))[0]
    np.testing.assert_allclose(attribution.values, brute / len(orders), atol=1e-6)
    assert attribution.checks["efficiency_gap"] < 1e-12


@pytest.mark.usefixtures("uncompiled_shap")
def test_it_has_the_values_of_the_package_shap() -> None:
    net = with_interactions()
    count = len(net.words(TEXT))

    def of_rows(rows: Any) -> Any:
        return np.array([value_of(net, row > 0.5) for row in rows])

    masker = shap.maskers.Independent(np.zeros((1, count)))
    theirs = shap.explainers.ExactExplainer(of_rows, masker)(np.ones((1, count))).values[0]
    scores = of_rows(all_coalitions(count).rows.astype(float))
    np.testing.assert_allclose(all_coalitions(count).values(scores), theirs, atol=1e-12)


def test_it_comes_close_by_random_orders_and_is_always_efficient() -> None:
    net = with_interactions()
    exact = explained(net, [TEXT], Component("shap_text"))[0].values
    for orders, close in ((2, 0.2), (200, 0.02)):
        params = {"exact_words": 0, "orders": orders}
        attribution = explained(net, [TEXT], Component("shap_text", params))[0]
        assert attribution.checks["efficiency_gap"] < 1e-12
        np.testing.assert_allclose(attribution.values, exact, atol=close)
    assert (
        explained(net, [subject_of(TEXT, seed=9)], Component("shap_text", {"exact_words": 0, "orders": 1}))[
            0
        ].values
        != attribution.values
    ).any()


def test_it_scores_each_subset_of_the_orders_once() -> None:
    drawn = drawn_coalitions(7, 5, subject_of("x"))
    assert len(np.unique(drawn.rows, axis=0)) == len(drawn.rows) <= 2 + 5 * 2 * 6
    assert not drawn.rows[0].any() and drawn.rows[-1].all()
    linear = drawn.rows @ np.arange(7.0)
    np.testing.assert_allclose(drawn.values(linear), np.arange(7.0), atol=1e-12)


def test_it_ranks_the_words_of_a_linear_model_by_their_weights() -> None:
    weights = {"awful": -2.0, "fine": 1.4, "splendid": 2.6, "film": 0.3, "song": -0.7}
    text = "A film splendid, one song awful; all in all quite fine"
    for exact in (14, 0):
        params = {"output": "log_odds", "exact_words": exact}
        attribution = explained(bag_of_words(weights), [text], Component("shap_text", params))[0]
        value = {text[a:b]: float(v) for (a, b), v in zip(attribution.spans, attribution.values, strict=True)}
        assert value == pytest.approx({word: weights.get(word, 0.0) for word in value}, abs=1e-6)


def test_it_keeps_the_strongest_words_only() -> None:
    net = with_interactions()
    everything = explained(net, [TEXT], Component("shap_text"))[0].values
    strongest = explained(net, [TEXT], Component("shap_text", {"top": 2}))[0].values
    largest = np.argsort(-np.abs(everything))[:2]
    assert set(np.flatnonzero(strongest)) == set(largest)
    assert (strongest[largest] == everything[largest]).all()


def test_it_masks_words_where_asked_to() -> None:
    net = ToyText(lambda text: (0.0, float(text.count("[X]"))))
    params = {"hidden": "masked", "mask_word": "[X]", "output": "log_odds"}
    attribution = explained(net, ["a b c"], Component("shap_text", params))[0]
    np.testing.assert_allclose(attribution.values, -1.0, atol=1e-6)


def test_it_adds_up_gradient_times_embedding_over_the_parts_of_a_word() -> None:
    """By hand: a part has number * 1 + -1 * 0.5; words of two letters or more have two parts."""
    attribution = explained(bag_of_words({}), ["I saw, it"], Component("input_gradient_text"))[0]
    assert attribution.spans == ((0, 1), (2, 5), (7, 9))
    np.testing.assert_allclose(attribution.values, [0.5, 2 * 1.5, 2 * 2.5])


def test_it_leaves_marks_out_of_the_gradient() -> None:
    net = trained("tense", model_count=300, epochs=2)
    text = people_of("tense", 300)[0]
    attribution = explained(net, [text], Component("input_gradient_text"))[0]
    traced = net.text_gradient(text, ExplainedNumber(1))
    products = (traced.gradients * traced.embeddings).sum(1)
    is_word = [text[start:end].isalpha() for start, end in traced.spans]
    np.testing.assert_allclose(attribution.values, products[is_word], rtol=1e-5)


@pytest.mark.parametrize("of", ["lime_text", "shap_text", "input_gradient_text"])
def test_its_control_has_the_same_values_on_random_words(of: str) -> None:
    net = trained("tense")
    texts = people_of("tense")[:10]
    source = explained(net, texts, Component(of))
    control = explained(net, texts, Component("random_text", {"of": of}))
    again = explained(net, texts, Component("random_text", {"of": of}))
    moved = 0
    for attribution, other, same in zip(source, control, again, strict=True):
        assert attribution.spans == other.spans
        assert sorted(attribution.values) == sorted(other.values)
        assert (other.values == same.values).all()
        assert other.checks == {}
        moved += bool((attribution.values != other.values).any())
    assert moved > 7
    if of == "lime_text":
        assert all(int((other.values != 0).sum()) == 3 for other in control)


def test_its_control_marks_every_place_equally_often() -> None:
    """Over 2,000 keys each of six words gets the one mark about a sixth of the time (99.9 % interval)."""
    subjects = [subject_of("a b c d e f", seed=seed) for seed in range(2000)]
    attributions = explained(
        bag_of_words({"c": 2.0}), subjects, Component("random_text", {"of": "shap_text"})
    )
    places = [int(np.argmax(attribution.values)) for attribution in attributions]
    assert all(
        attribution.values[place] > 0.3 for attribution, place in zip(attributions, places, strict=True)
    )
    assert np.abs(np.bincount(places, minlength=6) / 2000 - 1 / 6).max() < 3.3 * np.sqrt(5 / 36 / 2000)


REPEATED = (
    "the film was the best of the very best song in the town",
    "I saw the film and the film saw me",
    "good film good song bad film bad song",
    "a a a a",
    "never never never again and again we go",
)


def test_its_control_marks_equal_words_alike_where_the_method_does() -> None:
    """It differs from the method neither in marking only some places of a word nor in how much it marks."""
    net = bag_of_words({"the": 2.0, "film": -1.0, "best": 1.5, "very": 0.7, "never": 1.0, "good": 1.0})
    for text in REPEATED:
        source = explained(net, [text], Component("lime_text"))[0]
        words = [text[start:end] for start, end in source.spans]
        places: list[tuple[bool, ...]] = []
        for seed in range(20):
            control = explained(net, [subject_of(text, seed=seed)], Component("random_text"))[0]
            attribution = explained(net, [subject_of(text, seed=seed)], Component("lime_text"))[0]
            of_word: dict[str, set[float]] = {}
            for word, value in zip(words, control.values, strict=True):
                of_word.setdefault(word, set()).add(float(value))
            assert all(len(values) == 1 for values in of_word.values())
            assert sorted(control.values) == sorted(attribution.values)
            places.append(tuple(control.values != 0))
        assert len(set(places)) > 1 or len(set(words)) == 1


def test_its_control_marks_as_many_different_words_where_counts_allow() -> None:
    text = "good film good song bad film bad song then"
    spans = bag_of_words({}).words(text)
    values = np.array([text[start:end] == "good" for start, end in spans], np.float32)
    chosen = []
    for seed in range(400):
        moved = scatter_values(text, spans, values, np.random.default_rng(seed))
        (word,) = {text[a:b] for (a, b), value in zip(spans, moved, strict=True) if value}
        chosen.append(word)
    counts = [chosen.count(word) for word in ("good", "film", "song", "bad")]
    assert sum(counts) == 400 and min(counts) > 65


def test_its_control_treats_every_place_alone_where_the_method_does() -> None:
    text = "good film good song and more words"
    spans = bag_of_words({}).words(text)
    values = np.array([1, 0, 2, 0, 0, 0, 0], np.float32)
    draws = [scatter_values(text, spans, values, np.random.default_rng(seed)) for seed in range(100)]
    assert all(sorted(drawn) == sorted(values) for drawn in draws)
    assert {int(drawn.argmax()) for drawn in draws} == set(range(7))


def test_its_control_takes_the_parameters_of_the_method() -> None:
    text = "one film of the many that we saw in town"
    net = bag_of_words({word: place / 5 for place, word in enumerate(text.split(), 1)})
    for of, params in (("lime_text", {"top": 6}), ("shap_text", {"top": 2, "exact_words": 0})):
        source = explained(net, [text], Component(of, params))[0]
        given = Component("random_text", {"of": of, "parameters": json.dumps(params)})
        control = explained(net, [text], given)[0]
        assert sorted(control.values) == sorted(source.values)
        assert int((control.values != 0).sum()) == params["top"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("", "is no JSON object; give the parameters of 'lime_text'"),
        ("[1]", "is no JSON object"),
        ("[" * 100_000, "is no JSON object"),
        ('{"tops": 5}', "the method that it scatters: .*tops"),
        ('{"top": 0}', "the method that it scatters: .*top"),
        ('{"top": "5"}', "the method that it scatters: .*top"),
        ('{"kernel_width": NaN}', "random_text"),
    ],
)
def test_it_refuses_parameters_that_the_method_does_not_take(parameters: str, said: str) -> None:
    with pytest.raises(BadSpec, match=said):
        open_explainer(Component("random_text", {"parameters": parameters}))


def test_it_refuses_a_control_of_itself_or_of_pictures() -> None:
    for of in ("random_text", "saliency"):
        with pytest.raises(BadSpec, match="set 'of' to a method that marks words"):
            open_explainer(Component("random_text", {"of": of}))


def test_it_refuses_predictors_of_pictures() -> None:
    for name in ("lime_text", "shap_text", "input_gradient_text", "random_text"):
        with pytest.raises(NotApplicable, match="explains texts"):
            open_explainer(Component(name)).require(linear_net(), "")
        open_explainer(Component(name)).require(bag_of_words({}), "")


class TestDriving:
    def test_it_runs_equal_strings_of_all_jobs_once(self) -> None:
        net = bag_of_words({"beta": 1.0})
        names = ("lime_text", "shap_text", "random_text")
        texts = ["alpha beta gamma", "alpha beta", "gamma"]
        jobs = []
        for text in texts:
            for name in names:
                method, subject = open_explainer(Component(name)), subject_of(text)
                jobs.append(Job((text, name), subject, lambda m=method, s=subject: m.explain(net, s)))  # type: ignore[misc]
        assert len(list(drive_texts(jobs, net, rows=4))) == 9
        ran = [text for batch in net.batches for text in batch]
        assert len(set(ran)) == len(ran)
        assert max(map(len, net.batches)) == 4
        assert sum(len(batch) < 4 for batch in net.batches) == 1

    def test_it_answers_asks_of_a_tuple_in_their_places(self) -> None:
        net = bag_of_words({"b": 1.0})

        def steps() -> Any:
            two, none, last = yield TextScores(["a", "b"]), TextScores([]), TextScores(["b"])
            more = yield TextScores(["b b"])
            return two, none, last, more

        (done,) = drive_texts([Job("x", subject_of("a b"), steps)], net)
        two, none, last, more = done.result
        assert two.shape == (2, 2) and none.shape == (0, 2) and (two[1] == last[0]).all()
        np.testing.assert_allclose(more[0, 1], 1 / (1 + np.exp(-2)), rtol=1e-6)
        assert two.dtype == np.float64

    def test_it_ends_the_job_that_asks_about_pictures_and_no_other(self) -> None:
        net = bag_of_words({})

        def wrong() -> Any:
            yield Scores(Windows([(0, 0)], 1, 0.0))

        method = open_explainer(Component("lime_text"))
        good = subject_of("a b")
        jobs = [Job("bad", subject_of("x"), wrong), Job("good", good, lambda: method.explain(net, good))]
        done = {outcome.name: outcome for outcome in drive_texts(jobs, net)}
        assert isinstance(done["bad"].error, NotApplicable)
        assert done["good"].error is None
