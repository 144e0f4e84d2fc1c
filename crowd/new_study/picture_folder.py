"""What a folder of pictures holds, before a study is made of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stimuli.datasets import DECODING
from stimuli.datasets.file_names import own_entries
from stimuli.datasets.folder import SPLITS, FolderDataset, open_folder
from stimuli.datasets.picture_reader import upright_size
from stimuli.spec import Component, JsonValue

SIDES = ("people", "val", "valid", "validation", "test", "testing", "dev")
"""Folders of pictures that a network did not learn from, by the usual names; the first is taken."""


@dataclass(frozen=True, slots=True)
class PictureFolder:
    """The opened dataset, the folder that it starts from, and what of the table `dataset` goes with it."""

    dataset: FolderDataset
    path: Path
    table: Mapping[str, JsonValue]

    @property
    def lines(self) -> tuple[str, ...]:
        """What it holds for people, in sentences."""
        items = self.dataset.items("people")
        counts = Counter(item.truth for item in items)
        sizes = sorted(max(upright_size(self.dataset.root / item.key)) for item in items)
        classes = ", ".join(f"{name} {counts[name]}" for name in self.dataset.labels)
        return (
            f"{self.path}: {len(items)} pictures for people in {len(counts)} classes ({classes}), longer "
            f"sides from {sizes[0]} to {sizes[-1]} px",
            *self.dataset.told,
        )

    def table_from(self, folder: Path) -> dict[str, JsonValue]:
        """The table `dataset` of a study.toml in `folder`."""
        path = Path(os.path.relpath(self.path, folder.resolve())).as_posix()
        return {"name": "folder", "path": path, **self.table}


def look_at_folder(root: Path) -> PictureFolder:
    """Open it as it is meant: model/ and people/, else val/ or test/ beside train/ (then people see these
    alone), else one folder per class, all for people, as the network was trained elsewhere. BadSpec, in the
    dataset's own sentences, if it holds no pictures of two classes.
    """
    path = root.resolve()
    table: dict[str, JsonValue] = {"people_share": 1.0}
    folders = {e.name.lower(): e for e in own_entries(path) if e.is_dir()} if path.is_dir() else {}
    if folders.keys() >= set(SPLITS):
        table = {}
    else:
        sides = (folders[name] for name in SIDES if name in folders)
        path = next((side for side in sides if any(e.is_dir() for e in own_entries(side))), path)
    dataset = open_folder(Component("folder", {"path": str(path), **table}), path, DECODING)
    return PictureFolder(dataset, path, table)
