"""Batch, order, other jobs and retries do not change a map; a method leaves the network unchanged."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from stimuli.errors import NotApplicable
from stimuli.explainers import BORROWED, EXPLAINERS, kind_of, open_explainer
from stimuli.planner.values import Subject
from stimuli.predictors.image.bcos_layers import bcos_network
from stimuli.spec import Component
from stimuli.types import Layout
from tests.stimuli.tiny import SIDE, Tiny, explained, pictures, pooled_net, seeded, subjects_of, token_net

pytestmark = pytest.mark.pure

FEW: dict[str, dict[str, object]] = {
    "lime_image": {"segmentation": "grid-1", "segments": 9, "samples": 24, "stability": 1},
    "occlusion": {"patch_share": 0.3, "stride_share": 0.3},
    "rise": {"masks": 24},
    "shap_partition": {"evaluations": 24},
    "smooth_grad": {"draws": 6},
    "integrated_gradients": {"steps": 6},
}
"""Settings that make the methods quick; the others as they are."""
REFUSED = {
    ("bcos", "cnn"),
    ("bcos", "vit"),
    ("attention_rollout", "cnn"),
    ("generic_attention", "cnn"),
    ("guided_backprop", "vit"),
    ("full_grad", "vit"),
}
METHODS = [
    name
    for name in EXPLAINERS
    if kind_of(Component(name)) == "image" and name not in BORROWED  # they ask no network
]
CASES = [(name, net) for name in METHODS for net in ("cnn", "vit") if (name, net) not in REFUSED]
CASES.append(("bcos", "bcos"))
SCORES = {"ablation_cam", "lime_image", "occlusion", "rise", "score_cam", "shap_partition"}
"""Methods that are differences of scores, which are float32 and near 1: the last digits of a score count."""
RANKED = {"smooth_random"}
"""Methods that give values by rank: rounding may exchange neighbours in the order."""
every_case = pytest.mark.parametrize(("name", "net_name"), CASES)
Maps = NDArray[np.float32]


@cache
def net_of(name: str) -> Tiny:
    if name == "cnn":
        return pooled_net()
    if name == "vit":
        return token_net()
    layouts = {"features": Layout("maps", 8, SIDE // 8, SIDE // 8)}
    return Tiny(seeded(bcos_network(2, 4, 2.0, 2)), ("a", "b", "c", "d"), "features", layouts)


def component_of(name: str) -> Component:
    return Component(name, FEW.get(name, {}))


def maps_for(name: str, net_name: str, subjects: list[Subject], rows: int) -> Maps:
    done = explained(net_of(net_name), subjects, component_of(name), rows=rows)
    return np.stack([result_of(done[at, name]).values for at in range(len(subjects))])


def numpy_stream() -> list[int]:
    state: Any = np.random.get_state()
    return [int(word) for word in state[1]]


def result_of(done: Any) -> Any:
    if done.error is not None:
        raise done.error
    return done.result


@cache
def in_company(net_name: str) -> dict[tuple[int, str], Any]:
    """All methods on three pictures in one drive."""
    components = [component_of(name) for name, net in CASES if net == net_name]
    return explained(net_of(net_name), subjects_of(pictures(3)), *components, rows=16)


def assert_same(name: str, maps: Maps, expected: Maps) -> None:
    """Up to rounding, which is another in batches of other sizes (of 2, 4, ... rows)."""
    digits = 2.0**-20 if name in SCORES else 0.0
    atol = 4e-6 * float(np.abs(expected).max()) + digits
    if name in RANKED:
        assert np.mean(np.abs(maps - expected) > atol) < 0.01
        maps, expected = (np.sort(values, axis=None) for values in (maps, expected))
    np.testing.assert_allclose(maps, expected, rtol=0, atol=atol)


@pytest.mark.parametrize(("name", "net_name"), sorted(REFUSED))
def test_it_refuses_what_it_cannot_explain_with_a_remedy(name: str, net_name: str) -> None:
    with pytest.raises(NotApplicable, match="(?i)use|name|choose|set"):
        open_explainer(component_of(name)).require(net_of(net_name), "")


@every_case
def test_it_draws_one_finite_map_per_picture(name: str, net_name: str) -> None:
    open_explainer(component_of(name)).require(net_of(net_name), "")
    for at in range(3):
        result = result_of(in_company(net_name)[at, name])
        assert result.values.shape == (SIDE, SIDE) and result.values.dtype == np.float32
        assert np.isfinite(result.values).all()
        assert result.signed or result.values.min() >= 0


@every_case
def test_it_gives_a_picture_the_same_map_alone_and_in_company(name: str, net_name: str) -> None:
    alone = maps_for(name, net_name, subjects_of(pictures(3)[1:2], first=1), rows=8)
    assert_same(name, alone[0], in_company(net_name)[1, name].result.values)


@every_case
def test_it_does_not_depend_on_order_or_on_rows(name: str, net_name: str) -> None:
    turned = maps_for(name, net_name, subjects_of(pictures(3))[::-1], rows=5)
    assert_same(
        name, turned[::-1], np.stack([in_company(net_name)[at, name].result.values for at in range(3)])
    )


@every_case
def test_it_leaves_network_pictures_and_generators_as_they_were(name: str, net_name: str) -> None:
    net, x = net_of(net_name), pictures(3)[:1].clone()
    before = {key: value.clone() for key, value in net.module.state_dict().items()}
    parts = {path: set(vars(part)) for path, part in net.module.named_modules()}
    pixels, stream, numbers = x.clone(), torch.get_rng_state(), numpy_stream()
    with torch.no_grad():
        quiet = maps_for(name, net_name, subjects_of(x), rows=4)
    open_explainer(component_of(name)).require(net, "")
    assert all(torch.equal(value, before[key]) for key, value in net.module.state_dict().items())
    assert {path: set(vars(part)) for path, part in net.module.named_modules()} == parts
    for part in net.module.modules():
        assert not part.training
        assert not part._forward_hooks and not part._forward_pre_hooks and not part._backward_hooks
    assert all(weights.grad is None for weights in net.module.parameters())
    assert torch.equal(x, pixels) and not x.requires_grad
    assert torch.equal(torch.get_rng_state(), stream)
    assert numpy_stream() == numbers
    assert_same(name, quiet[0], in_company(net_name)[0, name].result.values)


@pytest.mark.parametrize("name", ["smooth_grad", "random", "permuted", "lime_image"])
def test_it_draws_by_key_and_seed_alone(name: str) -> None:
    x = pictures(1)[0]
    first = maps_for(name, "cnn", [Subject(0, "a", 1, image=x)], rows=4)
    np.testing.assert_array_equal(maps_for(name, "cnn", [Subject(0, "a", 1, image=x)], rows=4), first)
    assert not np.array_equal(maps_for(name, "cnn", [Subject(0, "b", 1, image=x)], rows=4), first)
    assert not np.array_equal(maps_for(name, "cnn", [Subject(0, "a", 2, image=x)], rows=4), first)


def test_it_shows_all_pictures_of_a_study_the_same_masks() -> None:
    x = pictures(1)[0]
    first = maps_for("rise", "cnn", [Subject(0, "a", 1, image=x)], rows=4)
    np.testing.assert_array_equal(maps_for("rise", "cnn", [Subject(0, "b", 1, image=x)], rows=4), first)
    assert not np.array_equal(maps_for("rise", "cnn", [Subject(0, "a", 2, image=x)], rows=4), first)


def test_it_checks_explainers_without_torch() -> None:
    code = (
        "import sys; from stimuli.explainers import *; from stimuli.spec import Component\n"
        "import stimuli.spec_derivation\n"
        "[check_explainer(Component(name)) for name in EXPLAINERS if name != RECORDED]\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
