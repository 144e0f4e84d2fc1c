"""Explanations computed once more and compared with what is stored: on another machine, or years later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import StimulusError
from stimuli.pipeline import Bench, Order, explain
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.store.files import MAPS, attribution_digest, read_attribution, read_view
from stimuli.types import Attribution, Mask, PixelAttribution, Pixels, Progress, Weights, silent

Floats = NDArray[np.float64]
MOVED = 1e-4
"""The difference from which a value counts as another one, as a share of the largest magnitude."""


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """How far the stored explanation lies from one computed now: the largest difference of two values as a
    share of the largest stored magnitude. None if they cannot be compared; `error` then says why.

    `textured` is the largest difference apart from areas of one colour, where max pooling may choose another
    of equal values and the gradient goes to another pixel; None if nothing else is in the picture. `share`
    is the share of values that differ by more than `MOVED`.
    """

    spec: StimulusSpec
    difference: float | None
    error: str = ""
    textured: float | None = None
    share: float = 0.0

    def is_beyond(self, tolerance: float) -> bool:
        """Whether they differ by more than `tolerance`, or cannot be compared."""
        return self.difference is None or self.difference > tolerance

    def is_tied(self, tolerance: float) -> bool:
        """Whether they differ by more than `tolerance` in areas of one colour only, as ties of max pooling
        do."""
        return self.is_beyond(tolerance) and self.textured is not None and self.textured <= tolerance


@dataclass(frozen=True, slots=True)
class Afresh:
    """A store in which nothing was explained yet. Maps that are put there are lent to controls that borrow
    them, and kept no longer than this value.
    """

    store: Store
    made: dict[str, bytes] = field(default_factory=dict)

    def put(self, key: str, data: bytes) -> bool:
        if key.startswith(f"{MAPS}/"):
            self.made[key] = data
        return True

    def get(self, key: str) -> bytes:
        return self.made[key] if key in self.made else self.store.get(key)

    def has(self, key: str) -> bool:
        return key in self.made or (not key.startswith(f"{MAPS}/") and self.store.has(key))

    def keys(self, prefix: str = "") -> Iterator[str]:
        return (key for key in self.store.keys(prefix) if not key.startswith(f"{MAPS}/"))


def recheck(
    specs: Sequence[StimulusSpec], store: Store, device: str = "cpu", progress: Progress = silent
) -> Iterator[RecheckResult]:
    """Explain `specs` again from the stored items and predictors, as if nothing had been explained before,
    and compare. Those without an explanation are left out. Nothing is stored.
    """
    orders = [Order((spec,)) for spec in specs if spec.explainer is not None]
    for at, explained in enumerate(explain(orders, Bench(Afresh(store), device)), 1):
        spec = explained.order.spec
        try:
            if explained.attribution is None:
                raise StimulusError(explained.error)
            stored = read_attribution(store, spec.attribution_key)
            yield compare_explanations(explained.attribution, stored, spec, store)
        except StimulusError as error:
            yield RecheckResult(spec, None, str(error))
        progress("explaining again", at, len(orders))


def differences(now: Attribution, stored: Attribution) -> Floats:
    """The differences of values as shares of the largest stored magnitude (of the largest new one if all
    stored ones are 0), in the values' shape; none for explanations without values. StimulusError if the two
    are not about the same places.
    """
    if _places(now) != _places(stored):
        raise StimulusError(
            f"the stored explanation is of {_attribution_text(stored)}, the one computed now of "
            f"{_attribution_text(now)}: the item, the method or the stored file has changed"
        )
    if not (isinstance(now, Weights) and isinstance(stored, Weights)):
        return np.zeros(0)
    apart = np.abs(np.subtract(now.values, stored.values, dtype=np.float64))
    if not apart.any():
        return apart
    return np.asarray(apart / float(np.abs(stored.values).max() or np.abs(now.values).max()), np.float64)


def one_coloured(view: Pixels) -> Mask:
    """The pixels of a picture, bool (H, W), that lie in a square of 3 x 3 pixels of one colour.

    Two outputs of a layer are tied if what they see is alike, as it is throughout such areas; which of them
    max pooling chooses depends on the memory layout and the device. The gradient then reaches other pixels
    of the area, and none outside.
    """
    from scipy.ndimage import binary_dilation, maximum_filter, minimum_filter

    is_even = (maximum_filter(view, (3, 3, 1)) == minimum_filter(view, (3, 3, 1))).all(2)
    return np.asarray(binary_dilation(is_even, np.ones((3, 3))), np.bool_)


def compare_explanations(
    now: Attribution, stored: Attribution, spec: StimulusSpec, store: Store
) -> RecheckResult:
    """What the explanation computed now says of the stored one. StimulusError as in `differences`."""
    apart = differences(now, stored)
    share = float((apart > MOVED).mean()) if apart.size else 0.0
    textured = _textured_difference(apart, spec, store) if isinstance(stored, PixelAttribution) else None
    return RecheckResult(spec, float(apart.max(initial=0)), textured=textured, share=share)


def _textured_difference(apart: Floats, spec: StimulusSpec, store: Store) -> float | None:
    """The largest difference outside areas of one colour; None if there is no other place."""
    others = apart[~one_coloured(read_view(store, spec.image_key))]
    return float(others.max()) if others.size else None


def _places(attribution: Attribution) -> tuple[object, ...]:
    if not isinstance(attribution, Weights):
        return type(attribution), attribution_digest(attribution)
    named = getattr(attribution, "spans", None) or getattr(attribution, "concepts", None)
    return type(attribution), attribution.values.shape, tuple(named or ())


def _attribution_text(attribution: Attribution) -> str:
    kind = type(attribution).__name__.removesuffix("Attribution").removesuffix("Explanation").lower()
    if not isinstance(attribution, Weights):
        return f"the {kind} {attribution_digest(attribution)[:12]}"
    return f"{' x '.join(map(str, attribution.values.shape))} {kind}"
