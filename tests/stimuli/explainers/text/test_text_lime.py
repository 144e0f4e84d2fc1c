"""LIME for texts against the package lime 0.2.0.1, in every draw and every coefficient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lime.lime_text import LimeTextExplainer

from stimuli.explainers.text.lime import agreement, drawn_rows, fit_words, forward_selection
from stimuli.explainers.text.methods import LimeText, lime_seed
from stimuli.explainers.text.removable_words import Words
from stimuli.planner.bill import Bill
from stimuli.render.tokens import token_document
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

pytestmark = pytest.mark.pure

TEXTS = (
    "A good film, and a good song; but the end... was not so good!",
    "  One word, then another?",
    "It's John's - don't you see: naïve café 12 times_over",
    "word",
    "(the the THE The)",
)


def interactions() -> ToyText:
    """A smooth function of the letters with interactions, so that every word matters, differently."""
    return ToyText(
        lambda text: (
            0.1 * len(text),
            np.sin(sum(map(ord, text)) / 37) + text.count("o") * text.count("e") / 5,
            0.7,
        ),
        ("a", "b", "c"),
    )


def package(net: Any, text: str, seed: int, target: int, **options: Any) -> list[tuple[int, float]]:
    """The package's features and coefficients, in its order."""
    count, samples = options.pop("num_features", 3), options.pop("num_samples", 500)
    explainer = LimeTextExplainer(random_state=seed, **options)
    made = explainer.explain_instance(
        text, probabilities_of(net), labels=(target,), num_features=count, num_samples=samples
    )
    return [(int(feature), float(value)) for feature, value in made.local_exp[target]]


@pytest.mark.parametrize(
    ("selection", "top", "bow"),
    [("auto", 3, True), ("auto", 7, False), ("highest_weights", 3, True), ("forward_selection", 7, False)],
)
def test_it_has_the_coefficients_of_the_package(selection: Any, top: int, bow: bool) -> None:
    net = interactions()
    for seed, text in enumerate((*TEXTS, *people_of("tense")[:4])):
        words = Words(text, net.words(text), together=bow, mask="" if bow else "UNKWORDZ")
        rows = drawn_rows(words.count, 500, seed)
        targets = probabilities_of(net)(words.all_shown(rows))[:, 1]
        fit = fit_words(rows, targets, top, 25.0, selection)
        theirs = package(net, text, seed, 1, bow=bow, feature_selection=selection, num_features=top)
        assert set(fit.chosen) == {feature for feature, _ in theirs}
        np.testing.assert_allclose(
            [fit.values[feature] for feature, _ in theirs], [value for _, value in theirs], rtol=0, atol=1e-12
        )


@pytest.mark.long(stays="test_it_has_the_coefficients_of_the_package")
def test_it_has_the_coefficients_of_the_package_for_a_trained_network() -> None:
    net = trained("sentiment")
    for text in people_of("sentiment")[:6]:
        target = int(net.text_logits([text])[0].argmax())
        subject = subject_of(text, target)
        attribution = explained(net, [subject], Component("lime_text"))[0]
        theirs = package(net, text, lime_seed(subject, 0), target)
        order = {
            text[start:end]: value
            for (start, end), value in zip(attribution.spans, attribution.values, strict=True)
        }
        words = list(dict.fromkeys(text[start:end] for start, end in attribution.spans))
        for feature, value in theirs:
            assert order[words[feature]] == pytest.approx(value, abs=1e-6)  # kept in single precision
        assert sum(value != 0 for value in order.values()) == 3


def test_it_makes_the_strings_of_the_package() -> None:
    seen: list[str] = []
    net = interactions()

    def noted(texts: list[str]) -> Any:
        seen.extend(texts)
        return probabilities_of(net)(texts)

    for bow in (True, False):
        for text in TEXTS:
            seen.clear()
            LimeTextExplainer(random_state=3, bow=bow).explain_instance(text, noted, num_samples=60)
            words = Words(text, net.words(text), together=bow, mask="" if bow else "UNKWORDZ")
            assert words.all_shown(drawn_rows(words.count, 60, 3)) == seen


def test_it_selects_what_refitting_every_model_would() -> None:
    """Against the naive search: least squares for every candidate, the best share of variance."""
    rng = np.random.default_rng(0)
    design = (rng.random((200, 9)) < 0.6).astype(float)
    targets = design @ rng.normal(size=9) + design[:, 0] * design[:, 3] + rng.normal(size=200) / 5
    weights = rng.random(200)

    def share(columns: list[int]) -> float:
        full = np.column_stack([np.ones(200), design[:, columns]]) * np.sqrt(weights)[:, None]
        aim = targets * np.sqrt(weights)
        return -float(((aim - full @ np.linalg.lstsq(full, aim, rcond=None)[0]) ** 2).sum())

    naive: list[int] = []
    for _ in range(6):
        naive.append(max((c for c in range(9) if c not in naive), key=lambda c: share([*naive, c])))
    assert forward_selection(design, targets, weights, 6) == naive


def test_it_survives_features_that_say_the_same() -> None:
    design = np.repeat(np.random.default_rng(1).integers(0, 2, (50, 2)), 2, axis=1).astype(float)
    chosen = forward_selection(design, design[:, 0] * 2 + design[:, 2], np.ones(50), 4)
    assert sorted(chosen[:2]) == [0, 2] and sorted(chosen) == [0, 1, 2, 3]


def test_it_ranks_the_words_of_a_linear_model_by_their_weights() -> None:
    weights = {"awful": -2.0, "fine": 1.4, "splendid": 2.6, "the": 0.05, "film": 0.3, "song": -0.7}
    text = "The film was splendid, the song awful; all in all fine"
    for params in ({"top": 5, "feature_selection": "highest_weights"}, {"top": 5}):
        attribution = explained(bag_of_words(weights, 0.3), [text], Component("lime_text", params))[0]
        value = {
            text[a:b].lower(): float(v)
            for (a, b), v in zip(attribution.spans, attribution.values, strict=True)
        }
        ranked = sorted(weights, key=lambda word: -abs(weights[word]))[:5]
        assert sorted(ranked, key=lambda word: -abs(value[word])) == ranked
        assert all(np.sign(value[word]) == np.sign(weights[word]) for word in ranked)


def test_it_marks_every_place_of_a_word_in_a_bag() -> None:
    text = "good film, good song"
    bag, places = (
        explained(bag_of_words({"good": 1.0}), [text], Component("lime_text", {"bow": bow, "top": 1}))[0]
        for bow in (True, False)
    )
    assert bag.values[0] == bag.values[2] > 0
    assert sum(places.values != 0) == 1


def test_it_runs_no_string_twice() -> None:
    """A text of d words has at most 2 ** d copies, the text itself among them."""
    texts = ["alpha beta gamma", "one two three four five six seven eight"]
    net, bill = bag_of_words({"beta": 1.0}), Bill()
    explained(net, [texts[0]], Component("lime_text"), bill=bill)
    assert bill.forwards == 2**3
    explained(net, [texts[1]], Component("lime_text"), bill=bill)
    assert 150 < bill.forwards - 2**3 <= 2**8 < 500
    ran = [text for batch in net.batches for text in batch]
    assert len(set(ran)) == len(ran)


def test_it_depends_on_key_and_seed_alone() -> None:
    net = interactions()
    text = "a few words that are all a little different from each other"
    alone = explained(net, [subject_of(text)], Component("lime_text"))[0]
    among = explained(net, [*TEXTS[:3], subject_of(text)], Component("lime_text"), rows=5)[3]
    other = explained(net, [subject_of(text, seed=8)], Component("lime_text"))[0]
    assert (alone.values == among.values).all()
    assert (alone.values != other.values).any()


def constant() -> dict[str, ToyText]:
    return {
        "no weights": bag_of_words({}),
        "never reads": ToyText(lambda text: (0.3, 0.9)),
        "rounds": ToyText(lambda text: (0.3, np.nextafter(np.float32(0.9), 1) if "a" in text else 0.9)),
        "saturated": ToyText(lambda text: (-40.0, 40.0 + len(text) * 1e-3)),
    }


@pytest.mark.parametrize("name", constant())
@pytest.mark.parametrize("text", ["film", "a decision that never reads a word of this"])
def test_it_marks_nothing_where_no_word_matters(name: str, text: str) -> None:
    net = constant()[name]
    for component in (
        Component("lime_text", {"stability_runs": 2}),
        Component("lime_text", {"bow": False, "top": 7}),
        Component("shap_text"),
        Component("shap_text", {"exact_words": 0}),
        Component("random_text"),
        Component("random_text", {"of": "shap_text"}),
    ):
        attribution = explained(net, [text], component)[0]
        assert len(attribution.values) == len(text.split()) and not attribution.values.any()
        assert not any(piece["shade"] for piece in token_document(text, attribution)["tokens"])
        assert all(np.isfinite(value) for value in attribution.checks.values())


def test_it_marks_a_word_of_a_small_effect() -> None:
    """A thousandth of a logit is far above rounding, and a small probability has ratios of its own."""
    for base in (0.0, -20.0):
        net = ToyText(lambda text, base=base: (0.0, base + 1e-3 * text.count("film")))  # type: ignore[misc]
        for name in ("lime_text", "shap_text"):
            attribution = explained(net, ["one film of many"], Component(name))[0]
            assert int(np.argmax(np.abs(attribution.values))) == 1 and attribution.values[1] > 0


def test_it_tells_how_stable_its_choice_is() -> None:
    plain = bag_of_words({"alpha": 4.0, "beta": -3.0, "gamma": 2.0})
    text = "alpha one two beta three four five six gamma seven eight nine"
    attribution = explained(plain, [text], Component("lime_text", {"stability_runs": 4}))[0]
    assert attribution.checks["stability"] == 1.0
    assert attribution.checks["stability_by_chance"] == 3 / 12
    without = explained(plain, [text], Component("lime_text"))[0]
    assert (attribution.values == without.values).all() and "stability" not in without.checks
    assert agreement([(1, 2, 3), (3, 4, 5), (2, 1, 3)]) == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)


def test_it_says_nothing_about_a_text_without_words() -> None:
    for name in ("lime_text", "shap_text", "random_text", "input_gradient_text"):
        attribution = explained(bag_of_words({}), ["?! ..."], Component(name))[0]
        assert attribution.spans == () and len(attribution.values) == 0


def test_its_defaults_are_those_of_the_paper() -> None:
    method = LimeText()
    assert (method.samples, method.top, method.kernel_width) == (500, 3, 25.0)
    assert (method.feature_selection, method.bow) == ("auto", True)
