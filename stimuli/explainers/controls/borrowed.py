"""Placebos from real maps of the same method, but not of this item, this class or this network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers.base import StudyItem
from stimuli.explainers.controls.inner_method import OfMethod
from stimuli.explainers.donor_maps import Lenders, randomised_key
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject, counted_generator
from stimuli.registry import parameters
from stimuli.spec import StimulusSpec
from stimuli.types import PixelAttribution, Plane

MOST_CLASSES = 1_000_000
Label = Annotated[int, Field(ge=-1, le=MOST_CLASSES)]


@parameters
class BorrowedMap(OfMethod):
    """The map of method `of`, lent by another spec. `parameters` are that method's, as JSON text; those that
    are not named have their defaults. [Ours]
    """

    version: ClassVar[int] = 1
    verb: ClassVar[str] = "borrow"

    def lenders(self, spec: StimulusSpec) -> Lenders:
        """The spec whose map is shown, as "map". NotApplicable if the study has not named it."""
        return {"map": self.lender(self.plain(spec))}

    def lender(self, plain: StimulusSpec) -> StimulusSpec:
        """The lender, from the spec of the method for this item itself."""
        raise NotImplementedError

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        if subject.lent is None:
            raise NotApplicable(
                f"the map of {self.control!r} is lent by another stimulus: make it from its spec"
            )
        made = subject.lent["map"]
        assert isinstance(made, PixelAttribution)
        return PixelAttribution(made.values.copy(), made.signed)
        yield


@parameters
class OtherItem(BorrowedMap):
    """The map that method `of` makes of another item of the study: a real map, of another picture. [Ours]

    `donors` says whose: of an item with the same predicted label, with another one, or any. The study draws
    them by its seed, so that every map is lent equally often (once, if the labels' numbers allow it) and
    never to an item of its own group: with "same_label" people then see the very maps of the method, on wrong
    pictures. `item` (the donor's image key), `target` (the index of its predicted label) and `against` (of
    its runner-up, for margins) are filled in for each item when the study's specs are made.
    """

    control: ClassVar[str] = "other_item"
    needs_all_items: ClassVar[bool] = True
    donors: Literal["same_label", "other_label", "any_label"] = "same_label"
    item: str = ""
    target: Label = -1
    against: Label = -1

    def bound(self, items: Sequence[StudyItem], seed: int) -> list[OtherItem]:
        """The control as it is set for each of `items`, in their order. BadSpec if an item has no donor."""
        places = donor_places(items, self.donors, seed)
        donors = [items[at] for at in places]
        return [
            replace(self, item=donor.image_key, target=donor.index, against=_runner_up(donor))
            for donor in donors
        ]

    def lender(self, plain: StimulusSpec) -> StimulusSpec:
        if not self.item:
            raise NotApplicable(
                "'other_item' names no donor: make its specs for all items of a study at once"
            )
        against = self.against if plain.operator == "margin" else None
        return replace(plain, image_key=self.item, target=self.target, against=against)


@parameters
class OtherClass(BorrowedMap):
    """The map that method `of` makes of the same item for another class. [Ours]

    `target` is the index of that class, filled in when the study's specs are made: the label that the
    predictor holds for the most likely one apart from the explained one.
    """

    control: ClassVar[str] = "other_class"
    target: Label = -1

    def bound(self, items: Sequence[StudyItem], seed: int) -> list[OtherClass]:
        """The control as it is set for each of `items`, in their order."""
        return [replace(self, target=_runner_up(item)) for item in items]

    def lender(self, plain: StimulusSpec) -> StimulusSpec:
        if self.target in (-1, plain.target):
            raise NotApplicable(
                f"'other_class' has class {self.target}, and {plain.target} is explained: make its specs for "
                "all items at once"
            )
        against = plain.target if plain.operator == "margin" else None
        return replace(plain, target=self.target, against=against)


@parameters
class RandomisedNetwork(BorrowedMap):
    """The map that method `of` makes of the same item and class in a network whose weights are permuted, with
    the values of its own map. [Adebayo et al. 2018, "Sanity checks for saliency maps"]

    The values of every weight tensor change places, as `predictors.randomised` has it: of the last `layers`
    layers of the pass, 0 for all. `seed` draws the permutation; all items see one network. The k-th largest
    pixel then gets the k-th largest value of the item's real map: the histogram is that of the method, and
    only places and texture are the permuted network's. Pixels of equal value are ordered by what is strong
    around them. A map without any structure stays as it is.
    """

    version: ClassVar[int] = 2
    control: ClassVar[str] = "randomised_network"
    layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable if the method is not applicable, or the network has no weights."""
        from stimuli.predictors.randomised import has_weights

        OfMethod.require(self, predictor, layer)
        if not has_weights(predictor.module):
            raise NotApplicable(
                "'randomised_network': this network has no weights to permute: use another control"
            )

    def lenders(self, spec: StimulusSpec) -> Lenders:
        return {**BorrowedMap.lenders(self, spec), "own": self.plain(spec)}

    def lender(self, plain: StimulusSpec) -> StimulusSpec:
        return replace(plain, predictor_key=randomised_key(plain.predictor_key, self.layers, self.seed))

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        shown = yield from BorrowedMap.explain(self, predictor, subject)
        assert subject.lent is not None
        return PixelAttribution(by_rank(shown.values, subject.lent["own"].values), shown.signed)


def by_rank(values: Plane, real: Plane) -> Plane:
    """The values of `real`, (H, W), in the order that `values`, (H, W), have by their size."""
    from scipy.ndimage import gaussian_filter

    if not np.ptp(values):
        return values
    exact = values.astype(np.float64)
    around = gaussian_filter(exact, min(exact.shape) / 8, mode="mirror")
    placed = np.empty(real.size, real.dtype)
    placed[np.lexsort((around.ravel(), exact.ravel()))] = np.sort(real, axis=None)
    return placed.reshape(real.shape)


def donor_places(items: Sequence[StudyItem], donors: str, seed: int) -> list[int]:
    """For each item the place of its donor: every item donates once if that is possible, else as evenly as it
    is; never to its own group. Drawn by the seed, in any order of the items. BadSpec names an item that
    has no donor.
    """
    from scipy.optimize import linear_sum_assignment

    order = sorted(range(len(items)), key=lambda at: items[at].key)
    ranked = [items[at] for at in order]
    allowed = np.array([[_may_lend(lender, item, donors) for lender in ranked] for item in ranked])
    lacking = [item.key for item, row in zip(ranked, allowed, strict=True) if not row.any()]
    if lacking:
        raise BadSpec(
            f"explainer 'other_item': {len(lacking)} of {len(items)} items, such as {lacking[0]!r}, have no "
            f"donor of another group under donors = {donors!r}: set another rule, or take more items"
        )
    costs = np.where(allowed, counted_generator(f"donors\x1f{seed}").random(allowed.shape), np.inf)
    for turns in range(1, len(items) + 1):
        try:
            _, chosen = linear_sum_assignment(np.tile(costs, turns))
        except ValueError:  # not every item can have a donor of its own
            continue
        lenders = {at: order[int(place) % len(items)] for at, place in zip(order, chosen, strict=True)}
        return [lenders[at] for at in range(len(items))]
    return []


def _may_lend(lender: StudyItem, item: StudyItem, donors: str) -> bool:
    if lender.group == item.group or lender.image_key == item.image_key:
        return False
    return donors == "any_label" or (lender.index == item.index) == (donors == "same_label")


def _runner_up(item: StudyItem) -> int:
    logits = np.array(item.logits)
    logits[item.index] = -np.inf
    return int(logits.argmax())
