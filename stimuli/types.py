"""The values that travel through the stimulus rooms: dataset -> predictor -> explainer -> render."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Split = Literal["model", "people"]
Use = Literal["task", "known", "blank", "tuning"]
"""What an item is for. task: it is asked about. known: everybody can see its answer, so that it tells who
follows the rules. blank: it shows none of the answers. tuning: settings are chosen on it, and it decides
nothing."""
Modality = Literal["image", "text"]
Units = Literal["legacy", "words", "characters", "tokens"]
"""What can be marked of a text; legacy: runs of letters, digits and _."""
Span = tuple[int, int]
"""Start and end in characters of a text, the end excluded."""
Pixels = NDArray[np.uint8]
"""An RGB picture, uint8 (H, W, 3)."""
Mask = NDArray[np.bool_]
"""A planted region, bool (H, W)."""
Plane = NDArray[np.float32]
"""An attribution map, float32 (H, W); larger = more important; signed if the method is."""
Box = tuple[float, float, float, float]
"""Left, top, right and bottom in shares of a picture's width and height; beyond 0-1 for bars."""
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Item:
    """One image or text of a dataset, without its content.

    `key` is unique and stable within the dataset, and never shown to a participant. `truth` is the class it
    really belongs to. Items that share a `group` (crops of one photograph) never stand on both sides of a
    session. `split` says whether the item may train the model or be shown to people: never both. `use` says
    what it is for; the truth of a blank item is empty. `annotated` holds the labels that people gave it, as
    (annotator, label), if several did.
    """

    key: str
    truth: str
    group: str
    split: Split
    use: Use = "task"
    annotated: tuple[tuple[str, str], ...] = ()


class Dataset(Protocol):
    """Pictures with their contents. `labels` are the classes in a fixed order."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def items(self, split: Split) -> Sequence[Item]: ...

    def pixels(self, key: str) -> Pixels:
        """The picture of one item, uint8 (H, W, 3), as stored; resizing is the predictor's business."""
        ...


class TextDataset(Protocol):
    """Texts with their contents. `labels` are the classes in a fixed order."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def items(self, split: Split) -> Sequence[Item]: ...

    def text(self, key: str) -> str:
        """The text of one item, Unicode NFC."""
        ...


class ConceptDataset(Dataset, Protocol):
    """Pictures whose concepts and places of parts are known."""

    @property
    def concepts(self) -> tuple[str, ...]:
        """The concepts in a fixed order; empty if nothing is known."""
        ...

    def concept_values(self, key: str) -> NDArray[np.float32]:
        """How much of each concept the picture shows, float32 (concepts,) in 0-1."""
        ...

    def parts(self, key: str) -> Sequence[Part]:
        """The parts that were marked in the picture."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A marked part of a picture: the concept it shows and its box in shares (0-1) of width and height."""

    concept: str
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Layout:
    """How the output of a layer is read as maps: `channels` of `height` x `width` cells.

    "maps" are (N, C, h, w). "tokens" are (N, prefix + h * w, C): `prefix` class and register tokens, which
    belong to no place, then the cells row by row. `sees_target` is False if the gradient of the logits with
    respect to the cells is zero, as after a vision transformer's last attention.
    """

    kind: Literal["maps", "tokens"]
    channels: int
    height: int
    width: int
    prefix: int = 0
    sees_target: bool = True


@dataclass(frozen=True, slots=True)
class PixelAttribution:
    """A map on the grid of the network's input: float32 (H, W). `checks` are what the method can say about
    its own quality (a completeness gap, a stability), by name.
    """

    values: Plane
    signed: bool
    checks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenAttribution:
    """Weights of pieces of a text: `spans` (start, end) in characters, in order and without overlap;
    `values` float32 (number of spans,), signed, 0 for pieces that are not marked.
    """

    spans: tuple[tuple[int, int], ...]
    values: NDArray[np.float32]
    checks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConceptAttribution:
    """Weights of named concepts: `values` float32 (K,), signed. With `order` "ascending" small values matter
    most (distances), else large magnitudes do. `label` says how a method's model part differs from the
    paper's.
    """

    concepts: tuple[str, ...]
    values: NDArray[np.float32]
    order: Literal["descending", "ascending"] = "descending"
    label: str = ""
    checks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PictureExplanation:
    """Pictures that explain by themselves, in the order in which they are shown: counterfactuals, prototypes,
    nearest examples. One caption per picture, which may be empty.
    """

    pictures: tuple[Pixels, ...]
    captions: tuple[str, ...]
    checks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextExplanation:
    """Sentences that explain by themselves, such as a rationale, in Unicode NFC on one line."""

    text: str
    checks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegionAttribution:
    """A marked region: bool (side, side), the cells of a grid over the picture that people see, see
    `stimuli.regions`. Without any cell nothing is marked.
    """

    cells: Mask
    checks: Mapping[str, float] = field(default_factory=dict)


Weights = PixelAttribution | TokenAttribution | ConceptAttribution
"""What says in numbers, `values`, how much each part matters."""
Attribution = Weights | PictureExplanation | TextExplanation | RegionAttribution

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is in all."""


def silent(what: str, done: int, total: int) -> None:
    """A `Progress` that does nothing."""
