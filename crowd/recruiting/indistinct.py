"""Conditions whose pictures people could not tell apart, found before people are paid to look at both.

Some methods are the same picture on some networks, by algebra: on a network that ends in global average
pooling and one linear layer, three of the class activation maps coincide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments.definition import StudyDefinition
from experiments.drafts import Gathered, specs_of
from stimuli.claims import device
from stimuli.explainers import kind_of
from stimuli.metrics.similarity import near_identical
from stimuli.pipeline import Bench, Rendered, attempt
from stimuli.render import png
from stimuli.render.canvas import seen_part
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.store.files import map_file
from stimuli.types import Pixels

READ_MAX = 24
"""Items that are compared if all of their maps are in the store already."""

Alike = tuple[tuple[str, ...], int, int]
"""Names of conditions, the number of items on which they look alike, the number of items looked at."""


def look_alikes(
    definition: StudyDefinition,
    gathered: Gathered,
    store: Store,
    rendered_max: int,
    progress: Callable[[str, int, int], None],
) -> tuple[Alike, ...]:
    """Compare the explanations of a sample of items: those that are rendered already, and at most
    `rendered_max` others, which are rendered into `store`. Conditions without an explanation are left out.
    """
    explained = {c.name for c in definition.conditions if c.explainer is not None}
    specs: dict[str, dict[str, StimulusSpec]] = {}
    for (item, condition), spec in specs_of(definition, gathered).items():
        if condition in explained:
            # Models of different input sizes draw on different views, which cannot be compared.
            specs.setdefault(f"{item} as {spec.image_key}", {})[condition] = spec
    sample = _sample(specs, store, rendered_max)
    wanted = [spec for item in sample for spec in specs[item].values()]
    files = {}
    # A failure to render is not reported here: the build names it, with its reason.
    for index, made in enumerate(attempt(wanted, Bench(store, device()))):
        if isinstance(made, Rendered):
            files[made.spec.picture_key] = made.drawn.explanation_file
        progress("comparing pictures", index + 1, len(wanted))
    groups = [
        [group for same in _by_size(_pictures(specs[item], files, store)) for group in near_identical(same)]
        for item in sample
    ]
    return tuple((names, count, len(sample)) for names, count in _counted(groups))


def _counted(groups: Sequence[Sequence[tuple[str, ...]]]) -> list[tuple[tuple[str, ...], int]]:
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
    specs: Mapping[str, Mapping[str, StimulusSpec]], store: Store, rendered_max: int
) -> Sequence[str]:
    """Items in their order: rendered ones as far as READ_MAX goes, and a few that are not."""
    known: list[str] = []
    others: list[str] = []
    for item, by_condition in specs.items():
        is_known = len(known) < READ_MAX and all(
            store.has(map_file(spec.attribution_key)) for spec in by_condition.values()
        )
        (known if is_known else others).append(item)
    return [*known, *others[: max(0, rendered_max - len(known))]]


def _pictures(
    specs: Mapping[str, StimulusSpec], files: Mapping[str, str | None], store: Store
) -> dict[str, Pixels]:
    pictures = {}
    for condition, spec in specs.items():
        file = files.get(spec.picture_key)
        if file is not None and file.endswith(".png"):
            picture = png.decode(store.get(file))
            if spec.canvas is not None and spec.explainer is not None and kind_of(spec.explainer) == "image":
                # What the network does not see is the same in all of them, and would outweigh what differs.
                picture = picture[seen_part(spec.canvas.box, picture.shape)]
            pictures[condition] = picture
    return pictures


def _by_size(pictures: Mapping[str, Pixels]) -> list[dict[str, Pixels]]:
    """The pictures in groups of one size: bars and sentences are never taken for maps."""
    groups: dict[tuple[int, ...], dict[str, Pixels]] = {}
    for condition, picture in pictures.items():
        groups.setdefault(picture.shape, {})[condition] = picture
    return list(groups.values())
