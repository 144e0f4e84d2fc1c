"""Specs in, pictures and measurements out.

Specs of one predictor are taken in windows of a few items. Within a window all methods and metrics of all
items are driven side by side, so that they share passes; what is in the store already is not computed again.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from stimuli.errors import FAULTS, NotApplicable, StimulusError, as_stimulus_error
from stimuli.explainers import is_recorded, open_explainer, tie_to_answer, version_of
from stimuli.explainers.base import refuse_operator
from stimuli.explainers.donor_maps import lenders_of, noise_in, noise_of, permutations_in
from stimuli.metrics import open_metric, scored_by
from stimuli.metrics.base import Number, Scoring
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from stimuli.predictors import restore
from stimuli.registry import refuse_other_package
from stimuli.render.attribution_field import drawn_field
from stimuli.render.explanation_drawing import StimulusFiles, draw
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, JsonValue, StimulusSpec, canonical_json
from stimuli.store import Store
from stimuli.store.files import (
    keep_attribution,
    map_file,
    predictor_file,
    read_attribution,
    read_recorded,
    read_region,
    read_text,
    read_units,
    read_view,
)
from stimuli.types import (
    Attribution,
    PictureExplanation,
    PixelAttribution,
    Pixels,
    Progress,
    RegionAttribution,
    TextExplanation,
    Weights,
    silent,
)

if TYPE_CHECKING:
    from stimuli.planner.drive import Job, JobResult
    from stimuli.planner.network import Network
    from stimuli.predictors.text.base import TextPredictor

TEXTS_AT_ONCE = 8
WITHOUT_WEIGHTS = {
    PictureExplanation: "pictures",
    TextExplanation: "sentences",
    RegionAttribution: "a marked region",
}
METHOD = -1
"""Names the method's own job beside those of its metrics, which are counted from 0."""
_RESTORED_MAX = 2
_restored: OrderedDict[tuple[str, str, str], Runner] = OrderedDict()


@dataclass(frozen=True, slots=True)
class RenderedStimulus:
    """The files of one stimulus, as store keys, and its measurements. The baseline has no explanation.

    `picture_digest` is equal exactly for stimuli that look equal: it hashes the pixels of the explanation, or
    of the image if there is none. `provenance` says by what it was made, and never decides a key.
    """

    spec: StimulusSpec
    drawn: StimulusFiles
    provenance: dict[str, JsonValue]
    numbers: tuple[Number, ...] = ()


@dataclass(frozen=True, slots=True)
class StimulusFailure:
    """A stimulus that could not be made, and why, in one sentence."""

    spec: StimulusSpec
    error: str


@dataclass(frozen=True, slots=True)
class Order:
    """One attribution that is asked for: the specs that it serves, and what is to be measured of it."""

    specs: tuple[StimulusSpec, ...]
    metrics: tuple[Scoring, ...] = ()

    @property
    def spec(self) -> StimulusSpec:
        return self.specs[0]


@dataclass(frozen=True, slots=True)
class OrderResult:
    """The result of an order; no attribution for the baseline."""

    order: Order
    attribution: Attribution | None = None
    numbers: tuple[Number, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Bench:
    """What the work needs: the store, the device, and the function that is called after every batch."""

    store: Store
    device: str = "cpu"
    alive: Callable[[], None] = field(default=lambda: None)
    refused: dict[str, str] = field(default_factory=dict)
    """Why a map that was to be lent could not be made, by its attribution key."""
    opened: Mapping[str, Any] = field(default_factory=dict)
    """Predictors by key that are in memory, and are not read from the store."""
    warm: OrderedDict[tuple[str, str, str], Runner] = field(default_factory=lambda: _restored)
    """The last few predictors that ran, for the next call: those of the process, unless given."""


def attempt(
    specs: Sequence[StimulusSpec],
    bench: Bench,
    metrics: Mapping[str, Sequence[Component]] | None = None,
    progress: Progress = silent,
) -> Iterator[RenderedStimulus | StimulusFailure]:
    """Make the pictures of `specs` and yield each as it is stored, or a `StimulusFailure` for what cannot be
    made. `metrics` says by picture key what is to be measured as well.
    """
    done = 0
    for explained in explain(_orders(specs, metrics or {}), bench):
        for spec in explained.order.specs:
            yield _draw_stimulus(spec, explained, bench)
            done += 1
        progress("rendering stimuli", done, len(specs))


def explain(orders: Sequence[Order], bench: Bench) -> Iterator[OrderResult]:
    """The attributions and measurements of `orders`, grouped by predictor, a window of items at a time. Maps
    that they borrow are made and stored first.
    """
    if lenders := _missing_lenders(orders, bench):
        made = explain([Order((spec,)) for spec in lenders], bench)
        bench.refused.update({lent.order.spec.attribution_key: lent.error for lent in made if lent.error})
    groups: dict[tuple[str, str], dict[str, list[Order]]] = {}
    for order in orders:
        group = groups.setdefault((order.spec.predictor_key, order.spec.precision), {})
        group.setdefault(order.spec.image_key, []).append(order)
    for (predictor_key, precision), items in groups.items():
        if all(order.spec.explainer is None for per_item in items.values() for order in per_item):
            yield from (OrderResult(order) for per_item in items.values() for order in per_item)
            continue
        try:
            runner = _runner(predictor_key, precision, bench)
        except (StimulusError, *FAULTS) as error:
            reason = str(as_stimulus_error(error))
            yield from (OrderResult(order, error=reason) for per_item in items.values() for order in per_item)
            continue
        keys = list(items)
        while keys:
            # Read anew each time: it becomes smaller when memory runs out.
            size = runner.window
            window = [order for key in keys[:size] for order in items[key]]
            yield from _window(window, runner, bench)
            keys = keys[size:]


def _missing_lenders(orders: Sequence[Order], bench: Bench) -> list[StimulusSpec]:
    """The specs whose maps `orders` borrow and the store does not have, each once."""
    asking = [
        (order.spec, entry)
        for order in orders
        for entry in (order.spec.explainer, *(scoring.metric for scoring in order.metrics))
        if entry is not None
    ]
    lenders: dict[str, StimulusSpec] = {}
    for spec, entry in asking:
        is_method = entry is spec.explainer
        # What cannot be had is said by the job that needs it, beside its other reasons.
        with suppress(StimulusError):
            named = lenders_of(open_explainer(entry) if is_method else open_metric(entry), spec)
            if named and not (is_method and bench.store.has(map_file(spec.attribution_key))):
                lenders.update({lender.attribution_key: lender for lender in named.values()})
    return [spec for key, spec in lenders.items() if not bench.store.has(map_file(key))]


def _lent_maps(asking: object, spec: StimulusSpec, bench: Bench) -> dict[str, Weights] | None:
    """The maps that a method or metric borrows; None if it never does. NotApplicable says why one is not
    there."""
    lenders = lenders_of(asking, spec)
    if lenders is None:
        return None
    for lender in lenders.values():
        if reason := bench.refused.get(lender.attribution_key):
            raise NotApplicable(reason)
    return {
        name: _weights(read_attribution(bench.store, lender.attribution_key), "a placebo needs")
        for name, lender in lenders.items()
    }


def _orders(specs: Sequence[StimulusSpec], metrics: Mapping[str, Sequence[Component]]) -> list[Order]:
    """One order per attribution, in the order of arrival."""
    by_attribution: dict[str, list[StimulusSpec]] = {}
    for spec in specs:
        by_attribution.setdefault(spec.attribution_key, []).append(spec)
    return [
        Order(
            tuple(group),
            tuple(
                {
                    canonical_json([w.metric.as_json(), w.recipe.as_json() if w.recipe else None]): w
                    for spec in group
                    for w in scorings(metrics.get(spec.picture_key, ()), spec)
                }.values()
            ),
        )
        for group in by_attribution.values()
    ]


class Runner:
    """A predictor, restored and warm, with what drives its jobs."""

    def __init__(self, predictor: Any, precision: str, device: str) -> None:
        self.predictor = predictor
        self.is_text = predictor.modality == "text"
        self.network: Network | None = None
        if not self.is_text:
            from stimuli.planner.network import Network

            self.network = Network(predictor, device, cast("Any", precision))

    @property
    def window(self) -> int:
        """How many items are at work at once: enough to fill traces and batches, few enough for memory."""
        return TEXTS_AT_ONCE if self.network is None else max(2, self.network.rows // 4)

    def subject(self, spec: StimulusSpec, store: Store) -> Subject:
        """The item of a spec as methods see it. Raises StimulusError if the store holds another."""
        if self.network is None:
            text = read_text(store, spec.image_key)
            units = read_units(store, spec.image_key)
            return Subject(spec.target, spec.image_key, spec.seed, text=text, units=units)
        stored, noise = noise_in(spec.image_key)
        image = self.predictor.inputs([read_view(store, stored)])[0].to(self.network.device)
        if noise is not None:
            image = image + image.new_tensor(noise_of(stored, spec.seed, *noise, tuple(image.shape)))
        return Subject(spec.target, spec.image_key, spec.seed, spec.layer, image)

    def drive(
        self, jobs: Sequence[Job], alive: Callable[[], None], follow: Callable[[JobResult], Sequence[Job]]
    ) -> Iterator[JobResult]:
        if self.network is None:
            from stimuli.planner.text import drive_texts

            return drive_texts(jobs, cast("TextPredictor", self.predictor), alive=alive, follow=follow)
        from stimuli.planner.drive import drive

        return drive(jobs, self.network, alive, follow)

    def about(self) -> dict[str, JsonValue]:
        """What stands in provenance beside the versions."""
        from stimuli.planner.arithmetic import arithmetic

        if self.network is None:
            return {"device": "cpu", **arithmetic()}
        return {"device": str(self.network.device), "rows": self.network.rows, **arithmetic()}


def _runner(predictor_key: str, precision: str, bench: Bench) -> Runner:
    """The warm predictor, from the last few that ran, from memory or from the store."""
    key = (predictor_key, precision, bench.device)
    if key not in bench.warm:
        stored, permutations = permutations_in(predictor_key)
        predictor = bench.opened.get(predictor_key) or _copy_of(stored, bench)
        for layers, seed in permutations:
            from stimuli.predictors.randomised import randomise_weights

            predictor = randomise_weights(predictor, layers, seed)
        while len(bench.warm) >= _RESTORED_MAX:
            bench.warm.popitem(last=False)
        bench.warm[key] = Runner(predictor, precision, bench.device)
    bench.warm.move_to_end(key)
    return bench.warm[key]


def _copy_of(stored: str, bench: Bench) -> Any:
    """A predictor whose weights may be changed."""
    if stored not in bench.opened:
        return restore(bench.store.get(predictor_file(stored)))
    from stimuli.predictors.network_forms import copy_network

    opened = bench.opened[stored]  # on the device, if a run has moved it there
    return replace(opened, module=copy_network(opened.module))


def _window(window: list[Order], runner: Runner, bench: Bench) -> Iterator[OrderResult]:
    """All orders of a few items side by side; if the window fails as a whole, one after the other: one
    damaged item must not make its neighbours fail.
    """
    try:
        results = _drive_orders(window, runner, bench)
    except (StimulusError, *FAULTS) as error:
        if len(window) == 1:
            yield OrderResult(window[0], error=str(as_stimulus_error(error)))
            return
        for order in window:
            yield from _window([order], runner, bench)
        return
    yield from results


def _drive_orders(window: list[Order], runner: Runner, bench: Bench) -> list[OrderResult]:
    """Methods as jobs, and metrics as jobs that follow them: a metric that fails does not undo its method's
    result."""
    from stimuli.planner.drive import Job

    subjects: dict[str, Subject] = {}
    made: dict[int, Attribution | None] = {}
    errors: dict[int, str] = {}
    numbers: dict[int, dict[int, Number]] = {}

    def subject_of(order: Order) -> Subject:
        key = order.spec.image_key
        if key not in subjects:
            subjects[key] = runner.subject(order.spec, bench.store)
        return _with_target(subjects[key], order.spec)

    def metrics_of(at: int) -> list[Job]:
        subject, source = subject_of(window[at]), cast("Attribution", made[at])
        return [
            Job((at, place), subject, _measuring(asked, window[at].spec, runner, subject, source, bench))
            for place, asked in enumerate(window[at].metrics)
        ]

    def follow(done: JobResult) -> Sequence[Job]:
        at, place = cast("tuple[int, int]", done.name)
        if place == METHOD and done.error is None:
            made[at] = done.result
            return metrics_of(at)
        return ()

    jobs = []
    for at, order in enumerate(window):
        if order.spec.explainer is None:
            made[at] = None
        elif bench.store.has(map_file(order.spec.attribution_key)):
            made[at] = read_attribution(bench.store, order.spec.attribution_key)
            jobs.extend(metrics_of(at))
        else:
            subject = subject_of(order)
            jobs.append(Job((at, METHOD), subject, _explaining(order.spec, subject, runner, bench)))
    for done in runner.drive(jobs, bench.alive, follow):
        at, place = cast("tuple[int, int]", done.name)
        if place != METHOD:
            reason = "" if done.error is None else str(done.error)
            asked = window[at].metrics[place]
            numbers.setdefault(at, {})[place] = Number(asked.metric, done.result, reason, asked.recipe)
        elif done.error is not None:
            errors[at] = str(done.error)
    return [
        OrderResult(
            order,
            made.get(at),
            tuple(number for _, number in sorted(numbers.get(at, {}).items())),
            errors.get(at, ""),
        )
        for at, order in enumerate(window)
    ]


def _with_target(subject: Subject, spec: StimulusSpec) -> Subject:
    return replace(
        subject,
        target=spec.target,
        operator=spec.operator,
        against=spec.against,
        seed=spec.seed,
        layer=spec.layer,
    )


def _explaining(spec: StimulusSpec, subject: Subject, runner: Runner, bench: Bench) -> Callable[[], Steps]:
    def run() -> Steps:
        if spec.explainer is not None and is_recorded(spec.explainer):
            if tie_to_answer(spec) != spec:
                raise NotApplicable(
                    "this explanation was recorded for one answer, model and seed of its item and cannot be "
                    "made for others: record them as conditions of their own"
                )
            made = read_recorded(bench.store, str(spec.explainer.params["digest"]))
        else:
            made = yield from _method(spec, subject, runner, bench)
        return keep_attribution(bench.store, spec.attribution_key, made)

    return run


def _measuring(
    asked: Scoring, spec: StimulusSpec, runner: Runner, subject: Subject, made: Attribution, bench: Bench
) -> Callable[[], Steps]:
    def run() -> Steps:
        weights = _weights(made, f"{asked.metric.name} scores")
        metric = open_metric(asked.metric)
        metric = metric.adapted(spec.explainer) if hasattr(metric, "adapted") else metric
        lent = _lent_maps(metric, spec, bench)
        if lent is not None:
            lent = {name: _scoring_weights(borrowed, asked.recipe) for name, borrowed in lent.items()}
        regions = getattr(metric, "regions", "")
        region = read_region(bench.store, regions, spec.image_key) if regions else None
        beside = replace(subject, lent=lent, region=region)
        return (yield from metric.measure(runner.predictor, beside, _scoring_weights(weights, asked.recipe)))

    return run


def scorings(metrics: Sequence[Component], spec: StimulusSpec) -> tuple[Scoring, ...]:
    """The metrics of one stimulus, each with what it scores."""
    return tuple(Scoring(m, spec.render if scored_by(m) == "drawn" else None) for m in metrics)


def _weights(made: Attribution, asking: str) -> Weights:
    """The explanation, if it says in numbers how much each part matters; else NotApplicable."""
    for kind, words in WITHOUT_WEIGHTS.items():
        if isinstance(made, kind):
            raise NotApplicable(f"{asking} weights, and this explanation has none: it is made of {words}")
    return cast("Weights", made)


def _scoring_weights(made: Weights, recipe: RenderSpec | None) -> Weights:
    """The method's own values, or the field that the recipe draws of them."""
    if recipe is None or not isinstance(made, PixelAttribution):
        return made
    return replace(made, values=drawn_field(made, recipe))


def _method(spec: StimulusSpec, subject: Subject, runner: Runner, bench: Bench) -> Steps:
    explainer = spec.explainer
    assert explainer is not None
    for package in spec.packages:
        refuse_other_package(package, f"explainer {explainer.name!r}")
    if version_of(explainer) != spec.version:
        raise StimulusError(
            f"explainer {explainer.name!r} is version {version_of(explainer)} here, but version "
            f"{spec.version} was asked for: update this worker, or build the study again"
        )
    method = open_explainer(explainer)
    method.require(runner.predictor, spec.layer)
    refuse_operator(method, explainer.name, spec.operator)
    beside = replace(subject, lent=_lent_maps(method, spec, bench))
    return (yield from method.explain(runner.predictor, beside))


def _draw_stimulus(
    spec: StimulusSpec, explained: OrderResult, bench: Bench
) -> RenderedStimulus | StimulusFailure:
    if explained.error:
        return StimulusFailure(spec, explained.error)
    about: dict[str, JsonValue] = {"device": "cpu"}
    warm = bench.warm.get((spec.predictor_key, spec.precision, bench.device))
    if warm is not None:
        about = warm.about()
    checks = dict(explained.attribution.checks) if explained.attribution is not None else {}
    if checks:
        about["checks"] = checks
    try:
        drawn = draw(spec, explained.attribution, bench.store)
    except (StimulusError, *FAULTS) as error:
        return StimulusFailure(spec, str(as_stimulus_error(error)))
    numbers = tuple(number for number in explained.numbers if number.recipe in (None, spec.render))
    return RenderedStimulus(spec, drawn, {**_versions(), **about}, numbers)


@cache
def _versions() -> dict[str, str]:
    names = ("torch", "captum", "numpy", "scipy", "Pillow", "matplotlib")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{name.lower(): importlib.metadata.version(name) for name in names},
    }


__all__ = ["Bench", "Order", "OrderResult", "Pixels", "RenderedStimulus", "StimulusFailure", "attempt",
           "explain", "scorings"]  # fmt: skip
