"""What is wrong with the stimuli of a study, before anybody is paid to look at them.

A sample of the items is explained under every condition, for the answer that people see and for the other
one. What is forbidden is that the *form* of an explanation tells which answer it explains, the picture held
constant: the *target leak*. That a map tells an answer because the object does is no fault of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.proportions import newcombe
from experiments.definition import StudyDefinition
from experiments.drafts import Gathered, specs_of
from stimuli.claims import device
from stimuli.errors import NotApplicable
from stimuli.explainers import is_recorded, kind_of
from stimuli.explainers.targets import Target
from stimuli.pipeline import Bench, Order, explain
from stimuli.quality.fields import (
    answer_auc,
    is_flat,
    lattice_energy,
    map_features,
    mean_map_correlation,
    picture_features,
    share_inside,
)
from stimuli.quality.looks import PAIRS_MIN, Decoded, decode, looks_of
from stimuli.render.field import cut_away, drawn_field
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.store.files import read_region, read_view
from stimuli.types import PixelAttribution, Plane

if TYPE_CHECKING:
    from stimuli.survey import PredictedItem

FLAT_DIFFERENCE_MAX = 0.10
LEAK_MAX = 0.60
LATTICE_MAX = 0.25
ALPHA = 0.05
EMPTY_SHOWN, OTHERS_SHOWN = 8, 2
"""How many items of each kind are named as striking."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Striking:
    """An item to be looked at first: `kind` is "empty", "lattice" or "cut away", `value` (0-1) how much."""

    item: str
    kind: str
    value: float


@dataclass(frozen=True, slots=True)
class Quality:
    """The numbers of one condition. Shares 0-1; NaN if there is none.

    `flat` counts empty fields by answer, and the items of that answer. `leak` is None if only one target
    exists, or if too few items were explained for both. `leak_p` is corrected over conditions [Holm 1979].
    `striking` are the items to be looked at first.
    """

    condition: str
    items: int
    flat: Mapping[str, tuple[int, int]]
    leak: Decoded | None
    leak_p: float
    map_auc: float
    picture_auc: float
    mean_map: float
    lattice: float
    cut_away: float
    on_region: float
    region: float
    striking: tuple[Striking, ...] = ()

    @property
    def flat_difference(self) -> tuple[float, float, float]:
        """The largest difference in shares of flat fields between two answers, with its 95 % interval."""
        shares = sorted(self.flat.values(), key=lambda counts: counts[0] / counts[1])
        if len(shares) < 2:
            return 0.0, 0.0, 0.0
        (low, below), (high, above) = shares[0], shares[-1]
        interval = newcombe(high, above, low, below)
        return high / above - low / below, interval.low, interval.high

    @property
    def is_leaking(self) -> bool:
        return self.leak is not None and self.leak.low > LEAK_MAX and self.leak_p < ALPHA

    @property
    def is_flat_by_answer(self) -> bool:
        difference, low, _ = self.flat_difference
        return difference > FLAT_DIFFERENCE_MAX and low > 0

    @property
    def leak_words(self) -> str:
        if self.leak is None:
            return "unknown"
        return f"{self.leak.auc:.2f} [{self.leak.low:.2f}, {self.leak.high:.2f}], p {self.leak_p:.3f}"

    def form_row(self) -> tuple[str, ...]:
        flat = ", ".join(f"{answer} {count}/{of}" for answer, (count, of) in sorted(self.flat.items()))
        return self.condition, str(self.items), flat, self.leak_words

    def content_row(self) -> tuple[str, ...]:
        numbers = (self.map_auc, self.picture_auc, self.mean_map, self.lattice, self.cut_away)
        inside = f"{self.on_region:.2f}/{self.region:.2f}" if self.region == self.region else "-"
        return self.condition, *map(_plain, numbers), inside


FORM = ("condition", "items", "empty, by answer", "target leak [95 %]")
CONTENT = ("condition", "map", "picture", "mean map", "lattice", "cut away", "on region")
FORM_LEGEND = (
    "Target leak: how often the form of an explanation alone tells which answer it explains, the picture "
    "held constant; .5 is chance, and unknown is not clean."
)
CONTENT_LEGEND = (
    "Map, picture: how well the answer is guessed from either alone (area under the ROC curve); an honest "
    "map may tell it. Mean map: correlation with the mean of the condition's other maps. Lattice: the share "
    "of a regular grid. Cut away: the share of the evidence that the recipe's sign hides. On region: the "
    "share of the most marked 5 % that lies on the planted or annotated region, and the region's size."
)


def _plain(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"


def stimulus_quality(
    definition: StudyDefinition, gathered: Gathered, store: Store, items_max: int, progress: Progress
) -> tuple[Quality, ...]:
    """The numbers of every condition that draws maps, from at most `items_max` items, answers in turn. Maps
    that the store lacks are made in it.
    """
    sampled = _sampled(gathered, items_max)
    shown = {
        key: spec
        for key, spec in specs_of(definition, gathered).items()
        if spec.explainer is not None and kind_of(spec.explainer) == "image" and key[0] in sampled
    }
    others = {
        key: other
        for key, spec in shown.items()
        if (other := _of_other_answer(definition, gathered, spec, *key))
    }
    wanted = {spec.attribution_key: spec for spec in (*shown.values(), *others.values())}
    made: dict[str, PixelAttribution] = {}
    bench = Bench(store, device())
    # A failure is not reported here: the build names it, with its reason.
    for count, result in enumerate(explain([Order((spec,)) for spec in wanted.values()], bench)):
        if isinstance(result.attribution, PixelAttribution):
            made[result.order.spec.attribution_key] = result.attribution
        progress("looking at the stimuli", count + 1, len(wanted))
    measured = []
    for condition in definition.conditions:
        mine = {item: spec for (item, name), spec in shown.items() if name == condition.name}
        pairs = {item: others[item, condition.name] for item in mine if (item, condition.name) in others}
        if mine:
            quality = _of_condition(condition.name, mine, pairs, made, definition, gathered, store)
            measured.append(quality and replace(quality, striking=_striking(mine, made, definition)))
    return _corrected([quality for quality in measured if quality is not None])


def _of_condition(
    name: str,
    shown: Mapping[str, StimulusSpec],
    others: Mapping[str, StimulusSpec],
    made: Mapping[str, PixelAttribution],
    definition: StudyDefinition,
    gathered: Gathered,
    store: Store,
) -> Quality | None:
    recipe, source = definition.render.spec(), _source_of(definition, name)
    views = gathered.views[source]
    fields = {
        key: field for key, spec in shown.items() if (field := _field(spec, made, definition)) is not None
    }
    if not fields:
        return None
    answers = {key: views[key].predicted for key in fields}
    flat: dict[str, tuple[int, int]] = {}
    for key, field in fields.items():
        count, of = flat.get(answers[key], (0, 0))
        flat[answers[key]] = (count + is_flat(field), of + 1)
    first = np.array([answers[key] == min(answers.values()) for key in fields])
    groups = [views[key].group for key in fields]
    regions = {}
    if gathered.opened[source].regions:
        for key, spec in shown.items():
            region = read_region(store, gathered.opened[source].regions, spec.image_key)
            if key in fields and region is not None:
                regions[key] = region
    return Quality(
        condition=name,
        items=len(fields),
        flat=flat,
        leak=_leak(fields, others, made, definition, gathered, source),
        leak_p=float("nan"),
        map_auc=answer_auc(np.stack([map_features(field) for field in fields.values()]), first, groups),
        picture_auc=answer_auc(
            np.stack([picture_features(read_view(store, shown[key].image_key)) for key in fields]),
            first,
            groups,
        ),
        mean_map=mean_map_correlation(list(fields.values())),
        lattice=float(np.mean([lattice_energy(field) for field in fields.values()])),
        cut_away=float(
            np.mean([cut_away(made[shown[key].attribution_key].values, recipe) for key in fields])
        ),
        on_region=_mean(share_inside(fields[key], region) for key, region in regions.items()),
        region=_mean(float(region.mean()) for region in regions.values()),
    )


def _striking(
    shown: Mapping[str, StimulusSpec], made: Mapping[str, PixelAttribution], definition: StudyDefinition
) -> tuple[Striking, ...]:
    """Empty explanations, then those with the most lattice and the most evidence cut away; an item once."""
    fields = {key: f for key, spec in shown.items() if (f := _field(spec, made, definition)) is not None}
    empty = [Striking(key, "empty", 1.0) for key in sorted(fields) if is_flat(fields[key])][:EMPTY_SHOWN]
    chosen = {striking.item: striking for striking in empty}
    recipe = definition.render.spec()
    values = {
        "lattice": {key: lattice_energy(field) for key, field in fields.items()},
        "cut away": {key: cut_away(made[shown[key].attribution_key].values, recipe) for key in fields},
    }
    for kind, by_item in values.items():
        ranked = sorted((-value, key) for key, value in by_item.items() if value > 0 and key not in chosen)
        chosen.update({key: Striking(key, kind, -value) for value, key in ranked[:OTHERS_SHOWN]})
    return tuple(chosen.values())


def _leak(
    fields: Mapping[str, Plane],
    others: Mapping[str, StimulusSpec],
    made: Mapping[str, PixelAttribution],
    definition: StudyDefinition,
    gathered: Gathered,
    source: tuple[str, str],
) -> Decoded | None:
    """A decoder of looks that tells which answer a map explains; answers in their order, so that a form that
    belongs to one of them is learnt."""
    views = gathered.views[source]
    looks, is_first, groups = [], [], []
    for key, spec in others.items():
        other = _field(spec, made, definition)
        if key not in fields or other is None:
            continue
        labels = gathered.opened[source].predictor.labels
        predicted, rival = views[key].predicted, labels[spec.target]
        for field, label, against in ((fields[key], predicted, rival), (other, rival, predicted)):
            looks.append(looks_of(field))
            is_first.append(label < against)
            groups.append(views[key].group)
    if len(set(groups)) < PAIRS_MIN:
        return None
    return decode(np.stack(looks), np.array(is_first), groups, definition.seed)


def _field(
    spec: StimulusSpec, made: Mapping[str, PixelAttribution], definition: StudyDefinition
) -> Plane | None:
    source = made.get(spec.attribution_key)
    if source is None:
        return None
    try:
        return drawn_field(source, definition.render.spec())
    except NotApplicable:
        return None


def _of_other_answer(
    definition: StudyDefinition, gathered: Gathered, spec: StimulusSpec, item: str, name: str
) -> StimulusSpec | None:
    """The same stimulus for the runner-up among the study's answers; None if it explains one target only."""
    assert spec.explainer is not None
    if is_recorded(spec.explainer):
        return None
    source = _source_of(definition, name)
    view: PredictedItem = gathered.views[source][item]
    labels = gathered.opened[source].predictor.labels
    among = tuple(definition.stimuli.classes or ())
    target = Target(of="runner_up", operator=spec.operator, among=among)
    number = target.number(labels, view.index, view.truth, view.logits)
    return replace(spec, target=number.target, against=number.against)


def _source_of(definition: StudyDefinition, name: str) -> tuple[str, str]:
    return next(condition.source for condition in definition.conditions if condition.name == name)


def _sampled(gathered: Gathered, items_max: int) -> set[str]:
    """At most so many of the chosen items, the predicted answers in turn, in the order of their keys."""
    by_answer: dict[str, list[str]] = defaultdict(list)
    for chosen in gathered.material.chosen.values():
        for item in sorted(chosen, key=lambda item: item.key):
            by_answer[item.predicted].append(item.key)
    queues = [by_answer[answer] for answer in sorted(by_answer)]
    turns = [
        queue[turn]
        for turn in range(max(map(len, queues), default=0))
        for queue in queues
        if turn < len(queue)
    ]
    return set(turns[:items_max])


def _corrected(measured: Sequence[Quality]) -> tuple[Quality, ...]:
    """With Holm's correction of the leaks' p over the conditions."""
    known = sorted((q.leak.p, at) for at, q in enumerate(measured) if q.leak is not None)
    corrected: dict[int, float] = {}
    largest = 0.0
    for place, (p, at) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - place)))
        corrected[at] = largest
    return tuple(replace(q, leak_p=corrected.get(at, float("nan"))) for at, q in enumerate(measured))


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return float(np.mean(known)) if known else float("nan")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the explanations of a condition: `kind` is "flat", "leak" or "lattice". `refuses`:
    people are not paid to look at it before it is acknowledged by name.
    """

    condition: str
    kind: str
    what: str
    remedy: str = ""
    refuses: bool = False

    @property
    def sentence(self) -> str:
        return ": ".join(filter(None, (self.what, self.remedy)))


def warnings_about(measured: Sequence[Quality], *, seen_with_answer: bool) -> list[str]:
    """What a careful researcher would mend, as sentences; see `faults_in`."""
    return [fault.sentence for fault in faults_in(measured, seen_with_answer=seen_with_answer)]


def faults_in(measured: Sequence[Quality], *, seen_with_answer: bool) -> list[Fault]:
    """What a careful researcher would mend. `seen_with_answer`: the explanation stands beside the answer, and
    is gone when the answer is asked; then a leak gives nothing away, and is only printed."""
    said = []
    for quality in measured:
        name = quality.condition
        if quality.is_flat_by_answer:
            remedy = "take another layer or method, or drop such items ([stimuli] drop_flagged)"
            said.append(Fault(name, "flat", _flat_words(quality), remedy, not seen_with_answer))
        if quality.is_leaking and not seen_with_answer:
            said.append(Fault(name, "leak", _leak_words(quality), refuses=True))
        if quality.lattice > LATTICE_MAX:
            what = (
                f"{name}: {quality.lattice:.2f} of the maps' structure is a regular grid (limit "
                f"{LATTICE_MAX:.2f}), which the network's strides leave"
            )
            remedy = "set [render] smooth_px, or take another network or method"
            said.append(Fault(name, "lattice", what, remedy))
    return said


def _flat_words(quality: Quality) -> str:
    flat = " and ".join(f"{count} of {of} for {name!r}" for name, (count, of) in sorted(quality.flat.items()))
    return (
        f"{quality.condition}: empty explanations by answer: {flat}. An empty one then gives the answer "
        "away, and is drawn as an even veil"
    )


def _leak_words(quality: Quality) -> str:
    assert quality.leak is not None
    return (
        f"{quality.condition}: the form of an explanation tells which answer it explains in "
        f"{quality.leak.auc:.2f} of the pictures (95 % interval from {quality.leak.low:.2f}, limit "
        f"{LEAK_MAX:.2f}): people could answer by it without the picture"
    )
