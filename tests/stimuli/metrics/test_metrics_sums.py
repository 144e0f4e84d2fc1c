"""Completeness, infidelity and sensitivity-n: closed forms on linear networks, captum, plain loops."""

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from captum.metrics import infidelity
from scipy.stats import pearsonr

from stimuli.errors import NotApplicable
from stimuli.explainers import EXPLAINERS, check_explainer, is_colour_mean
from stimuli.metrics.fidelity.completeness import Completeness
from stimuli.metrics.fidelity.faithfulness import random_subsets
from stimuli.metrics.fidelity.infidelity import random_squares, subset_sizes
from stimuli.pipeline import Bench, Order, explain, scorings
from stimuli.planner.network import Network
from stimuli.spec import Component
from stimuli.types import PixelAttribution
from tests.stimuli.explainers.test_placebos import World, world
from tests.stimuli.measuring import measured, number_of, pixel_maps
from tests.stimuli.metrics.test_metrics_faithfulness import shares_of
from tests.stimuli.metrics.test_metrics_sanity import SALIENCY, number, spec
from tests.stimuli.tiny import SIDE, convolutional_net, linear_net, pictures, subjects_of

pytestmark = pytest.mark.pure
__all__ = ["world"]


def test_the_shares_of_a_linear_logit_are_complete() -> None:
    """W x sums up to the logit less that of black; half of it, or the same as a mean of colours, does not."""
    net, (subject,) = linear_net(), subjects_of(pictures(1))
    right = shares_of(net, subject)
    half, third = (PixelAttribution(right.values / np.float32(part), True) for part in (2, 3))
    assert number_of(net, subject, right, "completeness", colours="sum").value == pytest.approx(0, abs=1e-4)
    assert number_of(net, subject, half, "completeness", colours="sum").value == pytest.approx(0.5, abs=1e-4)
    told = number_of(net, subject, third, "completeness", colours="mean")
    assert told.value == pytest.approx(0, abs=1e-4)
    change = float((net.module(subject.pixels[None]) - net.module(0 * subject.pixels[None]))[0, 0])
    assert told.details == {"sum": pytest.approx(change, rel=1e-4), "change": pytest.approx(change, rel=1e-4)}


@pytest.mark.parametrize(("baseline", "value"), [("black", 0.0), ("grey", 0.5)])
def test_it_is_captums_convergence_delta(baseline: str, value: float) -> None:
    """Captum's own difference between the sum of its attributions and that of the outputs."""
    net, x = convolutional_net(), pictures(1)
    made, delta = IntegratedGradients(net.module).attribute(
        x, value, 1, n_steps=4, method="riemann_right", return_convergence_delta=True
    )
    change = float((net.module(x) - net.module(torch.full_like(x, value)))[0, 1])
    subject = subjects_of(x, first=1)[0]
    values = PixelAttribution(made[0].sum(0).detach().numpy(), True)
    told = number_of(net, subject, values, "completeness", baseline=baseline, colours="sum")
    assert told.value == pytest.approx(abs(float(delta)) / abs(change), abs=1e-4 / abs(change))
    assert told.value > 0.01


def test_it_knows_what_a_method_adds_up(world: World) -> None:
    """Integrated gradients say their own gap, and are means over the colours."""
    method = Component("integrated_gradients", {"steps": 64})
    assert number(world, method, "completeness").value < 0.2
    assert number(world, method, "completeness", colours="sum").value == pytest.approx(2 / 3, abs=0.1)


def test_it_knows_which_methods_are_means_of_colours() -> None:
    ours = [check_explainer(Component(name)) for name in EXPLAINERS if name != "recorded"]
    assert {method.name for method in ours if is_colour_mean(method)} == {
        "gradient_x_input",
        "integrated_gradients",
        "smooth_grad",
        "guided_backprop",
        "captum",
    }
    assert not is_colour_mean(Component("captum", {"channels": "sum"}))
    assert is_colour_mean(Component("permuted", {"of": "captum", "parameters": "{}"}))
    of = Component("recorded", {"digest": "0" * 64, "kind": "image"})
    assert Completeness().adapted(of).colours == "method"


def test_it_says_why_nothing_adds_up(world: World) -> None:
    net, (subject,) = linear_net(), subjects_of(pictures(1))
    unsigned = PixelAttribution(np.ones((SIDE, SIDE), np.float32), False)
    signed = PixelAttribution(unsigned.values, True)
    with pytest.raises(NotApplicable, match="has no sign"):
        number_of(net, subject, unsigned, "completeness")
    with pytest.raises(NotApplicable, match="set colours"):
        number_of(net, subject, signed, "completeness")
    black = subjects_of(torch.zeros(1, 3, SIDE, SIDE))[0]
    with pytest.raises(NotApplicable, match="have the same: choose another baseline"):
        number_of(net, black, signed, "completeness", colours="sum")


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("baseline", [0.0, 0.5])
def test_it_has_captums_infidelity(scaled: bool, baseline: float) -> None:
    """On the same squares: captum multiplies attributions by what was taken away, here by the mask itself."""
    net, x, (made,) = convolutional_net(), pictures(1), pixel_maps(1, SIDE)
    subject, side = subjects_of(x, first=1)[0], round(0.3 * SIDE)
    bank = random_squares(7, SIDE, SIDE, side, 30)
    masks = torch.zeros(30, SIDE * SIDE).scatter_(1, torch.from_numpy(np.array(bank)), 1.0)
    masks = masks.view(30, 1, SIDE, SIDE).double()

    def hide(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.where(masks.bool(), torch.tensor(baseline, dtype=torch.float64), images)
        return (masks / 3).expand_as(images), hidden

    twin = convolutional_net().module.double()
    colours = torch.from_numpy(made.values).double().expand(1, 3, SIDE, SIDE)
    expected = infidelity(twin, hide, x.double(), colours, target=1, n_perturb_samples=30, normalize=scaled)
    told = number_of(
        net,
        subject,
        made,
        "infidelity",
        runs=30,
        side_share=0.3,
        baseline="black" if baseline == 0 else "grey",
        scaled=scaled,
    )
    assert told.value == pytest.approx(float(expected), rel=1e-3)
    assert (told.details["scale"] == 1.0) is not scaled


def test_infidelity_is_zero_for_the_shares_of_a_linear_logit() -> None:
    """In any unit, if it is scaled; a map that says nothing leaves all of the squared falls."""
    net, (subject,) = linear_net(), subjects_of(pictures(1))
    right = shares_of(net, subject)
    tenth = PixelAttribution(right.values / np.float32(10), True)
    nothing = PixelAttribution(np.zeros((SIDE, SIDE), np.float32), True)
    plain = number_of(net, subject, right, "infidelity", scaled=False)
    assert plain.value == pytest.approx(0, abs=1e-8) and plain.details["share"] < 1e-5
    told = number_of(net, subject, tenth, "infidelity")
    assert told.value == pytest.approx(0, abs=1e-8) and told.details["scale"] == pytest.approx(10, rel=1e-3)
    empty = number_of(net, subject, nothing, "infidelity")
    assert (empty.details["scale"], empty.details["share"]) == (0.0, 1.0) and empty.value > 0


def test_it_draws_squares_within_the_picture() -> None:
    bank = random_squares(3, 10, 14, 4, 400)
    rows, columns = np.divmod(bank, 14)
    assert (np.ptp(rows, 1) == 3).all() and (np.ptp(columns, 1) == 3).all()
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (0, 9, 0, 13)
    assert (random_squares(3, 10, 14, 4, 20) == bank[:20]).all()
    assert (random_squares(4, 10, 14, 4, 20) != bank[:20]).any()


def test_sensitivity_n_is_one_for_the_shares_of_a_linear_logit() -> None:
    net, (subject,) = linear_net(), subjects_of(pictures(1))
    right = shares_of(net, subject)
    told = number_of(net, subject, right, "sensitivity_n", sizes=4, runs=20)
    assert told.details["curve"] == pytest.approx([1, 1, 1, 1], abs=1e-3)
    wrong = PixelAttribution(-right.values, True)
    assert number_of(net, subject, wrong, "sensitivity_n", sizes=4, runs=20).value == pytest.approx(
        -1, abs=1e-3
    )


def test_it_follows_the_definition_of_sensitivity_n() -> None:
    """A plain loop over subsets of each size, drawn anew from the documented stream."""
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    twin = convolutional_net().module.double()
    told = number_of(
        net, subject, made, "sensitivity_n", sizes=3, runs=25, baseline="grey", score="probability"
    )
    assert told.details["pixels"] == [6, 52, 461]  # 1 %, their geometric mean and 80 % of 576
    expected = []
    whole = twin(subject.pixels[None].double()).softmax(1)[0, subject.target]
    for size in (6, 52, 461):
        falls, sums = [], []
        for hidden in random_subsets(7, SIDE * SIDE, size, 25):
            copy = subject.pixels.double().clone().view(3, -1)
            copy[:, torch.from_numpy(np.array(hidden))] = 0.5
            said = twin(copy.view(1, 3, SIDE, SIDE)).softmax(1)[0, subject.target]
            falls.append(float(whole - said))
            sums.append(float(made.values.ravel()[hidden].astype(np.float64).sum()))
        expected.append(pearsonr(sums, falls).statistic)
    assert told.details["curve"] == pytest.approx(expected, abs=2e-3)
    assert told.value == pytest.approx(np.mean(expected), abs=2e-3)


def test_it_takes_numbers_of_pixels_in_equal_ratios() -> None:
    assert subset_sizes(10_000, 3) == [100, 894, 8000]
    assert subset_sizes(50, 3) == [1, 4, 40] and subset_sizes(20, 50)[0] == 1


def test_they_share_passes_between_methods() -> None:
    net, (subject,), maps = convolutional_net(), subjects_of(pictures(1)), pixel_maps(4, SIDE)
    network = Network(net, rows=4)
    asked = [Component("infidelity", {"runs": 20}), Component("sensitivity_n", {"sizes": 2, "runs": 10})]
    measured(net, [(subject, made, metric) for made in maps for metric in asked], network=network)
    assert network.bill.forwards == 20 + 2 * 10 + 1


def test_they_refuse_what_would_fill_the_memory() -> None:
    net, (subject,), (made,) = linear_net(64), subjects_of(pictures(1, 64)), pixel_maps(1, 64)
    with pytest.raises(NotApplicable, match="33,640,000 places .* lower runs or side_share"):
        number_of(net, subject, made, "infidelity", runs=10_000, side_share=0.9)
    flat = PixelAttribution(np.ones((64, 64), np.float32), True)
    with pytest.raises(NotApplicable, match="the same everywhere"):
        number_of(net, subject, flat, "sensitivity_n")


def test_saliency_promises_no_sum(world: World) -> None:
    asked = spec(world, SALIENCY)
    [made] = explain([Order((asked,), scorings([Component("completeness")], asked))], Bench(world[2]))
    assert "has no sign" in made.numbers[0].error
