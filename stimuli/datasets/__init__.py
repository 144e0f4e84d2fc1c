"""The datasets by name: a visible table, each name with the function that opens it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from stimuli.registry import Params, Table, read_params
from stimuli.spec import Component
from stimuli.types import Dataset


class ContentDataset(Dataset, Protocol):
    """A dataset with a digest of all of its content, 64 hexadecimal digits."""

    def content_digest(self) -> str: ...


DRAWN = frozenset({"plates", "sentences", "synthetic"})
"""Datasets whose items Legible makes itself, so that they show no person and belong to no one else."""
DatasetOpener = Callable[[Component, Path], ContentDataset]

DATASETS: Table[DatasetOpener] = Table(
    "dataset",
    {
        "folder": "stimuli.datasets.folder:open_folder",
        "lines": "stimuli.datasets.lines:open_lines",
        "plates": "stimuli.datasets.plates.plates:open_plates",
        "sentences": "stimuli.datasets.synthetic.sentences:open_sentences",
        "synthetic": "stimuli.datasets.synthetic.cue_scenarios:open_synthetic",
    },
    group="legible.datasets",
)
DATASET_PARAMS: Table[type[Params]] = Table(
    "dataset",
    {
        "folder": "stimuli.datasets.folder:FolderParams",
        "lines": "stimuli.datasets.lines:LinesParams",
        "plates": "stimuli.datasets.plates.plates:PlatesParams",
        "sentences": "stimuli.datasets.synthetic.sentences:SentencesParams",
        "synthetic": "stimuli.datasets.synthetic.cue_scenarios:SyntheticParams",
    },
)
"""The parameters of each of the core, as its opener reads them."""

DECODING = 3
"""The version of how files become items. An opened study keeps the one of its drafting; 1 is that of studies
which do not say it."""
DECODED = frozenset({"folder", "lines"})
"""Datasets whose reading has versions: their openers take one more argument."""


def open_dataset(component: Component, folder: Path, decoding: int = 1) -> ContentDataset:
    """The dataset that a component names; relative paths are read from `folder`, the study's own.

    Raises BadSpec, in one sentence, for unknown names and parameters and for content that cannot be used.
    """
    name = DATASETS.full_name(component.name)
    opener: Callable[..., ContentDataset] = DATASETS.load(name)
    return opener(component, folder, decoding) if name in DECODED else opener(component, folder)


def check_dataset(component: Component) -> None:
    """BadSpec for an unknown name, and for parameters of the core's that cannot be; opens no file."""
    name = DATASETS.full_name(component.name)
    if name in DATASET_PARAMS:
        read_params(component, DATASET_PARAMS.load(name), "dataset")
