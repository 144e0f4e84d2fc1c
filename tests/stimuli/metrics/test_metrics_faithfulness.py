"""Faithfulness by hiding random parts: closed forms on linear networks, shared banks, refusals."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr

from stimuli.errors import NotApplicable
from stimuli.metrics.fidelity.faithfulness import FeatureReplacements, grid_cells, random_subsets
from stimuli.metrics.fidelity.importance_and_fill import baseline_fill
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.spec import Component
from stimuli.types import PixelAttribution
from tests.stimuli.measuring import measured, number_of, pixel_maps
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, linear_net, pictures, seeded, subjects_of

pytestmark = pytest.mark.pure


def shares_of(net: Tiny, subject: Subject) -> PixelAttribution:
    """What each pixel of a linear network adds to the explained logit."""
    weights = net.module.get_parameter("1.weight")[subject.target].view(3, SIDE, SIDE)
    return PixelAttribution((weights * subject.pixels).sum(0).numpy(), True)


def grey_net() -> Tiny:
    """A linear network that weighs the three colours of a pixel alike."""
    net = linear_net()
    weight = net.module.get_parameter("1.weight")
    weight.copy_(weight.view(3, 3, -1).mean(1, keepdim=True).expand(3, 3, -1).reshape(3, -1))
    return net


@pytest.mark.parametrize("name", ["faithfulness_correlation", "mu_fidelity"])
def test_it_is_one_for_the_shares_of_a_linear_logit(name: str) -> None:
    net, (subject,) = linear_net(), subjects_of(pictures(1))
    params = {"features": "pixels", "subset": 50} if name == "faithfulness_correlation" else {}
    right = shares_of(net, subject)
    wrong = PixelAttribution(-right.values, True)
    assert number_of(net, subject, right, name, **params).value == pytest.approx(1, abs=1e-4)
    assert number_of(net, subject, wrong, name, **params).value == pytest.approx(-1, abs=1e-4)


def test_it_is_one_for_scalars_of_a_grey_picture_too() -> None:
    """With equal colours and weights every scalar of a pixel adds a third of what the pixel does."""
    net = grey_net()
    (subject,) = subjects_of(pictures(1).mean(1, keepdim=True).expand(-1, 3, -1, -1))
    number = number_of(net, subject, shares_of(net, subject), "faithfulness_correlation", subset=100)
    assert number.value == pytest.approx(1, abs=1e-4)
    assert number.details == {"subsets": 100, "hidden_share": 100 / (3 * SIDE * SIDE)}


@pytest.mark.parametrize("baseline", ["black", "mean", "grey", "blur"])
def test_it_follows_the_definition_of_mu_fidelity(baseline: str) -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    number = number_of(
        net, subject, made, "mu_fidelity", grid=5, masked_share=0.3, subsets=40, baseline=baseline
    )
    fill = torch.as_tensor(np.array(baseline_fill(subject, baseline), np.float32)).expand(3, SIDE, SIDE)
    whole = float(net.module(subject.pixels[None])[0, subject.target])
    falls, sums = [], []
    for row in random_subsets(7, 25, 8, 40):  # 30 % of 25 cells, rounded; the study's seed is 7
        hidden = set(row.tolist())
        is_hidden = np.zeros((SIDE, SIDE), bool)
        for y in range(SIDE):
            for x in range(SIDE):
                is_hidden[y, x] = (y * 5 // SIDE) * 5 + x * 5 // SIDE in hidden
        copy = torch.where(torch.from_numpy(is_hidden), fill, subject.pixels)
        falls.append(whole - float(net.module(copy[None])[0, subject.target]))
        sums.append(made.values[is_hidden].sum())
    assert number.value == pytest.approx(spearmanr(sums, falls).statistic, abs=2e-3)


@pytest.mark.parametrize("features", ["scalars", "pixels"])
def test_it_follows_the_definition_of_faithfulness_correlation(features: str) -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    params = {"features": features, "subset": 30, "runs": 25, "baseline": "grey", "score": "probability"}
    number = number_of(net, subject, made, "faithfulness_correlation", **params)
    count = SIDE * SIDE * (3 if features == "scalars" else 1)

    def probability(image: torch.Tensor) -> float:
        return float(net.module(image[None]).double().softmax(1)[0, subject.target])

    falls, sums = [], []
    for hidden in random_subsets(7, count, 30, 25):
        copy, total = subject.pixels.clone(), 0.0
        for at in hidden:
            channels = [at // SIDE**2] if features == "scalars" else [0, 1, 2]
            y, x = divmod(int(at) % SIDE**2, SIDE)
            copy[channels, y, x] = 0.5
            total += float(made.values[y, x])
        falls.append(probability(subject.pixels) - probability(copy))
        sums.append(total)
    assert number.value == pytest.approx(pearsonr(sums, falls).statistic, abs=1e-3)


@pytest.mark.parametrize("name", ["faithfulness_correlation", "mu_fidelity"])
def test_it_shares_the_bank_between_methods(name: str) -> None:
    net, (subject,), maps = convolutional_net(), subjects_of(pictures(1)), pixel_maps(4, SIDE)
    network, params = Network(net, rows=4), {"subsets": 30} if name == "mu_fidelity" else {"runs": 30}
    measured(net, [(subject, made, Component(name, params)) for made in maps], network=network)
    assert network.bill.forwards == 30 + 1


def test_it_draws_the_bank_from_the_seed_alone() -> None:
    assert (random_subsets(3, 50, 5, 20) == random_subsets(3, 50, 5, 20)).all()
    assert (random_subsets(3, 50, 5, 40)[:20] == random_subsets(3, 50, 5, 20)).all()
    assert (random_subsets(4, 50, 5, 20) != random_subsets(3, 50, 5, 20)).any()
    bank = random_subsets(3, 50, 5, 400)
    assert all(len(set(row)) == 5 for row in bank.tolist())
    # Each thing is hidden in a tenth of 400 subsets: 40, with a standard deviation of 6.
    assert abs(np.bincount(bank.ravel(), minlength=50) - 40).max() < 5 * 6


def test_it_measures_all_items_by_one_bank() -> None:
    """Two items with the same pixels and target have the same number, with any keys."""
    net, image, (made,) = convolutional_net(), pictures(1), pixel_maps(1, SIDE)
    first, second = subjects_of(image.expand(4, -1, -1, -1))[::3]
    assert first.key != second.key and first.target == second.target
    values = [number_of(net, item, made, "mu_fidelity", subsets=30).value for item in (first, second)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_it_does_not_depend_on_batch_or_neighbours() -> None:
    net, subjects, maps = convolutional_net(), subjects_of(pictures(3)), pixel_maps(3, SIDE)
    for name, count in (("faithfulness_correlation", "runs"), ("mu_fidelity", "subsets")):
        work = [(s, m, Component(name, {count: 30})) for s, m in zip(subjects, maps, strict=True)]
        together = [number.value for number in measured(net, work, rows=16)]
        small = [number.value for number in measured(net, work[::-1], rows=4)][::-1]
        assert together == pytest.approx(small, abs=0.01)  # ranks of nearly equal falls may swap


def test_it_names_equal_subsets_alike_in_any_order() -> None:
    hidden = FeatureReplacements(np.array([[1, 5, 9], [9, 1, 5], [1, 5, 8]]), 0.0)
    assert hidden.identity(0) == hidden.identity(1) != hidden.identity(2)
    pixels = FeatureReplacements(np.array([[1, 5, 9]]), 0.0, by_scalars=False)
    assert pixels.identity(0) != hidden.identity(0)


def test_it_hides_scalars_in_their_places() -> None:
    image = pictures(1)[0]
    (copy,) = FeatureReplacements(np.array([[0, SIDE * SIDE + 3]]), 0.25).make(image, [0])
    expected = image.clone()
    expected[0, 0, 0] = expected[1, 0, 3] = 0.25
    assert torch.equal(copy, expected)


def test_it_cuts_the_picture_evenly() -> None:
    cells = grid_cells(224, 224, 9)
    assert cells[0, 0] == 0 and cells[-1, -1] == 80 and cells[0, -1] == 8
    sizes = np.bincount(cells.ravel())
    assert len(sizes) == 81 and sizes.min() >= 24 * 24 and sizes.max() <= 25 * 25


def test_it_says_when_a_correlation_is_not_defined() -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    flat = PixelAttribution(np.full((SIDE, SIDE), 0.3, np.float32), False)
    deaf = Tiny(
        seeded(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 3))), ("a", "b", "c")
    )
    deaf.module.get_parameter("1.weight").zero_()
    for name in ("faithfulness_correlation", "mu_fidelity"):
        with pytest.raises(NotApplicable, match="the map"):
            number_of(net, subject, flat, name)
        with pytest.raises(NotApplicable, match="the score is the same"):
            number_of(deaf, subject, made, name)


def test_it_names_the_limit_of_a_small_picture() -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    with pytest.raises(NotApplicable, match="576 pixels: set subset below"):
        number_of(net, subject, made, "faithfulness_correlation", features="pixels", subset=576)
    with pytest.raises(NotApplicable, match="set grid to at most 24"):
        number_of(net, subject, made, "mu_fidelity", grid=25)
