"""From a study's components to specs: open the dataset, prepare the predictor, ask it about every item.

Everything that a rendering needs is in the store: the predictor's archive and the views or texts that it saw.
So any process that reaches the store can render any spec, and the same spec always ends in the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from stimuli.datasets import DATASETS, open_dataset
from stimuli.datasets.parallel_reading import side_by_side
from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import (
    check_explainer,
    is_recorded,
    open_explainer,
    packages_of,
    tie_to_answer,
    version_of,
)
from stimuli.explainers.base import refuse_operator
from stimuli.explainers.targets import Target
from stimuli.planner.values import ExplainedNumber, Operator
from stimuli.predictors import PREDICTORS, open_predictor, restore, training_key_of
from stimuli.predictors.framing import cropped_share
from stimuli.predictors.text.units import TextUnits, cut_text, cutter_name, join_units
from stimuli.render import png
from stimuli.render.attribution_field import check_recipe
from stimuli.render.recipe import Canvas, Interpolation, RenderSpec, View
from stimuli.render.view_placement import shown_picture
from stimuli.spec import Component, Precision, StimulusSpec, content_key
from stimuli.store import Store
from stimuli.store.answers import answers_file, keep_answers, read_answers
from stimuli.store.files import (
    VIEWS,
    keep_picture,
    keep_region,
    keep_text,
    predictor_file,
    read_text,
    read_units,
    read_view,
    view_file,
)
from stimuli.types import (
    WHOLE,
    Box,
    Dataset,
    Item,
    Mask,
    Pixels,
    Progress,
    Span,
    Split,
    TextDataset,
    Units,
    Use,
    silent,
)

if TYPE_CHECKING:
    from stimuli.predictors.base import TorchPredictor
    from stimuli.predictors.text.base import TextPredictor

_ITEMS_AT_ONCE = 64
PREDICTED = Target()
"""The logit of the predicted label."""


@dataclass(frozen=True, slots=True)
class Source:
    """The sources of a study's stimuli: the opened dataset and predictor. The predictor's archive is in the
    store. `packages` are those that offer the two, "distribution==version" each, none for the core's.
    `regions` names the planted or annotated regions of the pictures, as this predictor sees them; empty if
    there are none. `content` is the digest of the dataset; without it no answer is kept. `units` are what can
    be marked of texts.
    """

    dataset: Dataset | TextDataset
    predictor: TorchPredictor | TextPredictor
    predictor_key: str
    packages: tuple[str, ...] = ()
    regions: str = ""
    content: str = ""
    units: Units = "legacy"


@dataclass(frozen=True, slots=True)
class PredictedItem:
    """An item with what the predictor says about it.

    `index` is the logit of the predicted label, `confidence` its softmax probability (0-1), `image_key` names
    the stored view or text, `width_px` and `height_px` are the view's size, 0 for texts. `box` is the part of
    the picture that the view shows (see `Framing.box`), `cropped_share` what it leaves out (0-1);
    `original_px` is the picture's own width and height, `is_grey` says that it has no colour at all.
    `levels` are the darkest and the lightest level (0-255) of any channel. `use` and `annotated` are the
    item's.
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
    box: Box = WHOLE
    original_px: tuple[int, int] = (0, 0)
    is_grey: bool = False
    levels: tuple[int, int] = (0, 255)
    use: Use = "task"
    annotated: tuple[tuple[str, str], ...] = ()

    @property
    def cropped_share(self) -> float:
        return cropped_share(self.box)


def prepare(
    dataset: Component,
    predictor: Component,
    folder: Path,
    store: Store,
    progress: Progress = silent,
    decoding: int = 1,
    units: Units = "legacy",
) -> Source:
    """Open the dataset, load or train the predictor, and keep the predictor's archive in the store.

    `decoding` is the version of how files become items (`open_dataset`).

    A network that was trained before on the same content with the same settings is taken from the store.
    Errors as `open_dataset` and `open_predictor`; BadSpec if one is about pictures and the other about texts,
    and for units of pictures.
    """
    opened = open_dataset(dataset, folder, decoding)
    offered_by = DATASETS.origin(dataset.name)
    content = opened.content_digest()
    if offered_by is not None:
        content = content_key([content, str(offered_by)])
    origins = {str(origin) for origin in (offered_by, PREDICTORS.origin(predictor.name)) if origin}
    packages = tuple(sorted(origins))
    trained = training_key_of(predictor, dataset, content, folder)
    known = f"trained/{trained}.bin" if trained else None
    if known and store.has(known):
        made = restore(store.get(known))
    else:
        made = open_predictor(predictor, folder, opened, progress)
    is_text = hasattr(opened, "text")
    if is_text != (made.modality == "text"):
        raise BadSpec(
            f"dataset {dataset.name} holds {_words(is_text)}, but predictor {predictor.name} takes "
            f"{_words(made.modality == 'text')}: choose one that fits"
        )
    if units != "legacy" and not is_text:
        raise BadSpec(
            f'[stimuli] units = "{units}" cuts texts, and dataset {dataset.name} holds pictures: leave it out'
        )
    archive = made.dump()
    if known:
        store.put(known, archive)
    key = made.key
    store.put(predictor_file(key), archive)
    regions = content_key(["regions", content, key]) if not is_text and _has_regions(opened) else ""
    return Source(opened, made, key, packages, regions, content, units)


def survey(
    source: Source,
    store: Store,
    progress: Progress = silent,
    split: Split = "people",
    among: Collection[str] | None = None,
) -> list[PredictedItem]:
    """Ask the predictor about every item of `split`, and store the view or text of each: exactly what the
    network saw. The same predictor is asked about the same data once: its answers are kept in the store.
    With `among` only items of these keys are asked about, and no answer is kept, unless all are known.
    """
    items = source.dataset.items(split)
    how = source.regions or (cutter_name(source.units) if source.units != "legacy" else "")
    kept = answers_file(source.predictor_key, source.content, how, split) if source.content else ""
    if kept and (said := read_answers(store, kept, items, source.predictor.modality)) is not None:
        return [
            replace(_answered_item(item, row, source), **row) for item, row in zip(items, said, strict=True)
        ]
    if among is not None:
        items, kept = [item for item in items if item.key in among], ""
    predicted: list[PredictedItem] = []
    ask = _ask_texts if source.predictor.modality == "text" else _ask_pictures
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        predicted.extend(ask(items[start : start + _ITEMS_AT_ONCE], source, store))
        progress("asking the predictor", len(predicted), len(items))
    if kept:
        keep_answers(store, kept, predicted)
    return predicted


def _answered_item(item: Item, row: Mapping[str, Any], source: Source) -> PredictedItem:
    """The item with what was answered about it; its own facts are today's."""
    logits = np.array(row["logits"], np.float32)
    size = row["width_px"], row["height_px"]
    return predicted_item(item, logits, source.predictor.labels, row["image_key"], size)


def _ask_pictures(items: Sequence[Item], source: Source, store: Store) -> Iterable[PredictedItem]:
    predictor, dataset = cast("TorchPredictor", source.predictor), cast("Dataset", source.dataset)
    pictures = list(side_by_side(dataset.pixels, [item.key for item in items]))
    views = [predictor.view(pixels) for pixels in pictures]
    boxes = [predictor.box(pixels.shape) for pixels in pictures]
    rows = zip(items, pictures, views, boxes, predictor.logits(views), strict=True)
    for item, picture, view, box, logits in rows:
        image_key = png.pixel_key(view)
        store.put(view_file(image_key), png.encode(view))
        if source.regions and (region := region_of(dataset, item.key, predictor.view)) is not None:
            keep_region(store, source.regions, image_key, region)
        size = view.shape[1], view.shape[0]
        original_px = picture.shape[1], picture.shape[0]
        predicted = predicted_item(item, logits, predictor.labels, image_key, size)
        is_grey = bool((picture == picture[..., :1]).all())
        levels = int(picture.min()), int(picture.max())
        yield replace(predicted, box=box, original_px=original_px, is_grey=is_grey, levels=levels)


def _has_regions(dataset: Any) -> bool:
    parts = getattr(dataset, "parts", lambda key: ())
    return hasattr(dataset, "mask") or any(parts(item.key) for item in dataset.items("people"))


def region_of(dataset: Any, key: str, view: Callable[[Pixels], Pixels]) -> Mask | None:
    """The part of a picture that is known to decide (planted) or that people marked (all boxes of parts.csv),
    bool (H, W) on the predictor's `view` of it; None if nothing is known.
    """
    if hasattr(dataset, "mask"):
        region = np.asarray(dataset.mask(key), bool)
    else:
        parts = getattr(dataset, "parts", lambda key: ())(key)
        if not parts:
            return None
        height, width = dataset.pixels(key).shape[:2]
        region = np.zeros((height, width), bool)
        for part in parts:
            rows = slice(round(part.top * height), round(part.bottom * height))
            region[rows, round(part.left * width) : round(part.right * width)] = True
    drawn = np.repeat(region[..., None] * np.uint8(255), 3, axis=2)
    return np.asarray(view(drawn)[..., 0] >= 128)


def _ask_texts(items: Sequence[Item], source: Source, store: Store) -> Iterable[PredictedItem]:
    predictor, dataset = cast("TextPredictor", source.predictor), cast("TextDataset", source.dataset)
    texts = [dataset.text(item.key) for item in items]
    for item, text, logits in zip(items, texts, predictor.text_logits(texts), strict=True):
        units = None
        if source.units != "legacy":
            units = cut_text(text, source.units, predictor.network.tokens(text).spans)
        key = _keep_units(text, units, predictor, store)
        yield predicted_item(item, logits, predictor.labels, key, (0, 0))


def _keep_units(text: str, units: TextUnits | None, predictor: TextPredictor, store: Store) -> str:
    """Store a text with its units, if the study declares some; its key, which they are a part of."""
    key = predictor.text_key(text)
    if units is not None:
        key = content_key({"text": key, "units": units.as_json()})
    keep_text(store, key, text, units)
    return key


def join_item_units(
    item: PredictedItem, source: Source, spans: Iterable[Span], store: Store
) -> PredictedItem:
    """A text whose units are one where one of `spans` covers several, stored under a key of its own; the
    item itself if there are none, or the study declares no units.
    """
    units = read_units(store, item.image_key)
    if units is None or (joined := join_units(units, tuple(spans))) == units:
        return item
    text, cut = read_text(store, item.image_key), TextUnits(cutter_name(source.units), joined)
    return replace(item, image_key=_keep_units(text, cut, cast("TextPredictor", source.predictor), store))


def predicted_item(
    item: Item | PredictedItem,
    logits: NDArray[np.float32],
    labels: Sequence[str],
    key: str,
    size: tuple[int, int],
) -> PredictedItem:
    """The item with what its logits, (K,), say; `key` names the stored view, `size` is its width and height
    in pixels."""
    index = int(logits.argmax())
    return PredictedItem(
        key=item.key,
        truth=item.truth,
        group=item.group,
        predicted=labels[index],
        index=index,
        confidence=_softmax(logits)[index],
        logits=tuple(float(value) for value in logits),
        image_key=key,
        width_px=size[0],
        height_px=size[1],
        use=item.use,
        annotated=item.annotated,
    )


def canvas_of(
    item: PredictedItem,
    source: Source,
    store: Store,
    view: View,
    longest_px: int,
    interpolation: Interpolation = "smooth",
) -> Canvas:
    """The picture that people see of `item`, stored: the original, or the network's `view` of it, resampled
    so that its longer side has `longest_px` pixels. What the network did not see of it is faded.
    """
    if view == "network":
        pixels, box = read_view(store, item.image_key), WHOLE
    else:
        pixels, box = cast("Dataset", source.dataset).pixels(item.key), item.box
    return canvas_from(pixels, box, store, longest_px, interpolation)


def canvas_from(
    pixels: Pixels, box: Box, store: Store, longest_px: int, interpolation: Interpolation
) -> Canvas:
    """As `canvas_of`, from the pixels themselves, uint8 (H, W, 3); `box` is what the network sees of them."""
    picture = shown_picture(pixels, box, longest_px, interpolation)
    key = png.pixel_key(picture)
    keep_picture(store, VIEWS, key, picture)
    return Canvas(key, box, interpolation)


def spec_for(
    item: PredictedItem,
    source: Source,
    explainer: Component | None,
    render: RenderSpec,
    seed: int,
    precision: Precision = "float32",
    target: Target = PREDICTED,
    canvas: Canvas | None = None,
) -> StimulusSpec:
    """The spec of `item` under `explainer` (None: the baseline, which explains nothing), drawn on `canvas`
    (None: on the network's view itself).

    A recorded explanation is given as `store_recordings` names it. BadSpec as in `check_explainer` and
    `check_recipe`.
    """
    layer = getattr(source.predictor, "layer", "")
    number = ExplainedNumber(item.index)
    if explainer is not None:
        if not is_recorded(explainer):
            explainer = check_explainer(explainer)
        elif "digest" not in explainer.params:
            raise BadSpec("recorded explanations are read from their files first: see `store_recordings`")
        number = target.number(source.predictor.labels, item.index, item.truth, item.logits)
    spec = StimulusSpec(
        image_key=item.image_key,
        predictor_key=source.predictor_key,
        layer=layer,
        target=number.target,
        explainer=explainer,
        version=version_of(explainer) if explainer else 0,
        seed=seed,
        render=check_recipe(render),
        precision=precision,
        packages=packages_of(explainer) if explainer else (),
        operator=number.operator,
        against=number.against,
        canvas=canvas,
    )
    return tie_to_answer(spec) if explainer is not None and is_recorded(explainer) else spec


def store_recordings(
    explainer: Component,
    folder: Path,
    items: Mapping[str, PredictedItem],
    known: Collection[str],
    store: Store,
    progress: Progress = silent,
) -> dict[str, Component]:
    """Read the recorded explanations of `items` and store them: by item key, what names each in a spec.

    `known` are the keys of all items that an explanation may belong to. BadSpec as in `record`.
    """
    from stimuli.explainers.recorded import ItemView, record

    views = {}
    for key, item in items.items():
        if item.width_px:
            views[key] = ItemView(item.height_px, item.width_px)
        else:
            views[key] = ItemView(
                text=read_text(store, item.image_key), units=read_units(store, item.image_key)
            )
    return record(explainer, folder, views, known, store, progress)


def inapplicable(source: Source, explainer: Component, operator: Operator = "logit") -> str | None:
    """Why `explainer` cannot explain this predictor, or not what `operator` makes of its logits, in one
    sentence with the remedy; None if it can.

    BadSpec as in `check_explainer`. Whether recorded explanations fit is for `store_recordings` to say.
    """
    if is_recorded(explainer):
        return None
    method = open_explainer(explainer)
    is_text = source.predictor.modality == "text"
    if (method.kind == "text") != is_text:
        return (
            f"{explainer.name} explains {_words(method.kind == 'text')}, but the predictor takes "
            f"{_words(is_text)}"
        )
    try:
        method.require(cast("Any", source.predictor), getattr(source.predictor, "layer", ""))
        refuse_operator(method, explainer.name, operator)
    except NotApplicable as error:
        return str(error)
    return None


def _words(is_text: bool) -> str:
    return "texts" if is_text else "pictures"


def _softmax(logits: NDArray[np.float32]) -> list[float]:
    powers = np.exp(np.asarray(logits, np.float64) - logits.max())
    return [float(share) for share in powers / powers.sum()]
