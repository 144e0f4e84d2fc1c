"""What a caller of the library gives, as checked values: pictures, a model, names, a target, a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.datasets.file_names import counts_by_kind, files_below, own_files
from stimuli.datasets.folder import DRAFT_SUFFIXES, said_of_unread
from stimuli.datasets.picture_reader import (
    LEVELS,
    NUMBERS,
    Decoding,
    check_levels,
    check_pictures,
    read_picture,
)
from stimuli.errors import BadSpec, ShapeMismatch, first_of
from stimuli.explainers.targets import Of, Target
from stimuli.predictors.architectures import prefix_of
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.files.picture_settings import PictureParams, PictureSettings, settings_of
from stimuli.predictors.files.weights import pack_weights
from stimuli.predictors.gradient_faults import refuse_probabilities
from stimuli.predictors.network_forms import copy_network
from stimuli.registry import closest, read_params
from stimuli.render.attribution_field import check_recipe
from stimuli.render.recipe import RenderSpec, written_out
from stimuli.spec import Component
from stimuli.types import Item, Pixels, Split

Picture = str | Path | Pixels
"""A file (.png, .jpg, .jpeg, .webp, .avif), or uint8 (H, W, 3)."""
Images = str | Path | Sequence[Picture] | NDArray[np.uint8]
"""A folder with all pictures below it (not hidden ones), a list of pictures, or uint8 (N, H, W, 3)."""
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
CHANNELS = (1, 3, 4)
"""Grey, colours, colours with transparency."""


@dataclass(frozen=True)
class Pictures:
    """Pictures by name, as a dataset of which all are for people. `told` says which files were left out."""

    labels: tuple[str, ...]
    contents: Mapping[str, Path | Pixels]
    decoding: Decoding = NUMBERS
    told: tuple[str, ...] = ()

    def items(self, split: Split) -> Sequence[Item]:
        if split != "people":
            return ()
        return [Item(name, self._truth(name), name, "people") for name in self.contents]

    def pixels(self, key: str) -> Pixels:
        content = self.contents[key]
        return read_picture(content, self.decoding) if isinstance(content, Path) else content

    def _truth(self, name: str) -> str:
        content = self.contents[name]
        return content.resolve().parent.name if isinstance(content, Path) else ""


def pictures_of(images: Images, labels: tuple[str, ...], levels: int | None = None) -> Pictures:
    """The pictures, in the order of their names in a folder, else as given; `levels` is how many levels the
    greys of 16-bit files have. BadSpec for none, for files that are not there or cannot be read, for one that
    stands twice, and as `check_levels`; ShapeMismatch for arrays that are no pictures.
    """
    told: tuple[str, ...] = ()
    if isinstance(images, str | Path) and Path(images).is_dir():
        root = Path(images)
        files = [path for path in own_files(root) if path.suffix.lower() in DRAFT_SUFFIXES]
        told = said_of_unread(counts_by_kind(set(files_below(root)).difference(files)), "in the folder")
        contents: dict[str, Path | Pixels] = {path.relative_to(root).as_posix(): path for path in files}
    else:
        listed = _listed(images)
        names = [str(each) if isinstance(each, str | Path) else str(at) for at, each in enumerate(listed)]
        _check_pixels({name: each for name, each in zip(names, listed, strict=True) if not _is_path(each)})
        _check_files([Path(each) for each in listed if isinstance(each, str | Path)])
        contents = {
            name: Path(each) if isinstance(each, str | Path) else _array_of(each)
            for name, each in zip(names, listed, strict=True)
        }
        if len(contents) < len(listed):
            raise BadSpec(f"{len(listed)} pictures have {len(contents)} names: give each file once")
    if not contents:
        raise BadSpec(f"there are no pictures ({', '.join(sorted(DRAFT_SUFFIXES))}) in {str(images)[:200]!r}")
    if levels is not None and not 256 <= levels <= LEVELS:
        raise BadSpec(f"levels is {levels}: 256 to {LEVELS} are taken, such as 4096 for 12 bits")
    decoding = Decoding(levels=levels or LEVELS)
    paths = [content for content in contents.values() if isinstance(content, Path)]
    check_pictures(paths, decoding)
    check_levels(paths, levels, "as an argument")
    return Pictures(labels, contents, decoding, told)


def _listed(images: Any) -> list[Any]:
    if isinstance(images, str | Path):
        return [images]
    if getattr(images, "ndim", 0) == 3 or hasattr(images, "convert"):
        raise BadSpec("images is a single picture: put it into a list, [picture]")
    try:
        return list(images)
    except TypeError:
        raise BadSpec(
            f"images is {images!r}: a folder, a list of files, or uint8 (N, H, W, 3) is taken"
        ) from None


def _is_path(picture: object) -> bool:
    return isinstance(picture, str | Path)


def _check_files(paths: Sequence[Path]) -> None:
    """BadSpec with the number of those that are not there."""
    if absent := [str(path) for path in paths if not path.exists()]:
        raise BadSpec(
            f"there is no such file or folder, seen from {str(Path().resolve())!r}: {first_of(absent)}"
        )


def _check_pixels(arrays: Mapping[str, Any]) -> None:
    """ShapeMismatch with the number of those that are no pictures, and what makes one of the first."""
    strange = {
        name: (picture, array)
        for name, picture in arrays.items()
        if (array := _array_of(picture)).dtype != np.uint8
        or array.ndim != 3
        or array.shape[2] != 3
        or not array.size
    }
    if strange:
        shapes = [f"picture {name} is {array.dtype} {array.shape}" for name, (_, array) in strange.items()]
        raise ShapeMismatch(
            f"{first_of(shapes)}; uint8 (H, W, 3) is taken: {_how_to_make(*next(iter(strange.values())))}"
        )


def _array_of(picture: Any) -> NDArray[Any]:
    return np.asarray(picture.detach().cpu() if isinstance(picture, Tensor) else picture)


def _how_to_make(picture: object, array: NDArray[Any]) -> str:
    """The expression that makes uint8 (H, W, 3) of `picture`, if there is one."""
    if hasattr(picture, "convert"):  # of Pillow
        return 'make np.asarray(picture.convert("RGB"))'
    made = "picture.detach().cpu().numpy()" if isinstance(picture, Tensor) else "picture"
    channels = 1
    if array.ndim == 2:
        made = f"{made}[..., None]"
    elif array.ndim == 3:
        is_first = array.shape[0] in CHANNELS and array.shape[2] not in CHANNELS
        made = f"np.moveaxis({made}, 0, -1)" if is_first else made
        channels = array.shape[0 if is_first else 2]
    if (
        array.ndim not in (2, 3)
        or channels not in CHANNELS
        or not array.size
        or array.dtype.kind not in "buif"
    ):
        return "bring it to that form"
    made = {1: f"np.repeat({made}, 3, -1)", 4: f"{made}[..., :3]"}.get(channels, made)
    if array.dtype != np.uint8:
        low, high = float(array.min()), float(array.max())
        if not 0 <= low <= high <= 255:
            return f"bring its values, which go from {low:g} to {high:g}, to 0-255"
        scale = "255 * " if high <= 1 else ""
        made = f"np.rint({scale}{made}).astype(np.uint8)"
    return f"make {made}"


def components_by_title(entries: Many) -> dict[str, Component]:
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
    network = copy_network(model)
    settings = settings_given(preprocess)
    if isinstance(labels, str):
        raise BadSpec(f"labels = {labels!r}: a list is taken, one per logit")
    config = getattr(network, "config", None)
    if hasattr(config, "id2label"):
        from stimuli.predictors.image.transformers_image import built_of

        built, known = built_of(network)
        labels = tuple(labels) or known
    else:
        built = BuiltNetwork(network, prefix_of(network))
    if token_prefix is not None:
        built = replace(built, token_prefix=token_prefix)
    predictor = assemble(
        built,
        settings,
        labels=tuple(labels) or None,
        layer=layer,
        architecture={"kind": "memory", "class": type(network).__qualname__},
        payload=pack_weights(network),
        provenance={"origin": "a notebook"},
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
            from stimuli.predictors.files.hub_preprocessing import picture_settings

            hub = open_hub_folder(path.resolve().parent, path.resolve().name)
            config = hub.config()
            return picture_settings(hub, config.get("image_size"), config.get("model_type"))
        preprocess = {"preprocessing": str(path)}
    params = read_params(Component("preprocess", dict(preprocess or {})), PictureParams, "argument")
    return settings_of(params, Path(), "argument 'preprocess'")


def target_of(target: Target | str, labels: tuple[str, ...], truths: Sequence[str]) -> Target:
    """The explained number. BadSpec if this model has none for pictures of the classes `truths`."""
    if not isinstance(target, str | Target):
        place = target if isinstance(target, int | np.integer) and 0 <= target < len(labels) else 0
        raise BadSpec(
            f"target is {target!r}: a class is named by its label, that of logit {place} is "
            f"{labels[place]!r}; else it is 'predicted', 'true', 'runner_up' or a Target, the same for all"
        )
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
