"""Conditions whose pictures people could not tell apart, found before anybody is paid to look at both.

Some methods are the same picture on some networks, by algebra: on a network that ends in global average
pooling and one linear layer, three of the class activation maps coincide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from experiments.definition import StudyDefinition
from experiments.drafts import Material, specs_of
from stimuli.files import map_file
from stimuli.metrics.similarity import near_identical
from stimuli.render import png
from stimuli.rendering import render
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.types import Pixels

READ_MAX = 24
"""Items that are looked at when all of their maps are in the store already."""

Alike = tuple[tuple[str, ...], int, int]
"""Names of conditions, the number of items on which they look alike, the number of items looked at."""


def look_alikes(
    definition: StudyDefinition,
    material: Material,
    store: Store,
    rendered_max: int,
    progress: Callable[[str, int, int], None],
) -> tuple[Alike, ...]:
    """Compare the explanations of a sample of items: those that are rendered already, and at most
    `rendered_max` others, which are rendered into `store`. Conditions without an explanation are left out.
    """
    explained = {c.name for c in definition.conditions if c.explainer is not None}
    specs: dict[str, dict[str, StimulusSpec]] = {}
    for (item, condition), spec in specs_of(definition, material).items():
        if condition in explained:
            specs.setdefault(item, {})[condition] = spec
    sample = _sample(specs, store, rendered_max)
    wanted = [spec for item in sample for spec in specs[item].values()]
    files = {}
    for place, made in enumerate(render(wanted, store)):
        files[made.spec.picture_key] = made.drawn.explanation_file
        progress("comparing pictures", place + 1, len(wanted))
    found: Counter[tuple[str, ...]] = Counter()
    for item in sample:
        found.update(near_identical(_pictures(specs[item], files, store)))
    return tuple((names, count, len(sample)) for names, count in sorted(found.items()))


def _sample(
    specs: Mapping[str, Mapping[str, StimulusSpec]], store: Store, rendered_max: int
) -> Sequence[str]:
    """Items in their order: rendered ones as far as READ_MAX goes, and a few that are not."""
    known: list[str] = []
    others: list[str] = []
    for item, own in specs.items():
        is_known = len(known) < READ_MAX and all(
            store.has(map_file(spec.attribution_key)) for spec in own.values()
        )
        (known if is_known else others).append(item)
    return [*known, *others[: max(0, rendered_max - len(known))]]


def _pictures(
    specs: Mapping[str, StimulusSpec], files: Mapping[str, str | None], store: Store
) -> dict[str, Pixels]:
    found = {}
    for condition, spec in specs.items():
        file = files.get(spec.picture_key)
        if file is not None and file.endswith(".png"):
            found[condition] = png.decode(store.get(file))
    return found
