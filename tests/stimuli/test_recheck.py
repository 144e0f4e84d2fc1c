"""Stored explanations against the same ones computed again: equal here, and a changed file is noticed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stimuli.errors import StimulusError
from stimuli.explainers import check_explainer
from stimuli.recheck import Rechecked, difference, recheck
from stimuli.spec import Component, StimulusSpec
from stimuli.store import LocalStore
from stimuli.store.files import map_file, read_attribution, write_attribution
from stimuli.types import ConceptAttribution, PixelAttribution
from tests.stimuli.material import GRADIENT_X_INPUT, SALIENCY, render, specs_for, toy_source

pytestmark = pytest.mark.pure
SMOOTH = Component("smooth_grad", {"draws": 4})


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def specs(tmp_path: Path, store: LocalStore) -> list[StimulusSpec]:
    """Two methods and the baseline on six pictures, rendered."""
    source, items = toy_source(tmp_path, store)
    made = specs_for(source, items, SALIENCY, SMOOTH)
    made += [replace(spec, explainer=None) for spec in made[:6]]
    list(render(made, store))
    return made


def checks_of(specs: list[StimulusSpec], store: LocalStore) -> dict[str, Rechecked]:
    return {check.spec.attribution_key: check for check in recheck(specs, store)}


def contents(store: LocalStore) -> dict[str, bytes]:
    keys = list(store.keys())
    return {key: store.get(key) for key in keys}


def test_it_finds_what_is_stored_and_changes_nothing(specs: list[StimulusSpec], store: LocalStore) -> None:
    before = contents(store)
    checked = checks_of(specs, store)
    assert len(checked) == 12  # the baseline has nothing to compare
    assert [check.difference for check in checked.values()] == [0.0] * 12
    assert contents(store) == before


def test_it_finds_a_file_that_was_changed(specs: list[StimulusSpec], store: LocalStore) -> None:
    key = specs[8].attribution_key
    made = read_attribution(store, key)
    assert isinstance(made, PixelAttribution)
    forged = replace(made, values=np.float32(1.5) * made.values)
    (store.root / map_file(key)).write_bytes(write_attribution(forged))
    checked = checks_of(specs, store)
    assert checked[key].difference == pytest.approx(1 / 3, abs=1e-6)
    assert {check.difference for other, check in checked.items() if other != key} == {0.0}


def test_it_says_why_it_cannot_compare(specs: list[StimulusSpec], store: LocalStore) -> None:
    gone, damaged, turned, old = (spec.attribution_key for spec in specs[:4])
    (store.root / map_file(gone)).unlink()
    (store.root / map_file(damaged)).write_bytes(b"no archive")
    other = PixelAttribution(np.zeros((3, 4), np.float32), signed=False)
    (store.root / map_file(turned)).write_bytes(write_attribution(other))
    specs[3] = replace(specs[3], version=99)
    checked = checks_of(specs, store)
    assert "render the study's stimuli again" in checked[gone].error
    assert "is damaged" in checked[damaged].error
    assert "3 x 4 pixel" in checked[turned].error
    assert old not in checked and "version 99 was asked for" in checked[specs[3].attribution_key].error
    assert sum(check.difference == 0 for check in checked.values()) == 8


def test_it_leaves_no_other_method_in_its_place(specs: list[StimulusSpec], store: LocalStore) -> None:
    """One method's maps under another one's keys are far from what is computed."""
    other = [replace(spec, explainer=GRADIENT_X_INPUT) for spec in specs[:6]]
    for spec, other_spec in zip(specs[:6], other, strict=True):
        data = store.get(map_file(spec.attribution_key))
        assert store.put(map_file(other_spec.attribution_key), data)
    assert all(
        check.difference is not None and check.difference > 0.1 for check in checks_of(other, store).values()
    )


def test_it_measures_by_the_largest_stored_magnitude() -> None:
    def pixels(*values: float) -> PixelAttribution:
        return PixelAttribution(np.array([values], np.float32), signed=True)

    assert difference(pixels(1, -4), pixels(1, -4)) == 0
    assert difference(pixels(1, -3), pixels(1, -4)) == 0.25
    assert difference(pixels(0, 2), pixels(0, 0)) == 1
    assert difference(pixels(0, 0), pixels(0, 0)) == 0
    names = [ConceptAttribution((name, "b"), np.ones(2, np.float32)) for name in "ac"]
    with pytest.raises(StimulusError, match="2 concept"):
        difference(*names)


def test_it_makes_borrowed_maps_again_as_well(specs: list[StimulusSpec], store: LocalStore) -> None:
    """A control's lender is explained anew and not read: a changed file of the lender is no excuse."""
    donor = specs[1]
    control = Component("other_item", {"item": donor.image_key, "target": donor.target})
    borrowed = replace(specs[0], explainer=check_explainer(control), version=1)
    list(render([borrowed], store))
    (store.root / map_file(donor.attribution_key)).write_bytes(b"damaged")
    assert checks_of([borrowed], store)[borrowed.attribution_key].difference == 0.0
    (store.root / map_file(borrowed.attribution_key)).write_bytes(
        (store.root / map_file(specs[5].attribution_key)).read_bytes()
    )
    assert checks_of([borrowed], store)[borrowed.attribution_key].difference
