"""Explanations made elsewhere: read from a study's files, checked, and stored by the digest of their content.

A study names a file or a folder; a stimulus names one explanation by its digest, so that files may move and
no worker needs them. Which form the explanations have is told by the files themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from stimuli.datasets.file_names import Names
from stimuli.errors import BadSpec
from stimuli.explainers import RECORDED
from stimuli.explainers.base import Kind
from stimuli.explainers.recorded import arrays, tables
from stimuli.explainers.recorded.base import Files, ItemView, Readers
from stimuli.registry import closest, parameters, read_params
from stimuli.spec import Component
from stimuli.store import Store
from stimuli.store.files import keep_recorded
from stimuli.types import Attribution, PixelAttribution, Progress, Span, TokenAttribution, silent

__all__ = ["RecordedParams", "ItemView", "record", "recorded_spans"]

SENTENCES = ".txt"
FITS: Mapping[str, tuple[Kind, ...]] = {
    "image": ("image", "concept", "pictures", "sentence"),
    "text": ("text", "pictures", "sentence"),
}
"""What can explain an item of each modality."""
WORDS: Mapping[Kind, str] = {
    "image": "maps",
    "text": "token spans",
    "concept": "concept weights",
    "pictures": "pictures",
    "sentence": "sentences",
}


@parameters
class RecordedParams:
    """Explanations made elsewhere, by item key: maps, token spans, concept weights, pictures or sentences.

    `path` is a folder of maps (`<item key>.npy`, `.npz`, `.png`) or of sentences (`<item key>.txt`), an .npz
    file with one map per item key, a .json file of token spans, or a .csv file of concept weights, pictures
    with captions, or sentences. `signed` says whether the maps have evidence against the answer too; without
    it they have if any has a negative value. `resize` lets maps on a coarser grid than the network's view be
    enlarged, bilinearly.
    """

    version: ClassVar[int] = 1
    path: Annotated[str, Field(min_length=1, max_length=300)]
    signed: bool | None = None
    resize: bool = False


@dataclass(frozen=True, slots=True)
class Recordings:
    """What the files hold: how each explanation is read, by item key."""

    kind: Kind
    path: str
    readers: Readers


def record(
    component: Component,
    folder: Path,
    items: Mapping[str, ItemView],
    known: Collection[str],
    store: Store,
    progress: Progress = silent,
) -> dict[str, Component]:
    """Read and check the explanation of each of `items`, and store it: by item key, the component that names
    it.

    `known` are the keys of all items of the dataset. BadSpec for files that cannot be read or leave `folder`,
    an item without an explanation, an explanation of no known item, and one that does not fit its item.
    """
    params = read_params(component, RecordedParams, "explainer")
    held = _named_by_items(_open_recordings(params, folder), known)
    modality = "text" if any(view.text for view in items.values()) else "image"
    if held.kind not in FITS[modality]:
        fitting = ", ".join(WORDS[kind] for kind in FITS[modality])
        raise BadSpec(
            f'recorded "{params.path}" holds {WORDS[held.kind]}, but the items are {modality}s, which take '
            f"{fitting}"
        )
    _check_keys(held, items, known)
    signed = _has_signed_maps(params, held, items)
    stored: dict[str, Component] = {}
    for key, view in items.items():
        made = held.readers[key](view)
        if isinstance(made, PixelAttribution):
            if made.signed and not signed:
                raise BadSpec(
                    f'recorded "{params.path}": the map of "{key}" has values below 0, but the study says '
                    "signed = false: record magnitudes, or leave signed out"
                )
            made = replace(made, signed=signed)
        stored[key] = Component(RECORDED, {"kind": held.kind, "digest": keep_recorded(store, made)})
        progress(f"reading {params.path}", len(stored), len(items))
    return stored


def recorded_spans(
    component: Component, folder: Path, texts: Mapping[str, str], known: Collection[str]
) -> dict[str, tuple[Span, ...]]:
    """By item key, which spans of each of `texts` are explained; nothing if the files hold no token spans.

    BadSpec as in `record`, which stores them.
    """
    params = read_params(component, RecordedParams, "explainer")
    held = _named_by_items(_open_recordings(params, folder), known)
    there = texts.items() if held.kind == "text" else ()
    read = {key: held.readers[key](ItemView(text=text)) for key, text in there if key in held.readers}
    return {key: made.spans for key, made in read.items() if isinstance(made, TokenAttribution)}


def _open_recordings(params: RecordedParams, folder: Path) -> Recordings:
    files = Files(folder.resolve())
    root = files.inside(params.path, f'recorded path = "{params.path}"')
    kind: Kind = "image"
    if root.is_dir():
        names = files.below(root)
        if any(path.suffix == SENTENCES for path in names):
            kind, readers = "sentence", tables.folder_of_sentences(names, root)
        else:
            readers = arrays.folder_of_maps(names, root, params.resize)
    elif root.suffix == ".npz":
        readers = arrays.archive_of_maps(root, params.path, params.resize)
    elif root.suffix == ".json":
        kind, readers = "text", tables.token_spans(root)
    elif root.suffix == ".csv":
        kind, readers = tables.table(root, files)
    else:
        raise BadSpec(
            f'recorded path = "{params.path}": a folder or an .npz, .json or .csv file is needed; see '
            "Explanations made elsewhere in the documentation"
        )
    if kind != "image" and (params.resize or params.signed is not None):
        raise BadSpec(f'recorded "{params.path}" holds {WORDS[kind]}: signed and resize go with maps alone')
    return Recordings(kind, params.path, readers)


def _named_by_items(held: Recordings, known: Collection[str]) -> Recordings:
    """With the items' own keys, for names that are written in other characters. BadSpec for two explanations
    of one item."""
    names, readers = Names(known), {}
    for written, reader in held.readers.items():
        key = names.find(written) or written
        if key in readers:
            raise BadSpec(
                f'recorded "{held.path}": two explanations are of item "{key}", for their names differ in '
                "Unicode's form alone: keep one"
            )
        readers[key] = reader
    return replace(held, readers=readers)


def _has_signed_maps(params: RecordedParams, held: Recordings, items: Mapping[str, ItemView]) -> bool:
    """Whether the maps have a sign: as declared, else if any of them has a negative value."""
    if params.signed is not None or held.kind != "image":
        return bool(params.signed)
    return any(_has_sign(held.readers[key](view)) for key, view in items.items())


def _has_sign(made: Attribution) -> bool:
    return isinstance(made, PixelAttribution) and made.signed


def _check_keys(held: Recordings, items: Collection[str], known: Collection[str]) -> None:
    every = frozenset(known)
    strange = [key for key in held.readers if key not in every]
    if strange:
        raise BadSpec(
            f'recorded "{held.path}": there is no item "{strange[0]}"{closest(strange[0], every)} '
            f"({len(strange)} of {len(held.readers)} explanations belong to no item): name each by its item "
            "key, as study_check --items lists them"
        )
    missing = [key for key in items if key not in held.readers]
    if missing:
        raise BadSpec(
            f'recorded "{held.path}": {len(missing)} of {len(items)} items have no explanation, the first '
            f'is "{missing[0]}": record every item that study_check --items lists'
        )
