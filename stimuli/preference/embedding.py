"""Explanations as rows of numbers: each content is encoded once, and what is encoded is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stimuli.errors import BadRatings
from stimuli.preference.encoders import PreferenceEncoder, Vectors
from stimuli.preference.tensor_file import seal, unseal, write_whole
from stimuli.render.png import decode

AT_ONCE = 256
"""Contents that are encoded and kept together; a killed process loses no more."""
REMEDY = "delete it, and its contents are encoded again"


@dataclass(frozen=True, slots=True)
class ShownExplanation:
    """What was rated: the picture that people saw (the PNG itself), or the sentence of a concept explanation.

    `other` is the picture of the perturbed copy, for questions about a pair. `label` is what the card of the
    scorer says: what the item is, or what the model says, or nothing.
    """

    picture: bytes = b""
    text: str = ""
    label: str = ""
    other: bytes = b""

    def __post_init__(self) -> None:
        if bool(self.picture) == bool(self.text):
            raise BadRatings("an explanation is a picture or a sentence: give one of the two")

    @property
    def contents(self) -> tuple[tuple[str, bytes], ...]:
        """The kind and the bytes of what is encoded."""
        if self.text:
            return (("text", self.text.encode()),)
        return tuple(("picture", data) for data in (self.picture, self.other) if data)

    @property
    def digest(self) -> str:
        """Of everything that is shown, without the label."""
        return hashlib.sha256("".join(_key(*content) for content in self.contents).encode()).hexdigest()


def _key(kind: str, data: bytes) -> str:
    return hashlib.sha256(kind.encode() + b"\n" + data).hexdigest()


def embed(
    subjects: Sequence[ShownExplanation],
    encoder: PreferenceEncoder,
    labels: Sequence[str] = (),
    *,
    pairs: bool = False,
    folder: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Vectors:
    """float32 (n, size + labels), or (n, 2 size + labels) with `pairs`: the encoder's vectors as they are,
    and a column of 0 and 1 for each of `labels`; without labels no column.

    Each content is encoded once. `folder` keeps the vectors, of each encoder apart, and what it holds is not
    encoded again. Raises BadRatings for a label that is none of `labels`, and with `pairs` for a subject
    without a copy.
    """
    places = {label: place for place, label in enumerate(labels)}
    for subject in subjects:
        if labels and subject.label not in places:
            raise BadRatings(
                f"the label {subject.label!r} is none of the scorer's ({', '.join(labels)}): a scorer knows "
                "the labels of its training alone; correct it, or fit one without labels (--label none)"
            )
        if pairs and len(subject.contents) != 2:
            raise BadRatings(
                "a scorer of pairs takes the picture and that of its perturbed copy, and an explanation has "
                "one alone: give both, or leave it out"
            )
    wanted = {_key(*content): content for subject in subjects for content in subject.contents}
    vectors = _encode_contents(wanted, encoder, folder, progress)
    shown = 2 if pairs else 1
    rows = np.zeros((len(subjects), shown * encoder.size + len(labels)), np.float32)
    for row, subject in zip(rows, subjects, strict=True):
        keys = [_key(*content) for content in subject.contents[:shown]]
        row[: shown * encoder.size] = np.concatenate([vectors[key] for key in keys])
        if labels:
            row[shown * encoder.size + places[subject.label]] = 1
    return rows


def _encode_contents(
    wanted: dict[str, tuple[str, bytes]],
    encoder: PreferenceEncoder,
    folder: Path | None,
    progress: Callable[[int, int], None],
) -> dict[str, Vectors]:
    """The vector of each content by its key."""
    kept = folder / encoder.digest[:16] if folder else None
    vectors = _read_vectors(kept, encoder) if kept else {}
    missing = [key for key in wanted if key not in vectors]
    for start in range(0, len(missing), AT_ONCE):
        progress(len(wanted) - len(missing) + start, len(wanted))
        part = missing[start : start + AT_ONCE]
        made: dict[str, Vectors] = {}
        for kind in ("picture", "text"):
            keys = [key for key in part if wanted[key][0] == kind]
            if not keys:
                continue
            data = [wanted[key][1] for key in keys]
            rows = (
                encoder.pictures([decode(content) for content in data])
                if kind == "picture"
                else encoder.texts([content.decode() for content in data])
            )
            made |= dict(zip(keys, rows, strict=True))
        vectors |= made
        if kept:
            file = kept / f"{part[0]}.safetensors"
            write_whole(file, seal({"vectors": np.stack(list(made.values()))}, list(made)))
    progress(len(wanted), len(wanted))
    return vectors


def _read_vectors(folder: Path, encoder: PreferenceEncoder) -> dict[str, Vectors]:
    vectors: dict[str, Vectors] = {}
    for file in sorted(folder.glob("*.safetensors")):
        arrays, keys = unseal(file.read_bytes(), f'the embeddings "{file}"', REMEDY)
        rows = arrays["vectors"].astype(np.float32)
        if rows.shape != (len(keys), encoder.size):
            raise BadRatings(f'the embeddings "{file}" have the shape {rows.shape}: {REMEDY}')
        vectors |= dict(zip(keys, rows, strict=True))
    return vectors
