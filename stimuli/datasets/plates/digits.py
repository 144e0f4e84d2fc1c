"""Handwritten digits: those that scikit-learn carries, or MNIST's own files."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stimuli.datasets.plates.idx import read_idx_folder
from stimuli.errors import BadSpec

DATA = Path("datasets", "data", "digits.csv.gz")
"""In the package sklearn."""
SIDE = 8
GREYS = 16
"""Of the bundled digits: pixels per side, and the value of the darkest ink."""
LEAST_CELLS = 4
"""A digit needs this many inked pixels on its longer side to be drawn."""


@dataclass(frozen=True, slots=True)
class Digits:
    """`ink` uint8 (N, h, w), 0 = paper; `labels` (N,), 0-9; `names` N stable names."""

    ink: NDArray[np.uint8]
    labels: NDArray[np.int64]
    names: tuple[str, ...]

    def digest(self) -> str:
        """SHA-256 over all of it."""
        total = hashlib.sha256("\n".join(self.names).encode())
        total.update(str(self.ink.shape).encode() + self.ink.tobytes() + self.labels.tobytes())
        return total.hexdigest()

    def drawn(self, index: int) -> NDArray[np.float64]:
        """One digit, (h, w): 0 = paper, 1 = its darkest ink."""
        return np.asarray(self.ink[index] / self.ink[index].max())


def read_digits(path: Path | None) -> Digits:
    """The digits of MNIST's files in the folder `path`, or without one the bundled ones. Equal pictures stand
    once, and empty ones are left out. BadSpec if they cannot be read.
    """
    ink, labels, names = read_idx_folder(path) if path is not None else _bundled_digits()
    first = {picture.tobytes(): index for index, picture in reversed(list(enumerate(ink)))}
    kept = sorted(index for index in first.values() if _is_inked(ink[index]))
    return Digits(ink[kept], labels[kept], tuple(names[index] for index in kept))


def _is_inked(ink: NDArray[np.uint8]) -> bool:
    dark = ink > ink.max() / 2
    return bool(max(dark.any(axis=0).sum(), dark.any(axis=1).sum()) >= LEAST_CELLS)


def _bundled_digits() -> tuple[NDArray[np.uint8], NDArray[np.int64], list[str]]:
    """The test part of Optical Recognition of Handwritten Digits: 1,797 digits by 13 people, 8 x 8 pixels of
    17 greys [Alpaydin and Kaynak 1998, UCI Machine Learning Repository, doi 10.24432/C50P49, CC BY 4.0].
    """
    package = find_spec("sklearn")
    path = Path(package.origin if package and package.origin else "").parent / DATA
    if package is None or not path.is_file():
        raise BadSpec(
            "the digits of plates are those that scikit-learn carries, and it is not installed here: install "
            "the extra `server`, or give `path`, a folder with MNIST's files"
        )
    with gzip.open(path, "rt", encoding="ascii") as lines:
        table = np.loadtxt(lines, delimiter=",")
    ink = np.rint(table[:, :-1] * (255 / GREYS)).astype(np.uint8).reshape(-1, SIDE, SIDE)
    return ink, table[:, -1].astype(np.int64), [f"digit-{index:04d}" for index in range(len(ink))]


def typical_first(digits: Digits, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """`chosen`, indices of one label, sorted by how much nearer each digit is to the mean of its label than
    to that of any other: the clearest first.
    """
    flat = digits.ink.reshape(len(digits.ink), -1)
    means = {label: flat[digits.labels == label].mean(axis=0) for label in np.unique(digits.labels)}
    away = {label: np.linalg.norm(flat[chosen] - mean, axis=1) for label, mean in means.items()}
    to_its_mean = away.pop(digits.labels[chosen[0]])
    return chosen[np.argsort(to_its_mean - np.min(list(away.values()), axis=0), kind="stable")]
