"""The models under study: a visible table of names, each with the function that loads or trains it.

Opening one imports torch; importing this module does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from stimuli.registry import Params, Table, read_params
from stimuli.spec import Component
from stimuli.types import Progress, silent

if TYPE_CHECKING:
    from stimuli.predictors.base import TorchPredictor
    from stimuli.predictors.text.base import TextPredictor


class PredictorOpener(Protocol):
    def __call__(
        self, component: Component, folder: Path, dataset: Any, progress: Progress
    ) -> TorchPredictor | TextPredictor: ...


PREDICTORS: Table[PredictorOpener] = Table(
    "predictor",
    {
        # pictures
        "torch_image": "stimuli.predictors.image.researcher_model:open_torch_image",
        "transformers_image": "stimuli.predictors.image.transformers_image:open_transformers_image",
        "clip_zero_shot": "stimuli.predictors.clip:open_clip_zero_shot",
        "trained_cnn": "stimuli.predictors.image.trained_cnn:open_trained_cnn",
        "trained_bcos": "stimuli.predictors.image.trained_bcos:open_trained_bcos",
        "toy": "stimuli.predictors.image.toy:open_toy",
        # pictures by named concepts
        "concept_bottleneck": "stimuli.predictors.concepts.concept_bottleneck:open_concept_bottleneck",
        "part_concepts": "stimuli.predictors.concepts.part_detector:open_part_concepts",
        "clip_concepts": "stimuli.predictors.concepts.clip_concepts:open_clip_concepts",
        # texts
        "trained_text": "stimuli.predictors.text.trained_text:open_trained_text",
        "transformers_text": "stimuli.predictors.text.transformers_text:open_transformers_text",
    },
    group="legible.predictors",
)
TRAINING_KEYS: Table[Callable[[Component, Component, str, Path], str]] = Table(
    "predictor that is trained",
    {
        "trained_cnn": "stimuli.predictors.image.trained_cnn:training_key",
        "trained_bcos": "stimuli.predictors.image.trained_bcos:training_key",
        "trained_text": "stimuli.predictors.text.trained_text:training_key",
        "concept_bottleneck": "stimuli.predictors.concepts.concept_bottleneck:training_key",
        "part_concepts": "stimuli.predictors.concepts.part_detector:training_key",
        "clip_concepts": "stimuli.predictors.concepts.clip_concepts:training_key",
    },
)
"""Predictors that are trained on the spot, each with what names its training beforehand."""


PREDICTOR_PARAMS: Table[type[Params]] = Table(
    "predictor",
    {
        "torch_image": "stimuli.predictors.parameters:TorchImageParams",
        "transformers_image": "stimuli.predictors.parameters:HubPictureParams",
        "clip_zero_shot": "stimuli.predictors.parameters:ClipParams",
        "trained_cnn": "stimuli.predictors.parameters:TrainedParams",
        "trained_bcos": "stimuli.predictors.parameters:TrainedBcosParams",
        "toy": "stimuli.predictors.parameters:ToyParams",
        "concept_bottleneck": "stimuli.predictors.parameters:BottleneckParams",
        "part_concepts": "stimuli.predictors.parameters:PartParams",
        "clip_concepts": "stimuli.predictors.parameters:ClipConceptParams",
        "trained_text": "stimuli.predictors.parameters:TrainedTextParams",
        "transformers_text": "stimuli.predictors.parameters:TransformersTextParams",
    },
)
"""The parameters of each of the core, as its opener reads them."""


def check_predictor(component: Component) -> None:
    """BadSpec for an unknown name, and for parameters of the core's that cannot be. Imports no torch."""
    name = PREDICTORS.full_name(component.name)
    if name in PREDICTOR_PARAMS:
        read_params(component, PREDICTOR_PARAMS.load(name), "predictor")


def training_key_of(
    component: Component, dataset: Component, content_digest: str, folder: Path
) -> str | None:
    """Names what training would give, without training; None for predictors that are loaded."""
    if component.name not in TRAINING_KEYS:
        return None
    return TRAINING_KEYS.load(component.name)(component, dataset, content_digest, folder)


def open_predictor(
    component: Component, folder: Path, dataset: Any, progress: Progress = silent
) -> TorchPredictor | TextPredictor:
    """Load, or train on the dataset's model split, the predictor that a component names.

    Raises BadSpec for unknown names, parameters and files that are refused and for networks that end in
    probabilities, ShapeMismatch for weights that do not fit. The architecture of one that a package offers
    names that package, so that its key does.
    """
    name = PREDICTORS.full_name(component.name)
    made = PREDICTORS.load(name)(component, folder, dataset, progress)
    if made.modality == "image":
        from stimuli.predictors.gradient_faults import refuse_probabilities

        image = cast("TorchPredictor", made)
        refuse_probabilities(image.module.raw, image.input_px)
    if origin := PREDICTORS.origin(name):
        made = replace(made, architecture={**made.architecture, "package": str(origin)})
    return made


def restore(data: bytes) -> TorchPredictor | TextPredictor:
    """The predictor that `dump` wrote; its key is computed again and must agree.

    Raises BadSpec for bytes that are no such archive, or that were changed, and OtherPackage if the package
    that it came from is not here in the same version.
    """
    from stimuli.predictors.files.picture_archive_reader import restore as restored

    return restored(data)
