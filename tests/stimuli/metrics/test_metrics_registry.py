"""Metrics by name: parameters written out, wrong ones refused, nothing heavy imported."""

import subprocess
import sys
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from stimuli.errors import BadSpec
from stimuli.metrics import METRICS, SET_METRICS, check_metric, open_metric, open_set_metric
from stimuli.metrics.metric_key import describe_metric
from stimuli.spec import Component
from stimuli.types import Pixels, Plane

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("name", METRICS)
def test_it_says_what_every_metric_is(name: str) -> None:
    metric = open_metric(Component(name))
    assert metric.unit and metric.kinds and metric.better in ("higher", "lower", "neither")
    assert describe_metric(Component(name)).version == metric.version >= 1
    assert type(metric).__doc__


@pytest.mark.parametrize("name", SET_METRICS)
def test_it_says_what_every_metric_of_sets_is(name: str) -> None:
    metric = open_set_metric(Component(name))
    assert metric.unit and metric.better in ("higher", "lower", "neither")
    assert describe_metric(Component(name)).version == metric.version >= 1


@pytest.mark.parametrize("name", [*METRICS, *SET_METRICS])
def test_it_writes_out_every_parameter(name: str) -> None:
    plain = check_metric(Component(name))
    assert check_metric(plain) == plain
    assert all(isinstance(value, bool | int | float | str) for value in plain.params.values())


def test_it_keeps_given_parameters_beside_the_defaults() -> None:
    component = check_metric(Component("mu_fidelity", {"grid": 7, "masked_share": 1 / 4}))
    assert (
        component.params["grid"] == 7
        and component.params["masked_share"] == 0.25
        and component.params["subsets"] == 200
    )


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (Component("deletio"), "there is no metric 'deletio' .did you mean 'deletion'"),
        (Component("deletion", {"step": 3}), "no parameter 'step' .did you mean 'steps'.*it takes absolute"),
        (Component("deletion", {"steps": 0}), "'steps' is 0, but must lie between 1 and 5000"),
        (Component("deletion", {"steps": 2.5}), "must be a whole number such as 10"),
        (Component("deletion", {"baseline": "pink"}), "must be one of black, mean, grey, blur"),
        (Component("deletion", {"absolute": 1}), "must be true or false"),
        (Component("sparsity", {"steps": 1}), "it takes none"),
    ],
)
def test_it_names_what_is_wrong(component: Component, message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        check_metric(component)


def test_it_does_not_mix_up_the_two_kinds() -> None:
    with pytest.raises(BadSpec, match="there is no metric of sets 'deletion'"):
        open_set_metric(Component("deletion"))
    with pytest.raises(BadSpec, match="there is no metric 'method_similarity'"):
        open_metric(Component("method_similarity"))


def test_it_imports_no_torch_for_checking() -> None:
    code = (
        "import sys; from stimuli.metrics import *; from stimuli.spec import Component\n"
        "[check_metric(Component(name)) for name in (*METRICS, *SET_METRICS)]\n"
        "assert not {'torch', 'skimage', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_it_refuses_a_bank_of_subsets_that_would_fill_the_memory() -> None:
    with pytest.raises(BadSpec, match="20,000,000 draws.*lower one"):
        check_metric(Component("faithfulness_correlation", {"runs": 10_000, "subset": 1_000_000}))
    check_metric(Component("faithfulness_correlation", {"runs": 100, "subset": 200_000}))


@dataclass(frozen=True)
class Made:
    """An entry that makes its arrays whenever they are looked at."""

    item: str
    condition: str
    label: str

    @property
    def view(self) -> Pixels:
        return np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)

    @property
    def values(self) -> Plane:
        seed = [ord(letter) for letter in self.item + self.condition]
        return np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32)


def peak(metric: Component, items: int) -> int:
    """The most bytes that are used to compare `items` items in three conditions."""
    entries = [Made(f"{at}", condition, "ab"[at % 2]) for at in range(items) for condition in "xyz"]
    tracemalloc.start()
    try:
        assert len(open_set_metric(metric).measure(entries)) == len(entries)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long(stays="test_it_says_what_every_metric_of_sets_is")
@pytest.mark.parametrize(
    "metric", [Component("method_similarity"), Component("diagnostic_similarity", {"partners": 4})]
)
def test_it_compares_a_study_without_holding_its_maps(metric: Component) -> None:
    """Thirty more items are 90 more maps; next to nothing of them, nor of anything made from them, stays."""
    peak(metric, 4)  # what is imported and set up once
    maps = 30 * 3 * 64 * 64 * 4
    assert peak(metric, 40) - peak(metric, 10) < 0.15 * maps
