"""LPIPS against its own package, the fixed filters, and the similarity of marked regions across classes."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch
from stimuli.metrics import check_metric, open_set_metric
from stimuli.metrics.base import Entry, MetricValue
from stimuli.metrics.cross_class_similarity import DiagnosticSimilarity, chosen_partners
from stimuli.metrics.encoders import Encoder, OrientedBands, distance, read_lpips
from stimuli.spec import Component
from tests import witnesses
from tests.stimuli.tiny import Shown

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("ignore")]

SIDE = 64


@pytest.fixture(scope="module")
def package() -> Any:
    """LPIPS by its authors: their shipped heads on a trunk with random weights (the trained ones are a
    download), which are made from a seed.
    """
    net = witnesses.lpips().LPIPS(net="alex", version="0.1", pnet_rand=True, verbose=False)
    draws = torch.Generator().manual_seed(1)
    for weights in net.net.parameters():
        spread = (2 / weights[0].numel()) ** 0.5 if weights.ndim > 1 else 0.1
        weights.data = spread * torch.randn(weights.shape, generator=draws)
    return net


@pytest.fixture(scope="module")
def weights(package: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same weights as a file of ours."""
    path = tmp_path_factory.mktemp("weights") / "lpips.safetensors"
    save_file(tensors_of(package), path)
    return str(path)


def tensors_of(package: Any) -> dict[str, torch.Tensor]:
    state = package.state_dict()
    tensors = {name: state[name].clone() for name in state if name.startswith("lin") and "model.1" in name}
    for layer, part in zip((0, 3, 6, 8, 10), ("1.0", "2.3", "3.6", "4.8", "5.10"), strict=True):
        for kind in ("weight", "bias"):
            tensors[f"features.{layer}.{kind}"] = state[f"net.slice{part}.{kind}"].clone()
    return {name: value for name, value in tensors.items() if not name.startswith("lins.")}


def picture(seed: int, side: int = SIDE) -> np.ndarray:
    return np.random.default_rng(seed).random((side, side, 3), dtype=np.float32)


def entries(items: int = 6, conditions: str = "xy", labels: str = "ab") -> list[Entry]:
    draws = np.random.default_rng(9)
    return [
        Shown(
            f"item-{at}",
            condition,
            labels[at % len(labels)],
            draws.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8),
            draws.standard_normal((SIDE, SIDE)).astype(np.float32),
        )
        for at in range(items)
        for condition in conditions
    ]


def of(shown: Sequence[Entry], **params: object) -> list[MetricValue]:
    return list(open_set_metric(Component("diagnostic_similarity", params)).measure(shown))


@pytest.mark.parametrize("side", [31, 64])
def test_it_has_the_distance_of_the_lpips_package(package: Any, weights: str, side: int) -> None:
    encoder = read_lpips(weights)
    base = picture(1, side)
    others = [picture(2, side), np.clip(base + 0.05 * picture(3, side), 0, 1), np.zeros_like(base)]
    for other in others:
        theirs = package(
            *(torch.from_numpy(p.transpose(2, 0, 1))[None] for p in (base, other)), normalize=True
        )
        assert distance(encoder.embed(base), encoder.embed(other)) == pytest.approx(
            float(theirs), rel=1e-4, abs=1e-6
        )
    assert distance(encoder.embed(base), encoder.embed(base)) == 0


def test_it_is_the_mean_over_pairs_of_the_package(package: Any, weights: str) -> None:
    sample = entries(items=4, conditions="x", labels="ab")
    shown = []
    for entry in sample:
        top = np.argsort(-np.abs(entry.values).ravel(), kind="stable")[: round(0.2 * SIDE * SIDE)]
        flat = np.full((SIDE * SIDE, 3), 0.5, np.float32)
        flat[top] = entry.view.reshape(-1, 3)[top] / np.float32(255)
        shown.append(torch.from_numpy(flat.reshape(SIDE, SIDE, 3).transpose(2, 0, 1))[None])
    numbers = of(sample, encoder="lpips_alex", weights=weights, top_share=0.2)
    a, b = (
        torch.cat(shown[::2]),
        torch.cat(shown[1::2]),
    )  # items 0 and 2 are of one class, 1 and 3 of the other
    apart = package(a.repeat_interleave(2, 0), b.repeat(2, 1, 1, 1), normalize=True).view(2, 2)
    expected = 1 - torch.stack([apart.mean(1), apart.mean(0)], 1).flatten()
    assert [number.value for number in numbers] == pytest.approx(expected.tolist(), abs=1e-5)
    for number in numbers:
        assert number.details["pairs"] == 2
        assert number.details["encoder"] == "LPIPS 0.1, AlexNet"
        assert len(number.details["weights"]) == 64


def test_it_refuses_files_that_do_not_fit(package: Any, tmp_path: Path) -> None:
    tensors = tensors_of(package)
    with pytest.raises(BadSpec, match="cannot be read"):
        read_lpips(str(tmp_path / "nothing.safetensors"))
    (tmp_path / "text").write_text("no weights")
    with pytest.raises(BadSpec, match="no safetensors file"):
        read_lpips(str(tmp_path / "text"))
    save_file({k: v for k, v in tensors.items() if k != "features.6.bias"}, tmp_path / "less")
    with pytest.raises(BadSpec, match="'features.6.bias' of shape .384,., but have nothing"):
        read_lpips(str(tmp_path / "less"))
    save_file({**tensors, "lin0.model.1.weight": torch.ones(1, 3, 1, 1)}, tmp_path / "other")
    with pytest.raises(BadSpec, match="have .1, 3, 1, 1."):
        read_lpips(str(tmp_path / "other"))
    save_file({**tensors, "lin2.model.1.weight": -tensors["lin2.model.1.weight"]}, tmp_path / "negative")
    with pytest.raises(BadSpec, match="negative values"):
        read_lpips(str(tmp_path / "negative"))


def test_it_wants_an_encoder_and_its_weights_together() -> None:
    for params in ({"encoder": "lpips_alex"}, {"weights": "lpips.safetensors"}):
        with pytest.raises(BadSpec, match="needs weights"):
            check_metric(Component("diagnostic_similarity", params))


def test_it_refuses_pictures_that_are_too_small(weights: str) -> None:
    with pytest.raises(NotApplicable, match="at least 31 pixels"):
        read_lpips(weights).embed(picture(1, 30))
    with pytest.raises(NotApplicable, match="at least 16 pixels"):
        OrientedBands().embed(picture(1, 15))


def grating(degrees: float, side: int = SIDE) -> np.ndarray:
    y, x = np.mgrid[:side, :side]
    wave = np.sin((x * np.cos(np.radians(degrees)) + y * np.sin(np.radians(degrees))) * 0.8)
    return np.repeat((0.5 + 0.4 * wave)[..., None], 3, 2).astype(np.float32)


def bands_apart(first: np.ndarray, other: np.ndarray) -> float:
    encoder: Encoder = OrientedBands()
    return distance(encoder.embed(first), encoder.embed(other))


def test_it_sees_orientation_contrast_and_colour_by_filters() -> None:
    assert bands_apart(grating(0), grating(0)) == 0
    assert bands_apart(grating(0), grating(20)) < bands_apart(grating(0), grating(90))
    faint = 0.5 + 0.1 * (grating(0) - 0.5)
    assert 0 < bands_apart(grating(0), 0.5 + 0.9 * (grating(0) - 0.5)) < bands_apart(grating(0), faint)
    red, green = np.full((SIDE, SIDE, 3), 0.5, np.float32), np.full((SIDE, SIDE, 3), 0.5, np.float32)
    red[..., 0], green[..., 1] = 0.9, 0.9
    assert bands_apart(red, green) > 0.3


def test_it_prefers_no_orientation() -> None:
    """Turned pictures by a quarter have equal distances: no orientation is preferred."""
    first, other = picture(1, 65), picture(2, 65)  # an odd side: every second place stays in place
    turned = bands_apart(np.rot90(first).copy(), np.rot90(other).copy())
    assert bands_apart(first, other) == pytest.approx(turned, rel=1e-4)


def test_it_has_filter_distances_between_0_and_1() -> None:
    extremes = [
        np.zeros((SIDE, SIDE, 3), np.float32),
        np.ones((SIDE, SIDE, 3), np.float32),
        picture(1),
        grating(0),
    ]
    for first in extremes:
        for other in extremes:
            assert 0 <= bands_apart(first, other) <= 1


def test_it_is_one_for_regions_that_are_alike_across_classes() -> None:
    """Maps on one shared patch, and all that is different outside of it."""
    shown = []
    for entry in entries():
        values = np.zeros((SIDE, SIDE), np.float32)
        values[10:30, 10:30] = 1
        seen = entry.view.copy()
        seen[10:30, 10:30] = 77
        shown.append(Shown(entry.item, entry.condition, entry.label, seen, values))
    share = 400 / SIDE**2
    for region in ("mask", "crop"):
        numbers = of(shown, top_share=share, region=region)
        assert [number.value for number in numbers] == pytest.approx([1] * len(shown))
    assert all(number.value < 0.999 for number in of(shown, top_share=2 * share))


def test_it_shows_the_strongest_part() -> None:
    """Five pixels, on whichever side of a two-sided field."""
    entry = entries(1, "x", "a")[0]
    positive = [(50, 60), (50, 61), (51, 60), (51, 61), (52, 60)]
    values = np.zeros((SIDE, SIDE), np.float32)
    values[5, 7] = -3
    for place, pixel in enumerate(positive):
        values[pixel] = 2 - place / 10
    entry = Shown("i", "x", "a", entry.view, values)
    five = 5 / SIDE**2
    shown = DiagnosticSimilarity(top_share=five).shown(entry)
    strongest = {(5, 7), *positive[:4]}
    assert {(int(y), int(x)) for y, x in np.argwhere((shown != 0.5).any(2))} == strongest
    assert shown[5, 7] == pytest.approx(entry.view[5, 7] / 255)
    box = DiagnosticSimilarity(top_share=five, region="crop", crop_px=55).shown(entry)
    assert box.shape == (55, 55, 3)


def test_it_ignores_the_order_of_entries() -> None:
    shown = entries(items=7, conditions="xyz", labels="abc")
    order = np.random.default_rng(1).permutation(len(shown))
    plain, mixed = of(shown, partners=4), of([shown[at] for at in order], partners=4)
    assert [plain[at] for at in order] == mixed


def test_it_keeps_conditions_apart() -> None:
    shown = entries()
    only = [entry for entry in shown if entry.condition == "y"]
    assert of(only) == [n for entry, n in zip(shown, of(shown), strict=True) if entry.condition == "y"]


def test_it_chooses_few_partners_of_all_labels() -> None:
    labels = {f"item-{at}": "abc"[at % 3] for at in range(30)}
    chosen = chosen_partners(labels, 7, 0)
    assert len(chosen) == len(set(chosen)) == 7
    counts = [sum(labels[item] == label for item in chosen) for label in "abc"]
    assert sorted(counts) == [2, 2, 3]
    assert chosen == chosen_partners(dict(reversed(labels.items())), 7, 0) != chosen_partners(labels, 7, 1)
    assert chosen_partners(labels, 4, 0) == chosen[:4]
    assert sorted(chosen_partners(labels, 99, 0)) == sorted(labels)


def test_it_counts_and_bounds_the_pairs() -> None:
    shown = entries(items=12, conditions="x")
    assert {number.details["pairs"] for number in of(shown)} == {6}
    assert {number.details["pairs"] for number in of(shown, partners=4)} == {2}


def test_it_has_no_number_for_a_study_of_one_class() -> None:
    numbers = of(entries(labels="a"))
    assert all(
        math.isnan(number.value) and "another class" in number.details["undefined"] for number in numbers
    )
    assert of([]) == []


def test_it_refuses_entries_that_do_not_fit() -> None:
    (first, *_), (other, *_) = entries(), entries()
    with pytest.raises(NotApplicable, match="two maps of condition 'x'"):
        of([first, other])
    with pytest.raises(ShapeMismatch, match="own view"):
        of([Shown("i", "x", "a", first.view, first.values[1:])])
    with pytest.raises(ShapeMismatch, match="one size"):
        of([first, Shown("j", "x", "b", first.view[1:], first.values[1:])])
