"""What turns the picture or the sentence of an explanation into numbers that a scorer learns from.

A vision-language model from a local folder puts both into one space. The embedded "histograms" needs no
folder: it counts colours and edges, knows nothing of the world, and was never trained; it shows that
everything runs, and no number of it stands beside those of a trained encoder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stimuli.errors import BadSpec
from stimuli.spec import content_key
from stimuli.types import Pixels

if TYPE_CHECKING:
    from stimuli.predictors.clip import Clip

Vectors = NDArray[np.float32]
EMBEDDED = "histograms"


class NamedEncoder(Protocol):
    """Equal digests mean equal vectors, of `size` numbers."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def size(self) -> int: ...


class PreferenceEncoder(NamedEncoder, Protocol):
    """Pictures and texts as vectors of one space."""

    def pictures(self, pictures: Sequence[Pixels]) -> Vectors:
        """float32 (n, size) of uint8 (H, W, 3), each of its own H and W."""
        ...

    def texts(self, texts: Sequence[str]) -> Vectors:
        """float32 (n, size). Raises BadSpec for a text that the encoder cannot take."""
        ...


@dataclass(frozen=True, slots=True)
class Histograms:
    """Counts of a picture brought to SIDE x SIDE pixels: its colours in LEVELS^3 boxes, the mean colour of
    CELLS x CELLS cells, and how steep lightness is at three scales. Roots of shares, so that faint colours
    count. A text is a vector of its words' counts at places that their digests give, of length 1.
    """

    SIDE: ClassVar[int] = 64
    LEVELS: ClassVar[int] = 6
    CELLS: ClassVar[int] = 6
    STEPS: ClassVar[int] = 12
    SCALES: ClassVar[int] = 3
    VERSION: ClassVar[int] = 1

    @property
    def name(self) -> str:
        return EMBEDDED

    @property
    def digest(self) -> str:
        return content_key({"encoder": self.name, "version": self.VERSION, "size": self.size})

    @property
    def size(self) -> int:
        return self.LEVELS**3 + 3 * self.CELLS**2 + self.STEPS * self.SCALES

    def pictures(self, pictures: Sequence[Pixels]) -> Vectors:
        rows = [self._row(picture) for picture in pictures]
        return np.stack(rows) if rows else np.empty((0, self.size), np.float32)

    def _row(self, picture: Pixels) -> Vectors:
        square = Image.fromarray(picture).resize((self.SIDE, self.SIDE), Image.Resampling.BOX)
        pixels = np.asarray(square, np.int64)
        level = pixels * self.LEVELS // 256
        boxes = (level[..., 0] * self.LEVELS + level[..., 1]) * self.LEVELS + level[..., 2]
        colours = np.bincount(boxes.ravel(), minlength=self.LEVELS**3) / boxes.size
        cells = square.resize((self.CELLS, self.CELLS), Image.Resampling.BOX)
        parts = [np.sqrt(colours), np.asarray(cells, np.float64).ravel() / 255]
        lightness = pixels.mean(axis=2) / 255
        for _ in range(self.SCALES):
            down, right = np.gradient(lightness)
            steep = np.minimum(4 * np.hypot(down, right), 1 - 1e-9)
            counts = np.bincount((steep * self.STEPS).astype(np.int64).ravel(), minlength=self.STEPS)
            parts.append(np.sqrt(counts / steep.size))
            lightness = lightness.reshape(len(lightness) // 2, 2, -1, 2).mean(axis=(1, 3))
        return np.concatenate(parts).astype(np.float32)

    def texts(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.size), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = text.lower().split()
            if not words:
                raise BadSpec("a sentence to embed is empty: leave its explanation out")
            for word in words:
                drawn = hashlib.sha256(word.encode()).digest()
                place = int.from_bytes(drawn[:4], "big") % self.size
                row[place] += 1 if drawn[4] % 2 else -1
            row /= np.linalg.norm(row) or 1.0
        return rows


@dataclass(frozen=True, eq=False)
class LocalModel:
    """Both halves of a CLIP, SigLIP or BLIP model from a local folder; embeddings have length 1."""

    name: str
    clip: Clip
    device: str

    BATCH: ClassVar[int] = 32

    @cached_property
    def digest(self) -> str:
        from dataclasses import asdict

        from stimuli.predictors.files.weights import pack_weights

        total = hashlib.sha256(content_key({"settings": asdict(self.clip.settings)}).encode())
        total.update(pack_weights(self.clip.model))
        return total.hexdigest()

    @cached_property
    def size(self) -> int:
        return int(self.texts(["size"]).shape[1])

    def pictures(self, pictures: Sequence[Pixels]) -> Vectors:
        import torch

        told = self.clip.settings
        tower = self.clip.tower.to(self.device)
        mean, std = (
            torch.tensor(values, device=self.device)[:, None, None] for values in (told.mean, told.std)
        )
        rows = []
        for start in range(0, len(pictures), self.BATCH):
            views = [
                told.framing.view(picture, told.input_px, told.mean)
                for picture in pictures[start : start + self.BATCH]
            ]
            batch = torch.from_numpy(np.stack(views)).to(self.device).permute(0, 3, 1, 2).float() / 255
            with torch.inference_mode():
                rows.append(tower((batch - mean) / std).cpu().numpy())
        return np.concatenate(rows) if rows else np.empty((0, self.size), np.float32)

    def texts(self, texts: Sequence[str]) -> Vectors:
        return np.asarray(self.clip.embed(texts).numpy(), np.float32)


def open_encoder(named: str, device: str = "cpu") -> PreferenceEncoder:
    """ "histograms", or the folder of a CLIP, SigLIP or BLIP model as the transformers library saves
    it. Raises BadSpec for a folder that holds none, or whose weights are missing."""
    if named == EMBEDDED:
        return Histograms()
    from stimuli.predictors.clip import load_clip

    folder = Path(named).resolve()
    if not folder.is_dir():
        raise BadSpec(
            f'there is no encoder "{named}": name the folder of a CLIP, SigLIP or BLIP model, or '
            f'"{EMBEDDED}", which needs none'
        )
    return LocalModel(folder.name, load_clip(folder.parent, folder.name), device)
