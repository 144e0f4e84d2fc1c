"""Networks made by a function of Legible's own, or of an installed package, named "module:function"."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

from torch import nn

from stimuli.errors import BadSpec
from stimuli.predictors.network_forms import unwrap
from stimuli.registry import Table
from stimuli.spec import JsonValue

BUILDERS: Table[Callable[..., nn.Module]] = Table(
    "builder",
    {
        "torchvision": "stimuli.predictors.architectures:torchvision",
        "timm": "stimuli.predictors.architectures:timm",
    },
)
"""Networks whose published weights are enough."""


def build_network(dotted: str, params: Mapping[str, JsonValue], study_folder: Path | None) -> nn.Module:
    """Call the builder with its parameters: one of `BUILDERS` by its name, or another by its dotted path.

    Only modules of installed packages are taken, never the standard library, and never a file of the
    study's folder: a study that is handed on must not bring code. Raises BadSpec saying what is wrong with
    the name, the parameters or the result.
    """
    if dotted in BUILDERS:
        return _call_builder(BUILDERS.load(dotted), dotted, params)
    module_name, colon, name = dotted.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), name)):
        raise BadSpec(
            f'builder = "{dotted}": write it as "package.module:function", or name one of '
            f"Legible's own, {', '.join(BUILDERS)}"
        )
    top = module_name.split(".")[0]
    if top not in packages_distributions():
        raise BadSpec(f'builder = "{dotted}": "{top}" is not an installed package; install it with pip')
    _refuse_study_code(dotted, top, study_folder)
    try:
        builder = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise BadSpec(f'builder = "{dotted}" cannot be imported: {error}') from error
    if not callable(builder):
        raise BadSpec(f'builder = "{dotted}" is no function')
    return _call_builder(builder, dotted, params)


def _call_builder(builder: Callable[..., object], dotted: str, params: Mapping[str, JsonValue]) -> nn.Module:
    try:
        network = builder(**params)
    except TypeError as error:
        raise BadSpec(f'builder = "{dotted}" does not take builder_params {dict(params)}: {error}') from error
    if not isinstance(network, nn.Module):
        raise BadSpec(f'builder = "{dotted}" returns {type(network).__name__}, a torch.nn.Module is needed')
    return unwrap(network)


def _refuse_study_code(dotted: str, top: str, study_folder: Path | None) -> None:
    spec = importlib.util.find_spec(top)
    places = (
        [spec.origin] if spec and spec.origin else list(spec.submodule_search_locations or ()) if spec else []
    )
    if study_folder is None:
        return
    root = study_folder.resolve()
    if any(Path(place).resolve().is_relative_to(root) for place in places):
        raise BadSpec(f'builder = "{dotted}" lies in the study\'s folder; install it as a package first')
