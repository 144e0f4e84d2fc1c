"""How layers can be read as maps, compared with small networks whose behaviour is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.planner.layers import native, spatial
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import Channels, PictureSettings
from stimuli.types import Layout
from tests.stimuli.predictors.test_predictors import export, opened, restored
from tests.stimuli.tiny import SIDE, TinyTransformer, pictures, seeded

pytestmark = pytest.mark.pure
LABELS = ("a", "b", "c", "d")


def assembled(
    network: nn.Module,
    token_prefix: int | None = None,
    layer: str = "",
    mean: Channels = (0.0, 0.0, 0.0),
    std: Channels = (1.0, 1.0, 1.0),
    input_px: int = SIDE,
) -> TorchPredictor:
    return assemble(
        BuiltNetwork(network, token_prefix),
        PictureSettings(input_px, mean, std),
        labels=LABELS,
        layer=layer,
        architecture={"kind": "none"},
        payload=b"",
        provenance={},
    )


def transformer() -> nn.Module:
    return seeded(TinyTransformer())


class MeanPooled(TinyTransformer):
    """The mean of all cells is read in the end."""

    def forward(self, inputs: Tensor) -> Tensor:
        tokens = self.patches(inputs).flatten(2).transpose(1, 2) + self.places[:, 1:]
        for block in self.blocks:
            tokens = block(tokens)
        logits: Tensor = self.head(self.last(tokens).mean(1))
        return logits


class Aside(nn.Module):
    """Layers that no map can be read from: windows, a table of places, channels last, one that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 8, 4, stride=4)
        self.twice = nn.ReLU()
        self.windows = nn.Identity()
        self.table = nn.Embedding(36, 8)
        self.last = nn.Linear(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        cells = self.twice(self.twice(self.features(inputs)))
        halves = self.windows(cells.unflatten(2, (2, 3)).movedim(2, 1).flatten(0, 1))
        cells = halves.unflatten(0, (-1, 2)).movedim(1, 2).flatten(2, 3)
        tokens = cells.flatten(2).transpose(1, 2) + self.table(torch.arange(36))[None]
        maps = self.last(tokens.unflatten(1, (6, 6)))
        logits: Tensor = self.head(maps.mean((1, 2)))
        return logits


class InPlace(nn.Module):
    """A step that writes into the output of the layer before it, and a sum that does."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.bend = nn.ReLU(inplace=True)
        self.second = nn.Conv2d(6, 6, 3, padding=1)
        self.head = nn.Linear(6, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        maps = self.bend(self.first(inputs))
        hidden = self.second(maps)
        hidden += maps
        logits: Tensor = self.head(hidden.mean((2, 3)))
        return logits


def test_it_reads_tokens_whose_prefix_is_declared() -> None:
    layouts = assembled(transformer(), 1).layouts
    assert layouts["blocks.0"] == Layout("tokens", 12, 6, 6, 1, sees_target=True)
    assert layouts["patches"] == Layout("maps", 12, 6, 6)
    undeclared = assembled(transformer())
    assert undeclared.layers == ("patches",) == (undeclared.layer,)


def test_it_reads_no_tokens_that_make_no_square() -> None:
    """37 tokens without a prefix are no grid; with 12 before it there would be 5 x 5."""
    assert "blocks.0" not in assembled(transformer(), 0).layouts
    odd = assembled(transformer(), 12).layouts["blocks.0"]
    assert (odd.height, odd.width, odd.prefix) == (5, 5, 12)


def test_it_knows_which_cells_are_not_read() -> None:
    """Behind the last attention only the class token goes on; of queries, only its own is used."""
    layouts = assembled(transformer(), 1).layouts
    blind = {name for name, layout in layouts.items() if not layout.sees_target}
    assert {"blocks.1.second", "blocks.1.mixer.0", "blocks.1", "last"} <= blind
    assert not blind & {"blocks.0", "blocks.0.second", "blocks.1.first", "patches"}


def test_it_agrees_with_the_gradient_of_every_logit() -> None:
    predictor = assembled(transformer(), 1)
    x = pictures(1).requires_grad_()
    for name, layout in predictor.layouts.items():
        outputs: list[Tensor] = []
        hook = predictor.layer_module(name).register_forward_hook(
            lambda _m, _i, out, outputs=outputs: outputs.append(out)
        )
        logits = predictor(x)[0]
        hook.remove()
        gradients = [torch.autograd.grad(logit, outputs[0], retain_graph=True)[0] for logit in logits]
        reached = any(bool(spatial(gradient[0], layout).any()) for gradient in gradients)
        assert reached == layout.sees_target, name


def test_it_takes_the_first_normalisation_of_the_last_block() -> None:
    assert assembled(transformer(), 1).layer == "blocks.1.first"
    assert assembled(seeded(MeanPooled()), 0).layer == "last"
    assert assembled(transformer(), 1, layer="blocks.0").layer == "blocks.0"


def test_it_takes_the_last_block_where_nothing_is_normalised() -> None:
    network = transformer()
    for block in network.blocks:  # type: ignore[union-attr]
        block.first = block.second = nn.Identity()
    assert assembled(network, 1).layer == "blocks.0"


def test_it_leaves_out_what_is_no_map() -> None:
    predictor = assembled(seeded(Aside()), 0)
    assert predictor.layers == ("features",)
    with pytest.raises(BadSpec, match='layer "last" puts out no maps.*features'):
        assembled(seeded(Aside()), 0, layer="last")


def test_it_sees_outputs_before_later_steps_write_into_them() -> None:
    predictor = assembled(seeded(InPlace()))
    assert predictor.layouts["first"] == Layout("maps", 6, SIDE, SIDE)
    network = predictor.module.network
    x = pictures(2)
    with torch.no_grad():
        plain = predictor(x)
        first = network.first(x)  # type: ignore[operator]
        maps = first.relu()
        hidden = network.second(maps) + maps  # type: ignore[operator]
        np.testing.assert_allclose(plain, network.head(hidden.mean((2, 3))), atol=1e-6)  # type: ignore[operator]
    assert float(first.min()) < 0


def test_it_changes_nothing_by_probing() -> None:
    network = transformer()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    predictor = assembled(network, 1)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_hooks for module in predictor.module.modules())


def test_it_goes_to_maps_and_back() -> None:
    layout = Layout("tokens", 5, 3, 3, 2)
    raw = torch.arange(11 * 5.0).view(11, 5)
    maps = spatial(raw, layout)
    # Cell (row, column) is token 2 + 3 * row + column.
    assert torch.equal(maps[:, 1, 2], raw[2 + 3 * 1 + 2])
    assert torch.equal(native(maps[None], raw, layout)[0], raw)
    assert torch.equal(spatial(torch.stack([raw, raw]), layout)[1], maps)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export(transformer(), folder / "vit.pt2", side=SIDE)
    return folder


def test_it_reads_the_tokens_of_an_exported_program(exported: Path) -> None:
    settings = {"weights": "vit.pt2", "input_px": SIDE, "labels": list(LABELS)}
    predictor = opened("torch_image", exported, **settings, token_prefix=1)
    known = assembled(transformer(), 1)
    common = set(predictor.layouts) & set(known.layouts)
    # Whole blocks may hand on more than their output in an exported program; their parts do not.
    assert {"patches", "blocks.0.second", "blocks.1.first", "blocks.1.second", "last"} <= common
    assert {name: predictor.layouts[name] for name in common} == {
        name: known.layouts[name] for name in common
    }
    assert predictor.layer == "blocks.1.first"
    with torch.no_grad():
        np.testing.assert_allclose(predictor(pictures(3)), known(pictures(3)), atol=1e-5)
    back = restored(predictor)
    assert (back.layer, back.layouts, back.key) == (predictor.layer, predictor.layouts, predictor.key)
    assert opened("torch_image", exported, **settings).layer == "patches"
