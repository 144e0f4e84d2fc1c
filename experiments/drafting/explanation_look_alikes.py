"""Conditions whose explanations of one item people could not tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stimuli.explainers import kind_of
from stimuli.metrics.method_similarity import near_identical
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.render import png
from stimuli.render.view_placement import seen_part
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.types import Pixels
from stimuli.worker_claims import device

Group = tuple[str, ...]
"""Names of conditions that look alike on an item."""
Specs = Mapping[str, StimulusSpec]
"""Of one item, by condition."""


def by_view(specs: Mapping[tuple[str, str], StimulusSpec]) -> dict[tuple[str, str], dict[str, StimulusSpec]]:
    """The explanations of `specs`, by item and condition, in sets that can be compared: of an item and of the
    picture that a network saw of it, for models of different input sizes draw on different views."""
    sets: dict[tuple[str, str], dict[str, StimulusSpec]] = {}
    for (item, condition), spec in specs.items():
        if spec.explainer is not None:
            sets.setdefault((item, spec.image_key), {})[condition] = spec
    return sets


def groups_alike(
    sets: Iterable[Specs], store: Store, progress: Callable[[str, int, int], None]
) -> list[list[Group]]:
    """Per set the groups of conditions that look alike. Pictures are drawn into `store`. A failure to draw is
    not reported here: the build names it, with its reason."""
    listed = list(sets)
    wanted = [spec for specs in listed for spec in specs.values()]
    files = {}
    for index, made in enumerate(attempt(wanted, Bench(store, device()))):
        if isinstance(made, RenderedStimulus):
            files[made.spec.picture_key] = made.drawn.explanation_file
        progress("comparing pictures", index + 1, len(wanted))
    return [
        [
            *(group for same in _by_size(_pictures(specs, files, store)) for group in near_identical(same)),
            *_same_texts(specs, files, store),
        ]
        for specs in listed
    ]


def _same_texts(specs: Specs, files: Mapping[str, str | None], store: Store) -> list[Group]:
    """Conditions under which the same words of a text have the same shades."""
    alike: dict[bytes, list[str]] = {}
    for condition, spec in specs.items():
        file = files.get(spec.picture_key)
        if file is not None and file.endswith(".json"):
            alike.setdefault(store.get(file), []).append(condition)
    return [tuple(names) for names in alike.values() if len(names) > 1]


def _pictures(specs: Specs, files: Mapping[str, str | None], store: Store) -> dict[str, Pixels]:
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
