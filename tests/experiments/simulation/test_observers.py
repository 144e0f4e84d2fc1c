"""The frozen observers: where they look, what of a map they read, how each decides, by closed forms and an
independent plain computation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from experiments.kinds.base import Choice
from experiments.simulation import OBSERVERS, person_class
from experiments.simulation.looking import guidance, own_looking, perceive, where_looked
from experiments.simulation.observers import (
    FrozenObserver,
    answer_shares,
    exemplar_evidence,
    one_reason_evidence,
    prototype_evidence,
)
from experiments.simulation.parameters import parameters, value
from experiments.simulation.people import ExampleView, TestView
from experiments.simulation.sight import CELLS, FEATURES, GRID, JUST_NOTICEABLE, PATCHES, Percept
from stimuli.datasets.synthetic.cue_scenarios import open_synthetic
from stimuli.spec import Component

pytestmark = pytest.mark.pure

SIDES = (Choice("dark", "Dark", "f"), Choice("light", "Light", "j"))
every_observer = pytest.mark.parametrize("kind", OBSERVERS)


def flat(level: float = 0.5) -> np.ndarray:
    return np.full((PATCHES, len(FEATURES)), level, np.float32)


def test_it_names_a_source_for_every_parameter() -> None:
    rows = [row for group in parameters().values() for row in group.values()]
    assert len(rows) > 15
    assert all(row.source and row.kind in ("literature", "baseline") for row in rows)
    # What was set by a figure of people is one number per observer, and its figure is that of the baseline.
    fitted = {g for g, names in parameters().items() for row in names.values() if row.kind == "baseline"}
    assert fitted == set(OBSERVERS)
    assert all("baseline: 61.6 %" in row.source for row in rows if row.kind == "baseline")


def test_it_looks_at_the_middle_of_a_plain_picture_by_the_published_spread() -> None:
    shares = own_looking(flat()).reshape(GRID, GRID)
    for axis, sd in ((0, value("centre", "sd_across")), (1, value("centre", "sd_down"))):
        # The middle fifth of the picture, of a normal cut to its frame.
        inner, whole = 2 * norm.cdf(0.1 / sd) - 1, 2 * norm.cdf(0.5 / sd) - 1
        assert shares.sum(axis=axis)[4:6].sum() == pytest.approx(inner / whole, abs=0.005)
    assert shares.sum() == pytest.approx(1)


def test_it_looks_at_what_differs_from_the_border() -> None:
    features = flat()
    features[44, 0] = 0.9
    gain = own_looking(features) / own_looking(flat())
    assert gain.argmax() == 44
    # All else equals the border, so nothing else is looked at.
    assert own_looking(features)[44] == pytest.approx(1)


def test_it_looks_more_at_the_planted_animal_than_an_even_eye_does() -> None:
    data = open_synthetic(
        Component("synthetic", {"scenario": "biased", "count": 24, "model_count": 16}), Path(".")
    )
    side = 160 // GRID
    for item in data.items("people"):
        animal = (~data.mask(item.key)).reshape(GRID, side, GRID, side).mean(axis=(1, 3)).reshape(-1)
        looked = where_looked(perceive(data.pixels(item.key)))
        assert float(looked @ animal) > float(animal.mean()), item.key


@pytest.mark.parametrize("cells", [1, 2, 3, 7])
def test_it_reads_a_bright_square_from_the_contrast_and_size_that_add_up_to_one_step(cells: int) -> None:
    """The mean over the window must reach one step: heat x cells^2 / window^2 = step."""
    window, step = value("map", "pooled_cells"), value("map", "least_span")
    needed = step * window**2 / cells**2
    for factor, is_read in ((0.98, False), (1.02, True)):
        if needed * factor > 1:
            assert not is_read or needed > 1  # Too small at any heat.
            continue
        heat = np.zeros((CELLS, CELLS), np.float32)
        heat[16 : 16 + cells, 20 : 20 + cells] = needed * factor
        assert (guidance(heat) is not None) == is_read, (cells, factor)
    if needed > 1:
        heat = np.zeros((CELLS, CELLS), np.float32)
        heat[16 : 16 + cells, 20 : 20 + cells] = 1
        assert guidance(heat) is None


def test_it_reads_no_clutter_and_no_faint_map_and_is_led_by_a_clear_one() -> None:
    board = (np.indices((CELLS, CELLS)).sum(axis=0) % 2).astype(np.float32)
    # A chessboard averages to 24 or 25 of 49 everywhere.
    assert guidance(board) is None
    ramp = np.linspace(0, 0.1, CELLS, dtype=np.float32)[None, :].repeat(CELLS, axis=0)
    assert guidance(ramp) is None
    heat = np.zeros((CELLS, CELLS), np.float32)
    heat[:, :20] = 1
    led = guidance(heat)
    assert led is not None
    half = led.reshape(GRID, GRID)[:, :5].sum()
    assert half > 0.8
    alone = own_looking(flat())
    product = np.array([o * g for o, g in zip(alone, led, strict=True)], dtype=np.float64)
    assert where_looked(Percept(flat(), guided=led)) == pytest.approx(product / product.sum(), abs=1e-6)
    # A map that is even leads nowhere.
    even = np.full(PATCHES, 1 / PATCHES, np.float32)
    assert where_looked(Percept(flat(), guided=even)) == pytest.approx(alone, abs=1e-6)


def plain_spread(rows: np.ndarray) -> list[float]:
    columns = rows.reshape(-1, rows.shape[-1]).T
    return [max(float(np.std(c)), float(j)) for c, j in zip(columns, JUST_NOTICEABLE, strict=True)]


@pytest.fixture(scope="module")
def seen() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    traces = rng.random((5, 3, len(FEATURES))).astype(np.float32)
    return traces, np.array([0, 1, 1, 0, 1]), rng.random((PATCHES, len(FEATURES))).astype(np.float32)


def test_the_exemplar_observer_averages_similarity_over_examples(seen: tuple[np.ndarray, ...]) -> None:
    traces, labels, patches = seen
    spread = plain_spread(traces)
    similar = []
    for example in traces:
        distances = [
            min(
                np.sqrt(np.mean([((t - p) / s) ** 2 for t, p, s in zip(trace, patch, spread, strict=True)]))
                for patch in patches
            )
            for trace in example
        ]
        similar.append(np.exp(-2.5 * np.mean(distances)))
    wanted = [
        np.log(np.mean([s for s, label in zip(similar, labels, strict=True) if label == k])) for k in (0, 1)
    ]
    assert exemplar_evidence(traces, labels, patches, 2, 2.5) == pytest.approx(wanted, abs=1e-4)


def test_the_prototype_observer_goes_by_the_nearer_mean() -> None:
    vectors = np.zeros((4, len(FEATURES)), np.float32)
    vectors[:, 0] = [0.0, 0.2, 0.8, 1.0]
    glance = np.zeros(len(FEATURES), np.float32)
    glance[0] = 0.3
    # Means .1 and .9; spread sqrt(.17); one of ten features differs, so the root mean square divides by
    # sqrt(10).
    scale = 3.0 / np.sqrt(0.17) / np.sqrt(10)
    evidence_of = prototype_evidence(vectors, np.array([0, 0, 1, 1]), glance, 2, 3.0)
    assert evidence_of == pytest.approx([-0.2 * scale, -0.6 * scale], rel=1e-5)


def test_the_one_reason_observer_uses_the_most_valid_feature_alone() -> None:
    labels = np.array([0, 0, 1, 1])
    vectors = np.zeros((4, len(FEATURES)), np.float32)
    vectors[:, 2] = [0.0, 1.0, 0.2, 0.9]  # tells nothing: both means near .5
    vectors[:, 5] = [0.1, 0.3, 0.7, 0.9]  # tells all four
    glance = np.full(len(FEATURES), 100.0, np.float32)
    glance[5] = 0.4
    spread = np.sqrt(0.1)
    evidence_of = one_reason_evidence(vectors, labels, glance, 2, 2.0)
    assert evidence_of == pytest.approx([-2 * 0.2 / spread, -2 * 0.4 / spread], rel=1e-5)


@pytest.mark.parametrize("evidence", [exemplar_evidence, prototype_evidence, one_reason_evidence])
def test_it_says_nothing_of_an_answer_without_example(evidence: object) -> None:
    rng = np.random.default_rng(1)
    labels = np.array([0, 0])
    if evidence is exemplar_evidence:
        evidence_of = exemplar_evidence(rng.random((2, 3, 10), np.float32), labels, flat(), 2, 1.0)
    else:
        evidence_of = evidence(rng.random((2, 10), np.float32), labels, flat()[0], 2, 1.0)  # type: ignore[operator]
    assert np.isfinite(evidence_of[0]) and np.isnan(evidence_of[1])
    # Then only the base rates speak: 3 of 4 by Laplace's rule.
    assert answer_shares(evidence_of, np.array([2, 0])) == pytest.approx([0.75, 0.25])


def test_it_weighs_evidence_with_base_rates() -> None:
    # Odds of 3 from the evidence, times (4 + 1) / (1 + 1) from the examples.
    shares = answer_shares(np.array([np.log(3.0), 0.0]), np.array([4, 1]))
    assert shares[0] / shares[1] == pytest.approx(3 * 5 / 2)


def percept(left: float, right: float, where: str = "") -> Percept:
    """A picture with two flat halves, read with a map on one side or without."""
    features = flat(0)
    half = np.arange(PATCHES) % GRID < 5
    features[:, 0] = np.where(half, left, right)
    led = {"left": half, "right": ~half}.get(where)
    guided = None if led is None else (led / led.sum()).astype(np.float32)
    return Percept(features, guided=guided)


def agreement(kind: str, where: str, people: int = 40) -> float:
    """Lightness of the left half goes with the label, that of the right half is noise."""
    rng = np.random.default_rng(0)
    said = []
    for number in range(people):
        person = person_class(kind).drawn(3, number)
        examples = tuple(
            ExampleView(
                i, ("Dark", "Light")[i % 2], SIDES, percept(0.2 + 0.6 * (i % 2), rng.uniform(0.2, 0.8), where)
            )
            for i in range(8)
        )
        for trial in range(8, 20):
            shown = percept(0.2 + 0.6 * (trial % 2), rng.uniform(0.2, 0.8))
            reply = person.answer(TestView(trial, SIDES, examples, shown, reservoir=True))
            said.append(reply.value["choice"] == ("dark", "light")[trial % 2])
    return float(np.mean(said))


@every_observer
def test_it_learns_what_it_attends_to(kind: str) -> None:
    # 480 answers each: a standard error of 0.023.
    assert agreement(kind, "left") > agreement(kind, "right") + 0.07


@every_observer
def test_it_remembers_the_label_of_a_picture_that_it_has_studied(kind: str) -> None:
    rng = np.random.default_rng(2)
    pictures = [Percept(rng.random((PATCHES, len(FEATURES))).astype(np.float32)) for _ in range(12)]
    examples = tuple(ExampleView(i, ("Dark", "Light")[i % 2], SIDES, p) for i, p in enumerate(pictures))
    said = [
        person_class(kind).drawn(1, n).answer(TestView(20, SIDES, examples, pictures[n % 12])).value["choice"]
        == ("dark", "light")[n % 2]
        for n in range(60)
    ]
    # Only lapses (6 %, half of them right) are wrong: expected .97, standard error .022.
    assert np.mean(said) > 0.88


@every_observer
def test_it_guesses_without_examples(kind: str) -> None:
    people = [person_class(kind).drawn(3, n) for n in range(400)]
    said = [p.answer(TestView(n, SIDES, (), percept(0, 1))).value["choice"] for n, p in enumerate(people)]
    assert np.mean([choice == "dark" for choice in said]) == pytest.approx(0.5, abs=0.08)


@every_observer
def test_it_answers_alike_from_the_same_memory(kind: str) -> None:
    person = person_class(kind).drawn(3, 1)
    assert isinstance(person, FrozenObserver)
    examples = tuple(ExampleView(i, ("Dark", "Light")[i % 2], SIDES, percept(0.1 * i, 0.5)) for i in range(6))
    mind = person.mind(examples, SIDES)
    assert mind.traces.shape == (6, value("memory", "fixations"), 10)
    for position in range(10, 30):
        view = TestView(position, SIDES, examples, percept(0.33, 0.41), reservoir=True)
        assert person.answer_from(mind, view) == person.answer(view)
