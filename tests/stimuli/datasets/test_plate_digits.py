"""MNIST's files: what keeps to the format is read, what does not is refused in a sentence."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stimuli.datasets.plates.digits import read_digits, typical_first
from stimuli.datasets.plates.plates import open_plates
from stimuli.errors import BadSpec
from stimuli.spec import Component

pytestmark = pytest.mark.pure
COUNT = 120


def drawn(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Blocks of ink on 28 x 28 pixels, and their labels."""
    rng = np.random.default_rng(seed)
    pictures = np.zeros((COUNT, 28, 28), np.uint8)
    pictures[:, 6:22, 10:18] = rng.integers(120, 256, (COUNT, 16, 8))
    return pictures, (np.arange(COUNT) % 10).astype(np.uint8)


def images_of(pictures: NDArray[np.uint8]) -> bytes:
    return struct.pack(">4i", 0x803, *pictures.shape) + pictures.tobytes()


def labels_of(labels: NDArray[np.uint8]) -> bytes:
    return struct.pack(">2i", 0x801, len(labels)) + labels.tobytes()


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """The four files, the second pair packed."""
    pictures, labels = drawn(0)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(images_of(pictures))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels_of(labels))
    pictures, labels = drawn(1)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(images_of(pictures)))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels_of(labels)))
    return tmp_path


def test_it_reads_plain_and_packed_files(mnist: Path) -> None:
    digits = read_digits(mnist)
    assert np.array_equal(digits.ink, np.concatenate([drawn(0)[0], drawn(1)[0]]))
    assert digits.labels.tolist() == [*range(10)] * 24
    assert (digits.names[0], digits.names[-1]) == ("train-00000", "t10k-00119")


def test_it_reads_the_names_and_places_that_others_give_the_files(mnist: Path) -> None:
    """A dot before idx (python-mnist #19), MNIST/raw (torchvision), .gz in name alone, as browsers leave what
    they have unpacked (tensorflow #15668), or in content alone; seen in November 2026."""
    expected = read_digits(mnist)
    for path in list(mnist.iterdir()):
        path.rename(mnist / path.name.replace("-idx", ".idx"))
    assert read_digits(mnist).names == expected.names
    raw = mnist / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for path in [path for path in mnist.iterdir() if path.is_file()]:
        content, name = path.read_bytes(), path.name.replace(".idx", "-idx")
        path.unlink()
        if path.suffix == ".gz":
            (raw / name).write_bytes(gzip.decompress(content))
        else:
            (raw / name).write_bytes(gzip.compress(content))
    read = read_digits(mnist)
    assert read.names == expected.names and np.array_equal(read.ink, expected.ink)
    assert read_digits(mnist / "MNIST").digest() == expected.digest()


def test_it_draws_plates_from_them(mnist: Path) -> None:
    params = {"path": mnist.name, "count": 20, "model_count": 40, "known": 10, "blank": 0, "tuning": 0}
    dataset = open_plates(Component("plates", {**params, "size_px": 96}), mnist.parent)
    assert {item.group.split("-")[0] for item in dataset.items("model")} == {"train", "t10k"}
    assert dataset.pixels(dataset.items("people")[0].key).shape == (96, 96, 3)
    other = mnist / "elsewhere"
    other.mkdir()
    for path in mnist.glob("*-ubyte*"):
        path.rename(other / path.name)
    moved = open_plates(Component("plates", {**params, "size_px": 96, "path": str(other)}), mnist)
    assert moved.content_digest() == dataset.content_digest()


def test_it_takes_equal_pictures_once_and_leaves_out_empty_ones(mnist: Path) -> None:
    pictures, _labels = drawn(0)
    pictures[5], pictures[7] = pictures[3], 0
    (mnist / "train-images-idx3-ubyte").write_bytes(images_of(pictures))
    names = read_digits(mnist).names
    assert len(names) == 2 * COUNT - 2
    assert "train-00003" in names and "train-00005" not in names and "train-00007" not in names


def test_the_clearest_digit_is_nearest_to_its_own_mean() -> None:
    """Naively, over the bundled digits: the margin of each never rises along the order."""
    digits = read_digits(None)
    chosen = np.flatnonzero(digits.labels == 3)[:40]
    flat = digits.ink.reshape(len(digits.ink), -1).astype(float)
    margins = []
    for index in typical_first(digits, chosen):
        away = [
            float(np.sqrt(((flat[index] - flat[digits.labels == d].mean(0)) ** 2).sum())) for d in range(10)
        ]
        margins.append(min(away[d] for d in range(10) if d != 3) - away[3])
    assert margins == sorted(margins, reverse=True)


PICTURES, LABELS = drawn(0)
GIANT = struct.pack(">4i", 0x803, 2**31 - 1, 28, 28)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train-images-idx3-ubyte", b"", r'"train-images-idx3-ubyte" is no IDX file of bytes with 3 dim'),
        ("train-images-idx3-ubyte", images_of(PICTURES)[:9], "is no IDX file"),
        ("train-images-idx3-ubyte", b"\x89PNG" + bytes(400), "is no IDX file"),
        ("train-images-idx3-ubyte", labels_of(LABELS), "is no IDX file of bytes with 3"),
        (
            "train-images-idx3-ubyte",
            images_of(PICTURES)[:-1],
            r"94080 bytes should .* but 94079 do: fetch it",
        ),
        ("train-images-idx3-ubyte", images_of(PICTURES) + b"x", "94080 bytes should .* but more do"),
        ("train-images-idx3-ubyte", GIANT, "announces 2147483647 x 28 x 28 values"),
        ("train-images-idx3-ubyte", struct.pack(">4i", 0x803, 0, 28, 28), "announces 0 x 28 x 28 values"),
        ("train-images-idx3-ubyte", struct.pack(">4I", 0x803, 2**32 - 1, 28, 28), "announces 4294967295 x"),
        ("train-images-idx3-ubyte", images_of(PICTURES[:, :4]), "pictures of 4 x 28 pixels; each side must"),
        ("train-images-idx3-ubyte", images_of(PICTURES[:100]), "holds 100 pictures, but .* 120 labels"),
        (
            "train-images-idx3-ubyte",
            images_of(PICTURES[:, :20]),
            r"different sizes: \[\(20, 28\), \(28, 28\)\]",
        ),
        ("train-labels-idx1-ubyte", labels_of(LABELS + 5), "label 14 is no digit; labels are 0 to 9"),
        ("train-labels-idx1-ubyte", None, '"train-labels-idx1-ubyte" is missing beside'),
        ("t10k-images-idx3-ubyte.gz", b"no archive", r"t10k-images-idx3-ubyte.gz\" is no IDX file"),
        ("t10k-images-idx3-ubyte.gz", b"\x1f\x8bno archive", r"t10k-images-idx3-ubyte.gz\" cannot be read"),
        ("t10k-images-idx3-ubyte.gz", gzip.compress(images_of(PICTURES))[:-400], "cannot be read"),
        (
            "t10k-labels-idx1-ubyte.gz",
            gzip.compress(labels_of(LABELS) + bytes(10**8)),
            "120 bytes .* more do",
        ),
    ],
)
def test_it_refuses_a_hostile_file(mnist: Path, name: str, content: bytes | None, said: str) -> None:
    (mnist / name).unlink()
    if content is not None:
        (mnist / name).write_bytes(content)
    with pytest.raises(BadSpec, match=said):
        read_digits(mnist)


def test_it_does_not_wait_at_a_pipe(mnist: Path) -> None:
    (mnist / "train-images-idx3-ubyte").unlink()
    os.mkfifo(mnist / "train-images-idx3-ubyte")
    with pytest.raises(BadSpec, match=r"train-images-idx3-ubyte. is missing"):
        read_digits(mnist)
