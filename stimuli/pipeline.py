"""Specs in, pictures out: prepare a predictor, survey what it says about the items, render stimuli.

Everything that a rendering needs is in the store: the predictor's archive and the views that it saw. So any
process that reaches the store can render any spec, and the same spec always ends in the same files.
"""

from __future__ import annotations

import importlib.metadata
import io
import platform
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stimuli.datasets import open_dataset
from stimuli.errors import ShapeMismatch, StimulusError
from stimuli.explainers import Batch, check_explainer, open_explainer, version_of
from stimuli.predictors import open_predictor, restore
from stimuli.render import heatmap, png
from stimuli.spec import RENDERER_VERSION, Component, JsonValue, RenderSpec, StimulusSpec, content_key
from stimuli.store import Store, shard_key
from stimuli.types import Dataset, Pixels, Progress, Split, silent

if TYPE_CHECKING:
    from stimuli.predictors.base import TorchPredictor

BATCH_IMAGES = 16
_VIEWS_AT_ONCE = 64
_RESTORED_MAX = 2
_restored: OrderedDict[str, TorchPredictor] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a study's stimuli come from: opened dataset and predictor. The predictor's archive is in the
    store.
    """

    dataset: Dataset
    predictor: TorchPredictor
    predictor_key: str


@dataclass(frozen=True, slots=True)
class PredictedItem:
    """An item with what the predictor says about it.

    `index` is the logit of the predicted label, `confidence` its softmax probability (0-1), `image_key` names
    the stored view, `width_px` and `height_px` are the view's size.
    """

    key: str
    truth: str
    group: str
    predicted: str
    index: int
    confidence: float
    logits: tuple[float, ...]
    image_key: str
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class Rendered:
    """The files of one stimulus, as store keys. The baseline has no explanation.

    `picture_digest` is equal exactly for stimuli that look equal: it hashes the pixels of the explanation, or
    of the image where there is none. `provenance` says by what it was made, and never decides a key.
    """

    spec: StimulusSpec
    image_file: str
    image_tile_file: str
    explanation_file: str | None
    explanation_tile_file: str | None
    picture_digest: str
    width_px: int
    height_px: int
    tile_width_px: int
    tile_height_px: int
    provenance: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Failed:
    """A stimulus that could not be made, and why, in one sentence."""

    spec: StimulusSpec
    error: str


def prepare(
    dataset: Component, predictor: Component, folder: Path, store: Store, progress: Progress = silent
) -> Source:
    """Open the dataset, load or train the predictor, and keep the predictor's archive in the store.

    A network that was trained before on the same content with the same settings is taken from the store.
    Errors as `open_dataset` and `open_predictor`.
    """
    opened = open_dataset(dataset, folder)
    known = _trained_file(predictor, dataset, opened.content_digest())
    if known and store.has(known):
        made = restore(store.get(known))
    else:
        made = open_predictor(predictor, folder, opened, progress)
    archive = made.dump()
    if known:
        store.put(known, archive)
    key = made.key
    store.put(predictor_file(key), archive)
    return Source(opened, made, key)


def survey(
    source: Source, store: Store, progress: Progress = silent, split: Split = "people"
) -> list[PredictedItem]:
    """Ask the predictor about every item of `split`, and store the view of each: exactly what the network
    saw.
    """
    items = source.dataset.items(split)
    found: list[PredictedItem] = []
    for start in range(0, len(items), _VIEWS_AT_ONCE):
        part = items[start : start + _VIEWS_AT_ONCE]
        views = [source.predictor.view(source.dataset.pixels(item.key)) for item in part]
        for item, view, logits in zip(part, views, source.predictor.logits(views), strict=True):
            image_key = png.pixel_key(view)
            store.put(view_file(image_key), png.encode(view))
            index = int(logits.argmax())
            found.append(
                PredictedItem(
                    key=item.key,
                    truth=item.truth,
                    group=item.group,
                    predicted=source.predictor.labels[index],
                    index=index,
                    confidence=_softmax(logits)[index],
                    logits=tuple(float(value) for value in logits),
                    image_key=image_key,
                    width_px=view.shape[1],
                    height_px=view.shape[0],
                )
            )
        progress("asking the predictor", len(found), len(items))
    return found


def spec_for(
    item: PredictedItem, source: Source, explainer: Component | None, render: RenderSpec, seed: int
) -> StimulusSpec:
    """The spec of `item` under `explainer` (None: the baseline), which explains the predicted label's logit.

    BadSpec for an explainer that does not exist, NotApplicable for one that cannot explain this predictor.
    """
    layer = source.predictor.layer
    if explainer is not None:
        open_explainer(explainer).require(source.predictor, layer)
        explainer = check_explainer(explainer)
    return StimulusSpec(
        image_key=item.image_key,
        predictor_key=source.predictor_key,
        layer=layer,
        target=item.index,
        explainer=explainer,
        version=version_of(explainer) if explainer else 0,
        seed=seed,
        render=heatmap.check_recipe(render),
    )


def render(specs: Sequence[StimulusSpec], store: Store, progress: Progress = silent) -> Iterator[Rendered]:
    """Make the pictures of `specs`, grouped by predictor and explainer, and yield each as it is stored.

    Whatever is in the store already is not computed again. Raises the first StimulusError.
    """
    for result in attempt(specs, store, progress):
        if isinstance(result, Failed):
            raise StimulusError(result.error)
        yield result


def attempt(
    specs: Sequence[StimulusSpec], store: Store, progress: Progress = silent
) -> Iterator[Rendered | Failed]:
    """As `render`, but yields a `Failed` for what cannot be made, and goes on."""
    done = 0
    for batch in _batches(specs):
        for result in _render_batch(batch, store):
            done += 1
            yield result
        progress("rendering stimuli", done, len(specs))


def view_file(image_key: str) -> str:
    """Where the view with this key is stored."""
    return shard_key("views", image_key, "png")


def map_file(attribution_key: str) -> str:
    """Where the raw map with this key is stored: float32 (H, W), lossless."""
    return shard_key("maps", attribution_key, "npz")


def predictor_file(predictor_key: str) -> str:
    """Where the archive of this predictor is stored."""
    return f"predictors/{predictor_key}.bin"


def _trained_file(predictor: Component, dataset: Component, digest: str) -> str | None:
    """Where a network that is trained on the spot is kept; None for predictors that are not."""
    if predictor.name != "trained_cnn":
        return None
    from stimuli.predictors.trained_cnn import training_key  # imports torch

    return f"trained/{training_key(predictor, dataset, digest)}.bin"


def _restore(predictor_key: str, store: Store) -> TorchPredictor:
    """The predictor, from the last few that this process restored or from the store."""
    if predictor_key not in _restored:
        _restored[predictor_key] = restore(store.get(predictor_file(predictor_key)))
        while len(_restored) > _RESTORED_MAX:
            _restored.popitem(last=False)
    _restored.move_to_end(predictor_key)
    return _restored[predictor_key]


def _softmax(logits: NDArray[np.float32]) -> list[float]:
    powers = np.exp(np.asarray(logits, np.float64) - logits.max())
    return [float(share) for share in powers / powers.sum()]


def _batches(specs: Iterable[StimulusSpec]) -> Iterator[list[StimulusSpec]]:
    """Specs that share predictor, explainer and layer, at most BATCH_IMAGES together, in the order of
    arrival.
    """
    groups: dict[str, list[StimulusSpec]] = {}
    for spec in specs:
        explainer = spec.explainer.as_json() if spec.explainer else None
        groups.setdefault(content_key([spec.predictor_key, explainer, spec.layer]), []).append(spec)
    for group in groups.values():
        for start in range(0, len(group), BATCH_IMAGES):
            yield group[start : start + BATCH_IMAGES]


def _render_batch(batch: list[StimulusSpec], store: Store) -> Iterator[Rendered | Failed]:
    try:
        views = [_view(spec, store) for spec in batch]
        maps = _maps(batch, views, store)
    except StimulusError as error:
        if len(batch) == 1:
            yield Failed(batch[0], str(error))
            return
        # One spoiled picture must not take its neighbours along.
        for spec in batch:
            yield from _render_batch([spec], store)
        return
    for spec, view, values in zip(batch, views, maps, strict=True):
        yield _draw(spec, view, values, store)


def _view(spec: StimulusSpec, store: Store) -> Pixels:
    view = png.decode(store.get(view_file(spec.image_key)))
    if png.pixel_key(view) != spec.image_key:
        raise ShapeMismatch(
            f"the stored view {spec.image_key} has other pixels than its key says: "
            "delete the file and build again"
        )
    return view


def _maps(batch: list[StimulusSpec], views: list[Pixels], store: Store) -> list[NDArray[np.float32] | None]:
    """The raw map of each spec: stored ones are read, the others computed together and stored."""
    if batch[0].explainer is None:
        return [None] * len(batch)
    maps = {
        spec.attribution_key: _read_map(store, spec.attribution_key)
        for spec in batch
        if store.has(map_file(spec.attribution_key))
    }
    wanted = {spec.attribution_key: at for at, spec in enumerate(batch) if spec.attribution_key not in maps}
    if wanted:
        new = _attribute([batch[at] for at in wanted.values()], [views[at] for at in wanted.values()], store)
        for key, values in zip(wanted, new, strict=True):
            first = store.put(map_file(key), _write_map(values))
            # Who comes second draws from the stored map: two machines may differ in the last bit.
            maps[key] = values if first else _read_map(store, key)
    return [maps[spec.attribution_key] for spec in batch]


def _attribute(specs: list[StimulusSpec], views: list[Pixels], store: Store) -> NDArray[np.float32]:
    explainer = specs[0].explainer
    assert explainer is not None
    if version_of(explainer) != specs[0].version:
        raise StimulusError(
            f"explainer {explainer.name!r} is version {version_of(explainer)} here, but version "
            f"{specs[0].version} was asked for: update this worker, or build the study again"
        )
    predictor = _restore(specs[0].predictor_key, store)
    batch = Batch(
        inputs=predictor.inputs(views),
        targets=[spec.target for spec in specs],
        keys=[spec.image_key for spec in specs],
        seeds=[spec.seed for spec in specs],
        layer=specs[0].layer,
    )
    method = open_explainer(explainer)
    method.require(predictor, batch.layer)
    return method.attribute(predictor, batch).values


def _draw(spec: StimulusSpec, view: Pixels, values: NDArray[np.float32] | None, store: Store) -> Rendered:
    small = heatmap.tile(view, spec.render)
    explanation_file = explanation_tile_file = None
    shown = view
    if values is not None:
        shown = heatmap.overlay(view, values, spec.render)
        explanation_file = _keep(store, "pictures", spec.picture_key, shown)
        tile_key = content_key({"picture": spec.picture_key, "size": "tile"})
        explanation_tile_file = _keep(
            store, "pictures", tile_key, heatmap.overlay_tile(view, values, spec.render)
        )
    image_tile_key = content_key(
        {"image": spec.image_key, "tile_px": spec.render.tile_px, "renderer": RENDERER_VERSION}
    )
    return Rendered(
        spec=spec,
        image_file=view_file(spec.image_key),
        image_tile_file=_keep(store, "tiles", image_tile_key, small),
        explanation_file=explanation_file,
        explanation_tile_file=explanation_tile_file,
        picture_digest=png.pixel_key(shown),
        width_px=view.shape[1],
        height_px=view.shape[0],
        tile_width_px=small.shape[1],
        tile_height_px=small.shape[0],
        provenance=dict(_versions()),
    )


def _keep(store: Store, room: str, digest: str, picture: Pixels) -> str:
    key = shard_key(room, digest, "png")
    if not store.has(key):
        store.put(key, png.encode(picture))
    return key


def _read_map(store: Store, attribution_key: str) -> NDArray[np.float32]:
    with np.load(io.BytesIO(store.get(map_file(attribution_key))), allow_pickle=False) as file:
        values: NDArray[np.float32] = file["values"]
    return values


def _write_map(values: NDArray[np.float32]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, values=np.asarray(values, np.float32))
    return buffer.getvalue()


@cache
def _versions() -> dict[str, str]:
    names = ("torch", "captum", "numpy", "scipy", "Pillow", "matplotlib")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": "cpu",
        **{name.lower(): importlib.metadata.version(name) for name in names},
    }
