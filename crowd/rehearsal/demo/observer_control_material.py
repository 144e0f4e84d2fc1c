"""What the observers' controls are taken on: a study's items as people saw them, read from the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from django.conf import settings

from experiments.errors import StudyError
from experiments.models import Item, Rendering, Study, Trial
from experiments.selectors import File, definition_of
from experiments.simulation.controls.substitute_explanations import Pictures, Seen
from experiments.simulation.controls.text_markings import Spans, Texts
from experiments.simulation.passage import Passage
from experiments.simulation.sight import Percept
from stimuli.datasets import open_dataset
from stimuli.errors import StimulusError
from stimuli.render import png
from stimuli.render.recipe import Canvas
from stimuli.render.view_placement import Part, region_on, seen_part
from stimuli.spec import StimulusSpec
from stimuli.store import Store, open_store
from stimuli.store.files import read_region
from stimuli.types import WHOLE, Mask, Pixels


def material(study: Study, folder: Path) -> Pictures | Texts:
    """The study's texts if it has any, else its pictures."""
    files = Rendering.objects.filter(item__study=study).values_list("stimulus__image_file", flat=True)
    is_text = any(File(file, 0, 0).is_text for file in files)
    return texts_of(study, folder) if is_text else pictures_of(study, folder)


def with_unseen(shown: Pictures | Texts, unseen: Sequence[tuple[Seen, str]]) -> Pictures | Texts:
    """The same with further items for the ceiling, of its own kind."""
    if isinstance(shown, Texts):
        return replace(shown, unseen=cast("list[tuple[Passage, str]]", list(unseen)))
    return replace(shown, unseen=cast("list[tuple[Percept, str]]", list(unseen)))


def texts_of(study: Study, folder: Path) -> Texts:
    """The study's texts and their marks, with the planted words if the dataset has them."""
    store = open_store(settings.STORAGE_URL)
    columns = ("item__key", "condition__name", "stimulus__image_file", "stimulus__explanation_file")
    rows = list(Rendering.objects.filter(item__study=study).values_list(*columns))
    marked = {(key, name): file for key, name, _, file in rows if file}
    plain = {key: file for key, _, file, _ in rows}

    @cache
    def document(file: str) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(store.get(file)))

    def shown(item: str, condition: str) -> Sequence[Mapping[str, Any]] | None:
        file = marked.get((item, condition))
        return None if file is None else cast("list[dict[str, Any]]", document(file)["tokens"])

    tests = Trial.objects.filter(slot__study=study, phase="test", explained=True, right__isnull=False)
    return Texts(
        plain=lambda item: str(document(plain[item])["text"]),
        shown=shown,
        predicted=dict(Item.objects.filter(study=study).values_list("key", "predicted")),
        marked_tests=tests.exists(),
        cues=_cues(study, folder),
    )


def _cues(study: Study, folder: Path) -> Callable[[str], Spans] | None:
    """The spans of the planted words by item; None if the dataset knows none."""
    dataset = _dataset(study, folder)
    keys = Item.objects.filter(study=study).values_list("key", flat=True)
    if not hasattr(dataset, "cues") or not any(dataset.cues(key) for key in keys):
        return None
    return cast("Callable[[str], Spans]", dataset.cues)


def _dataset(study: Study, folder: Path) -> Any:
    """The study's dataset; None if it cannot be opened here."""
    (table, _), *_ = definition_of(study).stimuli.sources.values()
    try:
        return open_dataset(table.component(), folder)
    except StimulusError:
        return None


def pictures_of(study: Study, folder: Path) -> Pictures:
    """The study's pictures, read from the store, with the planted regions if the dataset has them."""
    definition = definition_of(study)
    store = open_store(settings.STORAGE_URL)
    items = {item.key: item for item in Item.objects.filter(study=study)}
    columns = ("item__key", "condition__name", "stimulus__explanation_file")
    renderings = Rendering.objects.filter(item__study=study)
    shown = {(key, name): file for key, name, file in renderings.values_list(*columns)}
    drawn = dict(renderings.values_list("item__key", "stimulus__spec"))
    canvases = {key: StimulusSpec.from_json(spec).canvas for key, spec in drawn.items()}
    plain = dict(renderings.values_list("item__key", "stimulus__image_file"))

    @cache
    def pixels(file: str) -> Pixels:
        return png.decode(store.get(file))

    def overlay(item: str, condition: str) -> Pixels | None:
        file = shown[item, condition]
        return pixels(file) if file else None

    def seen(item: str) -> Part:
        canvas = canvases[item]
        return seen_part(canvas.box if canvas else WHOLE, pixels(plain[item]).shape)

    return Pictures(
        original=lambda item: pixels(plain[item]),
        shown=overlay,
        predicted={key: item.predicted for key, item in items.items()},
        render=definition.render.spec(),
        mask=_masks(study, folder, store, items, canvases, lambda item: pixels(plain[item]).shape),
        seen=seen,
    )


def _masks(
    study: Study,
    folder: Path,
    store: Store,
    items: dict[str, Item],
    canvases: dict[str, Canvas | None],
    shape_of: Callable[[str], tuple[int, ...]],
) -> Callable[[str], Mask] | None:
    """The planted decisive regions on the pictures that people saw, if the dataset has them."""
    regions = str(study.predictor.get("regions", ""))
    dataset = _dataset(study, folder)
    if not hasattr(dataset, "mask") or not regions:
        return None

    def mask(item: str) -> Mask:
        region, canvas = read_region(store, regions, items[item].image_key), canvases[item]
        if region is None:
            raise StudyError(f"The planted region of {item!r} is not stored: build the study again.")
        return region if canvas is None else region_on(region, canvas, shape_of(item))

    return mask
