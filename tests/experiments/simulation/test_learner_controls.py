"""The observer needs to be shown the right place: the planted region helps it, a shuffled one does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Plan, PlanCondition, PlannedTrial, Pool, PoolItem
from experiments.simulation import HEADING, OBSERVERS, person_class
from experiments.simulation.controls.substitute_explanations import (
    ALL,
    ControlReport,
    Pictures,
    _Eye,
    _faults,
    informed_mind,
    permute_blocks,
    run_controls,
    sit,
)
from experiments.simulation.learner import Learner, choice_shares, resemblance
from experiments.simulation.observers import FrozenObserver
from experiments.simulation.people import ExampleView, TestView
from experiments.simulation.sight import CELLS, FEATURES, PATCHES, Percept
from stimuli.datasets.synthetic.cue_scenarios import SyntheticDataset, open_synthetic
from stimuli.render.heatmap import paint_field
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.types import Mask, Pixels

pytestmark = pytest.mark.pure

SITTINGS = 24
MARGIN = 0.02
"""A shuffled explanation may gain this much by chance: over 24 paired sittings of 21 answers, the standard
error of a gain is below 0.02.
"""
KINDS = ("learner", *OBSERVERS)
every_kind = pytest.mark.parametrize("kind", KINDS)
SIDES = (Choice("dark", "Dark", "f"), Choice("light", "Light", "j"))


class Scene:
    """A planted scenario and a model that follows the cue: what it says is the cue's own class."""

    def __init__(self, scenario: str) -> None:
        params = {"scenario": scenario, "count": 60, "model_count": 16}
        data = open_synthetic(Component("synthetic", params), Path("."))
        items = data.items("people")
        self.pictures = {item.key: data.pixels(item.key) for item in items}
        self.masks = {item.key: data.mask(item.key) for item in items}
        cue = {key: self._cue(data, key) for key in self.pictures}
        self.predicted = {item.key: data.labels[cue[item.key]] for item in items}
        pool_items = tuple(PoolItem(i.key, i.truth, self.predicted[i.key], 0.9, i.group) for i in items)
        conditions = (
            PlanCondition("baseline", "baseline", SITTINGS),
            PlanCondition("cue", "method", SITTINGS),
        )
        choices = tuple((label, label.title()) for label in data.labels)
        paradigm = get_paradigm("meta_predictor")
        pool = Pool(pool_items, conditions, choices, "prediction", 2, 3)
        self.plans: list[Plan] = list(paradigm.plans(paradigm.Design(), pool, Streams(5)))

    @staticmethod
    def _cue(data: SyntheticDataset, key: str) -> int:
        return int(data.plans[key].cue)

    def shown(self, key: str, condition: str) -> Pixels | None:
        return paint_field(self.pictures[key], self.masks[key].astype(np.float32), RenderSpec())

    def mask(self, key: str) -> Mask:
        return self.masks[key]

    def run(self) -> ControlReport:
        material = Pictures(self.pictures.__getitem__, self.shown, self.predicted, RenderSpec(), self.mask)
        return run_controls(self.plans, ["cue"], material, seed=2, sittings_max=SITTINGS, kinds=KINDS)


@pytest.fixture(scope="module")
def biased() -> ControlReport:
    return Scene("biased").run()


@every_kind
def test_it_predicts_better_when_shown_the_planted_region(biased: ControlReport, kind: str) -> None:
    oracle = biased.row("oracle", observer=kind)
    assert oracle.accuracy > biased.row("baseline", observer=kind).accuracy
    # The whole 95 % interval of the paired gain lies above 0, except that of the weakest observer.
    assert oracle.gain_low > 0 or kind == "one_reason"


@every_kind
def test_it_gains_nothing_from_a_shuffled_explanation(biased: ControlReport, kind: str) -> None:
    shuffled = biased.row("permuted", "cue", kind)
    assert shuffled.gain_low < MARGIN
    assert shuffled.gain < biased.row("oracle", observer=kind).gain


@every_kind
def test_it_sees_no_more_in_a_condition_than_in_the_same_picture_as_control(
    biased: ControlReport, kind: str
) -> None:
    shown, oracle = biased.row("shown", "cue", kind), biased.row("oracle", observer=kind)
    assert (shown.accuracy, shown.gain) == (oracle.accuracy, oracle.gain)


def test_it_reports_every_control_with_its_numbers(biased: ControlReport) -> None:
    each = [("baseline", ""), ("shown", "cue"), ("permuted", "cue"), ("other_image", "cue"), ("oracle", "")]
    wanted = [(kind, *names) for kind in (*KINDS, ALL) for names in each]
    assert [(row.observer, row.control, row.condition) for row in biased.rows] == wanted
    assert {row.sittings_count for row in biased.rows} == {SITTINGS}
    for row in biased.rows:
        assert row.answers_count == SITTINGS * 21 * (len(KINDS) if row.observer == ALL else 1)
    together = np.mean([biased.row("oracle", observer=kind).gain for kind in KINDS])
    assert biased.row("oracle", observer=ALL).gain == pytest.approx(together, abs=1e-6)
    assert all(row.low < row.accuracy < row.high for row in biased.rows)
    assert biased.row("baseline").gain == 0
    printed = biased.as_json()
    assert printed["heading"] == HEADING == "Computational observers, not people."
    assert len(biased.table()) == 1 + len(biased.rows)
    with pytest.raises(KeyError, match="no control"):
        biased.row("oracle", "cue")


@pytest.mark.parametrize("part", [(slice(0, 100), slice(30, 130)), (slice(20, 80), slice(0, 160))])
def test_its_controls_are_drawn_where_explanations_are(part: tuple[slice, slice]) -> None:
    """On a picture of which the model sees a part, every control is drawn on that part alone."""
    rng = np.random.default_rng(3)
    pictures = {key: rng.integers(0, 256, (100, 160, 3), dtype=np.uint8) for key in ("a", "b")}
    mask = np.zeros((100, 160), bool)
    mask[30:60, 40:90] = True

    def shown(key: str, condition: str) -> Pixels:
        picture = pictures[key].copy()
        field = np.asarray(rng.random((4, 4)).repeat(40, axis=0).repeat(40, axis=1), np.float32)
        below = picture[part]
        picture[part] = paint_field(below, field[: below.shape[0], : below.shape[1]], RenderSpec())
        return picture

    material = Pictures(pictures.__getitem__, shown, {}, RenderSpec(), lambda key: mask, lambda key: part)
    eye = _Eye(material, Streams(1), ["a", "b"])
    outside = np.ones((100, 160), bool)
    outside[part] = False
    for control in ("permuted", "other_image", "oracle"):
        drawn = eye._overlay(control, "method", "a")
        assert drawn is not None
        np.testing.assert_array_equal(drawn[outside], pictures["a"][outside])
        assert (drawn != pictures["a"]).any(axis=2)[~outside].mean() > 0.9
    oracle = eye._overlay("oracle", "method", "a")
    assert oracle is not None
    # The planted region is bright, all else dark: the palette's ends cover it at one opacity.
    expected = paint_field(pictures["a"], mask.astype(np.float32), RenderSpec())
    agree = (np.abs(oracle[part].astype(int) - expected[part]) <= 1).all(axis=2)
    assert agree.mean() > 0.99


def test_it_needs_plans() -> None:
    material = Pictures(lambda key: np.zeros((8, 8, 3), np.uint8), lambda key, name: None, {}, RenderSpec())
    with pytest.raises(ValueError, match="no plans"):
        run_controls([], ["cue"], material, seed=1)


def test_it_moves_blocks_and_keeps_them_whole() -> None:
    heat = np.arange(CELLS * CELLS, dtype=np.float32).reshape(CELLS, CELLS)
    order = np.random.default_rng(0).permutation(100)
    moved = permute_blocks(heat, order)
    assert sorted(moved.ravel()) == sorted(heat.ravel())
    row, column = divmod(int(order[0]), 10)
    assert np.array_equal(moved[:4, :4], heat[4 * row : 4 * row + 4, 4 * column : 4 * column + 4])
    assert np.array_equal(permute_blocks(heat, np.arange(100)), heat)


def percept(left: float, right: float, where: str = "") -> Percept:
    """A picture with two flat halves, looked at on one side or evenly."""
    features = np.zeros((PATCHES, len(FEATURES)), np.float32)
    half = np.arange(PATCHES) % 10 < 5
    features[:, 0] = np.where(half, left, right)
    attention = {"left": half, "right": ~half}.get(where)
    if attention is None:
        return Percept(features)
    return Percept(features, (attention / attention.sum()).astype(np.float32))


def agreement(where: str, people: int = 40) -> float:
    """Lightness of the left half goes with the label, that of the right half is noise."""
    rng = np.random.default_rng(0)
    said = []
    for number in range(people):
        person = Learner.drawn(3, number)
        examples = tuple(
            ExampleView(
                i, ("Dark", "Light")[i % 2], SIDES, percept(0.2 + 0.6 * (i % 2), rng.uniform(0.2, 0.8), where)
            )
            for i in range(8)
        )
        for trial in range(8, 20):
            seen = percept(0.2 + 0.6 * (trial % 2), rng.uniform(0.2, 0.8))
            reply = person.answer(TestView(trial, SIDES, examples, seen, reservoir=True))
            said.append(reply.value["choice"] == ("dark", "light")[trial % 2])
    return float(np.mean(said))


def test_it_learns_what_it_attends_to() -> None:
    # 480 answers each: a standard error of 0.02.
    assert agreement("left") > 0.8
    assert agreement("left") > agreement("") + 0.05
    assert agreement("right") < agreement("") - 0.05


def test_it_guesses_without_examples() -> None:
    said = [
        Learner.drawn(3, n).answer(TestView(n, SIDES, (), percept(0, 1))).value["choice"] for n in range(400)
    ]
    assert np.mean([value == "dark" for value in said]) == pytest.approx(0.5, abs=0.08)


def test_it_forgets_beyond_its_capacity_unless_it_looks_them_up() -> None:
    person = Learner.drawn(3, 1)
    old = tuple(ExampleView(i, "Dark", SIDES, percept(0.2, 0.2)) for i in range(4))
    new = tuple(ExampleView(i, "Light", SIDES, percept(0.8, 0.8)) for i in range(4, 40))
    assert person.traits.capacity_count < 36
    answers = {
        looked_up: [
            person.answer(TestView(p, SIDES, old + new, percept(0.2, 0.2), reservoir=looked_up)).value[
                "choice"
            ]
            for p in range(40, 140)
        ]
        for looked_up in (True, False)
    }
    assert answers[True].count("dark") > 85
    assert answers[False].count("dark") < 85


def test_it_finds_a_trace_wherever_it_lies() -> None:
    rng = np.random.default_rng(0)
    picture = rng.random((PATCHES, len(FEATURES))).astype(np.float32)
    traces = picture[rng.permutation(PATCHES)[:12]]
    # Squares by expansion leave a trace of rounding in float32, hence not exactly 1.
    assert resemblance(traces, picture) == pytest.approx(np.ones(12), abs=0.01)
    assert resemblance(traces + 3, picture).max() < 0.05


def test_it_chooses_by_luce_over_means() -> None:
    assert choice_shares([[0.6, 0.2], [0.2]], 1.0) == pytest.approx([2 / 3, 1 / 3])
    assert choice_shares([[0.4], [0.2]], 0.5) == pytest.approx([0.8, 0.2])
    assert choice_shares([[0.3] * 9, [0.3]], 0.4) == pytest.approx([0.5, 0.5])
    assert choice_shares([[0.4], []], 0.5) == pytest.approx([0.5, 0.5])
    assert choice_shares([[], []], 0.5) == pytest.approx([0.5, 0.5])


CUE = np.linspace(0.0, 1.0, 12, dtype=np.float32)


def answer(level: float) -> str:
    return "light" if level > 0.5 else "dark"


def lit(level: float) -> Percept:
    return percept(float(level), float(level))


def of_lightness() -> Plan:
    """Two training pictures, then the levels of `CUE` as test pictures."""
    common: dict[str, Any] = {"block": 0, "condition": "none", "explained": False, "choices": SIDES}
    train = [
        PlannedTrial(n, phase="train", kind="learn", item=str(n), label=SIDES[n].text, **common)
        for n in range(2)
    ]
    tests = [
        PlannedTrial(
            2 + n, phase="test", kind="predict", item=str(n), right=answer(level), reservoir=(0, 1), **common
        )
        for n, level in enumerate(CUE)
    ]
    return Plan(0, "participant", "none", "none", (*train, *tests))


@pytest.mark.parametrize("kind", OBSERVERS)
def test_a_ceiling_is_learned_from_answers_and_from_no_map(kind: str) -> None:
    """The mind has every unseen picture with its answer; what is shown in training leaves no trace in it."""
    person = person_class(kind).drawn(5, 0)
    assert isinstance(person, FrozenObserver)
    plan, levels = of_lightness(), np.linspace(0, 1, 300)
    unseen = [(lit(level), answer(level)) for level in levels]
    mind = informed_mind(person, plan, unseen)
    assert mind.labels.tolist() == [SIDES.index(s) for v in levels for s in SIDES if s.value == answer(v)]

    def forbidden(item: str) -> Percept:
        raise AssertionError("a ceiling looked at a training picture")

    said = sit(person, plan, forbidden, lambda item: lit(CUE[int(item)]), mind)
    right = [value == answer(CUE[place]) for place, value in enumerate(said.values())]
    assert len(said) == len(CUE) and np.mean(right) > 0.6


def test_it_names_a_method_above_the_ceiling_as_a_fault_of_the_observer() -> None:
    rng = np.random.default_rng(3)
    ceiling = rng.normal(0.6, 0.02, 30).astype(np.float32)
    above = (ceiling + rng.normal(0.1, 0.02, 30)).astype(np.float32)
    alike = (ceiling + rng.normal(0.0, 0.02, 30)).astype(np.float32)
    shown = {("ceiling", ""): ceiling, ("shown", "good"): above, ("shown", "same"): alike}
    faults = _faults("exemplar", shown)
    assert len(faults) == 1 and "with good" in faults[0] and "Fault of the observer exemplar" in faults[0]
    # The interval is Bonferroni's over two conditions: scipy's paired interval at .975.
    interval = ttest_rel(above, ceiling).confidence_interval(0.975)
    assert f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]" in faults[0]
    assert _faults("exemplar", {("shown", "good"): above}) == []
