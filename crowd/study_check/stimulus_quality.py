"""What is wrong with the stimuli of a study, before anybody is paid to look at them.

A sample of the items is explained under every condition, for the answer that people see and for the other
one. What is forbidden is that the *form* of an explanation tells which answer it explains, the picture held
constant: the *target leak*. That a map tells an answer because the object does is no fault of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.perturbed_copies import copy_specs
from experiments.drafting.stimulus_specs import specs_of
from stimuli.errors import StimulusError
from stimuli.explainers import CONTROLS, is_recorded, open_explainer
from stimuli.explainers.controls.inner_method import OfMethod
from stimuli.explainers.targets import Target
from stimuli.pipeline import Bench, Order, explain
from stimuli.quality.explanation_form import Form, form_of, is_drawn_alike, naming_faults
from stimuli.quality.field_faults import (
    answer_auc,
    lattice_energy,
    map_features,
    mean_map_correlation,
    picture_features,
    share_inside,
)
from stimuli.quality.look_decodability import PAIRS_MIN, Decodability, decode
from stimuli.render.attribution_field import cut_away
from stimuli.render.recipe import RenderSpec
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.store.files import read_region, read_view, text_file
from stimuli.types import Attribution, PixelAttribution, Pixels, Progress
from stimuli.worker_claims import device

if TYPE_CHECKING:
    from stimuli.spec_derivation import PredictedItem

FLAT_DIFFERENCE_MAX = 0.10
LEAK_MAX = 0.60
ALPHA = 0.05
EMPTY_SHOWN, OTHERS_SHOWN = 8, 2
"""How many items of each kind are named as striking."""
Number = Annotated[float, BeforeValidator(lambda value: float("nan") if value is None else value)]
"""Is stored as null if there is none."""
Copies = Mapping[tuple[str, str, str], StimulusSpec]
"""(item, condition, aim) -> the stimulus of the changed copy that stands beside it."""


@dataclass(frozen=True, slots=True)
class Striking:
    """An item to be looked at first: `kind` is "empty", "lattice" or "cut away", `value` (0-1) how much."""

    item: str
    kind: str
    value: float


@dataclass(frozen=True, slots=True)
class CopyQuality:
    """The changed copies that stand beside pictures under one condition: of `of` whose explanations were
    looked at, `empty` mark nothing, and `alike` mark the same as those of their pictures, so that there is
    nothing to compare.
    """

    aim: str
    of: int
    empty: int
    alike: int


@dataclass(frozen=True, slots=True)
class Quality:
    """The numbers of one condition. Shares 0-1; NaN if there is none.

    `flat` counts empty fields by answer, and the items of that answer. `leak` is None if only one target
    exists, or if too few items were explained for both. `leak_p` is corrected over conditions [Holm 1979].
    `told`: whether a placebo's looks tell it from its method `of`; None if that is no condition here. `same`
    are the items on which it marks something, and the same as that method.
    `striking` are the items to be looked at first. `naming_against` and `naming_tiny` count those whose words
    name a concept that speaks against the answer, or hardly weighs, like those that speak for it. `copies`:
    one row for each kind of changed copy that is shown.
    """

    condition: str
    items: int
    flat: Mapping[str, tuple[int, int]]
    leak: Decodability | None
    leak_p: Number
    map_auc: Number
    picture_auc: Number
    mean_map: Number
    lattice: Number
    cut_away: Number
    on_region: Number
    region: Number
    told: Decodability | None = None
    of: str = ""
    striking: tuple[Striking, ...] = ()
    naming_against: int = 0
    naming_tiny: int = 0
    copies: tuple[CopyQuality, ...] = ()
    same: tuple[str, ...] = ()

    @property
    def empty(self) -> int:
        """How many explanations are empty, of all answers together."""
        return sum(count for count, _ in self.flat.values())

    @property
    def flat_difference(self) -> tuple[float, float, float]:
        """The largest difference in shares of flat fields between two answers, with its 95 % interval."""
        shares = sorted(self.flat.values(), key=lambda counts: counts[0] / counts[1])
        if len(shares) < 2:
            return 0.0, 0.0, 0.0
        # Imported here, with SciPy: few who import this module ask for it.
        from analysis.stats.shares.proportions import newcombe

        (low, below), (high, above) = shares[0], shares[-1]
        interval = newcombe(high, above, low, below)
        return high / above - low / below, interval.low, interval.high

    @property
    def is_leaking(self) -> bool:
        return self.leak is not None and self.leak.low > LEAK_MAX and self.leak_p < ALPHA

    @property
    def told_words(self) -> str:
        """A sentence about a placebo; empty of other conditions."""
        if self.told is None:
            return ""
        share = f"{self.told.auc:.2f} [{self.told.low:.2f}, {self.told.high:.2f}] of the items"
        return f"{self.condition}: its looks alone tell it from {self.of} in {share} (.5 by chance)."

    @property
    def copies_words(self) -> str:
        """A sentence about changed copies that show nothing, or nothing new; empty if there are none."""
        said = [
            f"of {c.of} {c.aim} copies {c.empty} have an empty explanation, {c.alike} that of their picture"
            for c in self.copies
            if c.empty or c.alike
        ]
        return f"{self.condition}: {'; '.join(said)}." if said else ""

    @property
    def is_flat_by_answer(self) -> bool:
        difference, low, _ = self.flat_difference
        return difference > FLAT_DIFFERENCE_MAX and low > 0

    @property
    def leak_words(self) -> str:
        if self.leak is None:
            return "unknown"
        interval = _unbroken(f"[{self.leak.low:.2f}, {self.leak.high:.2f}],")
        return f"{self.leak.auc:.2f} {interval} {_unbroken(f'p {self.leak_p:.3f}')}"

    def form_row(self) -> tuple[str, ...]:
        counts = [f"{answer} {count}/{of}" for answer, (count, of) in sorted(self.flat.items())]
        flat = ", ".join(map(_unbroken, counts))
        return self.condition, str(self.items), flat, self.leak_words

    def content_row(self) -> tuple[str, ...]:
        numbers = (self.map_auc, self.picture_auc, self.mean_map, self.lattice, self.cut_away)
        inside = f"{self.on_region:.2f}/{self.region:.2f}" if self.region == self.region else "-"
        return self.condition, *map(_plain, numbers), inside


FORM = ("condition", "items", "empty, by answer", "target leak [95 %]")
CONTENT = ("condition", "map", "picture", "mean map", "lattice", "cut away", "on region")
FORM_LEGEND = (
    "Target leak: how often the form of an explanation alone tells which answer it explains, the item "
    "held constant; .5 is chance, and unknown is not clean."
)
CONTENT_LEGEND = (
    "Map, picture: how well the answer is guessed from either alone (area under the ROC curve); an honest "
    "map may tell it. Mean map: correlation with the mean of the condition's other maps. Lattice: the share "
    "of a regular grid. Cut away: the share of the evidence that the recipe's sign hides. On region: the "
    "share of the most marked 5 % that lies on the planted or annotated region, and the region's size. "
    "A dash: there is no such number of marked words, concepts, sentences or pictures by themselves."
)


def _unbroken(words: str) -> str:
    """To be read in one line, also if a page or terminal is too narrow for the whole."""
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _plain(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class QualitySample:
    """What was made to be looked at: by item and condition what people would see (`shown`) and the same for
    the other answer (`others`), by item, condition and aim the changed copies beside it (`copies`), and by
    key what came of it; nothing if it could not be made.
    """

    shown: Mapping[tuple[str, str], StimulusSpec]
    others: Mapping[tuple[str, str], StimulusSpec]
    made: Mapping[str, Attribution]
    copies: Copies = field(default_factory=dict)


def copies_in(definition: StudyDefinition, gathered: MaterialSet) -> Copies:
    """The changed copies that were looked for with the items."""
    of = {copy.item.key: (copy.of, copy.aim) for copy in gathered.copies if copy.item is not None}
    specs = copy_specs(definition, gathered)
    return {(of[key][0], name, str(of[key][1])): spec for (key, name), spec in specs.items()}


def look_at(
    definition: StudyDefinition,
    gathered: MaterialSet,
    store: Store,
    items_max: int,
    progress: Progress,
    copies: Copies | None = None,
) -> QualitySample:
    """Explanations of at most `items_max` items, which the study's seed draws, answers in turn, under every
    condition that explains, and of their changed copies: `copies`, or those that were gathered. Those that
    the store lacks are made in it.
    """
    copies = copies_in(definition, gathered) if copies is None else copies
    sampled = _sample_items(definition, gathered, items_max)
    shown = {
        key: spec
        for key, spec in specs_of(definition, gathered).items()
        if spec.explainer is not None and key[0] in sampled
    }
    others = {
        key: other
        for key, spec in shown.items()
        if (other := _of_other_answer(definition, gathered, spec, *key))
    }
    beside = {key: spec for key, spec in copies.items() if key[:2] in shown}
    wanted = {s.attribution_key: s for s in (*shown.values(), *others.values(), *beside.values())}
    made: dict[str, Attribution] = {}
    bench = Bench(store, device())
    # A failure is not reported here: the build names it, with its reason.
    for count, result in enumerate(explain([Order((spec,)) for spec in wanted.values()], bench)):
        if result.attribution is not None:
            made[result.order.spec.attribution_key] = result.attribution
        progress("looking at the stimuli", count + 1, len(wanted))
    return QualitySample(shown, others, made, beside)


def stimulus_quality(
    definition: StudyDefinition, gathered: MaterialSet, store: Store, looked: QualitySample
) -> tuple[Quality, ...]:
    """The numbers of every condition that explains."""
    measured = []
    for condition in definition.conditions:
        mine = {item: spec for (item, name), spec in looked.shown.items() if name == condition.name}
        pairs = {
            item: looked.others[item, condition.name]
            for item in mine
            if (item, condition.name) in looked.others
        }
        if mine:
            quality = _of_condition(condition.name, mine, pairs, looked.made, definition, gathered, store)
            copied = _copy_quality(condition.name, looked, definition.render.spec())
            measured.append(replace(quality, copies=copied) if quality is not None else None)
    return _correct_leaks([quality for quality in measured if quality is not None])


def _of_condition(
    name: str,
    shown: Mapping[str, StimulusSpec],
    others: Mapping[str, StimulusSpec],
    made: Mapping[str, Attribution],
    definition: StudyDefinition,
    gathered: MaterialSet,
    store: Store,
) -> Quality | None:
    recipe, source = definition.render.spec(), _source_of(definition, name)
    views, opened = gathered.views[source], gathered.opened[source]
    labels = sorted({opened.predictor.labels[spec.target] for spec in (*shown.values(), *others.values())})
    forms = _forms(shown, made, recipe, labels)
    if not forms:
        return None
    answers = {key: views[key].predicted for key in forms}
    flat: dict[str, tuple[int, int]] = {}
    for key, form in forms.items():
        count, of = flat.get(answers[key], (0, 0))
        flat[answers[key]] = (count + form.is_flat, of + 1)
    first = np.array([answers[key] == min(answers.values()) for key in forms])
    groups = [views[key].group for key in forms]
    # Only maps lie on the picture: of all other kinds there is no number about places.
    fields = {key: form.field for key, form in forms.items() if form.field is not None}
    drawn = {key: made[shown[key].attribution_key] for key in fields}
    maps = {key: of for key, of in drawn.items() if isinstance(of, PixelAttribution)}
    named = [naming_faults(made[shown[key].attribution_key], recipe) for key in forms]
    regions = {}
    if gathered.opened[source].regions:
        for key, spec in shown.items():
            region = read_region(store, gathered.opened[source].regions, spec.image_key)
            if key in fields and region is not None:
                regions[key] = region
    plain = _of_method(shown)
    return Quality(
        condition=name,
        items=len(forms),
        flat=flat,
        leak=_leak(forms, _forms(others, made, recipe, labels), others, definition, gathered, source),
        leak_p=float("nan"),
        map_auc=_auc([map_features(field) for field in fields.values()], first, groups),
        picture_auc=_auc([picture_features(view) for view in _views(shown, forms, store)], first, groups),
        mean_map=mean_map_correlation(list(fields.values())),
        lattice=_mean(lattice_energy(field) for field in fields.values()),
        cut_away=_mean(cut_away(of.values, recipe) for of in maps.values()),
        on_region=_mean(share_inside(fields[key], region) for key, region in regions.items()),
        region=_mean(float(region.mean()) for region in regions.values()),
        told=_decode_placebos(forms, _forms(plain, made, recipe, labels), views, definition.seed),
        of=next((str(s.explainer.params.get("of", "")) for s in shown.values() if s.explainer), ""),
        striking=_striking(forms, maps, recipe),
        naming_against=sum(against for against, _ in named),
        naming_tiny=sum(tiny for _, tiny in named),
        same=tuple(
            key
            for key, form in forms.items()
            if key in plain
            and not form.is_flat
            and (real := made.get(plain[key].attribution_key)) is not None
            and is_drawn_alike(real, made[shown[key].attribution_key], recipe)
        ),
    )


def _copy_quality(name: str, looked: QualitySample, recipe: RenderSpec) -> tuple[CopyQuality, ...]:
    """What is empty, or the same twice, among the changed copies of a condition."""
    rows: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for (item, condition, aim), spec in looked.copies.items():
        made = looked.made.get(spec.attribution_key)
        plain = looked.made.get(looked.shown[item, condition].attribution_key)
        if condition == name and made is not None and plain is not None:
            with suppress(StimulusError):
                rows[aim].append((form_of(made, recipe, ()).is_flat, is_drawn_alike(plain, made, recipe)))
    return tuple(
        CopyQuality(aim, len(seen), sum(empty for empty, _ in seen), sum(alike for _, alike in seen))
        for aim, seen in sorted(rows.items())
    )


def _of_method(shown: Mapping[str, StimulusSpec]) -> dict[str, StimulusSpec]:
    """By item the spec of the method that a placebo is made of; none of other conditions."""
    plain = {}
    for key, spec in shown.items():
        if spec.explainer is not None and spec.explainer.name in CONTROLS:
            control = open_explainer(spec.explainer)
            assert isinstance(control, OfMethod)
            plain[key] = control.plain(spec)
    return plain


def _decode_placebos(
    placebos: Mapping[str, Form], real: Mapping[str, Form], views: Mapping[str, PredictedItem], seed: int
) -> Decodability | None:
    """A decoder of looks that tells placebos from explanations of their method, item by item."""
    both = [key for key in placebos if key in real]
    groups = [views[key].group for key in both]
    if len(set(groups)) < PAIRS_MIN:
        return None
    looks = [real[key].looks for key in both] + [placebos[key].looks for key in both]
    return decode(np.stack(looks), np.arange(len(looks)) < len(both), [*groups, *groups], seed)


def _striking(
    forms: Mapping[str, Form], maps: Mapping[str, PixelAttribution], recipe: RenderSpec
) -> tuple[Striking, ...]:
    """Empty explanations, then maps with the most lattice and the most evidence cut away; an item once."""
    empty = [Striking(key, "empty", 1.0) for key in sorted(forms) if forms[key].is_flat][:EMPTY_SHOWN]
    chosen = {striking.item: striking for striking in empty}
    values = {
        "lattice": {key: lattice_energy(form.field) for key, form in forms.items() if form.field is not None},
        "cut away": {key: cut_away(made.values, recipe) for key, made in maps.items()},
    }
    for kind, by_item in values.items():
        ranked = sorted((-value, key) for key, value in by_item.items() if value > 0 and key not in chosen)
        chosen.update({key: Striking(key, kind, -value) for value, key in ranked[:OTHERS_SHOWN]})
    return tuple(chosen.values())


def _leak(
    forms: Mapping[str, Form],
    of_others: Mapping[str, Form],
    others: Mapping[str, StimulusSpec],
    definition: StudyDefinition,
    gathered: MaterialSet,
    source: tuple[str, str],
) -> Decodability | None:
    """A decoder of looks that tells which answer is explained; answers in their order, so that a form that
    belongs to one of them is learnt."""
    views = gathered.views[source]
    looks, is_first, groups = [], [], []
    for key, other in of_others.items():
        if key not in forms:
            continue
        labels = gathered.opened[source].predictor.labels
        predicted, rival = views[key].predicted, labels[others[key].target]
        for form, label, against in ((forms[key], predicted, rival), (other, rival, predicted)):
            looks.append(form.looks)
            is_first.append(label < against)
            groups.append(views[key].group)
    if len(set(groups)) < PAIRS_MIN:
        return None
    return decode(np.stack(looks), np.array(is_first), groups, definition.seed)


def _forms(
    specs: Mapping[str, StimulusSpec],
    made: Mapping[str, Attribution],
    recipe: RenderSpec,
    labels: Sequence[str],
) -> dict[str, Form]:
    """The forms of what was made, by item; what cannot be drawn is named by the build."""
    forms = {}
    for key, spec in specs.items():
        if spec.attribution_key in made:
            with suppress(StimulusError):
                forms[key] = form_of(made[spec.attribution_key], recipe, labels)
    return forms


def _views(shown: Mapping[str, StimulusSpec], keys: Iterable[str], store: Store) -> Iterator[Pixels]:
    """What the model saw; texts are left out."""
    for key in keys:
        if not store.has(text_file(shown[key].image_key)):
            yield read_view(store, shown[key].image_key)


def _auc(features: Sequence[np.ndarray[Any, Any]], first: np.ndarray[Any, Any], groups: list[str]) -> float:
    """NaN unless every item has its features."""
    return answer_auc(np.stack(features), first, groups) if len(features) == len(groups) else float("nan")


def _of_other_answer(
    definition: StudyDefinition, gathered: MaterialSet, spec: StimulusSpec, item: str, name: str
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


def _sample_items(definition: StudyDefinition, gathered: MaterialSet, items_max: int) -> set[str]:
    """At most so many of the chosen items: each model's answers in turn as far as they go, and of an answer's
    items those that the study's seed draws. Their keys name their classes, so the first ones would be of one.
    """
    by_answer: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for source, chosen in gathered.material.chosen.items():
        for item in sorted(chosen, key=lambda item: item.key):
            by_answer[(*source, item.predicted)].append(item.key)
    streams = Streams(definition.seed)
    for answer, keys in by_answer.items():
        by_answer[answer] = [keys[at] for at in streams("quality", *answer).permutation(len(keys))]
    turns = zip_longest(*(by_answer[answer] for answer in sorted(by_answer)))
    # An item of several models is one item.
    drawn = dict.fromkeys(key for turn in turns for key in turn if key is not None)
    return set(list(drawn)[:items_max])


def _correct_leaks(measured: Sequence[Quality]) -> tuple[Quality, ...]:
    """With Holm's correction of the leaks' p over the conditions."""
    # Imported here, with SciPy: few who import this module ask for it.
    from analysis.stats.means.tukey_and_corrections import holm

    leaks = {at: q.leak.p for at, q in enumerate(measured) if q.leak is not None}
    corrected = dict(zip(leaks, holm(list(leaks.values())), strict=True)) if leaks else {}
    return tuple(replace(q, leak_p=corrected.get(at, float("nan"))) for at, q in enumerate(measured))


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return float(np.mean(known)) if known else float("nan")
