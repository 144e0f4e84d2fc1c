"""The pictures that people see: whether their sources have the pixels that the shown size asks for."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.definition.study import StudyDefinition
from experiments.drafting.item_pictures import longest_px_of
from experiments.drafting.material_set import MaterialSet
from stimuli.render.recipe import View
from stimuli.render.view_placement import PIXELS_PER_CSS


@dataclass(frozen=True, slots=True)
class Showing:
    """Of the chosen pictures: `longest_px` is the longer side of what is shown, `sources_px` that of each
    source; `cropped` the shares (0-1) that the network does not see, of each picture.
    """

    view: View
    longest_px: int
    sources_px: tuple[int, ...]
    cropped: tuple[float, ...]

    @property
    def words(self) -> str:
        """What people see, in one or two sentences."""
        size = f"{self.longest_px // PIXELS_PER_CSS} CSS pixels, drawn with {self.longest_px}"
        if self.view == "network":
            return f"People see the network's view, {_range(self.sources_px)} pixels wide, at {size}."
        cut = [share for share in self.cropped if share > 0]
        faded = "the network sees all of them"
        if cut:
            faded = (
                f"{len(cut)} of {len(self.cropped)} have parts that the network does not see (at most "
                f"{max(cut):.0%} of a picture), which are faded: let the instructions say so"
            )
        return f"People see the original pictures at {size}; {faded}."

    @property
    def warning(self) -> str | None:
        """That sources are too small, unless the study asks for the network's pixels."""
        small = [side for side in self.sources_px if side < self.longest_px]
        if self.view == "network" or not small:
            return None
        return (
            f"{len(small)} of {len(self.sources_px)} pictures have only {_range(small)} pixels on their "
            f"longer side and are enlarged to {self.longest_px}, twice picture_px, so that people see them "
            "blurred: take larger sources, or a smaller picture_px"
        )


def showing_of(definition: StudyDefinition, gathered: MaterialSet) -> Showing | None:
    """What people would see; None if that is no picture, or as in studies of before the view was a choice."""
    if not gathered.canvases:
        return None
    view = definition.render.view
    items = [gathered.views[source][key] for source, keys in gathered.canvases.items() for key in keys]
    sizes = [(item.width_px, item.height_px) if view == "network" else item.original_px for item in items]
    return Showing(
        view,
        longest_px_of(definition),
        tuple(max(size) for size in sizes),
        tuple(item.cropped_share for item in items),
    )


def _range(sides: tuple[int, ...] | list[int]) -> str:
    low, high = min(sides), max(sides)
    return str(low) if low == high else f"{low} to {high}"
