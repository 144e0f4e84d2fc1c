"""Explain, measure and draw a model's pictures in a few lines, by the machinery of a study.

Maps and drawn pictures are those of a study with the same network, pictures and seed: to the bit on a CPU, as
docs/science.md says it of every map. Everything stays in memory. What is refused is a `StimulusError`, which
names the value, the limit and the remedy.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from stimuli.datasets import DECODING, open_dataset
from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch, StimulusError
from stimuli.explainers import (
    RECORDED,
    bind_to_items,
    check_explainer,
    is_recorded,
    tie_to_answer,
    version_of,
)
from stimuli.explainers.targets import Target
from stimuli.library.inputs import (
    DEFAULT,
    Images,
    Many,
    Named,
    Pictures,
    Preprocess,
    Recipe,
    component_of,
    components_by_title,
    opened_of,
    pictures_of,
    recipe_of,
    refuse_texts,
    target_of,
)
from stimuli.metrics import METRICS, SET_METRICS, check_metric, open_set_metric
from stimuli.metrics.base import Entry, MetricValue
from stimuli.metrics.metric_key import describe_metric
from stimuli.pipeline import Bench, Order, scorings
from stimuli.pipeline import explain as run_orders
from stimuli.planner.arithmetic import arithmetic, make_repeatable
from stimuli.predictors import TRAINING_KEYS, open_predictor
from stimuli.predictors.base import TorchPredictor
from stimuli.render import png
from stimuli.render.attribution_field import drawn_field
from stimuli.render.explanation_drawing import picture_of
from stimuli.render.recipe import RenderSpec
from stimuli.render.sheet import contact_sheet
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import PredictedItem, Source, inapplicable, spec_for, survey
from stimuli.store import MemoryStore
from stimuli.store.files import keep_recorded, read_view
from stimuli.types import Attribution, Dataset, PixelAttribution, Pixels, Plane, Progress, silent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Explanations:
    """What methods say about a model's answers, by method and by picture in the order of `names`.

    `predicted` are the labels that the model answers, `confidence` their softmax probabilities (0-1), `views`
    the squares that the network saw, uint8 (H, W, 3). `made` also holds explanations that are no maps.
    `told` says which files of a folder were left out.
    """

    names: tuple[str, ...]
    predicted: tuple[str, ...]
    confidence: tuple[float, ...]
    views: tuple[Pixels, ...]
    made: Mapping[str, tuple[Attribution, ...]]
    specs: Mapping[str, tuple[StimulusSpec, ...]] = field(repr=False)
    bench: Bench = field(repr=False)
    told: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.made)

    @cached_property
    def maps(self) -> Mapping[str, NDArray[np.float32]]:
        """The methods' own values, float32 (N, H, W) on the network's grid: larger is more important, and
        signed if the method is. Methods that do not make maps are left out.
        """
        return MappingProxyType(
            {
                method: np.stack([cast("PixelAttribution", made).values for made in explanations])
                for method, explanations in self.made.items()
                if all(isinstance(made, PixelAttribution) for made in explanations)
            }
        )

    def __repr__(self) -> str:
        explained = f"{len(self.names)} pictures explained by {', '.join(self.methods)}"
        return f"<{'; '.join([explained, *self.told])}>"


@dataclass(frozen=True)
class ContactSheet:
    """A picture, `pixels` uint8 (h, w, 3), that a notebook shows by itself."""

    pixels: Pixels

    def save(self, path: str | Path) -> None:
        """Write it as PNG."""
        Path(path).write_bytes(self._repr_png_())

    def _repr_png_(self) -> bytes:
        return png.encode(self.pixels)

    def __repr__(self) -> str:
        return f"<sheet of {self.pixels.shape[1]} x {self.pixels.shape[0]} pixels>"


def open_model(
    predictor: Named,
    folder: str | Path = ".",
    dataset: Named | Dataset | None = None,
    progress: Progress = silent,
) -> TorchPredictor:
    """The model that a table [[stimuli.predictors]] of study.toml names, for `explain`.

    Files are looked for in `folder`. `dataset` names, or is, the pictures that a model which is trained on
    the spot learns from, and the labels of one that does not name its own. Errors as `open_predictor` and
    `open_dataset`; BadSpec for a model of texts.
    """
    make_repeatable()
    component = component_of(predictor)
    if dataset is None and component.name in TRAINING_KEYS:
        raise BadSpec(f"predictor {component.name!r} is trained on the spot: name the pictures as dataset")
    known: Any = Pictures((), {}) if dataset is None else dataset
    if isinstance(dataset, str | Mapping):
        table = component_of(dataset)
        if table.name == "folder":  # by its bare numbers, as `explain` reads pictures
            table = Component(table.name, {"colour": "numbers", **table.params})
        known = open_dataset(table, Path(folder), DECODING)
    return refuse_texts(open_predictor(component, Path(folder), known, progress))


def explain(
    model: nn.Module | TorchPredictor,
    images: Images,
    methods: Many,
    *,
    target: Target | str = "predicted",
    preprocess: Preprocess | None = None,
    labels: Sequence[str] = (),
    layer: str = "",
    token_prefix: int | None = None,
    levels: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = silent,
) -> Explanations:
    """Explain what a model answers for each picture by each of the methods.

    A torch `model` takes float32 (N, 3, H, W) and returns logits; it is copied, and the copy brought to
    float32. `preprocess` says how its pictures are made: the keys of predictor "torch_image" (input_px, mean,
    std, resize_px, interpolation, fit, preprocessing), the file of a timm or torchvision model, or the folder
    of a transformers model. `labels` are in logit order; without them classes are called "0", "1", ...
    `layer` is the one that layer methods read, `token_prefix` the number of class and register tokens of a
    vision transformer. A model of `open_model` brings all of that along. `levels` is how many levels the
    greys of 16-bit files have, 4096 for 12 bits; without it those that use a part of 65,536 are refused.

    `target` is the explained number: "predicted", "true" (pictures then lie in folders named by class),
    "runner_up", a label, or a `Target`. `seed` is that of a study. Pictures are cut to the network's square
    as the study does it; maps lie on that square.

    Raises NotApplicable if a method cannot explain this network, with every reason; BadSpec for names,
    parameters, pictures and labels that are refused; ShapeMismatch for arrays that are no pictures, and for a
    network with other inputs or outputs; StimulusError if one picture cannot be explained.
    """
    make_repeatable()
    arithmetic()  # warns if that came too late
    predictor = opened_of(model, preprocess, labels, layer, token_prefix)
    pictures = pictures_of(images, predictor.labels, levels)
    asked = {title: check_explainer(component) for title, component in components_by_title(methods).items()}
    number = target_of(target, predictor.labels, [item.truth for item in pictures.items("people")])
    source = Source(pictures, predictor, predictor.key)
    _refuse(source, asked, number)
    store = MemoryStore()
    bench = Bench(store, device, opened={source.predictor_key: predictor}, warm=OrderedDict())
    items = survey(source, store, progress)
    specs = {title: _specs(component, items, source, seed, number) for title, component in asked.items()}
    return Explanations(
        names=tuple(item.key for item in items),
        predicted=tuple(item.predicted for item in items),
        confidence=tuple(item.confidence for item in items),
        views=tuple(read_view(store, item.image_key) for item in items),
        made=MappingProxyType(_make_attributions(specs, items, bench, progress)),
        specs=MappingProxyType(specs),
        bench=bench,
        told=pictures.told,
    )


def measure(
    result: Explanations,
    metrics: Many,
    recipe: Recipe = DEFAULT,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Measure every explanation: a table with one row per picture, method and metric.

    Columns: `picture`, `predicted`, `method`, `metric`, `scores`, `value`, `unit`, `better` and `reason`.
    `scores` says what was measured: the "method"'s own values with their sign, or the field "drawn" by the
    recipe, which is what people see. `value` is NaN if there is none, and `reason` then says why.
    """
    import pandas as pd

    drawn = recipe_of(recipe)
    asked = {title: check_metric(component) for title, component in components_by_title(metrics).items()}
    single = {title: component for title, component in asked.items() if component.name in METRICS}
    values = _measure_stimuli(result, single, drawn, progress)
    for title, component in asked.items():
        if component.name in SET_METRICS:
            values.update(_compare_maps(result, title, component, drawn))
    rows = []
    for title, component in asked.items():
        about = describe_metric(component)
        for method in result.methods:
            for at, name in enumerate(result.names):
                measured, reason = values[method, title, at]
                value = np.nan if measured is None else measured.value
                if measured is not None and np.isnan(value):
                    reason = str(measured.details.get("undefined", ""))
                start = (name, result.predicted[at], method, title, about.scores)
                rows.append((*start, value, about.unit, about.better, reason))
    columns = ["picture", "predicted", "method", "metric", "scores", "value", "unit", "better", "reason"]
    return pd.DataFrame(rows, columns=columns)


def with_maps(result: Explanations, maps: Mapping[str, NDArray[np.float32]]) -> Explanations:
    """The same pictures explained by maps of one's own, by title: float32 (N, H, W) on the network's grid, in
    the order of `result.names`, larger is more important, signed if any has a value below 0.

    They are measured and drawn as those of any method. ShapeMismatch for another shape, NotApplicable for
    values that are not finite.
    """
    height, width = result.views[0].shape[:2]
    wanted = len(result.names), height, width
    first = next(iter(result.specs.values()))
    made, specs = {}, {}
    for title, values in maps.items():
        if values.shape != wanted:
            raise ShapeMismatch(f"the maps of {title!r} have the shape {values.shape}: {wanted} is needed")
        if not np.isfinite(values).all():
            raise NotApplicable(f"the maps of {title!r} have values that are not finite")
        is_signed = bool((values < 0).any())
        made[title] = tuple(PixelAttribution(np.ascontiguousarray(v, np.float32), is_signed) for v in values)
        named = (Component(RECORDED, {"kind": "image", "digest": keep_recorded(result.bench.store, each)})
                 for each in made[title])  # fmt: skip
        specs[title] = tuple(
            tie_to_answer(replace(spec, explainer=component, version=version_of(component), packages=()))
            for spec, component in zip(first, named, strict=True)
        )
    return replace(result, made=MappingProxyType(made), specs=MappingProxyType(specs))


def draw(result: Explanations, recipe: Recipe = DEFAULT) -> dict[str, tuple[Pixels, ...]]:
    """Pictures as people see them, uint8 (h, w, 3), by method and in the order of `result.names`.

    Maps are laid over the square that the network saw. BadSpec for a recipe that cannot be drawn,
    NotApplicable for a method without a sign under a diverging recipe that does not say how it is drawn.
    """
    drawn = recipe_of(recipe)
    return {
        method: tuple(
            picture_of(view, made, drawn)[0] for view, made in zip(result.views, explanations, strict=True)
        )
        for method, explanations in result.made.items()
    }


def sheet(result: Explanations, recipe: Recipe = DEFAULT) -> ContactSheet:
    """One contact sheet: pictures down, methods across, as `draw` draws them. Errors as `draw`; BadSpec for
    more pictures than fit on one.
    """
    drawn = recipe_of(recipe)
    names = [
        (name.rpartition("/")[2], f"{predicted} ({100 * confidence:.0f} %)")
        for name, predicted, confidence in zip(result.names, result.predicted, result.confidence, strict=True)
    ]
    columns = {"picture": result.views, **draw(result, drawn)}
    return ContactSheet(contact_sheet(columns, names, drawn if result.maps else None))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One explanation, for metrics that compare them."""

    item: str
    condition: str
    label: str
    view: Pixels
    values: Plane


def _refuse(source: Source, asked: Mapping[str, Component], target: Target) -> None:
    reasons = []
    for title, component in asked.items():
        reason = inapplicable(source, component, target.operator)
        if is_recorded(component):
            reason = "explanations made elsewhere belong to a study"
        if reason is not None:
            reasons.append(f"{title}: {reason}")
    if reasons:
        raise NotApplicable("; ".join(reasons))


def _specs(
    component: Component, items: Sequence[PredictedItem], source: Source, seed: int, target: Target
) -> tuple[StimulusSpec, ...]:
    set_ = bind_to_items(component, items, seed)
    return tuple(
        spec_for(item, source, each, RenderSpec(), seed, target=target)
        for item, each in zip(items, set_, strict=True)
    )


def _make_attributions(
    specs: Mapping[str, tuple[StimulusSpec, ...]],
    items: Sequence[PredictedItem],
    bench: Bench,
    progress: Progress,
) -> dict[str, tuple[Attribution, ...]]:
    """All of them, or StimulusError for the first that cannot be made."""
    orders = {(title, at): Order((spec,)) for title, each in specs.items() for at, spec in enumerate(each)}
    places = {id(order): place for place, order in orders.items()}
    made: dict[tuple[str, int], Attribution] = {}
    for count, done in enumerate(run_orders(list(orders.values()), bench)):
        title, at = places[id(done.order)]
        if done.attribution is None:
            raise StimulusError(f"{title} cannot explain {items[at].key!r}: {done.error}")
        made[title, at] = done.attribution
        progress("explaining", count + 1, len(orders))
    return {title: tuple(made[title, at] for at in range(len(each))) for title, each in specs.items()}


Values = dict[tuple[str, str, int], tuple[MetricValue | None, str]]
"""By method, metric and place: what was measured, or why there is nothing."""


def _measure_stimuli(
    result: Explanations, asked: Mapping[str, Component], recipe: RenderSpec, progress: Progress
) -> Values:
    if not asked:
        return {}
    orders, places = [], {}
    for method, specs in result.specs.items():
        for at, spec in enumerate(specs):
            order = Order((spec,), scorings(list(asked.values()), replace(spec, render=recipe)))
            places[id(order)] = (method, at)
            orders.append(order)
    values: Values = {}
    for count, done in enumerate(run_orders(orders, result.bench)):
        method, at = places[id(done.order)]
        for place, title in enumerate(asked):
            number = done.numbers[place] if place < len(done.numbers) else None
            values[method, title, at] = (
                (None, done.error) if number is None else (number.measured, number.error)
            )
        progress("measuring", count + 1, len(orders))
    return values


def _compare_maps(result: Explanations, title: str, metric: Component, recipe: RenderSpec) -> Values:
    values: Values = {
        (method, title, at): (None, "there is no map to compare")
        for method in result.methods
        for at in range(len(result.names))
    }
    members: list[tuple[str, int]] = [
        (method, at) for method in result.maps for at in range(len(result.names))
    ]
    try:
        entries: list[Entry] = [
            _Entry(
                result.names[at],
                method,
                result.predicted[at],
                result.views[at],
                drawn_field(cast("PixelAttribution", result.made[method][at]), recipe),
            )
            for method, at in members
        ]
        numbers: Sequence[MetricValue | None] = open_set_metric(metric).measure(entries)
        reason = ""
    except StimulusError as error:
        numbers, reason = [None] * len(members), str(error)
    for (method, at), number in zip(members, numbers, strict=True):
        values[method, title, at] = (number, reason)
    return values
