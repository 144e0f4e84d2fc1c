"""The estimator: what scikit-learn asks of it, heads together and alone, early stopping, and bad input."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any, Self

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import cohen_kappa_score
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

from stimuli.errors import BadRatings
from stimuli.preference.losses import RELEASED_TRAINING, loss
from stimuli.preference.prediction_agreement import scores_of
from stimuli.preference.scorer_estimator import PreferenceScorer
from tests.stimuli.preferring import QUICK, preference

pytestmark = pytest.mark.pure

Floats = NDArray[np.float64]


class AnyScale(PreferenceScorer):
    """Takes targets of any range, as scikit-learn's checks give them, by bringing them to 1..5."""

    def fit(self, X: ArrayLike, y: ArrayLike, groups: object = None, **others: Any) -> Self:
        if y is not None:
            values = np.asarray(y, dtype=float)
            self.low_, self.span_ = values.min(), np.ptp(values) or 1.0
            y = 1 + 4 * (values - self.low_) / self.span_
        return super().fit(X, y, groups, **others)

    def predict(self, X: ArrayLike) -> Floats:
        shares = (super().predict(X) - 1) / 4
        return np.asarray(self.low_ + shares * self.span_)


def test_it_is_an_estimator_of_scikit_learn() -> None:
    scorer = AnyScale(epochs=20, hidden=(32, 16), learning_rate=1e-2, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings of scikit-learn's own
        results = check_estimator(scorer, on_skip=None, on_fail=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results
              if result["status"] not in ("passed", "skipped")}  # fmt: skip
    assert not failed
    assert sum(result["status"] == "passed" for result in results) > 40


def together(**others: Any) -> tuple[PreferenceScorer, tuple[Any, Any], tuple[Any, Any]]:
    """Three heads, of which each misses other ratings, so that their batches differ in size and number."""
    X, y = preference()
    y[::3, 1] = np.nan
    y[100:150, 2] = np.nan
    train, held = (X[:200], y[:200]), (X[200:], y[200:])
    scorer = PreferenceScorer(**{**QUICK, "seed": [5, 6, 5], "patience": 2, "epochs": 20, **others})
    return scorer.fit(*train, validation=held), train, held


def test_it_trains_a_head_in_company_as_it_does_alone() -> None:
    """T19."""
    scorer, (X, y), (X_held, y_held) = together()
    answers = scorer.predict(X_held)
    for head, seed in enumerate([5, 6, 5]):
        alone = PreferenceScorer(**{**QUICK, "seed": seed, "patience": 2, "epochs": 20})
        alone.fit(X, y[:, head], validation=(X_held, y_held[:, head]))
        assert alone.predict(X_held) == pytest.approx(answers[:, head], abs=1e-5)
        assert alone.arrays_["epoch"][0] == scorer.arrays_["epoch"][head]
        rated = ~np.isnan(y[:, head])
        fewer = clone(alone).fit(X[rated], y[rated, head], validation=(X_held, y_held[:, head]))
        assert fewer.predict(X_held) == pytest.approx(alone.predict(X_held), abs=1e-5)
    other = clone(alone).set_params(seed=9).fit(X, y[:, 2], validation=(X_held, y_held[:, 2]))
    assert np.abs(other.predict(X_held) - answers[:, 2]).max() > 0.01


def test_it_repeats_to_the_bit_with_any_number_of_threads() -> None:
    first, _, (X, _) = together()
    for jobs in (1, 3, None):
        again, _, _ = together(n_jobs=jobs)
        assert again.predict(X).tobytes() == first.predict(X).tobytes()
    other, _, _ = together(seed=[5, 6, 7])
    assert (other.predict(X)[:, :2] == first.predict(X)[:, :2]).all()
    assert (other.predict(X)[:, 2] != first.predict(X)[:, 2]).any()


def test_it_gives_the_threads_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        together(n_jobs=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_it_trains_as_a_plain_network_of_torch_does() -> None:
    """The same first weights and order of rows, in nn.Linear and a loop of its own."""
    X, y = preference(rows=70, heads=1)
    scorer = PreferenceScorer(**{**QUICK, "epochs": 3, "seed": 4}).fit(X, y[:, 0])
    rng = np.random.default_rng([4, 0])
    layers = [nn.Linear(9, 24), nn.Linear(24, 8), nn.Linear(8, 1)]
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    with torch.no_grad():
        for layer in layers:
            bound = layer.in_features**-0.5
            drawn = rng.uniform(-1, 1, (layer.in_features, layer.out_features)) * bound
            layer.weight.copy_(torch.from_numpy(drawn.T))
            layer.bias.copy_(torch.from_numpy(rng.uniform(-1, 1, layer.out_features) * bound))
        layers[2].bias.fill_(0.5)
    inputs = torch.from_numpy((X - X.mean(axis=0)) / X.std(axis=0)).float()
    wanted = torch.from_numpy((y[:, 0] - 1) / 4).float()
    adam = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=1e-6)
    for epoch in (1, 2, 3):
        order = np.random.default_rng([4, epoch]).permutation(70)
        for start in (0, 32, 64):
            rows = torch.from_numpy(order[start : start + 32])
            adam.zero_grad()
            total = loss(network(inputs[rows]).T, wanted[rows][None], RELEASED_TRAINING, "batch").sum()
            total.backward()  # type: ignore[no-untyped-call]
            adam.step()
    with torch.no_grad():
        answers = 1 + 4 * network(inputs)[:, 0].clip(0, 1).numpy()
    assert scorer.predict(X) == pytest.approx(answers, abs=1e-4)


def test_it_reaches_both_ends_of_the_scale() -> None:
    """T1: on a plant without noise."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = np.clip(np.rint(3 + 2 * X[:, 0]), 1, 5)
    answers = PreferenceScorer(hidden=(32,), learning_rate=1e-2, batch=32, epochs=40).fit(X, y).predict(X)
    assert answers.min() == 1 and answers.max() == 5
    (scores,) = scores_of(answers, y)
    assert scores.kappa is not None and scores.kappa > 0.95


def test_it_keeps_the_epoch_of_the_best_kappa() -> None:
    scorer, (X, y), (X_held, y_held) = together(learning_rate=0.02)
    history, best = scorer.arrays_["history"], scorer.arrays_["epoch"]
    for head in range(3):
        kappas = history[head, :, 1]
        seen = kappas[~np.isnan(kappas)]
        assert history[head, int(best[head]) - 1, 1] == seen.max()
        assert len(seen) == min(best[head] + 2, 20)  # patience
        rated = ~np.isnan(y_held[:, head])
        levels = np.floor(scorer.predict(X_held[rated])[:, head] + 0.5).astype(int)
        assert seen.max() == pytest.approx(
            cohen_kappa_score(levels, y_held[rated, head].astype(int), labels=[1, 2, 3, 4, 5],
                              weights="quadratic")
        )  # fmt: skip
    assert len({int(epoch) for epoch in best}) > 1
    every, _, _ = together(check_every=5, patience=None, epochs=12)
    assert every.arrays_["history"][0, :, 0].tolist() == [5, 10, 12]


def test_it_learns_what_a_constant_column_or_its_scale_cannot_hide() -> None:
    X, y = preference()
    scorer = PreferenceScorer(**QUICK).fit(X, y)
    wider = np.column_stack([X, np.full(len(X), 0.1)])
    assert np.isfinite(PreferenceScorer(**QUICK).fit(wider, y).predict(wider)).all()
    scaled = PreferenceScorer(**QUICK).fit(X * 64 + 8, y)
    assert scaled.predict(X * 64 + 8) == pytest.approx(scorer.predict(X), abs=0.01)


def test_it_says_so_without_scikit_learn() -> None:
    program = (
        "import sys\nsys.modules['sklearn'] = None\nsys.modules['sklearn.base'] = None\n"
        "import stimuli.preference.prediction_agreement, stimuli.preference.training\n"
        "try:\n    import stimuli.preference.scorer_estimator\nexcept Exception as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "install the extra `server`" in said


def fitted(X: Any = None, y: Any = None, **others: Any) -> PreferenceScorer:
    usual_X, usual_y = preference(rows=60)
    validation = others.pop("validation", None)
    scorer = PreferenceScorer(**{**QUICK, "epochs": 1, **others})
    return scorer.fit(usual_X if X is None else X, usual_y if y is None else y, validation=validation)


def spoilt(column: int | None, rows: slice, value: float) -> Any:
    X, y = preference(rows=60)
    if column is None:
        X[rows] = value
        return X
    y[rows, column] = value
    return y


X, Y = preference(rows=60)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"X": spoilt(None, slice(3, 4), np.nan)}, r"9 values that are NaN.*row 3, column 0 \(nan\)"),
    "too large": ({"X": X.astype(float) * 1e300}, "too large for float32"),
    "no matrix": ({"X": X[:, 0]}, r"given as \(rows, columns\)"),
    "fewer ratings": ({"y": Y[:50]}, r"y has the shape \(50, 3\) beside 60 rows"),
    "no rating": ({"y": spoilt(1, slice(None), np.nan)}, "column 1 of y has 0 rated rows .* at least 2"),
    "one rating": ({"y": spoilt(2, slice(1, None), np.nan)}, "column 2 of y has 1 rated rows"),
    "constant": ({"y": spoilt(0, slice(None), 4)}, "column 0 of y has the rating 4 only to learn from"),
    "off the scale": ({"y": Y - 1}, "a rating is 0, and ratings go from 1 to 5"),
    "words": ({"y": np.full((60, 1), "good")}, "holds something that is no number"),
    "other heads held": ({"validation": (X, Y[:, :2])}, "y of the validation has 2 columns and y 3"),
    "other width held": ({"validation": (X[:, :4], Y)}, "4 features, but PreferenceScorer is expecting 9"),
    "constant held": (
        {"validation": (X, spoilt(2, slice(None), 4))},
        "column 2 of y has the rating 4 only in the validation",
    ),
    "similarity": ({"similarity_over": "rows"}, "similarity_over = 'rows': known are batch, released"),
    "output": ({"output": "sigmoid"}, "output = 'sigmoid': known are linear, relu"),
    "seeds": ({"seed": [1, 2]}, "seed has 2 numbers and y 3 columns"),
    "negative seed": ({"seed": -1}, "seed = -1: give a whole number from 0 on"),
    "epochs": ({"epochs": 0}, "epochs = 0: give a whole number from 1 on"),
    "patience": ({"patience": 1.5}, "patience = 1.5: give a whole number from 1 on"),
    "widths": ({"hidden": (0,)}, "hidden = 0: give a whole number from 1 on"),
    "step": ({"learning_rate": 0.0}, "learning_rate = 0.0: give a finite number above 0"),
    "decay": ({"weight_decay": -1.0}, "weight_decay = -1.0: give a finite number from 0 on"),
    "weights": ({"mse": 0.0, "rank": 0.0, "similarity": 0.0}, "all weights of the loss are 0"),
    "device": ({"device": "abacus"}, "device = 'abacus' cannot be used .*: take 'cpu'"),
    "diverges": ({"learning_rate": 1e38, "epochs": 3}, "no finite weights after epoch .* take a smaller one"),
}


@pytest.mark.parametrize("name", BAD)
def test_it_refuses_what_it_cannot_learn_from(name: str) -> None:
    given, said = BAD[name]
    with pytest.raises(BadRatings, match=said):
        fitted(**given)


def test_it_refuses_embeddings_of_another_width() -> None:
    with pytest.raises(BadRatings, match="X has 8 features, but PreferenceScorer is expecting 9 features"):
        fitted().predict(X[:, :8])
    with pytest.raises(NotFittedError):
        PreferenceScorer().predict(X)
    with pytest.raises(BadRatings, match="no preset 'pasta': known are pasta_released"):
        PreferenceScorer.preset("pasta")
