"""Where items come from: a visible table of names, each with the function that opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, cast

from stimuli.registry import lookup
from stimuli.spec import Component
from stimuli.types import Dataset, Mask, Pixels

DATASETS = {
    "folder": "stimuli.datasets.folder:open_folder",
    "lines": "stimuli.datasets.lines:open_lines",
    "sentences": "stimuli.datasets.sentences:open_sentences",
    "synthetic": "stimuli.datasets.synthetic:open_synthetic",
}


class ContentDataset(Dataset, Protocol):
    """A dataset that can say in 64 hexadecimal digits what all of its content is."""

    def content_digest(self) -> str: ...


class PlantedDataset(ContentDataset, Protocol):
    """A dataset whose decisive feature was planted, so that an explanation can be held against it."""

    aspects: tuple[str, str]
    """What `swap` can exchange: the planted cue first, then what the class truly is."""

    def mask(self, key: str) -> Mask:
        """Where the planted cue stands, bool (H, W)."""
        ...

    def swap(self, key: str, what: str) -> Pixels:
        """The picture with only that part exchanged for the other class's."""
        ...


def open_dataset(component: Component, folder: Path) -> ContentDataset:
    """The dataset that a component names; relative paths are read from `folder`, the study's own.

    Raises BadSpec, in one sentence, for unknown names and parameters and for content that cannot be used.
    """
    opener = lookup(DATASETS, component.name, "dataset")
    return cast(ContentDataset, opener(component, folder))


def list_datasets() -> tuple[str, ...]:
    """The names that a study may use."""
    return tuple(sorted(DATASETS))
