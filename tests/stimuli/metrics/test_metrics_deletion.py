"""Deletion and insertion: the curve by hand, its invariances, and what it costs."""

import numpy as np
import pytest
import torch

from stimuli.errors import NotApplicable, ShapeMismatch
from stimuli.explainers import open_explainer
from stimuli.metrics import open_metric, scored_by
from stimuli.metrics.fidelity.deletion import state_counts, trapezoid
from stimuli.planner.asks import Steps
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import Subject
from stimuli.render.attribution_field import drawn_field
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.types import ConceptAttribution, PixelAttribution
from tests.stimuli.measuring import measured, number_of, pixel_maps
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, linear_net, pictures, subjects_of

pytestmark = pytest.mark.pure


def by_hand(
    net: Tiny, subject: Subject, values: np.ndarray, counts: list[int], fill: np.ndarray
) -> np.ndarray:
    """The deletion curve of probabilities, one picture and one pixel at a time."""
    picture = subject.pixels.numpy().copy()
    order = sorted(range(values.size), key=lambda at: (-values.ravel()[at], at))
    curve, gone = [], 0
    for count in counts:
        for at in order[gone:count]:
            picture[:, at // SIDE, at % SIDE] = fill[:, at // SIDE, at % SIDE]
        gone = count
        with torch.no_grad():
            logits = net.module(torch.from_numpy(picture.copy())[None])[0].double()
        curve.append(float(logits.softmax(0)[subject.target]))
    return np.array(curve)


def test_it_follows_the_curve_pixel_by_pixel() -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    number = number_of(net, subject, made, "deletion", steps=7)
    counts = [round(at * SIDE * SIDE / 7) for at in range(8)]
    curve = by_hand(net, subject, made.values, counts, np.zeros((3, SIDE, SIDE), np.float32))
    assert number.details["curve"] == pytest.approx(curve, abs=1e-6)
    assert number.details["shares"] == pytest.approx([count / SIDE**2 for count in counts])
    assert number.value == pytest.approx(np.trapezoid(curve, np.array(counts) / SIDE**2), abs=1e-6)


@pytest.mark.parametrize("marked", [0, 68])
def test_it_breaks_ties_by_one_order_that_favours_no_place(marked: int) -> None:
    """Equal pixels go in the drawn order; by index an empty map would be scored for the upper edge."""
    net, (subject,) = convolutional_net(), subjects_of(pictures(1))
    values = np.zeros(SIDE * SIDE, np.float32)
    values[200 : 200 + marked] = 1
    order = most_important_first(np.zeros(SIDE * SIDE))
    ranked = np.empty(SIDE * SIDE, np.float32)
    ranked[order] = -np.arange(SIDE * SIDE)
    untied = (1e6 * values + ranked).reshape(SIDE, SIDE)
    tied = PixelAttribution(values.reshape(SIDE, SIDE), False)
    number = number_of(net, subject, tied, "deletion", pixels_per_step=100)
    counts = [0, 100, 200, 300, 400, 500, 576]
    curve = by_hand(net, subject, untied, counts, np.zeros((3, SIDE, SIDE), np.float32))
    assert number.details["curve"] == pytest.approx(curve, abs=1e-6)
    assert number.details["tied"] == 1
    rows = order[: SIDE * SIDE // 4] // SIDE
    assert abs(rows.mean() - (SIDE - 1) / 2) < 2


def test_it_scores_the_drawn_field_only_if_its_name_says_so() -> None:
    """The pipeline hands the field over; here both are given, and each ranks exactly what it gets."""
    assert [scored_by(Component(name)) for name in ("deletion", "deletion_drawn")] == ["method", "drawn"]
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    for sign in ("positive", "magnitude", "signed_range"):
        field = PixelAttribution(drawn_field(made, RenderSpec(sign=sign)), False)
        drawn = number_of(net, subject, field, "deletion_drawn")
        assert drawn == number_of(net, subject, field, "deletion")


@pytest.mark.parametrize("baseline", ["black", "mean", "grey", "blur"])
def test_it_replaces_by_each_baseline(baseline: str) -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    picture = subject.pixels.numpy()
    # The blur by its definition: a weighted sum over 11 x 11 mirrored neighbours.
    at = np.arange(-5, 6)
    kernel = np.exp(-(at[:, None] ** 2 + at[None] ** 2) / (2 * 5.0**2))
    mirrored = np.pad(picture, ((0, 0), (5, 5), (5, 5)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(mirrored, (11, 11), (1, 2))
    fills = {
        "black": np.zeros_like(picture),
        "mean": np.broadcast_to(picture.mean((1, 2), keepdims=True), picture.shape),
        "grey": np.full_like(picture, 0.5),
        "blur": (windows * kernel / kernel.sum()).sum((3, 4)).astype(np.float32),
    }
    counts = [round(at * SIDE * SIDE / 4) for at in range(5)]
    number = number_of(net, subject, made, "deletion", steps=4, baseline=baseline)
    assert number.details["curve"] == pytest.approx(
        by_hand(net, subject, made.values, counts, fills[baseline]), abs=1e-5
    )


@pytest.mark.parametrize("name", ["deletion", "insertion"])
def test_it_sees_ranks_only(name: str) -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    stretched = PixelAttribution(np.exp(2 * made.values) - 7, True)
    plain, other = number_of(net, subject, made, name), number_of(net, subject, stretched, name)
    assert plain == other


def test_it_ranks_magnitudes_when_told() -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    folded = PixelAttribution(np.abs(made.values), False)
    assert number_of(net, subject, made, "deletion", absolute=True) == number_of(
        net, subject, folded, "deletion"
    )
    assert number_of(net, subject, made, "deletion") != number_of(net, subject, folded, "deletion")


def test_it_inserts_as_it_deletes_the_reverse_order_backwards() -> None:
    net, (subject,), (made,) = convolutional_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    reverse = PixelAttribution(-made.values, True)
    inserted = number_of(net, subject, made, "insertion", baseline="grey", steps=8)
    deleted = number_of(net, subject, reverse, "deletion", baseline="grey", steps=8)
    assert inserted.details["curve"] == pytest.approx(deleted.details["curve"][::-1], abs=1e-6)
    assert inserted.value == pytest.approx(deleted.value, abs=1e-6)


def test_it_has_areas_that_add_up_for_a_linear_logit() -> None:
    """The logit of what stays and of what went add up to both ends, state by state."""
    net, (subject,), (made,) = linear_net(), subjects_of(pictures(1)), pixel_maps(1, SIDE)
    deleted = number_of(net, subject, made, "deletion", score="logit")
    inserted = number_of(net, subject, made, "insertion", score="logit", baseline="black")
    curve = deleted.details["curve"]
    assert deleted.value + inserted.value == pytest.approx(curve[0] + curve[-1], abs=1e-4)


def test_it_finds_the_right_map_of_a_linear_network_best() -> None:
    net, (subject,) = linear_net(), subjects_of(pictures(1))
    weights = net.module.get_parameter("1.weight")[subject.target].view(3, SIDE, SIDE)
    shares = (weights * subject.pixels).sum(0).numpy()
    right = number_of(net, subject, PixelAttribution(shares, True), "deletion", score="logit").value
    wrong = number_of(net, subject, PixelAttribution(-shares, True), "deletion", score="logit").value
    others = [number_of(net, subject, m, "deletion", score="logit").value for m in pixel_maps(5, SIDE)]
    assert right < min(others) <= max(others) < wrong


def test_it_takes_the_area_by_trapezoids() -> None:
    assert trapezoid(np.full(5, 0.3), np.linspace(0, 1, 5)) == pytest.approx(0.3)
    # The published form for equal steps: (sum - first / 2 - last / 2) / (n - 1).
    scores = np.array([0.9, 0.4, 0.2, 0.15, 0.1])
    expected = (scores.sum() - 0.45 - 0.05) / 4
    assert trapezoid(scores, np.linspace(0, 1, 5)) == pytest.approx(expected)


def test_it_counts_states() -> None:
    assert state_counts(224 * 224, 10, 224) == [224 * row for row in range(225)]
    assert len(state_counts(224 * 224, 10)) == 11
    assert state_counts(10, 3) == [0, 3, 7, 10]
    assert state_counts(10, 3, 4) == [0, 4, 8, 10]


def test_it_shares_the_first_and_the_last_state_between_methods() -> None:
    net, (subject,), maps = convolutional_net(), subjects_of(pictures(1)), pixel_maps(5, SIDE)
    network = Network(net, rows=4)
    measured(net, [(subject, made, Component("deletion", {"steps": 10})) for made in maps], network=network)
    assert network.bill.forwards == 5 * (10 - 1) + 2
    assert network.bill.backwards == 0


def test_it_shares_its_ends_with_the_trace_and_with_insertion() -> None:
    """Behind an explainer the picture itself is known: only the states between and the black one are new."""
    net, (subject,) = convolutional_net(), subjects_of(pictures(1))
    network, method = Network(net, rows=4), open_explainer(Component("saliency"))

    def explain_and_measure() -> Steps:
        made = yield from method.explain(net, subject)
        deleted = yield from open_metric(Component("deletion")).measure(net, subject, made)
        inserted = yield from open_metric(Component("insertion", {"baseline": "black"})).measure(
            net, subject, made
        )
        return deleted, inserted

    (done,) = drive([Job("both", subject, explain_and_measure)], network)
    deleted, inserted = done.result
    assert network.bill.forwards == 1 + 9 + 1 + 9
    assert deleted.details["curve"][0] == inserted.details["curve"][-1]
    assert deleted.details["curve"][-1] == inserted.details["curve"][0]


@pytest.mark.parametrize("name", ["deletion", "insertion"])
def test_it_does_not_depend_on_batch_or_neighbours(name: str) -> None:
    net, subjects, maps = convolutional_net(), subjects_of(pictures(3)), pixel_maps(3, SIDE)
    work = [(s, m, Component(name)) for s, m in zip(subjects, maps, strict=True)]
    together = measured(net, work, rows=8)
    backwards = measured(net, work[::-1], rows=8)[::-1]
    alone = [measured(net, [one_of], rows=8)[0] for one_of in work]
    for at, this in enumerate(together):
        assert this.details["curve"] == pytest.approx(backwards[at].details["curve"], abs=1e-6)
        assert this.details["curve"] == pytest.approx(alone[at].details["curve"], abs=1e-6)


def test_it_refuses_what_is_no_map_of_the_picture() -> None:
    net, (subject,) = convolutional_net(), subjects_of(pictures(1))
    with pytest.raises(ShapeMismatch, match="own view"):
        number_of(net, subject, pixel_maps(1, SIDE + 1)[0], "deletion")
    with pytest.raises(NotApplicable, match="needs a map"):
        number_of(net, subject, ConceptAttribution(("stripes",), np.ones(1, np.float32)), "insertion")
