"""Explanations computed once more and compared with what is stored: on another machine, or years later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from stimuli.errors import StimulusError
from stimuli.pipeline import Bench, Order, explain
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.store.files import MAPS, attribution_digest, read_attribution
from stimuli.types import Attribution, Progress, Weights, silent


@dataclass(frozen=True, slots=True)
class Rechecked:
    """How far the stored explanation lies from one computed now: the largest difference of two values as a
    share of the largest stored magnitude. None if they cannot be compared; `error` then says why.
    """

    spec: StimulusSpec
    difference: float | None
    error: str = ""


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
) -> Iterator[Rechecked]:
    """Explain `specs` again from the stored items and predictors, as if nothing had been explained before,
    and compare. Those without an explanation are left out. Nothing is stored.
    """
    orders = [Order((spec,)) for spec in specs if spec.explainer is not None]
    for at, explained in enumerate(explain(orders, Bench(Afresh(store), device)), 1):
        spec = explained.order.spec
        try:
            if explained.attribution is None:
                raise StimulusError(explained.error)
            yield Rechecked(
                spec, difference(explained.attribution, read_attribution(store, spec.attribution_key))
            )
        except StimulusError as error:
            yield Rechecked(spec, None, str(error))
        progress("explaining again", at, len(orders))


def difference(now: Attribution, stored: Attribution) -> float:
    """The largest difference of two values as a share of the largest stored magnitude (of the largest new one
    if all stored ones are 0). StimulusError if the two are not about the same places.
    """
    if _places(now) != _places(stored):
        raise StimulusError(
            f"the stored explanation is of {_told(stored)}, the one computed now of {_told(now)}: the item, "
            "the method or the stored file has changed"
        )
    if not (isinstance(now, Weights) and isinstance(stored, Weights)):
        return 0.0
    apart = float(np.abs(np.subtract(now.values, stored.values, dtype=np.float64)).max(initial=0))
    if apart == 0:
        return 0.0
    return apart / float(np.abs(stored.values).max(initial=0) or np.abs(now.values).max())


def _places(attribution: Attribution) -> tuple[object, ...]:
    if not isinstance(attribution, Weights):
        return type(attribution), attribution_digest(attribution)
    named = getattr(attribution, "spans", None) or getattr(attribution, "concepts", None)
    return type(attribution), attribution.values.shape, tuple(named or ())


def _told(attribution: Attribution) -> str:
    kind = type(attribution).__name__.removesuffix("Attribution").removesuffix("Explanation").lower()
    if not isinstance(attribution, Weights):
        return f"the {kind} {attribution_digest(attribution)[:12]}"
    return f"{' x '.join(map(str, attribution.values.shape))} {kind}"
