"""What a caller of the library gives, as checked values: pictures, a model, names, a target, a recipe."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray
from torch import nn

from stimuli.datasets.folder import SUFFIXES, read_picture
from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.explainers.targets import Of, Target
from stimuli.predictors.architectures import prefix_of
from stimuli.predictors.base import Built, TorchPredictor, assemble, numbered
from stimuli.predictors.files.picture_settings import PictureParams, PictureSettings, settings_of
from stimuli.predictors.files.weights import pack_weights
from stimuli.predictors.gradients import refuse_probabilities
from stimuli.registry import closest, read_params
from stimuli.render.field import check_recipe
from stimuli.render.recipe import RenderSpec, written_out
from stimuli.spec import Component
from stimuli.types import Item, Pixels, Split

Picture = str | Path | Pixels
"""A file (.png, .jpg, .jpeg, .webp), or uint8 (H, W, 3)."""
Images = str | Path | Sequence[Picture] | NDArray[np.uint8]
"""A folder with all pictures below it, a list of pictures, or uint8 (N, H, W, 3)."""
Named = str | Mapping[str, Any]
"""A name of a table, or {"name": ..., and its parameters}, as study.toml has them."""
Many = Sequence[Named] | Mapping[str, Named]
"""Several of them; by titles of one's own where one name stands twice."""
Recipe = RenderSpec | Mapping[str, Any]
"""How maps are drawn: the keys of study.toml's [render], or the whole recipe."""
Preprocess = Mapping[str, Any] | PictureSettings | str | Path
"""How pictures become what a network takes: the keys of predictor "torch_image", the file of a published
model, or the folder of a transformers model."""
DEFAULT = RenderSpec()


@dataclass(frozen=True)
class Pictures:
    """Pictures by name, as a dataset of which all are for people."""

    labels: tuple[str, ...]
    contents: Mapping[str, Path | Pixels]

    def items(self, split: Split) -> Sequence[Item]:
        if split != "people":
            return ()
        return [Item(name, self._truth(name), name, "people") for name in self.contents]

    def pixels(self, key: str) -> Pixels:
        content = self.contents[key]
        return read_picture(content) if isinstance(content, Path) else content

    def _truth(self, name: str) -> str:
        content = self.contents[name]
        return content.resolve().parent.name if isinstance(content, Path) else ""


def pictures_of(images: Images, labels: tuple[str, ...]) -> Pictures:
    """The pictures, in the order of their names in a folder, else as given. BadSpec for none, and for one
    that stands twice; ShapeMismatch for arrays that are no pictures.
    """
    if isinstance(images, str | Path) and Path(images).is_dir():
        root = Path(images)
        files = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        contents: dict[str, Path | Pixels] = {path.relative_to(root).as_posix(): path for path in files}
    else:
        listed = [images] if isinstance(images, str | Path) else list(images)
        contents = {}
        for at, picture in enumerate(listed):
            name = str(picture) if isinstance(picture, str | Path) else str(at)
            contents[name] = Path(picture) if isinstance(picture, str | Path) else _checked(picture, at)
        if len(contents) < len(listed):
            raise BadSpec(f"{len(listed)} pictures have {len(contents)} names: give each file once")
    if not contents:
        raise BadSpec(f"there are no pictures ({', '.join(sorted(SUFFIXES))}) in {str(images)[:200]!r}")
    return Pictures(labels, contents)


def _checked(picture: object, at: int) -> Pixels:
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not array.size:
        raise ShapeMismatch(
            f"picture {at} is {array.dtype} {array.shape}, and uint8 (H, W, 3) is taken: of values in 0-1 "
            "make np.rint(255 * picture).astype(np.uint8)"
        )
    return array


def named(entries: Many) -> dict[str, Component]:
    """By title, in their order; a name is its own title. BadSpec for none, and for two under one name."""
    if isinstance(entries, str):
        raise BadSpec(f"a list of names is taken: write [{entries!r}]")
    if isinstance(entries, Mapping):
        return {title: component_of(entry) for title, entry in entries.items()}
    listed = [component_of(entry) for entry in entries]
    named = {component.name: component for component in listed}
    if not listed or len(named) < len(listed):
        names = ", ".join(component.name for component in listed) or "none"
        raise BadSpec(f"asked for {names}: give at least one, and titles if one stands twice, {{title: ...}}")
    return named


def component_of(entry: Named) -> Component:
    """An entry of a table. BadSpec if it has no name."""
    if isinstance(entry, str):
        return Component(entry)
    if "name" not in entry:
        raise BadSpec(f'{dict(entry)} has no "name": write {{"name": ..., and its parameters}}')
    return Component.from_json(entry)


def opened_of(
    model: nn.Module | TorchPredictor,
    preprocess: Preprocess | None,
    labels: Sequence[str],
    layer: str,
    token_prefix: int | None,
) -> TorchPredictor:
    """A predictor, made of a copy of a torch module. Errors as `assemble`; BadSpec for what an opened one has
    already.
    """
    if not isinstance(model, nn.Module):
        predictor = refuse_texts(model)
        if preprocess is not None or labels or layer or token_prefix is not None:
            raise BadSpec(
                "this model was opened with its labels, pictures and layer: say them where it is opened, "
                "or give the torch module"
            )
        return predictor
    network = copy.deepcopy(model).cpu().float().eval()
    settings = settings_given(preprocess)
    if isinstance(labels, str):
        raise BadSpec(f"labels = {labels!r}: a list is taken, one per logit")
    config = getattr(network, "config", None)
    if hasattr(config, "id2label"):
        from stimuli.predictors.image.transformers_image import built_of

        built, known = built_of(network)
        labels = tuple(labels) or known
    else:
        built = Built(network, prefix_of(network))
    if token_prefix is not None:
        built = replace(built, token_prefix=token_prefix)
    predictor = assemble(
        built,
        labels=tuple(labels) or numbered(built.network, settings.input_px),
        input_px=settings.input_px,
        layer=layer,
        mean=settings.mean,
        std=settings.std,
        architecture={"kind": "memory", "class": type(model).__qualname__},
        payload=pack_weights(network),
        provenance={"origin": "a notebook"},
        framing=settings.framing,
    )
    refuse_probabilities(predictor.module.raw, predictor.input_px)
    return predictor


def refuse_texts(opened: object) -> TorchPredictor:
    """What takes pictures; BadSpec for anything else."""
    if not isinstance(opened, TorchPredictor):
        raise BadSpec(
            f"{type(opened).__name__} is no model of pictures: give a torch module, or what open_model "
            "returns for one; models of texts are explained by a study"
        )
    return opened


def settings_given(preprocess: Preprocess | None) -> PictureSettings:
    """How pictures are prepared. BadSpec if nothing says how large they are, or a file cannot be followed."""
    if isinstance(preprocess, PictureSettings):
        return preprocess
    if isinstance(preprocess, str | Path):
        path = Path(preprocess)
        if path.is_dir():
            from stimuli.predictors.files.hub_folder import open_hub_folder
            from stimuli.predictors.files.hub_pictures import picture_settings

            hub = open_hub_folder(path.resolve().parent, path.resolve().name)
            config = hub.config()
            return picture_settings(hub, config.get("image_size"), config.get("model_type"))
        preprocess = {"preprocessing": str(path)}
    params = read_params(Component("preprocess", dict(preprocess or {})), PictureParams, "argument")
    return settings_of(params, Path(), "argument 'preprocess'")


def target_of(target: Target | str, labels: tuple[str, ...], truths: Sequence[str]) -> Target:
    """The explained number. BadSpec if this model has none for pictures of the classes `truths`."""
    if isinstance(target, str):
        of = get_args(Of)
        is_kind = target in of and target != "label"
        target = Target(cast(Of, target)) if is_kind else Target("label", label=target)
        if target.of == "label" and target.label not in labels:
            raise BadSpec(
                f"target is {target.label!r}{closest(target.label, labels)}: it is 'predicted', 'true', "
                f"'runner_up', or one of the labels {', '.join(labels[:20])}"
            )
    if target.of == "true" and (strange := sorted({truth for truth in truths if truth not in labels})):
        raise BadSpec(
            f"target is 'true', but no label is called {', '.join(map(repr, strange[:5]))}: a picture's "
            "class is the name of its folder, and arrays have none"
        )
    target.refuse(labels, truths)
    return target


def recipe_of(recipe: Recipe) -> RenderSpec:
    """A recipe that can be drawn, else BadSpec."""
    if isinstance(recipe, RenderSpec):
        return check_recipe(recipe)
    keys = {each.name for each in fields(RenderSpec)} - {"opacity"}
    for key in recipe:
        if key not in keys | {"preset"}:
            raise BadSpec(
                f"a recipe has no key {key!r}{closest(key, keys)}: it takes {', '.join(sorted(keys))}"
            )
    table = written_out(recipe)
    table.pop("preset", None)
    try:
        return check_recipe(RenderSpec(**table))
    except TypeError as error:
        raise BadSpec(f"the recipe {dict(recipe)} has a value of another kind ({error})") from None
