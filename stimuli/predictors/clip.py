"""CLIP, SigLIP and BLIP from a local folder: pictures and texts in one space, and a classifier by prompts.

The logit of a label is the model's scale times the cosine of the picture's and its prompt's embedding
(SigLIP adds a bias). The prompts are embedded once, when the predictor is opened; so an archive needs neither
the text model nor the tokenizer. [Radford et al. 2021; Zhai et al. 2023; Li et al. 2022]
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.files.hub_folder import (
    chosen_labels,
    fill,
    library,
    open_hub_folder,
    plain_config,
    tokenizer,
)
from stimuli.predictors.files.hub_preprocessing import picture_settings
from stimuli.predictors.files.picture_settings import PictureSettings
from stimuli.predictors.files.weights import (
    cast_from,
    in_float32,
    other_precisions,
    pack_weights,
    read_weights,
)
from stimuli.predictors.parameters import ClipParams, HubPictureParams
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.types import Dataset, Progress

FORMS = {
    "clip": ("CLIPModel", "CLIPVisionModel", 1),
    "siglip": ("SiglipModel", "SiglipVisionModel", 0),
    "blip": ("BlipModel", "BlipVisionModel", 1),
}
"""By model type: the whole model, its picture part, and the tokens that stand before the cells."""


class PictureTower(nn.Module):
    """Normalised pictures (N, 3, H, W) to embeddings (N, D) of length 1."""

    def __init__(self, vision: nn.Module, projection: nn.Module) -> None:
        super().__init__()
        self.vision = vision
        self.projection = projection

    def forward(self, pictures: Tensor) -> Tensor:
        return _unit(self.projection(self.vision(pixel_values=pictures).pooler_output))


class ZeroShot(nn.Module):
    """Logits (N, K) = scale * cosine with each of `texts` (K, D) + bias."""

    def __init__(self, tower: nn.Module, texts: Tensor, scale: float, bias: float) -> None:
        super().__init__()
        self.tower = tower
        self.texts: Tensor
        self.scale: Tensor
        self.bias: Tensor
        self.register_buffer("texts", texts)
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("bias", torch.tensor(bias))

    def forward(self, pictures: Tensor) -> Tensor:
        logits: Tensor = self.tower(pictures) @ self.texts.T * self.scale + self.bias
        return logits


@dataclass(frozen=True)
class Clip:
    """Both halves of a model: `tower` for pictures, `embed` for texts.

    `architecture` is what `picture_tower` makes the tower from again, with `pack_weights(tower)`. `scale` and
    `bias` turn cosines into the model's logits. `settings` say how pictures are to be given, `precisions`
    which types of weights were brought to float32.
    """

    tower: PictureTower
    settings: PictureSettings
    scale: float
    bias: float
    token_prefix: int
    architecture: dict[str, JsonValue]
    model: Any
    words: Any
    form: str
    shown: str
    precisions: tuple[str, ...] = ()

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Embeddings (n, D) of length 1, float32; each text on its own. Raises BadSpec for one too long."""
        config = self.model.config.text_config
        rows = []
        for text in texts:
            plain = canonical(text) if self.form == "siglip" else text
            ids = self.words.encode(plain).ids
            if not 0 < len(ids) <= config.max_position_embeddings:
                raise BadSpec(
                    f'the text "{text[:60]}" has {len(ids)} tokens, and "{self.shown}" takes 1 to '
                    f"{config.max_position_embeddings}; shorten it"
                )
            if max(ids) >= config.vocab_size:
                raise BadSpec(
                    f'the tokenizer of "{self.shown}" has more words than its text model; they '
                    "do not belong together"
                )
            if self.form == "siglip":  # trained on texts filled up to the full length, without a mask
                ids = ids + [config.pad_token_id or 0] * (config.max_position_embeddings - len(ids))
            with torch.inference_mode():
                rows.append(self.model.get_text_features(input_ids=torch.tensor([ids])).pooler_output[0])
        return _unit(torch.stack(rows).clone())


def load_clip(study_folder: Path, named: str, params: HubPictureParams | None = None) -> Clip:
    """Both halves of the CLIP, SigLIP or BLIP model in folder `named` of the study's folder.

    `params` override what the preprocessor's settings say. Raises BadSpec for folders that are refused (see
    hub_folder.py), ShapeMismatch for weights that do not fit.
    """
    library()  # what is missing is said first
    folder = open_hub_folder(study_folder, named)
    config = folder.config()
    form = str(config.get("model_type"))
    if form not in FORMS:
        raise BadSpec(
            f'"{named}" holds a model of type "{form}"; {", ".join(FORMS)} are taken where pictures are '
            "compared with texts"
        )
    plain = plain_config(config)
    model_name, _, prefix = FORMS[form]
    weights = folder.weights()
    model = fill(getattr(library(), model_name), plain, in_float32(weights), f'"{named}"')
    vision = plain_config({**(config.get("vision_config") or {}), **(config.get("vision_config_dict") or {})})
    settings = picture_settings(folder, vision.get("image_size"), form, params)
    projection = getattr(model, "visual_projection", nn.Identity())
    bias = float(model.logit_bias.detach()) if hasattr(model, "logit_bias") else 0.0
    return Clip(
        tower=PictureTower(model.vision_model, projection).eval(),
        settings=settings,
        scale=float(model.logit_scale.detach().exp()),
        bias=bias,
        token_prefix=prefix,
        architecture={"form": form, "vision": vision, "projection": _width(projection)},
        model=model,
        words=tokenizer(folder),
        form=form,
        shown=named,
        precisions=tuple(other_precisions(weights.values())),
    )


def picture_tower(
    architecture: Mapping[str, JsonValue], state: Mapping[str, Tensor], source: str
) -> PictureTower:
    """The tower that `Clip.architecture` stands for, with the weights `state` of a tower."""
    parts: dict[str, dict[str, Tensor]] = {"vision": {}, "projection": {}}
    for name, value in state.items():
        part, _, inner = name.partition(".")
        parts.setdefault(part, {})[inner] = value
    _, vision_name, _ = FORMS[architecture["form"]]
    vision = fill(getattr(library(), vision_name), architecture["vision"], parts["vision"], source)
    projection: nn.Module = nn.Identity()
    if architecture["projection"]:
        weight = parts["projection"]["weight"]
        projection = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        projection.load_state_dict(parts["projection"])
    return PictureTower(vision, projection).eval()


def open_clip_zero_shot(
    component: Component, folder: Path, dataset: Dataset, progress: Progress
) -> TorchPredictor:
    """CLIP as a classifier of the dataset's labels (or those given). Raises BadSpec for a prompt without a
    place for the label, and as `load_clip`.
    """
    params = read_params(component, ClipParams, "predictor")
    labels = chosen_labels(params.labels, (), None, params.folder, dataset.labels)
    texts = prompts(params.prompt, params.names or labels, len(labels))
    progress("loading the model", 0, 1)
    clip = load_clip(folder, params.folder, params)
    network = ZeroShot(clip.tower, clip.embed(texts), clip.scale, clip.bias)
    prefix = clip.token_prefix if params.token_prefix is None else params.token_prefix
    predictor = assemble(
        BuiltNetwork(network, prefix),
        clip.settings,
        labels=labels,
        layer=params.layer,
        architecture={"kind": "clip_zero_shot", "token_prefix": prefix, **clip.architecture},
        payload=pack_weights(network),
        provenance={
            "origin": params.folder,
            "prompts": texts,
            "transformers": str(library().__version__),
            **params.told(),
            **cast_from(clip.precisions),
        },
    )
    progress("loading the model", 1, 1)
    return predictor


def read_clip_zero_shot(architecture: Mapping[str, JsonValue], payload: bytes) -> BuiltNetwork:
    """The network of an archive; neither folder, text model nor tokenizer are needed."""
    state = read_weights(payload, "the archive")
    tower = picture_tower(
        architecture,
        {name.removeprefix("tower."): value for name, value in state.items() if name.startswith("tower.")},
        "the archive",
    )
    network = ZeroShot(tower, state["texts"], float(state["scale"]), float(state["bias"]))
    return BuiltNetwork(network, architecture["token_prefix"])


def prompts(template: str, names: Sequence[str], count: int) -> list[str]:
    """The template with each name in its place. Raises BadSpec unless it has one, and a name per label."""
    if template.count("{}") != 1:
        raise BadSpec(f'prompt = "{template}": write {{}} once, where the label is to stand')
    if len(names) != count:
        raise BadSpec(f"names = {list(names)}: {count} are needed, one per label and in the labels' order")
    return [template.replace("{}", name) for name in names]


def canonical(text: str) -> str:
    """Lower case, without punctuation, single spaces: how SigLIP's texts were written in training."""
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\s+", " ", plain).strip()


def _unit(vectors: Tensor) -> Tensor:
    scaled: Tensor = vectors / vectors.norm(dim=-1, keepdim=True)
    return scaled


def _width(projection: nn.Module) -> int:
    return projection.out_features if isinstance(projection, nn.Linear) else 0
