"""Attention rollout and generic attention, by the weights that the transformers library itself returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stimuli.errors import NotApplicable
from stimuli.explainers import open_explainer
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors.base import TorchPredictor
from stimuli.spec import Component
from tests.stimuli.cam_networks import exported
from tests.stimuli.hub_models import SIDE as HUB_PX
from tests.stimuli.hub_models import save_classifier, save_clip
from tests.stimuli.operators import OPERATORS, asked, number_of
from tests.stimuli.predictors.test_layouts import MeanPooled, assembled
from tests.stimuli.predictors.test_predictors import opened
from tests.stimuli.tiny import (
    SIDE,
    Tiny,
    TinyTransformer,
    explained,
    maps_of,
    pictures,
    pooled_net,
    seeded,
    subjects_of,
    token_net,
)

pytestmark = pytest.mark.pure
Maps = NDArray[np.float64]
METHODS = ("attention_rollout", "generic_attention")


def rollout(weights: list[Maps]) -> Maps:
    """Abnar and Zuidema 2020, block by block, from weights (heads, T, T)."""
    whole = np.eye(weights[0].shape[-1])
    for block in weights:
        whole = (0.5 * block.mean(0) + 0.5 * np.eye(len(whole))) @ whole
    return whole


def relevancy(weights: list[Maps], gradients: list[Maps]) -> Maps:
    """Chefer, Gur and Wolf 2021, equations 5 and 6; the map is off the diagonal that R starts from."""
    whole = np.eye(weights[0].shape[-1])
    for block, gradient in zip(weights, gradients, strict=True):
        whole = whole + np.maximum(gradient * block, 0).mean(0) @ whole
    return whole - np.eye(len(whole))


def drawn(rows: Maps, prefix: int, side: int) -> NDArray[np.float32]:
    """One row (T,) over the picture."""
    cells = torch.from_numpy(rows[prefix:])
    grid = round(len(cells) ** 0.5)
    fine = functional.interpolate(cells.view(1, 1, grid, grid), size=(side, side), mode="bilinear")
    return np.asarray(fine[0, 0], np.float32)


def library_weights(folder: Path, x: Tensor, subject: Subject) -> tuple[list[Maps], list[Maps]]:
    """The attention that the library returns for one picture and its gradients; every block's."""
    model = transformers.AutoModelForImageClassification.from_pretrained(folder, attn_implementation="eager")
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in ([0.4, 0.5, 0.6], [0.2, 0.25, 0.3]))
    answer = model.eval()(pixel_values=(x - mean) / std, output_attentions=True)
    gradients = torch.autograd.grad(number_of(answer.logits[0], subject), answer.attentions)
    return [[part[0].detach().double().numpy() for part in parts] for parts in (answer.attentions, gradients)]  # type: ignore[return-value]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, TorchPredictor]]:
    made = {}
    for name in ("ViT", "DeiT", "Dinov2WithRegisters", "Swin"):
        folder = tmp_path_factory.mktemp(name)
        save_classifier(folder / "net", name)
        made[name] = folder / "net", opened("transformers_image", folder, folder="net")
    return made


@pytest.mark.parametrize(("name", "prefix"), [("ViT", 1), ("DeiT", 2)])
@pytest.mark.parametrize("operator", OPERATORS)
def test_it_multiplies_the_attention_that_the_library_returns(
    hub: dict[str, tuple[Path, TorchPredictor]], name: str, prefix: int, operator: Any
) -> None:
    folder, predictor = hub[name]
    subjects = asked(subjects_of(pictures(2, HUB_PX)), operator, against=2)
    done = explained(predictor, subjects, *METHODS)
    for at, subject in enumerate(subjects):
        weights, gradients = library_weights(folder, subject.pixels[None], subject)
        for method, whole in zip(METHODS, (rollout(weights), relevancy(weights, gradients)), strict=True):
            expected = drawn(whole[0], prefix, HUB_PX)
            got = done[at, method].result
            assert expected.max() > 0 and not got.signed
            np.testing.assert_allclose(got.values, expected, atol=2e-5 * float(expected.max()))


def test_it_averages_the_tokens_that_are_read_where_several_are(
    hub: dict[str, tuple[Path, TorchPredictor]],
) -> None:
    """DINOv2's head reads the class token and the mean of the cells, never its four registers."""
    folder, predictor = hub["Dinov2WithRegisters"]
    (subject,) = subjects_of(pictures(1, HUB_PX))
    weights, _ = library_weights(folder, subject.pixels[None], subject)
    read = [0, *range(5, len(weights[0][0]))]
    expected = drawn(rollout(weights)[read].mean(0), 5, HUB_PX)
    got = maps_of("attention_rollout", predictor, [subject])[0]
    np.testing.assert_allclose(got, expected, atol=2e-5 * float(expected.max()))


def test_it_reads_all_cells_where_no_class_token_is() -> None:
    predictor = assembled(seeded(MeanPooled()), 0)
    seen = kept_attention(predictor.module.network, pictures(1))
    expected = drawn(rollout(seen).mean(0), 0, SIDE)
    got = maps_of("attention_rollout", predictor, subjects_of(pictures(1)))[0]
    np.testing.assert_allclose(got, expected, atol=1e-6 * float(expected.max()))


def kept_attention(network: nn.Module, x: Tensor) -> list[Maps]:
    """What `nn.MultiheadAttention` itself says its weights are, per block (1, heads, T, T)."""
    seen: list[Maps] = []
    parts = [part for part in network.modules() if isinstance(part, nn.MultiheadAttention)]

    def ask(part: nn.Module, inputs: Any) -> None:
        _, weights = part.forward(*inputs, need_weights=True, average_attn_weights=False)
        seen.append(weights[0].double().numpy())

    hooks = [part.register_forward_pre_hook(ask) for part in parts]
    with torch.no_grad():
        network(x)
    for hook in hooks:
        hook.remove()
    return seen


def test_it_takes_apart_what_pytorch_fuses() -> None:
    net, x = token_net(), pictures(2)
    got = maps_of("attention_rollout", net, subjects_of(x))
    for at in range(2):
        expected = drawn(rollout(kept_attention(net.module, x[at : at + 1]))[0], 1, SIDE)
        np.testing.assert_allclose(got[at], expected, atol=1e-6 * float(expected.max()))


class OneHead(nn.Module):
    """Attention of one block and one head whose class token attends by the brightness of a cell, and whose
    logits are what it brings: both methods in closed form.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.AvgPool2d(4)
        self.tokens = nn.Identity()

    def forward(self, pictures: Tensor) -> Tensor:
        values = self.cells(pictures).flatten(2).transpose(1, 2)  # (N, 36, 3)
        values = self.tokens(torch.cat([torch.zeros_like(values[:, :1]), values], 1))[:, None]
        query, key = torch.ones_like(values), 4 * values
        mixed: Tensor = functional.scaled_dot_product_attention(query, key, values, scale=1.0)
        return torch.cat([mixed[:, 0, 0], -mixed[:, 0, 0, :1]], 1)


def test_one_block_with_one_head_is_as_by_hand_and_in_place() -> None:
    """A bright cell off the diagonal: what transposes, turns or shifts by the class token is found."""
    x = 0.2 * torch.ones((1, 3, SIDE, SIDE))
    row, column = 1, 4
    x[:, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] = torch.tensor([0.9, 0.5, 0.7]).view(
        1, 3, 1, 1
    )
    net = assembled(OneHead().eval(), 1)
    brightness = np.concatenate([[0.0], x[0].sum(0)[::4, ::4].double().numpy().ravel()])
    weights = np.exp(4 * brightness) / np.exp(4 * brightness).sum()
    reds = np.concatenate([[0.0], x[0, 0, ::4, ::4].double().numpy().ravel()])
    subject = Subject(0, "cell", 7, image=x[0])
    expected = {"attention_rollout": weights / 2, "generic_attention": weights * reds}
    for method, values in expected.items():
        got = maps_of(method, net, [subject])[0]
        np.testing.assert_allclose(got, drawn(values, 1, SIDE), atol=1e-6)
        top, left = np.unravel_index(got.argmax(), got.shape)
        assert (int(top) // 4, int(left) // 4) == (row, column)


def test_generic_attention_keeps_what_speaks_for_the_number_alone() -> None:
    """The last logit falls with every red cell: nothing is positive."""
    net = assembled(OneHead().eval(), 1)
    subject = Subject(3, "none", 7, image=pictures(1)[0])
    assert not maps_of("generic_attention", net, [subject]).any()


def test_an_exported_program_has_the_same_maps() -> None:
    net, x = token_net(), pictures(2)
    program = Tiny(exported(net.module), net.labels, net.layer, net.layouts)
    for method in METHODS:
        open_explainer(Component(method)).require(program, "")
        expected, got = (maps_of(method, kind, subjects_of(x)) for kind in (net, program))
        np.testing.assert_allclose(got, expected, atol=1e-5 * float(expected.max()))


def test_both_methods_share_one_pass_per_picture_and_all_pictures_a_batch() -> None:
    net = token_net()
    network = Network(net, rows=4)
    explained(net, subjects_of(pictures(4)), *METHODS, network=network)
    bill = network.bill
    assert (bill.forwards, bill.backwards, bill.calls) == (4, 4, 1)


@pytest.mark.parametrize("method", METHODS)
def test_it_refuses_what_has_no_attention_among_all_tokens(
    hub: dict[str, tuple[Path, TorchPredictor]], method: str, tmp_path: Path
) -> None:
    save_clip(tmp_path / "net", form="siglip")
    siglip = opened("clip_zero_shot", tmp_path, folder="net", labels=["cat", "dog", "owl"])
    refusals: list[tuple[Any, str]] = [
        (pooled_net(), "shows no attention weights when it runs: use .* 'lrp'"),
        (hub["Swin"][1], "attends within windows"),
        (siglip, "from some tokens to others"),
        (assembled(seeded(TinyTransformer())), "among 37 tokens.* declare token_prefix"),
    ]
    for predictor, says in refusals:
        with pytest.raises(NotApplicable, match=says):
            open_explainer(Component(method)).require(predictor, "")
