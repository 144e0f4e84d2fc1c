"""Keys of files in the store, and how attributions are written: losslessly, and never as a pickle."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isfinite
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from stimuli.errors import NotApplicable, ShapeMismatch
from stimuli.render import png
from stimuli.spec import canonical_json, content_key
from stimuli.store import Store, shard_key
from stimuli.types import (
    Attribution,
    ConceptAttribution,
    Mask,
    PictureExplanation,
    PixelAttribution,
    Pixels,
    RegionAttribution,
    Span,
    TextExplanation,
    TokenAttribution,
)

if TYPE_CHECKING:
    from stimuli.predictors.text.units import TextUnits

MAPS = "maps"
"""The room of the store for raw attributions."""
VIEWS = "views"
"""The room for pictures that are named by their own pixels: what networks see, and what people see."""
_KINDS: dict[type[Attribution], str] = {
    PixelAttribution: "pixels",
    TokenAttribution: "tokens",
    ConceptAttribution: "concepts",
    PictureExplanation: "pictures",
    TextExplanation: "text",
    RegionAttribution: "region",
}


def view_file(image_key: str) -> str:
    """The file of the view with this key."""
    return shard_key(VIEWS, image_key, "png")


def text_file(text_key: str) -> str:
    """The file of the text with this key."""
    return shard_key("texts", text_key, "json")


def map_file(attribution_key: str) -> str:
    """The file of the raw attribution with this key."""
    return shard_key(MAPS, attribution_key, "npz")


def predictor_file(predictor_key: str) -> str:
    """The file of this predictor's archive."""
    return f"predictors/{predictor_key}.bin"


def picture_file(picture_key: str, ending: str = "png") -> str:
    """The file of the drawn explanation with this key."""
    return shard_key("pictures", picture_key, ending)


def keep_picture(store: Store, room: str, digest: str, picture: Pixels) -> str:
    """Store a picture unless it is there; its file."""
    key = shard_key(room, digest, "png")
    if not store.has(key):
        store.put(key, png.encode(picture))
    return key


def keep_drawn(
    store: Store, explanations: Sequence[tuple[str, Pixels]], digest: str, tile: Pixels
) -> tuple[str, ...]:
    """Store explanations under their own digests, and the small picture of their item, which others may have
    stored before; their files. They are written side by side: a bucket is far away."""
    drawn = [(picture_file(name), picture) for name, picture in explanations]
    with ThreadPoolExecutor(len(drawn) + 1) as writers:
        small = writers.submit(keep_picture, store, "tiles", digest, tile)
        list(writers.map(lambda place: store.put(place[0], png.encode(place[1])), drawn))
        return small.result(), *(file for file, _ in drawn)


def read_view(store: Store, image_key: str) -> Pixels:
    """The stored view. Raises ShapeMismatch when its pixels are not those that the key names."""
    view = png.decode(store.get(view_file(image_key)))
    if png.pixel_key(view) != image_key:
        raise ShapeMismatch(
            f"the stored view {image_key} has other pixels than its key says: delete the file and build again"
        )
    return view


def region_file(regions: str, image_key: str) -> str:
    """The file of a view's region, among those that `regions` names."""
    return shard_key("regions", content_key([regions, image_key]), "png")


def keep_region(store: Store, regions: str, image_key: str, region: Mask) -> None:
    """Store the region of a view, bool (H, W)."""
    store.put(region_file(regions, image_key), png.encode(np.repeat(region[..., None] * np.uint8(255), 3, 2)))


def read_region(store: Store, regions: str, image_key: str) -> Mask | None:
    """The stored region of a view; None if none is known."""
    file = region_file(regions, image_key)
    return png.decode(store.get(file))[..., 0] > 0 if store.has(file) else None


def keep_text(store: Store, text_key: str, text: str, units: TextUnits | None = None) -> str:
    """Store a text, with its units if the study declares some, unless it is there; its file."""
    file = text_file(text_key)
    if not store.has(file):
        cut = {} if units is None else {"units": units.as_json()}
        store.put(file, canonical_json({"text": text, **cut}).encode())
    return file


def read_text(store: Store, text_key: str) -> str:
    """The stored text."""
    return str(json.loads(store.get(text_file(text_key)))["text"])


def read_units(store: Store, text_key: str) -> tuple[Span, ...] | None:
    """The spans of the units of a stored text; None if they are those of the predictor."""
    units = json.loads(store.get(text_file(text_key))).get("units")
    return units and tuple((int(start), int(end)) for start, end in units["spans"])


def recorded_file(digest: str) -> str:
    """The file of an explanation that was made elsewhere, by the digest of its content."""
    return shard_key("recorded", digest, "npz")


def keep_recorded(store: Store, made: Attribution) -> str:
    """Store an explanation that was made elsewhere; the digest of its content."""
    digest = attribution_digest(made)
    if not store.has(recorded_file(digest)):
        store.put(recorded_file(digest), write_attribution(made))
    return digest


def read_recorded(store: Store, digest: str) -> Attribution:
    """The explanation with this digest. ShapeMismatch if the file holds another or is damaged."""
    made = _load_attribution(store, recorded_file(digest))
    if attribution_digest(made) != digest:
        raise ShapeMismatch(
            f"the stored file {recorded_file(digest)} has another content than its name says: "
            "delete it and build the study again"
        )
    return made


def keep_attribution(store: Store, attribution_key: str, made: Attribution) -> Attribution:
    """Store it. A second writer gets what the first one stored: two machines may differ in the last bit.

    Raises NotApplicable for values that are not finite: what is stored is never replaced.
    """
    if not np.isfinite(getattr(made, "values", 0)).all():
        raise NotApplicable(
            "the explanation has values that are not finite: the network overflows on this item or on a "
            "changed copy of it"
        )
    if store.put(map_file(attribution_key), write_attribution(made)):
        return made
    return read_attribution(store, attribution_key)


def attribution_digest(made: Attribution) -> str:
    """SHA-256 of the content: equal exactly for explanations that are equal, however compressed."""
    head, arrays = _parts(made)
    total = hashlib.sha256(canonical_json(head).encode())
    for name, array in sorted(arrays.items()):
        total.update(canonical_json([name, str(array.dtype), *array.shape]).encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def write_attribution(made: Attribution) -> bytes:
    """An .npz archive of plain arrays: numbers float32, pictures uint8, and what says how to read them."""
    head, arrays = _parts(made)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, head=np.frombuffer(canonical_json(head).encode(), np.uint8), **arrays)
    return buffer.getvalue()


def _parts(made: Attribution) -> tuple[dict[str, object], dict[str, Any]]:
    """What says how to read an attribution, and its arrays by name."""
    checks = {name: value for name, value in made.checks.items() if isfinite(value)}
    head: dict[str, object] = {"kind": _KINDS[type(made)], "checks": checks}
    if isinstance(made, TextExplanation):
        return head | {"text": made.text}, {}
    if isinstance(made, PictureExplanation):
        pictures = {f"picture_{at}": picture for at, picture in enumerate(made.pictures)}
        return head | {"captions": list(made.captions)}, dict(pictures)
    if isinstance(made, RegionAttribution):
        return head, {"cells": np.asarray(made.cells, np.uint8)}
    arrays: dict[str, Any] = {"values": np.asarray(made.values, np.float32)}
    if isinstance(made, PixelAttribution):
        head["signed"] = made.signed
    elif isinstance(made, TokenAttribution):
        arrays["spans"] = np.asarray(made.spans, np.int64).reshape(-1, 2)
    else:
        head |= {"concepts": list(made.concepts), "order": made.order, "label": made.label}
    return head, arrays


def read_attribution(store: Store, attribution_key: str) -> Attribution:
    """What `write_attribution` wrote; older files hold a map alone. ShapeMismatch if it is damaged."""
    return _load_attribution(store, map_file(attribution_key))


def _load_attribution(store: Store, file: str) -> Attribution:
    try:
        return _read(store.get(file))
    except (BadZipFile, EOFError, KeyError, ValueError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ShapeMismatch(
            f"the stored file {file} is damaged ({error}): delete it and build again"
        ) from error


def _read(data: bytes) -> Attribution:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = dict(file)
    head: dict[str, Any] = {"kind": "pixels"}
    if "head" in arrays:
        head = json.loads(arrays["head"].tobytes())
    checks = head.get("checks", {})
    if head["kind"] == "text":
        return TextExplanation(head["text"], checks)
    if head["kind"] == "pictures":
        pictures = tuple(arrays[f"picture_{at}"] for at in range(len(head["captions"])))
        return PictureExplanation(pictures, tuple(head["captions"]), checks)
    if head["kind"] == "region":
        return RegionAttribution(arrays["cells"] > 0, checks)
    values = arrays["values"]
    if head["kind"] == "tokens":
        return TokenAttribution(tuple((int(a), int(b)) for a, b in arrays["spans"]), values, checks)
    if head["kind"] == "concepts":
        return ConceptAttribution(tuple(head["concepts"]), values, head["order"], head["label"], checks)
    return PixelAttribution(values, bool(head.get("signed", (values < 0).any())), checks)


def tile_key(picture_key: str) -> str:
    """The digest under which the reservoir's size of a drawn explanation is stored."""
    return content_key({"picture": picture_key, "size": "tile"})
