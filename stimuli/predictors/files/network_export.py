"""A researcher's network from a state dict, brought into a file that a study reads without running code."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec, StimulusError, first_line
from stimuli.predictors.architectures import RESNETS, TIMM_VITS, TORCHVISION_VITS, VGGS
from stimuli.predictors.files.builder_functions import BUILDERS
from stimuli.predictors.files.picture_settings import IMAGENET
from stimuli.predictors.files.program import read_program
from stimuli.predictors.files.weights import fit_weights, pack_weights, read_weights
from stimuli.predictors.network_forms import copy_network, logits_of
from stimuli.predictors.network_proof import network_errors
from stimuli.spec import JsonValue

PICTURES = 2
"""So many the network has to answer before it is written. An exported batch of one would stay fixed."""
LUMA = (0.299, 0.587, 0.114)
"""Grey of red, green and blue, as Pillow and torchvision make it (ITU-R BT.601)."""
ARCHITECTURES: Mapping[str, tuple[str, ...]] = {
    "torchvision": (*RESNETS, *VGGS, *(f"{name}_bn" for name in VGGS), *TORCHVISION_VITS),
    "timm": tuple(TIMM_VITS),
}
"""By builder. Several names of one library may have the same weights: the first then stands for them."""


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """The file `name` with its content, what of `[stimuli.predictor]` belongs to it, the number of logits,
    the names of the architecture in words."""

    name: str
    data: bytes
    logits: int
    words: str
    table: Mapping[str, JsonValue] = field(default_factory=dict)


class GreyInput(nn.Module):
    """A network of one channel, for pictures (N, 3, H, W)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.luma: Tensor
        self.register_buffer("luma", torch.tensor(LUMA).view(1, 3, 1, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        return logits_of(self.network((pictures * self.luma).sum(1, keepdim=True)))


def network_file(weights: Path, network: str, input_px: int, classes: int) -> NetworkFile:
    """The network that `weights` belong to: a .pt2 program, or a state dict (.safetensors, or a file of
    torch.save, of which numbers alone are read).

    `network` is "" (a program, or an architecture of ours that fits), an architecture's name, or
    "FILE.py:NAME" or "package.module:NAME" of a class or function that returns the network, which gets
    `classes` if it takes one argument. That code runs here; what is returned is a program without code.
    Raises BadSpec or ShapeMismatch, with the remedy, for what cannot be read, does not fit or does not
    answer PICTURES pictures of `input_px`.
    """
    if weights.suffix == ".pt2":
        data = _bytes_of(weights)
        program = read_program(data, f'"{weights.name}"')
        return NetworkFile("model.pt2", data, _logits(program, input_px), "an exported program")
    state = read_state(weights)
    if ":" in network:
        return _export(_own_network(network, classes), state, weights.name, network, input_px)
    builder, name = _architecture(state, network, weights.name)
    logits = next(len(value) for value in reversed(list(state.values())) if value.ndim == 2)
    params: dict[str, JsonValue] = {"name": name, "classes": logits}
    built = BUILDERS.load(builder)(**params)
    fit_weights(built, state, f'"{weights.name}"')
    built.eval()
    _logits(built, input_px)
    table = {"builder": builder, "builder_params": params, **IMAGENET}
    return NetworkFile("model.safetensors", pack_weights(built), logits, f"{name} as {builder} has it", table)


def read_state(path: Path) -> dict[str, Tensor]:
    """Tensors by name: of a .safetensors file, or of one of torch.save, from which nothing is run. BadSpec if
    it holds anything else."""
    if path.suffix == ".safetensors":
        return read_weights(_bytes_of(path), f'"{path.name}"')
    remedy = "save the state dict alone: torch.save(network.state_dict(), FILE)"
    try:
        held = torch.load(io.BytesIO(_bytes_of(path)), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise BadSpec(f'"{path}" is no state dict ({first_line(error)}); {remedy}') from None
    held = held.get("state_dict", held.get("model", held)) if isinstance(held, Mapping) else held
    if not isinstance(held, Mapping) or not all(isinstance(value, Tensor) for value in held.values()):
        raise BadSpec(f'"{path}" holds {type(held).__name__}, not tensors by name; {remedy}')
    return {str(name): value for name, value in held.items()}


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadSpec(f'weights: "{path}" cannot be read ({error.strerror}); name the file itself') from error


def _architecture(state: Mapping[str, Tensor], named: str, source: str) -> tuple[str, str]:
    """(builder, name) of the architecture: the one that is named, else the first that these weights fit."""
    known = [(builder, name) for builder, names in ARCHITECTURES.items() for name in names]
    for builder, name in known:
        if name == named or (not named and _is_of(state, builder, name)):
            return builder, name
    what = f'network = "{named}" is none' if named else f'the weights in "{source}" are those of none'
    raise BadSpec(
        f"{what} of the architectures that are built here ({', '.join(name for _, name in known)}); name "
        'the class that they were trained with, as "FILE.py:CLASS"'
    )


def _is_of(state: Mapping[str, Tensor], builder: str, name: str) -> bool:
    """Whether an architecture has these tensors, for any number of classes."""
    with torch.device("meta"):
        wanted = BUILDERS.load(builder)(name=name).state_dict()
    shapes = {key: value.shape for key, value in state.items()}
    # The last two tensors are weights and bias of the classes.
    kept = [key for key in list(wanted)[:-2] if not key.endswith("num_batches_tracked")]
    return wanted.keys() >= {key for key in shapes if key in wanted} == shapes.keys() and all(
        shapes.get(key) == wanted[key].shape for key in kept
    )


def _own_network(named: str, classes: int) -> nn.Module:
    """What the researcher's class or function returns."""
    place, _, name = named.rpartition(":")
    try:
        builder = getattr(_module(place), name, None)
    except Exception as error:  # code of others may raise any
        raise BadSpec(f'network = "{named}" cannot be read ({first_line(error)}); mend that file') from error
    if not callable(builder):
        raise BadSpec(f'network = "{named}": {place} has no class or function {name}')
    try:
        network = builder(*[classes][: _arguments(builder)])
    except Exception as error:  # as above
        raise BadSpec(
            f'network = "{named}" cannot be built ({first_line(error)}); name a function that returns the '
            "network, and takes nothing or the number of classes"
        ) from error
    if not isinstance(network, nn.Module):
        raise BadSpec(f'network = "{named}" returns {type(network).__name__}, a torch.nn.Module is needed')
    return network


def _module(place: str) -> object:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # what lies beside the file may be imported by it
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def _arguments(builder: Callable[..., object]) -> int:
    """How many arguments have no default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rows = inspect.signature(builder).parameters.values()
    return sum(row.default is row.empty and row.kind in kinds for row in rows)


def _export(
    network: nn.Module, state: Mapping[str, Tensor], source: str, named: str, input_px: int
) -> NetworkFile:
    fit_weights(
        network, state, f'"{source}"', remedy=f'name the class that was trained, in place of "{named}"'
    )
    network = copy_network(network)
    grey = ""
    try:
        logits = _logits(network, input_px)
    except StimulusError:
        wrapped = GreyInput(network).eval()
        try:
            logits = _logits(wrapped, input_px)
        except StimulusError:
            wrapped = None  # type: ignore[assignment]
        if wrapped is None:
            raise
        network, grey = wrapped, ", of one channel, behind a layer that makes grey of red, green and blue"
    buffer = io.BytesIO()
    rows = {0: torch.export.Dim("batch")}
    try:
        example = (torch.zeros(PICTURES, 3, input_px, input_px),)
        torch.export.save(torch.export.export(network, example, dynamic_shapes=(rows,)), buffer)
    except Exception as error:  # torch has many ways to refuse
        raise BadSpec(
            f'network = "{named}" cannot be exported ({first_line(error)}); its forward may branch on sizes, '
            "not on the values of pictures, and takes batches of any size"
        ) from error
    return NetworkFile("model.pt2", buffer.getvalue(), logits, f"{named}{grey}")


def _logits(network: nn.Module, input_px: int) -> int:
    """The number of logits per picture. ShapeMismatch if it does not take pictures of that size."""
    pictures = torch.zeros(PICTURES, 3, input_px, input_px)
    remedy = "say on which size it was trained with --input-px"
    with network_errors(f"{PICTURES} pictures of 3 x {input_px} x {input_px}", remedy), torch.no_grad():
        answer = logits_of(network(pictures))
    return max(2, answer.shape[1] if answer.ndim == 2 else 1)
