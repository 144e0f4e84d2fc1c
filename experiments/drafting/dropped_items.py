"""Items whose explanation is empty, or on which conditions look alike, left out before anything is planned:
under all conditions alike, with counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from experiments.drafting.explanation_look_alikes import Group, by_view, groups_alike
from stimuli.errors import NotApplicable
from stimuli.pipeline import Bench, Order, explain
from stimuli.quality.field_faults import is_flat
from stimuli.render.attribution_field import drawn_field
from stimuli.types import ConceptAttribution, PixelAttribution, RegionAttribution, TokenAttribution
from stimuli.worker_claims import device

if TYPE_CHECKING:
    from experiments.terminal import Terminal
    from stimuli.render.recipe import RenderSpec
    from stimuli.spec import StimulusSpec
    from stimuli.store import Store
    from stimuli.types import Attribution, Progress

FLAT, LOOK_ALIKE = "flat", "look_alike"
"""Values of `[stimuli] drop_flagged`."""
COLUMNS = ("Condition", "The model says", "Empty", "Looked at")


@dataclass(frozen=True, slots=True)
class DroppedItems:
    """What was looked at by the rules of `[stimuli] drop_flagged`: per (item, condition) what the model says
    of the item, and whether its explanation is empty; per set (see `by_view`) the groups of conditions that
    look alike.
    """

    rules: tuple[str, ...]
    looked: Mapping[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)
    alike: Mapping[tuple[str, str], Sequence[Group]] = field(default_factory=dict)

    @property
    def by_rule(self) -> dict[str, frozenset[str]]:
        """The items with an empty explanation under any condition, and those on which any two look alike."""
        items = {
            FLAT: frozenset(item for (item, _), (_, is_empty_one) in self.looked.items() if is_empty_one),
            LOOK_ALIKE: frozenset(item for (item, _), groups in self.alike.items() if groups),
        }
        return {rule: items[rule] for rule in self.rules}

    @property
    def keys(self) -> frozenset[str]:
        """The items that are left out."""
        return frozenset().union(*self.by_rule.values())

    def as_json(self) -> dict[str, Any]:
        """Rules, items, and counts by condition and answer: (condition, answer, empty, looked at). If look-
        alikes are left out, also the items by rule, and on how many of them which conditions look alike."""
        of = Counter((condition, answer) for (_, condition), (answer, _) in self.looked.items())
        empty = Counter((condition, answer) for (_, condition), (answer, e) in self.looked.items() if e)
        content = {
            "rule": list(self.rules),
            "items": sorted(self.keys),
            "looked_at": len({item for item, _ in self.looked}),
            "counts": [[*cell, empty[cell], count] for cell, count in sorted(of.items())],
        }
        if LOOK_ALIKE not in self.rules:
            return content
        groups = Counter(group for alike in self.alike.values() for group in alike)
        return content | {
            "by_rule": {rule: len(items) for rule, items in self.by_rule.items()},
            "alike": [[list(group), count] for group, count in sorted(groups.items())],
        }


def look(
    specs: Mapping[tuple[str, str], StimulusSpec],
    answers: Mapping[tuple[str, str], str],
    recipe: RenderSpec,
    before: DroppedItems,
    store: Store,
    progress: Progress,
) -> DroppedItems:
    """`before`, and what the explanations of `specs`, by item and condition, look like. Maps that the store
    lacks are made in it, and pictures too. One that cannot be made is not empty: the build names it, with its
    reason."""
    of_map = {spec.attribution_key: spec for spec in specs.values() if spec.explainer is not None}
    empty: dict[str, bool] = {}
    orders = [Order((spec,)) for spec in of_map.values()]
    for done, result in enumerate(explain(orders, Bench(store, device())), 1):
        if result.attribution is not None:
            empty[result.order.spec.attribution_key] = is_empty(result.attribution, recipe)
        progress("looking for empty explanations", done, len(orders))
    now = {
        cell: (answers[cell], empty[spec.attribution_key])
        for cell, spec in specs.items()
        if spec.explainer is not None and spec.attribution_key in empty
    }
    alike = dict(before.alike)
    if LOOK_ALIKE in before.rules:
        sets = {name: some for name, some in by_view(specs).items() if name not in alike}
        alike.update(zip(sets, groups_alike(sets.values(), store, progress), strict=True))
    return replace(before, looked={**before.looked, **now}, alike=alike)


def is_empty(made: Attribution, recipe: RenderSpec) -> bool:
    """Whether an explanation marks nothing: an even picture, weights that are all 0, a region without cells.
    Pictures and sentences are never empty."""
    if isinstance(made, PixelAttribution):
        try:
            return is_flat(drawn_field(made, recipe))
        except NotApplicable:
            return False
    if isinstance(made, RegionAttribution):
        return not made.cells.any()
    return isinstance(made, TokenAttribution | ConceptAttribution) and not made.values.any()


def dropped_sentence(dropped: Mapping[str, Any]) -> str:
    """How many items a study dropped and why, as one sentence; empty if it has no such rule."""
    if not dropped:
        return ""
    count = len(dropped["items"])
    are = "item was" if count == 1 else "items were"
    told = f"{count} of {dropped['looked_at']} {are} left out under all conditions"
    by_rule = dropped.get("by_rule")
    if by_rule is None:
        return f"{told}, for their explanation is empty under at least one."
    alike = "; ".join(f"{' and '.join(names)} on {n}" for names, n in dropped["alike"])
    reasons = [f"conditions look alike on {by_rule[LOOK_ALIKE]}{f' ({alike})' if alike else ''}"]
    if FLAT in by_rule:
        reasons.insert(0, f"the explanation of {by_rule[FLAT]} is empty under at least one")
    return f"{told}: {'; '.join(reasons)}."


def dropped_rows(dropped: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Rows under `COLUMNS`."""
    return [(condition, answer, str(empty), str(of)) for condition, answer, empty, of in dropped["counts"]]


def print_dropped(dropped: Mapping[str, Any], terminal: Terminal) -> None:
    """For the commands: nothing for a study without such a rule."""
    if dropped:
        terminal.line(dropped_sentence(dropped))
        terminal.table("Empty explanations", COLUMNS, dropped_rows(dropped))
