"""How much there is to look at in an explanation. Nothing here asks the network."""

from __future__ import annotations

import io
import math
from typing import Annotated, Any, ClassVar

import numpy as np
from PIL import Image, features
from PIL import __version__ as pillow_version
from pydantic import Field

from stimuli.errors import NotApplicable
from stimuli.explainers.base import Kind
from stimuli.metrics.base import Better, MetricValue, PictureMetric, Scored
from stimuli.planner.asks import Steps
from stimuli.planner.values import Floats, Subject
from stimuli.registry import parameters
from stimuli.types import ConceptAttribution, PixelAttribution, Pixels, Plane, Weights

ALL: tuple[Kind, ...] = ("image", "text", "concept")


@parameters
class Sparsity:
    """Gini index of the magnitudes: 0 if all parts weigh the same, 1 - 1/n if one of n has all the weight.

    Parts are pixels, tokens or concepts. An explanation of zeros is one of equal weights. [Hurley and Rickard
    2009; Chalasani et al. 2020]
    """

    version: ClassVar[int] = 2
    unit: ClassVar[str] = "Gini index"
    better: ClassVar[Better] = "higher"
    kinds: ClassVar[tuple[Kind, ...]] = ALL
    scores: ClassVar[Scored] = "drawn"

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Return the index, 0-1, as a Measured; asks nothing."""
        sizes = np.sort(magnitudes(attribution))
        total, count = float(sizes.sum()), sizes.size
        places = 2 * np.arange(1, count + 1) - count - 1
        value = float(places @ sizes) / (count * total) if total > 0 else 0.0
        return MetricValue(value, {"parts": count})
        yield


@parameters
class Entropy:
    """Shannon entropy, in nats, of the magnitudes' shares of their sum. Lower is simpler. [Bhatt et al. 2020]

    0 if one part has all the weight, log n if n parts weigh the same.

    Parts are pixels, tokens or concepts. An explanation of zeros is one of equal weights. `details` give
    the entropy as a share of log n, and n as `parts`.
    """

    version: ClassVar[int] = 2
    unit: ClassVar[str] = "nats"
    better: ClassVar[Better] = "lower"
    kinds: ClassVar[tuple[Kind, ...]] = ALL
    scores: ClassVar[Scored] = "drawn"

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Return the entropy, 0 to log n, as a Measured; asks nothing."""
        sizes = magnitudes(attribution)
        total, most = float(sizes.sum()), math.log(sizes.size)
        shares = sizes[sizes > 0] / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
        value = abs(float((shares * np.log(shares)).sum()))
        return MetricValue(value, {"share": value / most if most else 0.0, "parts": sizes.size})
        yield


@parameters
class JpegComplexity(PictureMetric):
    """Bytes of the drawn field as a JPEG file: a stand-in for its Kolmogorov complexity. Lower is simpler.
    [Colin et al. 2022]

    0 is black and 1 white (-1 is black under a diverging recipe); the field is resized to `side_px` a side
    (bilinear) if it has another size, and written in grey, 8 bits, at `quality`, without metadata and without
    optimised tables. The field is measured alone, never its overlay. A field without structure is one grey.

    `details`: `bits_per_pixel`, and the `encoder` with its version, for the number changes with the library.
    """

    version: ClassVar[int] = 2
    unit: ClassVar[str] = "bytes"
    better: ClassVar[Better] = "lower"
    scores: ClassVar[Scored] = "drawn"
    quality: Annotated[int, Field(ge=1, le=95)] = 75
    side_px: Annotated[int, Field(ge=16, le=2048)] = 224

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Return the number of bytes as a Measured; asks nothing."""
        if not isinstance(attribution, PixelAttribution):
            raise NotApplicable("jpeg_complexity needs a map of the picture, not weights of parts")
        two_sided = bool((attribution.values < 0).any())
        written = len(jpeg(self.grey(attribution.values, two_sided=two_sided), self.quality))
        details = {"bits_per_pixel": 8 * written / self.side_px**2, "encoder": encoder_version()}
        return MetricValue(float(written), details)
        yield

    def grey(self, field: Plane, *, two_sided: bool = False) -> Pixels:
        """A field (H, W) as it is written: uint8 (side_px, side_px)."""
        drawn = Image.fromarray(np.asarray((field + 1) / 2 if two_sided else field, np.float32))
        if drawn.size != (self.side_px, self.side_px):
            drawn = drawn.resize((self.side_px, self.side_px), Image.Resampling.BILINEAR)
        return np.asarray(np.rint(np.asarray(drawn) * 255), np.uint8)


def magnitudes(attribution: Weights) -> Floats:
    """The magnitudes of all parts, float64 (n,). NotApplicable if there is none, or if small ones matter."""
    if isinstance(attribution, ConceptAttribution) and attribution.order == "ascending":
        raise NotApplicable(
            "this explanation gives distances, where small ones matter most: its weights "
            "have no share of a whole"
        )
    if not attribution.values.size:
        raise NotApplicable("the explanation has no part to weigh")
    return np.abs(np.asarray(attribution.values, np.float64)).ravel()


def jpeg(grey: Pixels, quality: int) -> bytes:
    """A grey picture, uint8 (H, W), as a JPEG file without metadata."""
    buffer = io.BytesIO()
    Image.fromarray(grey).save(buffer, "JPEG", quality=quality, optimize=False, progressive=False)
    return buffer.getvalue()


def encoder_version() -> str:
    """The library that writes JPEG files, and its version."""
    turbo = features.version("libjpeg_turbo")
    library = f"libjpeg-turbo {turbo}" if turbo else f"libjpeg {features.version('jpg')}"
    return f"Pillow {pillow_version}, {library}"
