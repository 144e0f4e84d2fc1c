"""Networks that cannot be explained, or not by gradients, and networks that have to be brought into shape."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import CONTROLS, EXPLAINERS, RECORDED, open_explainer
from stimuli.predictors import restore
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import PictureSettings
from stimuli.spec import Component, JsonValue
from tests.stimuli.measuring import number_of
from tests.stimuli.predictors.test_conformance import CHEAP
from tests.stimuli.predictors.test_predictors import export, opened, restored
from tests.stimuli.tiny import SIDE, explained, maps_of, pictures, seeded, subjects_of

pytestmark = pytest.mark.pure
LABELS = ["cat", "dog"]
BY_GRADIENT = {
    *("saliency", "gradient_x_input", "integrated_gradients", "smooth_grad", "guided_backprop", "full_grad"),
    *("grad_cam", "hires_cam", "grad_cam_elementwise", "grad_cam_plus_plus", "xgrad_cam", "layer_cam"),
    *("ablation_cam", "eigen_grad_cam", "captum", "lrp", "generic_attention", "attention_rollout"),
}
BY_CHANGES = ("occlusion", "rise", "lime_image", "shap_partition", "score_cam", "eigen_cam")


class Small(nn.Module):
    """Convolutions with normalisations, pooled; `ends` is put behind the logits."""

    def __init__(self, classes: int = 2, ends: nn.Module | None = None) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU()),
            *(nn.Conv2d(6, 8, 3, stride=2, padding=1), nn.ReLU()),
        )
        self.head = nn.Linear(8, classes)
        self.ends = ends or nn.Identity()
        self.scale = torch.full((8,), 4.0)

    def forward(self, inputs: Tensor) -> Tensor:
        values: Tensor = self.ends(self.head(self.pooled(inputs) * self.scale.to(inputs.dtype)))
        return values

    def pooled(self, inputs: Tensor) -> Tensor:
        pooled: Tensor = self.features(inputs).mean((2, 3))
        return pooled


class Detached(Small):
    def pooled(self, inputs: Tensor) -> Tensor:
        return super().pooled(inputs).detach()


class Frozen(Small):
    def pooled(self, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            return super().pooled(inputs)


class Rounded(Small):
    def pooled(self, inputs: Tensor) -> Tensor:
        return super().pooled(torch.round(inputs * 15) / 15)


class Narrowed(Small):
    """Changes to half precision inside."""

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs.half()).float()


def load(folder: Path, network: nn.Module, **params: JsonValue) -> TorchPredictor:
    kind = next(network.parameters()).dtype
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = torch.rand(2, 3, SIDE, SIDE).to(torch.float32 if isinstance(network, Narrowed) else kind)
        shapes = ({0: torch.export.Dim("batch")},)
        program = torch.export.export(network, (given,), dynamic_shapes=shapes)
        torch.export.save(program, folder / "model.pt2")
    settings = {"weights": "model.pt2", "input_px": SIDE, "labels": LABELS, **params}
    return opened("torch_image", folder, **settings)


def assembled(built: BuiltNetwork, payload: bytes) -> TorchPredictor:
    return assemble(
        built,
        PictureSettings(SIDE),
        labels=LABELS,
        layer="",
        architecture={"kind": "program"},
        payload=payload,
        provenance={},
    )


def views(count: int = 4) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, SIDE, SIDE, 3), dtype=np.uint8)


def said(network: nn.Module) -> NDArray[np.float32]:
    """What a network says of the views, passed by hand."""
    with torch.no_grad():
        inputs = torch.from_numpy(views()).permute(0, 3, 1, 2).float() / 255
        return np.asarray(network(inputs).numpy())


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64))
    return np.asarray(powers / powers.sum(1, keepdims=True))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_it_brings_other_precisions_to_float32_and_says_so(tmp_path: Path, kind: torch.dtype) -> None:
    network = seeded(Small()).to(kind)
    network.scale = network.scale.to(kind)  # no buffer: a constant of the program
    predictor = load(tmp_path, network)
    whole = network.float()
    whole.scale = whole.scale.float()
    assert predictor.provenance["cast_from"] == str(kind).removeprefix("torch.")
    np.testing.assert_allclose(predictor.logits(views()), said(whole), atol=1e-6)
    np.testing.assert_array_equal(restored(predictor).logits(views()), predictor.logits(views()))
    assert maps_of("saliency", predictor, subjects_of(pictures(1))).any()


@pytest.mark.parametrize("kind", [torch.float16, torch.float64])
def test_it_says_so_of_safetensors_too(tmp_path: Path, kind: torch.dtype) -> None:
    from stimuli.training import small_network

    built = seeded(small_network(4, 2))
    state = {
        name: value.to(kind) if value.is_floating_point() else value
        for name, value in built.state_dict().items()
    }
    safetensors.torch.save_file(state, tmp_path / "w.safetensors")
    settings = {"builder": "stimuli.training:small_network", "builder_params": {"width": 4, "classes": 2}}
    predictor = opened(
        "torch_image", tmp_path, weights="w.safetensors", input_px=SIDE, labels=LABELS, **settings
    )
    assert predictor.provenance["cast_from"] == str(kind).removeprefix("torch.")
    built.load_state_dict(state)
    np.testing.assert_allclose(predictor.logits(views()), said(built), atol=1e-6)


def test_it_says_nothing_of_precision_if_there_is_one(tmp_path: Path) -> None:
    assert "cast_from" not in load(tmp_path, seeded(Small())).provenance


def test_it_brings_steps_to_float32_too(tmp_path: Path) -> None:
    predictor = load(tmp_path, seeded(Narrowed()).half())
    whole = seeded(Small()).half().float()
    np.testing.assert_allclose(predictor.logits(views()), said(whole), atol=1e-6)


def test_it_refuses_a_change_of_precision_inside() -> None:
    with pytest.raises(BadSpec, match=r"not take pictures in float32 .*Half.*changes to another precision"):
        assembled(BuiltNetwork(seeded(Narrowed())), b"")


@pytest.mark.parametrize(
    ("classes", "last", "word"),
    [(2, nn.Softmax(1), "softmax"), (2, nn.Sigmoid(), "sigmoid"), (1, nn.Sigmoid(), "sigmoid")],
)
def test_it_refuses_probabilities(tmp_path: Path, classes: int, last: nn.Module, word: str) -> None:
    with pytest.raises(
        BadSpec, match=f"probabilities instead of logits .*once more: take the {word} off its end"
    ):
        load(tmp_path, seeded(Small(classes, last)))


def test_it_takes_logs_of_probabilities(tmp_path: Path) -> None:
    """A softmax of them is the probabilities again."""
    logits, logs = seeded(Small()), seeded(Small(ends=nn.LogSoftmax(1)))
    predictor = load(tmp_path, logs)
    np.testing.assert_allclose(softmax(predictor.logits(views())), softmax(said(logits)), atol=1e-6)


def test_it_restores_what_was_accepted_before(tmp_path: Path) -> None:
    """A study that is open keeps its predictor, also if a new one would be refused."""
    from stimuli.predictors.files.program import read_program

    export(seeded(Small(ends=nn.Softmax(1))), tmp_path / "old.pt2", side=SIDE)
    data = (tmp_path / "old.pt2").read_bytes()
    old = assembled(BuiltNetwork(read_program(data, "old")), data)
    assert restore(old.dump()).key == old.key


def dead() -> nn.Module:
    network = seeded(Small())
    network.features[3].bias.data.fill_(-1e3)  # type: ignore[index, union-attr]
    return network


@pytest.mark.parametrize(
    ("network", "cause"),
    [
        (Detached(), r"it cuts the way back from the logits to the picture \(detach"),
        (Frozen(), r"it cuts the way back from the logits to the picture \(detach"),
        (Rounded(), r"its gradient is zero for every pixel \(it rounds"),
        (None, r"its gradient is zero for every pixel \(it rounds, .* or has died"),
    ],
    ids=["detach", "no_grad", "round", "dead"],
)
def test_it_knows_networks_without_gradients(tmp_path: Path, network: nn.Module | None, cause: str) -> None:
    """Every method by gradient is refused before anything is rendered; the others do their work."""
    predictor = load(tmp_path, seeded(network) if network else dead())
    refused = set()
    for name in {*EXPLAINERS} - {RECORDED}:
        method = open_explainer(Component(name))
        if method.kind != "image" or name == "bcos" or name in CONTROLS:
            continue
        try:
            method.require(predictor, predictor.layer)
        except NotApplicable as error:
            if "reads the gradient of this network, which has none" in str(error):
                refused.add(name)
    assert refused == BY_GRADIENT
    with pytest.raises(
        NotApplicable, match=f"Saliency reads .* which has none: {cause}.*'occlusion', 'rise'"
    ):
        open_explainer(Component("saliency")).require(predictor, "")
    assert restored(predictor).no_gradient == predictor.no_gradient


def test_it_explains_them_by_changing_the_picture(tmp_path: Path) -> None:
    """The same maps as of the network that lets gradients through, for its logits are the same."""
    (tmp_path / "plain").mkdir()
    detached = load(tmp_path, seeded(Detached()), layer="features")
    plain = load(tmp_path / "plain", seeded(Small()), layer="features")
    assert plain.no_gradient == ""
    for name in BY_CHANGES:
        params: dict[str, Any] = CHEAP.get(name, {})
        subjects = subjects_of(pictures(2) * 0.9, layer="features")[:1]
        got = maps_of(name, detached, subjects, **params)
        assert got.any(), name
        np.testing.assert_allclose(got, maps_of(name, plain, subjects, **params), atol=1e-5, err_msg=name)
    open_explainer(Component("captum", {"method": "Occlusion"})).require(detached, "")


class Squeezed(Small):
    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs).squeeze(1)


def sigmoid_and_twin(kind: type[Small]) -> tuple[nn.Module, nn.Module]:
    """A network of one logit, and one of two whose difference is that logit."""
    single, twin = seeded(kind(1)), seeded(Small(2))
    single.head.bias.data.fill_(0.05)  # type: ignore[operator, union-attr]
    for name, value in single.state_dict().items():
        if name.startswith("head"):
            value = torch.cat([-value, value]) / 2
        twin.state_dict()[name].copy_(value)
    return single, twin


@pytest.mark.parametrize("kind", [Small, Squeezed])
def test_it_explains_a_sigmoid_as_its_twin_of_two_logits(tmp_path: Path, kind: type[Small]) -> None:
    """Equal in answers, maps and metrics, for either answer; the softmax is the sigmoid."""
    single, twin = sigmoid_and_twin(kind)
    (tmp_path / "twin").mkdir()
    binary = load(tmp_path, single, layer="features")
    double = load(tmp_path / "twin", twin, layer="features")
    sigmoid = 1 / (1 + np.exp(-said(single).astype(np.float64).ravel()))
    np.testing.assert_allclose(softmax(binary.logits(views()))[:, 1], sigmoid, atol=1e-6)
    np.testing.assert_allclose(binary.logits(views()), double.logits(views()), atol=1e-6)
    assert restored(binary).key == binary.key
    np.testing.assert_array_equal(restored(binary).logits(views()), binary.logits(views()))
    subjects = subjects_of(pictures(2), layer="features")  # one for each answer
    for name in ("saliency", "grad_cam", "occlusion", "ablation_cam"):
        maps = maps_of(name, binary, subjects)
        np.testing.assert_allclose(maps, maps_of(name, double, subjects), atol=1e-6, err_msg=name)
        assert name == "grad_cam" or all(plane.any() for plane in maps), name
    for subject in subjects:
        made = explained(binary, [subject], "occlusion")[0, "occlusion"].result
        for metric in ("deletion", "insertion"):
            values = [number_of(net, subject, made, metric).value for net in (binary, double)]
            assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_it_takes_one_logit_for_two_labels_only(tmp_path: Path) -> None:
    from stimuli.errors import ShapeMismatch

    with pytest.raises(ShapeMismatch, match="returns 1 logits, but 3 labels"):
        load(tmp_path, seeded(Small(1)), labels=["a", "b", "c"])
