"""Networks as they come: copied, taken out of wrappers, and read wherever their logits are."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import ImageClassifierOutput

from stimuli import explain
from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import PictureSettings
from stimuli.predictors.network_forms import copy_network
from stimuli.types import Pixels
from tests.stimuli.tiny import SIDE, seeded

pytestmark = pytest.mark.pure
SMALL = {"input_px": SIDE}


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.fc = nn.Linear(8, 2)

    def forward(self, pictures: Tensor) -> Any:
        return self.fc(self.features(pictures).mean((2, 3)))


class Keeping(Plain):
    """As tutorials of Grad-CAM write it: activations and gradients are kept."""

    def forward(self, pictures: Tensor) -> Any:
        self.activations = self.features(pictures)
        self.past = [*getattr(self, "past", [])[-1:], {"maps": self.activations}]
        if self.activations.requires_grad:
            self.activations.register_hook(self.keep)
        return self.fc(self.activations.mean((2, 3)))

    def keep(self, gradient: Tensor) -> None:
        self.gradient = gradient


def kept() -> nn.Module:
    network = seeded(Keeping()).requires_grad_()
    network(torch.full((1, 3, SIDE, SIDE), 0.4))[0, 0].backward()
    return network


def hooked() -> nn.Module:
    network = seeded(Plain()).requires_grad_()
    seen: list[Tensor] = []
    network.get_submodule("features").register_forward_hook(
        lambda _part, _inputs, output: seen.append(output)
    )
    network.seen = seen  # type: ignore[assignment]
    network(torch.full((1, 3, SIDE, SIDE), 0.4))
    return network


def normed(norm: Callable[[nn.Module], nn.Module]) -> nn.Module:
    network = seeded(Plain()).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        network.fc = norm(network.get_submodule("fc"))
    network(torch.full((1, 3, SIDE, SIDE), 0.4))
    return network


class Locked(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.later = {"turns": [(number for number in range(3))]}

    def forward(self, pictures: Tensor) -> Any:
        with self.lock:
            return super().forward(pictures)


COPIED: dict[str, Callable[[], nn.Module]] = {
    "activations kept": kept,
    "hooks": hooked,
    "weight_norm": lambda: normed(torch.nn.utils.weight_norm),
    "spectral_norm": lambda: normed(torch.nn.utils.spectral_norm),
    "parametrised": lambda: normed(torch.nn.utils.parametrizations.weight_norm),
    "a lock": lambda: seeded(Locked()),
    "channels last": lambda: seeded(Plain()).to(memory_format=torch.channels_last),  # type: ignore[call-overload]
    "compiled": lambda: compiled(seeded(Plain())),
    "a compiled part": lambda: with_part(compiled),
    "data parallel": lambda: nn.DataParallel(nn.DataParallel(seeded(Plain()))),
    "averaged": lambda: torch.optim.swa_utils.AveragedModel(seeded(Plain())),
    "half": lambda: seeded(Plain()).double(),
}


def compiled(network: nn.Module) -> nn.Module:
    made: Any = torch.compile(network)
    return made  # type: ignore[no-any-return]


def with_part(wrap: Callable[..., Any]) -> nn.Module:
    network = seeded(Plain())
    network.features = wrap(network.features)
    return network


def pictures(count: int = 2) -> list[Pixels]:
    draws = np.random.default_rng(0)
    return [draws.integers(0, 256, (SIDE, SIDE, 3)).astype(np.uint8) for _ in range(count)]


@pytest.mark.parametrize("kind", COPIED)
def test_every_network_is_explained_as_its_plain_twin(kind: str) -> None:
    """With the plain one's weights, a normalisation of weights changes nothing; and it stays as it is."""
    network = COPIED[kind]()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    modes = [part.training for part in network.modules()]
    methods: list[Any] = ["grad_cam", "occlusion", {"name": "randomised_network", "of": "saliency"}]
    methods = methods[:2] if "norm" in kind or kind == "parametrised" else methods
    got = explain(network, pictures(), methods, preprocess=SMALL)
    twin = seeded(Plain())
    if kind == "spectral_norm":  # divides by the largest singular value
        twin.fc.weight.data = network.get_submodule("fc").weight.detach()  # type: ignore[operator, union-attr]
    expected = explain(twin, pictures(), methods, preprocess=SMALL)
    for name in got.methods:
        np.testing.assert_allclose(got.maps[name], expected.maps[name], atol=1e-6, err_msg=name)
        assert got.maps[name].any()
    assert modes == [part.training for part in network.modules()]
    after = network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_channels_last_network_gives_the_same_bits() -> None:
    twin, network = seeded(Plain()), COPIED["channels last"]()
    maps = [
        explain(each, pictures(), ["saliency"], preprocess=SMALL).maps["saliency"] for each in (twin, network)
    ]
    np.testing.assert_array_equal(maps[0], maps[1])


def test_a_copy_shares_nothing_that_a_pass_changes() -> None:
    network = kept()
    copied = copy_network(network)
    assert isinstance(copied, Keeping) and isinstance(network, Keeping)
    assert torch.equal(copied.activations, network.activations) and copied.activations.grad_fn is None
    with torch.no_grad():
        copied.fc.weight.add_(1)
        copied.activations.add_(1)
    assert not torch.equal(copied.fc.weight, network.fc.weight)
    assert not torch.equal(copied.activations, network.activations)
    locked = Locked()
    assert vars(copy_network(locked))["lock"] is locked.lock  # what cannot be copied is shared


class Uncopied(Plain):
    def __deepcopy__(self, memo: object) -> nn.Module:
        raise RuntimeError("not this one\nat all")


def test_what_cannot_be_copied_is_refused_with_a_remedy() -> None:
    network = seeded(Uncopied())
    words = (
        r"Uncopied cannot be copied \(not this one\); give a network that is newly built.* load_state_dict"
    )
    with pytest.raises(BadSpec, match=words):
        explain(network, pictures(), ["saliency"], preprocess=SMALL)
    fresh = Plain()
    fresh.load_state_dict(network.state_dict())
    explain(fresh, pictures(), ["saliency"], preprocess=SMALL)
    with pytest.raises(BadSpec, match="LazyNet cannot be copied"):
        explain(LazyNet(), pictures(), ["saliency"], preprocess=SMALL)


def test_what_has_no_layers_to_read_is_named() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(seeded(Plain()))
        quantise: Any = torch.ao.quantization.quantize_dynamic
        quantised = quantise(seeded(Plain()), {nn.Linear})
    with pytest.raises(BadSpec, match="TorchScript does not show its layers: give the network"):
        explain(scripted, pictures(), ["saliency"], preprocess=SMALL)
    with pytest.raises(BadSpec, match="more than tensors, as of quantised layers: give it in float32"):
        explain(quantised, pictures(), ["saliency"], preprocess=SMALL)


def test_an_argmax_is_no_logit() -> None:
    class Deciding(Plain):
        def forward(self, pictures: Tensor) -> Any:
            return super().forward(pictures).argmax(1)

    with pytest.raises(BadSpec, match=r"whole numbers \(torch.int64\).* take the argmax off its end"):
        explain(seeded(Deciding()), pictures(), ["occlusion"], preprocess=SMALL)


class LazyNet(Plain):
    """Its weights do not exist before it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.LazyLinear(2)


Pair = namedtuple("Pair", ["logits", "aux"])


@dataclass
class Output:
    logits: Tensor
    features: Tensor


class Slotted:
    __slots__ = ("logits",)

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


class Returning(Plain):
    forms: ClassVar[dict[str, Callable[[Tensor], object]]] = {
        "a tuple of one": lambda logits: (logits,),
        "a list of one": lambda logits: [logits],
        "a tuple with None": lambda logits: (None, logits),
        "a named tuple": lambda logits: Pair(logits, logits[:, :1]),
        "a dict": lambda logits: {"logits": logits, "features": logits * 2},
        "a dict of one": lambda logits: OrderedDict(out=logits),
        "a ModelOutput": lambda logits: ImageClassifierOutput(logits=logits, hidden_states=(logits, logits)),
        "a dataclass": lambda logits: Output(logits, logits * 2),
        "an object": Slotted,
        "two tensors": lambda logits: (logits, logits),
        "a dict of two": lambda logits: {"out": logits, "aux": logits[:, :1]},
        "nothing": lambda logits: None,
        "a number": lambda logits: 3.0,
    }

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def forward(self, pictures: Tensor) -> Any:
        return self.forms[self.form](super().forward(pictures))


def assembled(network: nn.Module) -> TorchPredictor:
    settings = PictureSettings(SIDE)
    rest: dict[str, Any] = {"layer": "", "architecture": {"kind": "none"}, "payload": b"", "provenance": {}}
    return assemble(BuiltNetwork(seeded(network)), settings, labels=("a", "b"), **rest)


REFUSED = {
    "two tensors": r"tuple of \(3, 2\), \(3, 2\)",
    "a dict of two": r"dict of \(3, 2\), \(3, 1\)",
    "nothing": "NoneType",
    "a number": "float",
}


@pytest.mark.parametrize("form", Returning.forms)
def test_logits_are_found_where_there_is_one_place_for_them(form: str) -> None:
    views = np.stack(pictures())
    if form in REFUSED:
        words = f'returns {REFUSED[form]}; logits .* return them alone, or under the name "logits"'
        with pytest.raises(ShapeMismatch, match=words):
            assembled(Returning(form))
    else:
        expected = assembled(Plain()).logits(views)
        np.testing.assert_array_equal(assembled(Returning(form)).logits(views), expected)
