"""Metrics by name: parameters written out, wrong ones refused, nothing heavy imported."""

import subprocess
import sys
import weakref
from typing import ClassVar, TypeVar

import numpy as np
import pytest

from stimuli.errors import BadSpec
from stimuli.metrics import METRICS, SET_METRICS, check_metric, metric_version, open_metric, open_set_metric
from stimuli.spec import Component
from stimuli.types import Pixels, Plane

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("name", METRICS)
def test_it_says_what_every_metric_is(name: str) -> None:
    metric = open_metric(Component(name))
    assert metric.unit and metric.kinds and metric.better in ("higher", "lower", "neither")
    assert metric_version(Component(name)) == metric.version >= 1
    assert type(metric).__doc__


@pytest.mark.parametrize("name", SET_METRICS)
def test_it_says_what_every_metric_of_sets_is(name: str) -> None:
    metric = open_set_metric(Component(name))
    assert metric.unit and metric.better in ("higher", "lower", "neither")
    assert metric_version(Component(name)) == metric.version >= 1


@pytest.mark.parametrize("name", [*METRICS, *SET_METRICS])
def test_it_writes_out_every_parameter(name: str) -> None:
    plain = check_metric(Component(name))
    assert check_metric(plain) == plain
    assert all(isinstance(value, bool | int | float | str) for value in plain.params.values())


def test_it_keeps_given_parameters_beside_the_defaults() -> None:
    found = check_metric(Component("mu_fidelity", {"grid": 7, "masked_share": 1 / 4}))
    assert (
        found.params["grid"] == 7 and found.params["masked_share"] == 0.25 and found.params["subsets"] == 200
    )


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (Component("deletio"), "there is no metric 'deletio' .did you mean 'deletion'"),
        (Component("deletion", {"step": 3}), "no parameter 'step' .did you mean 'steps'.*it takes absolute"),
        (Component("deletion", {"steps": 0}), "'steps' is 0, but must lie between 1 and 5000"),
        (Component("deletion", {"steps": 2.5}), "must be a whole number such as 10"),
        (Component("deletion", {"baseline": "pink"}), "must be one of black, mean, grey, blur"),
        (Component("method_similarity", {"absolute": 1}), "must be true or false"),
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


Held = TypeVar("Held", Pixels, Plane)


class Watched:
    """An entry that makes its arrays when they are looked at, and counts those that are still held."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, item: str, condition: str, label: str) -> None:
        self.item, self.condition, self.label = item, condition, label
        self.draws = np.random.default_rng([ord(one) for one in item + condition])

    @property
    def view(self) -> Pixels:
        return self._counted(self.draws.integers(0, 256, (32, 32, 3), dtype=np.uint8))

    @property
    def values(self) -> Plane:
        return self._counted(self.draws.standard_normal((32, 32)).astype(np.float32))

    def _counted(self, made: Held) -> Held:
        Watched.alive += 1
        Watched.most = max(Watched.most, Watched.alive)
        weakref.finalize(made, self._gone)
        return made

    @staticmethod
    def _gone() -> None:
        Watched.alive -= 1


@pytest.mark.parametrize("name", SET_METRICS)
def test_it_compares_a_study_without_holding_its_maps(name: str) -> None:
    entries = [Watched(f"{at}", condition, "ab"[at % 2]) for at in range(40) for condition in "xyz"]
    Watched.alive = Watched.most = 0
    found = open_set_metric(Component(name)).measure(entries)
    assert len(found) == 120
    assert Watched.most <= 6
    assert Watched.alive == 0
