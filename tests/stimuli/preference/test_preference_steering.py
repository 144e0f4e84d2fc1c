"""Steered RISE and the mixture of methods: pure at both ends, ties ruled, maps of one's own measured."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from stimuli import explain, measure
from stimuli.errors import BadRatings, NotApplicable, ShapeMismatch
from stimuli.library.explanations import draw, with_maps
from stimuli.preference.embedding import ShownExplanation, embed
from stimuli.preference.encoders import Histograms
from stimuli.preference.method_mixture import means, mixture
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.scorer_file import EncoderCard, SavedScorer
from stimuli.preference.steering import Predicts, Steering, steered_maps
from stimuli.render.heatmap import overlay
from stimuli.render.png import encode
from stimuli.render.recipe import RenderSpec
from stimuli.types import PixelAttribution, Pixels
from tests.stimuli.preferring import card

pytestmark = pytest.mark.pure
SIDE, MASKS = 32, 160
RECIPE = RenderSpec(alpha=0.6)


class Corner(nn.Module):
    """Class 1 as far as the upper left quarter is brighter than middle grey."""

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        bright = pictures[:, :, : SIDE // 2, : SIDE // 2].mean(dim=(1, 2, 3))
        return torch.stack([-8 * (bright - 0.3), 8 * (bright - 0.3)], dim=1)


def pictures(count: int) -> list[Pixels]:
    rng = np.random.default_rng(3)
    return list(rng.integers(100, 256, (count, SIDE, SIDE, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def likes_the_bottom() -> SavedScorer:
    """A scorer of people who like maps whose weight lies low in the picture."""
    rng = np.random.default_rng(0)
    shown, wanted = [], []
    for picture in pictures(12) * 40:
        tilt = rng.uniform(-1, 1) * np.linspace(-1, 1, 5)[:, None]
        coarse = np.clip(rng.random((5, 5)) * (0.6 + tilt), 0, 1).astype(np.float32)
        values = np.asarray(Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        row = float((values.sum(axis=1) * np.arange(SIDE)).sum() / values.sum() / SIDE)
        shown.append(
            ShownExplanation(encode(overlay(picture, PixelAttribution(values, signed=False), RECIPE)))
        )
        wanted.append(np.clip(1 + 4 * (row - 0.25) / 0.5, 1, 5))
    vectors = embed(shown, Histograms())
    scorer = PreferenceScorer(epochs=60, batch=64, learning_rate=1e-3).fit(vectors, np.array(wanted)[:, None])
    encoder = Histograms()
    told = EncoderCard(name=encoder.name, digest=encoder.digest, size=encoder.size)
    return SavedScorer(scorer, card(scorer, encoder=told))


def test_lambda_is_pure_at_both_ends_and_raises_the_prediction(likes_the_bottom: SavedScorer) -> None:
    """T17: lambda 0 is RISE itself, lambda 1 knows nothing of the network; the price is in faithfulness."""
    images = pictures(3)
    predicts = Predicts(likes_the_bottom, Histograms(), "Q1")
    plan = Steering("Q1", masks=MASKS, recipe=RECIPE, seed=4)
    base = explain(
        Corner(), images, {"rise": {"name": "rise", "masks": MASKS}}, preprocess={"input_px": SIDE}, seed=4
    )
    model = base.bench.opened[base.specs["rise"][0].predictor_key]
    maps: dict[str, list[np.ndarray]] = {}
    for view, name in zip(base.views, base.predicted, strict=True):
        made = steered_maps(model, view, model.labels.index(name), predicts, plan)
        for share, values in made.items():
            maps.setdefault(f"{share:g}", []).append(values)
    assert np.stack(maps["0"]) == pytest.approx(base.maps["rise"], abs=1e-5)
    halfway = (np.stack(maps["0"]) + np.stack(maps["1"])) / 2
    assert np.stack(maps["0.5"]) == pytest.approx(halfway, abs=1e-5), "the mean is linear in lambda"
    result = with_maps(base, {title: np.stack(values) for title, values in maps.items()})
    drawn = draw(result, RECIPE)
    predicted = [float(predicts.of(list(drawn[title])).mean()) for title in ("0", "0.5", "1")]
    assert predicted[0] < predicted[1] < predicted[2]
    table = measure(result, ["deletion"]).groupby("method")["value"].mean()
    assert table["0"] < table["1"], (
        "what people would like is less faithful to a network that looks elsewhere"
    )
    again = measure(with_maps(base, {"rise": base.maps["rise"]}), ["deletion"])["value"]
    assert again.tolist() == pytest.approx(measure(base, ["deletion"])["value"].tolist())


def test_lambda_one_ignores_the_network(likes_the_bottom: SavedScorer) -> None:
    (view,) = pictures(1)
    predicts = Predicts(likes_the_bottom, Histograms(), "Q1")
    plan = Steering("Q1", masks=40, recipe=RECIPE, lambdas=(1.0,))
    both = []
    for factor in (1.0, -1.0):
        network = Corner() if factor > 0 else nn.Sequential(Corner(), Negative())
        base = explain(network, [view], ["random"], preprocess={"input_px": SIDE})
        model = base.bench.opened[base.specs["random"][0].predictor_key]
        both.append(steered_maps(model, view, 1, predicts, plan)[1.0])
    assert (both[0] == both[1]).all()
    with pytest.raises(BadRatings, match="does not answer 'Q9'; known are Q1"):
        Predicts(likes_the_bottom, Histograms(), "Q9")
    with pytest.raises(BadRatings, match="give shares from 0 to 1"):
        Steering("Q1", lambdas=(0.0, 1.5))


class Negative(nn.Module):
    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return -logits


def test_maps_of_one_s_own_must_fit() -> None:
    base = explain(Corner(), pictures(2), ["random"], preprocess={"input_px": SIDE})
    with pytest.raises(ShapeMismatch, match=r"\(2, 32, 32\) is needed"):
        with_maps(base, {"mine": np.zeros((1, SIDE, SIDE), np.float32)})
    with pytest.raises(NotApplicable, match="not finite"):
        with_maps(base, {"mine": np.full((2, SIDE, SIDE), np.nan, np.float32)})


def test_the_mixture_takes_the_best_and_shares_ties() -> None:
    """T18: by hand; image 2 is tied by two equal pictures, image 3 by two different ones."""
    rows = [
        ("1", "a", 2.0, "p"), ("1", "b", 3.0, "q"), ("1", "c", 1.0, "r"),
        ("2", "a", 4.0, "s"), ("2", "b", 4.0, "s"), ("2", "c", 3.0, "t"),
        ("3", "a", 1.0, "u"), ("3", "b", 2.0, "v"), ("3", "c", 2.0 + 1e-12, "w"),
    ]  # fmt: skip
    made = mixture(*(list(column) for column in zip(*rows, strict=True)))
    assert made.wins == {"a": 0.5, "b": 2.0, "c": 0.5} and sum(made.wins.values()) == made.images == 3
    assert (made.tied, made.coinciding) == (2, 1)
    assert made.chosen == {"1": ("b",), "2": ("a", "b"), "3": ("b", "c")}
    values = {(image, method): place + ord(method) for place, (image, method, *_) in enumerate(rows)}
    chosen, every, images = means(made, values)
    a = ord("a")
    # Rows are numbered 0 to 8: the chosen are 1; 3 and 4; 7 and 8.
    assert chosen == pytest.approx(np.mean([a + 2, a + 4, a + 9])) and every == pytest.approx(a + 5)
    assert images == 3
    del values["3", "a"]
    assert means(made, values)[2] == 2
    with pytest.raises(BadRatings, match="no image has the metric"):
        means(made, {})
    with pytest.raises(BadRatings, match="1 of 3 images lack a method"):
        mixture(*(list(column) for column in zip(*rows[:-1], strict=True)))
