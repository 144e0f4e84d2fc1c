"""The parameters of the predictors, as a study file gives them: without torch, to be checked at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stimuli.predictors.files.picture_settings import PictureParams
from stimuli.predictors.framing import FramingParams
from stimuli.registry import Params
from stimuli.spec import JsonValue

Downsampling = Literal["stride", "average"]
MIN_PX, MAX_PX = 8, 1024
Share = Annotated[float, Field(ge=0, le=1)]
Pool = Literal["max", "mean"]
MAX_CONCEPTS = 512


class TorchImageParams(PictureParams):
    """`weights` is a .pt2 or .safetensors file; `labels` are in logit order; `layer` is a module path.

    `builder` (a name, or "package.module:function") and `builder_params` belong to .safetensors only.
    `token_prefix` declares, for a vision transformer, how many class and register tokens stand before the
    cells, so that layers that put out tokens can be read as maps; Legible's own builders know it.
    """

    weights: str
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    layer: str = ""
    token_prefix: Annotated[int, Field(ge=0, le=64)] | None = None
    builder: str = ""
    builder_params: dict[str, JsonValue] = {}


class HubPictureParams(FramingParams):
    """`folder` lies in the study's folder. `input_px`, `mean` and `std` (for pixels in 0-1) are those of the
    preprocessor's settings unless given. `layer` is a module path; `token_prefix` the number of class and
    register tokens before the cells, if it is not known for the architecture.
    """

    folder: str
    labels: tuple[str, ...] = ()
    input_px: Annotated[int, Field(ge=MIN_PX, le=MAX_PX)] | None = None
    layer: str = ""
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    token_prefix: Annotated[int, Field(ge=0, le=64)] | None = None


class ClipParams(HubPictureParams):
    """`prompt` is the text for a label, which stands for its one `{}`. `names` are the words to be put there,
    in the order of the labels, if the labels themselves are no words.
    """

    prompt: Annotated[str, Field(max_length=300)] = "a photo of a {}."
    names: tuple[str, ...] = ()


class TrainedParams(Params):
    """What is trained, and how long.

    `width` is the number of channels of the first layer, `train_items` the most pictures that are used
    (drawn by seed, classes in equal shares). `target_accuracy = [low, high]` asks for a deliberately weak
    network with a held-out accuracy in that range. `downsampling` says how the maps are halved: "average" is
    anti-aliased, "stride" leaves a grid of dots in maps of gradients. `mirrored` also trains on mirror
    images: not for what has another meaning there, such as digits.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[int, Field(ge=1, le=200)] = 8
    width: Annotated[int, Field(ge=1, le=64)] = 12
    input_px: Annotated[int, Field(ge=32, le=320)] = 160
    train_items: Annotated[int, Field(ge=8, le=20000)] = 600
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.01
    target_accuracy: tuple[Share, Share] | None = None
    downsampling: Downsampling = "stride"
    mirrored: bool = True

    @model_validator(mode="after")
    def _check_order(self) -> TrainedParams:
        if self.target_accuracy and self.target_accuracy[0] >= self.target_accuracy[1]:
            raise ValueError(
                f"target_accuracy = {list(self.target_accuracy)}: give [low, high] with low < high"
            )
        return self


class TrainedBcosParams(Params):
    """What is trained, and how long.

    `width` is the number of channels that the layers are multiples of, `b` the exponent of the B-cos layers
    (2 as in the paper; 1 = linear), `max_out` the number of units per channel of which the largest counts,
    `train_items` the most pictures that are used (drawn by seed, classes in equal shares).
    """

    seed: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[int, Field(ge=1, le=200)] = 12
    width: Annotated[int, Field(ge=1, le=64)] = 12
    b: Annotated[float, Field(ge=1, le=4)] = 2.0
    max_out: Annotated[int, Field(ge=1, le=4)] = 2
    input_px: Annotated[int, Field(ge=32, le=320)] = 160
    train_items: Annotated[int, Field(ge=8, le=20000)] = 600
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.01


class ToyParams(Params):
    """`linear`: logit k is a fixed weighted sum of all inputs, weights drawn from `seed`. `quadrant`: logit
    k is `gain` x the mean brightness of quadrant k (top left, top right, bottom left, bottom right).
    """

    kind: Literal["linear", "quadrant"] = "quadrant"
    labels: tuple[str, ...] = ()
    input_px: Annotated[int, Field(ge=4, le=512)] = 32
    seed: Annotated[int, Field(ge=0)] = 0
    gain: float = 10.0


class LearnedConcepts(Params):
    """How the network learns, and the head behind it.

    `width` is the number of channels of the first layer, `train_items` the most pictures that are used (drawn
    by seed, classes in equal shares). `penalty` is the weight of half the squared weights in the logistic
    regression on the concepts.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[int, Field(ge=1, le=200)] = 8
    width: Annotated[int, Field(ge=1, le=64)] = 12
    input_px: Annotated[int, Field(ge=32, le=320)] = 160
    train_items: Annotated[int, Field(ge=8, le=20000)] = 600
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.01
    penalty: Annotated[float, Field(gt=0, le=1000)] = 1.0


class BottleneckParams(LearnedConcepts):
    """As `LearnedConcepts`."""


class PartParams(LearnedConcepts):
    """As `LearnedConcepts`; `pool` makes a part's score from its heat map."""

    pool: Pool = "max"


class ClipConceptParams(Params):
    """`folder` lies in the study's folder and holds a CLIP or SigLIP model.

    `concepts` are compared with the picture, the dataset's own if none are given; each stands for the one
    `{}` of `prompt`. `head` is "linear" (logistic regression, `penalty` on half its squared weights) or "qda"
    (normal distributions, their covariances drawn by `shrinkage` towards the unit matrix), both on values of
    mean 0 and deviation 1, fitted on at most `fit_items` pictures. `input_px`, `mean`, `std`, `layer` and
    `token_prefix` as for other models of the hub.
    """

    folder: str
    concepts: Annotated[tuple[str, ...], Field(max_length=MAX_CONCEPTS)] = ()
    prompt: Annotated[str, Field(max_length=300)] = "a photo of {}."
    head: Literal["linear", "qda"] = "linear"
    penalty: Annotated[float, Field(gt=0, le=1000)] = 1.0
    shrinkage: Annotated[float, Field(ge=0, le=1)] = 0.1
    fit_items: Annotated[int, Field(ge=8, le=20000)] = 600
    seed: Annotated[int, Field(ge=0)] = 0
    input_px: Annotated[int, Field(ge=MIN_PX, le=MAX_PX)] | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    layer: str = ""
    token_prefix: Annotated[int, Field(ge=0, le=64)] | None = None


class TrainedTextParams(Params):
    """What is trained, and how long.

    `encoder` is the embedded one, or a transformer in the folder `encoder_path`. `pieces` are what the
    embedded one reads: what stands between spaces and marks, or with "letters" the single letters of scripts
    that write no spaces between words, as BERT reads Chinese. `pooling` is "lstm", or
    "mean" as the paper has it for sentence length. `train_items` is the most texts that are used (drawn by
    seed, classes in equal shares); of a longer text the first `max_tokens` are read.
    """

    encoder: Literal["embedded", "transformers"] = "embedded"
    encoder_path: str = ""
    pieces: Literal["spaces", "letters"] = "spaces"
    pooling: Literal["lstm", "mean"] = "lstm"
    seed: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[int, Field(ge=1, le=200)] = 20
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.001
    train_items: Annotated[int, Field(ge=8, le=100_000)] = 6_000
    max_tokens: Annotated[int, Field(ge=8, le=4096)] = 256

    @model_validator(mode="after")
    def _with_path(self) -> TrainedTextParams:
        if (self.encoder == "transformers") != bool(self.encoder_path):
            raise ValueError('encoder_path names the folder of encoder = "transformers", and of no other')
        if self.encoder == "transformers" and self.pieces == "letters":
            raise ValueError(
                'pieces = "letters" is for the embedded encoder; a transformer has its tokenizer'
            )
        return self


class TransformersTextParams(Params):
    """`path` is the folder of a sequence classifier. `labels` are in logit order; without them the model's
    own, or the dataset's if those are only numbers. Of a longer text the first `max_tokens` are read.
    """

    path: str
    labels: tuple[str, ...] = ()
    max_tokens: Annotated[int, Field(ge=8, le=4096)] = 512
