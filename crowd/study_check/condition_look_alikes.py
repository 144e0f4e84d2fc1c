"""Conditions whose pictures people could not tell apart, found before people are paid to look at both.

Some methods are the same picture on some networks, by algebra: on a network that ends in global average
pooling and one linear layer, three of the class activation maps coincide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments.definition.study import StudyDefinition
from experiments.drafting.explanation_look_alikes import by_view, groups_alike
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.stimulus_specs import specs_of
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.store.files import map_file

READ_MAX = 24
"""Items that are compared if all of their maps are in the store already."""

Set = tuple[str, str]
"""An item, and what names the picture that a network saw of it."""
Alike = tuple[tuple[str, ...], int, int]
"""Names of conditions, the number of items on which they look alike, the number of items looked at."""


def look_alikes(
    definition: StudyDefinition,
    gathered: MaterialSet,
    store: Store,
    rendered_max: int,
    progress: Callable[[str, int, int], None],
) -> tuple[Alike, ...]:
    """Compare the explanations of a sample of items: those that are rendered already, and at most
    `rendered_max` others, which are rendered into `store`. Conditions without an explanation are left out.
    """
    sets = by_view(specs_of(definition, gathered))
    sample = _sample(sets, store, rendered_max)
    groups = groups_alike([sets[name] for name in sample], store, progress)
    return tuple((names, count, len(sample)) for names, count in _count_groups(groups))


def _count_groups(groups: Sequence[Sequence[tuple[str, ...]]]) -> list[tuple[tuple[str, ...], int]]:
    """On how many items each group looks alike, also as part of a larger one; a group is left out if a larger
    one looks alike just as often.
    """
    every = {group for sets in groups for group in sets}
    counts = {
        group: sum(any(set(group) <= set(other) for other in sets) for sets in groups) for group in every
    }
    return sorted(
        (group, count)
        for group, count in counts.items()
        if not any(set(group) < set(other) and counts[other] == count for other in every)
    )


def _sample(
    specs: Mapping[Set, Mapping[str, StimulusSpec]], store: Store, rendered_max: int
) -> Sequence[Set]:
    """Items in their order: rendered ones as far as READ_MAX goes, and a few that are not."""
    known: list[Set] = []
    others: list[Set] = []
    for item, by_condition in specs.items():
        is_known = len(known) < READ_MAX and all(
            store.has(map_file(spec.attribution_key)) for spec in by_condition.values()
        )
        (known if is_known else others).append(item)
    return [*known, *others[: max(0, rendered_max - len(known))]]
