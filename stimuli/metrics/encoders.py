"""Pictures as vectors whose squared distance says how different they look."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch

if TYPE_CHECKING:
    from torch import Tensor

Vector = NDArray[np.float32]
Picture = NDArray[np.float32]
"""float32 (H, W, 3) in 0-1."""


class Encoder(Protocol):
    """`embed` maps equal sizes to equal lengths; the distance of two pictures is the squared Euclidean one of
    their vectors. `about` names the encoder, for the record.
    """

    @property
    def about(self) -> Mapping[str, str]: ...

    def embed(self, picture: Picture) -> Vector:
        """The vector of a picture, float32 (D,). NotApplicable if it is too small."""
        ...


def distance(first: Vector, second: Vector) -> float:
    """How different two embedded pictures look; 0 for equal ones."""
    return float(np.square(first - second).sum(dtype=np.float64))


@dataclass(frozen=True, slots=True)
class OrientedBands:
    """A fixed bank of filters, for use without a trained network. Nothing is learned or calibrated.

    At each of three scales (halved by a Gaussian pyramid) lightness, red-green and blue-yellow are filtered
    by first and second Gaussian derivatives of standard deviation 1.5 pixels, steered to four orientations
    [Freeman and Adelson 1991]; the root of the two squares is the local energy of an orientation. With what
    is brighter and what is darker than middle grey in each of the three these are 18 values per place. Every
    second place is kept, its values divided by their length plus FLOOR, so that faint places weigh less. The
    distance is half the squared difference, averaged over places and scales: 0 to 1.
    """

    SCALES: ClassVar[int] = 3
    ORIENTATIONS: ClassVar[int] = 4
    SIGMA: ClassVar[float] = 1.5
    FLOOR: ClassVar[float] = 0.05
    SIDE_MIN: ClassVar[int] = 16

    @property
    def about(self) -> Mapping[str, str]:
        return {"encoder": "oriented bands 1 (fixed filters, not LPIPS)"}

    def embed(self, picture: Picture) -> Vector:
        from scipy.ndimage import gaussian_filter

        _check_side(picture, self.SIDE_MIN, "oriented bands")
        red, green, blue = np.moveaxis(np.asarray(picture, np.float32) - np.float32(0.5), 2, 0)
        planes = [(red + green + blue) / 3, red - green, blue - (red + green) / 2]
        parts = []
        for _scale in range(self.SCALES):
            values = np.stack([band for plane in planes for band in self._bands(plane)])[:, ::2, ::2]
            unit = values / (np.sqrt(np.square(values).sum(0)) + self.FLOOR)
            parts.append(unit.ravel() / np.sqrt(2 * self.SCALES * unit[0].size))
            planes = [gaussian_filter(plane, 1.0, mode="nearest")[::2, ::2] for plane in planes]
        return np.concatenate(parts).astype(np.float32)

    def _bands(self, plane: Vector) -> list[Vector]:
        """Energies by orientation, then what is above and what below middle grey; none negative."""
        from scipy.ndimage import gaussian_filter

        def derivative(down: int, right: int) -> Vector:
            response = gaussian_filter(plane, self.SIGMA, order=(down, right), mode="nearest")
            return np.asarray(response * self.SIGMA ** (down + right), np.float32)

        by_y, by_x = derivative(1, 0), derivative(0, 1)
        by_yy, by_xy, by_xx = derivative(2, 0), derivative(1, 1), derivative(0, 2)
        bands = []
        for at in range(self.ORIENTATIONS):
            c, s = np.cos(np.pi * at / self.ORIENTATIONS), np.sin(np.pi * at / self.ORIENTATIONS)
            first = c * by_x + s * by_y
            second = c * c * by_xx + 2 * c * s * by_xy + s * s * by_yy
            bands.append(np.sqrt(first**2 + second**2).astype(np.float32))
        mean = derivative(0, 0)
        return [*bands, np.maximum(mean, 0), np.maximum(-mean, 0)]


@dataclass(frozen=True, eq=False)
class Lpips:
    """LPIPS 0.1 on AlexNet: five layers, unit length per place, channels weighted. [Zhang et al. 2018]

    `weights` by name as in the file (see `read_lpips`); `digest` names the file's content.
    """

    weights: Mapping[str, NDArray[np.float32]]
    digest: str

    @property
    def about(self) -> Mapping[str, str]:
        return {"encoder": "LPIPS 0.1, AlexNet", "weights": self.digest}

    def embed(self, picture: Picture) -> Vector:
        import torch
        from torch.nn import functional

        _check_side(picture, LPIPS_SIDE_MIN, "LPIPS on AlexNet")
        scaled = (2 * np.asarray(picture, np.float32) - 1 - _SHIFT) / _SCALE
        parts = []
        with torch.inference_mode():
            x = torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)))[None]
            for place, (layer, _shape, stride, padding, is_pooled) in enumerate(_TRUNK):
                if is_pooled:
                    x = functional.max_pool2d(x, 3, 2)
                kernel, bias = (self._tensor(f"features.{layer}.{part}") for part in ("weight", "bias"))
                x = functional.relu(functional.conv2d(x, kernel, bias, stride, padding))
                unit = x / (x.square().sum(1, keepdim=True).sqrt() + 1e-10)
                # Weighting both sides by the root makes the distance a squared difference of vectors.
                weight = self._tensor(f"lin{place}.model.1.weight") / (x.shape[2] * x.shape[3])
                parts.append((unit * weight.sqrt()).flatten())
            return np.asarray(torch.cat(parts).numpy(), np.float32)

    def _tensor(self, name: str) -> Tensor:
        import torch

        return torch.from_numpy(self.weights[name])


def read_lpips(path: str) -> Lpips:
    """The weights of a local safetensors file: AlexNet's convolutions by their torchvision names
    ("features.0.weight", ...) and the five heads of LPIPS 0.1 by theirs ("lin0.model.1.weight", ...).

    BadSpec if there is no such file, it is no safetensors file, or a tensor is missing or of another shape.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        data = Path(path).read_bytes()
        tensors = load(data)
    except OSError as error:
        raise BadSpec(
            f"the weights {path!r} cannot be read ({error.strerror}): name a file that is here"
        ) from error
    except SafetensorError as error:
        raise BadSpec(
            f"the weights {path!r} are no safetensors file ({error}): convert them first"
        ) from error
    weights = {}
    for name, shape in _lpips_shapes().items():
        if name not in tensors or tensors[name].shape != shape:
            has = str(tensors[name].shape) if name in tensors else "nothing of that name"
            raise BadSpec(f"the weights {path!r} need a tensor {name!r} of shape {shape}, but have {has}")
        weights[name] = np.array(tensors[name], np.float32)
        if name.startswith("lin") and weights[name].min() < 0:
            raise BadSpec(f"the weights {path!r} have negative values in {name!r}: heads of LPIPS have none")
    return Lpips(weights, hashlib.sha256(data).hexdigest())


LPIPS_SIDE_MIN = 31
_SHIFT = np.array([-0.030, -0.088, -0.188], np.float32)
_SCALE = np.array([0.458, 0.448, 0.450], np.float32)
_TRUNK = (
    (0, (64, 3, 11, 11), 4, 2, False),
    (3, (192, 64, 5, 5), 1, 2, True),
    (6, (384, 192, 3, 3), 1, 1, True),
    (8, (256, 384, 3, 3), 1, 1, False),
    (10, (256, 256, 3, 3), 1, 1, False),
)
"""AlexNet's convolutions: number, shape of the kernel, stride, padding, whether pooling comes before."""


def _lpips_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for place, (layer, shape, *_) in enumerate(_TRUNK):
        shapes[f"features.{layer}.weight"] = shape
        shapes[f"features.{layer}.bias"] = shape[:1]
        shapes[f"lin{place}.model.1.weight"] = (1, shape[0], 1, 1)
    return shapes


def _check_side(picture: Picture, least: int, name: str) -> None:
    if picture.ndim != 3 or picture.shape[2] != 3:
        raise ShapeMismatch(f"{name} compares pictures (H, W, 3), not {picture.shape}")
    if min(picture.shape[:2]) < least:
        raise NotApplicable(
            f"{name} needs pictures of at least {least} pixels a side, not {picture.shape[:2]}: "
            "use a larger input_px"
        )
