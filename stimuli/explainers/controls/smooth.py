"""A random field that is as smooth as a method's map and has its values: no seam, no salt, no information."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stimuli.explainers.base import Kind, refuse_operator
from stimuli.explainers.controls.inner import inner, written_out
from stimuli.planner.asks import Steps
from stimuli.planner.values import Operator, Subject
from stimuli.registry import parameters
from stimuli.types import PixelAttribution

Floats = NDArray[np.float64]


@parameters
class SmoothRandom:
    """A random field with the spectrum and the values of the map of method `of`.

    The map's mirrored extension keeps the amplitudes of its Fourier transform and gets the phases of white
    noise; values and amplitudes are then restored in turn, `rounds` times (an iterated amplitude adjusted
    surrogate), and the field is one quarter of the result, with exactly the values of the map in the order of
    their size. `parameters` are the method's, as JSON text; those that are not named have their defaults. The
    phases are drawn from the image's key and the seed. [Schreiber and Schmitz 1996]
    """

    version: ClassVar[int] = 1
    kind: ClassVar[Kind] = "image"
    of: str = "saliency"
    parameters: str = "{}"
    rounds: Annotated[int, Field(ge=1, le=200)] = 20

    def __post_init__(self) -> None:
        of, whole = written_out("smooth_random", "imitate", "image", self.of, self.parameters)
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "parameters", whole)

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable if the imitated method is not applicable."""
        inner(self.of, self.parameters).require(predictor, layer)

    def follow(self, operator: Operator) -> None:
        """NotApplicable if the imitated method cannot explain that number."""
        refuse_operator(inner(self.of, self.parameters), self.of, operator)

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        source = yield from inner(self.of, self.parameters).explain(predictor, subject)
        drawn = surrogate(source.values.astype(np.float64), subject.draws("phases"), self.rounds)
        return PixelAttribution(drawn.astype(np.float32), source.signed)


def surrogate(values: Floats, draws: np.random.Generator, rounds: int) -> Floats:
    """A field (H, W) with the same values in other places, and nearly the same spectrum."""
    # The Fourier transform takes a field to go round: without its mirror images, edges would be seams.
    mirrored = np.pad(values, [(0, side) for side in values.shape], mode="symmetric")
    amplitudes, ordered = np.abs(np.fft.rfft2(mirrored)), np.sort(mirrored, axis=None)
    field = draws.standard_normal(mirrored.shape)
    for _ in range(rounds):
        waves = np.fft.rfft2(field)
        sizes = np.abs(waves)
        turned = np.divide(waves, sizes, out=np.ones_like(waves), where=sizes > 0)
        smooth = np.fft.irfft2(amplitudes * turned, mirrored.shape)
        field = _with_values(smooth, ordered)
    height, width = values.shape
    return _with_values(smooth[:height, :width], np.sort(values, axis=None))


def _with_values(field: Floats, ordered: Floats) -> Floats:
    """The sorted values in the places of the field's own by size."""
    placed = np.empty(field.size)
    placed[np.argsort(field, axis=None, kind="stable")] = ordered
    return placed.reshape(field.shape)
