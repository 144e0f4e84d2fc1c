"""Stored explanations against the same ones computed again: equal here, and a changed file is noticed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from stimuli.errors import StimulusError
from stimuli.explainers import check_explainer
from stimuli.recheck import RecheckResult, compare_explanations, differences, one_coloured, recheck
from stimuli.render.png import encode, pixel_key
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.store import LocalStore
from stimuli.store.files import map_file, read_attribution, view_file, write_attribution
from stimuli.types import ConceptAttribution, PixelAttribution, Pixels
from tests.stimuli.material import GRADIENT_X_INPUT, SALIENCY, render, specs_for, toy_source
from tests.stimuli.tiny import seeded

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


def checks_of(specs: list[StimulusSpec], store: LocalStore) -> dict[str, RecheckResult]:
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

    def largest(now: PixelAttribution, stored: PixelAttribution) -> float:
        return float(differences(now, stored).max())

    assert largest(pixels(1, -4), pixels(1, -4)) == 0
    assert largest(pixels(1, -3), pixels(1, -4)) == 0.25
    assert largest(pixels(0, 2), pixels(0, 0)) == 1
    assert largest(pixels(0, 0), pixels(0, 0)) == 0
    names = [ConceptAttribution((name, "b"), np.ones(2, np.float32)) for name in "ac"]
    with pytest.raises(StimulusError, match="2 concept"):
        differences(*names)


def pooled() -> nn.Module:
    """A network of two max poolings."""
    parts = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, padding=1)]
    parts += [nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3)]
    network = seeded(nn.Sequential(*parts, nn.Flatten(), nn.Linear(108, 4)))
    for name, numbers in network.named_parameters():
        if name.endswith("bias"):
            numbers.add_(0.2)
    return network


def faulty(weight: str, view: Pixels) -> nn.Module:
    """The network with one number of a weight, the one that answer 1 hangs on most, half as large again."""
    network = pooled()
    numbers = network.get_parameter(weight).requires_grad_()
    logit = network(torch.from_numpy(view).permute(2, 0, 1)[None].float() / 255)[0, 1]
    (gradient,) = torch.autograd.grad(logit, numbers)
    numbers.requires_grad_(False).view(-1)[int((gradient * numbers).abs().argmax())] *= 1.5
    return network


def gradients(network: nn.Module, view: Pixels) -> PixelAttribution:
    """The saliency of answer 1, by torch alone."""
    x = torch.from_numpy(view.copy()).permute(2, 0, 1)[None].float() / 255
    (gradient,) = torch.autograd.grad(network(x.requires_grad_())[0, 1], x)
    return PixelAttribution(gradient[0].abs().amax(0).numpy().copy(), signed=False)


def other_winners(network: nn.Module, view: Pixels) -> PixelAttribution:
    """The same by the network and the picture turned by half, and the map turned back: where values are tied,
    the last place of a pooling wins in place of the first."""
    for part in network.modules():
        if isinstance(part, nn.Conv2d):
            part.weight.data = part.weight.data.flip((2, 3))
        elif isinstance(part, nn.Linear):
            part.weight.data = part.weight.data.view(4, 12, 9).flip(2).flatten(1)
    turned = gradients(network, view[::-1, ::-1])
    return replace(turned, values=turned.values[::-1, ::-1].copy())


def keep_view(store: LocalStore, view: Pixels) -> str:
    key = pixel_key(view)
    store.put(view_file(key), encode(view))
    return key


@pytest.fixture
def saturated(store: LocalStore) -> tuple[StimulusSpec, Pixels]:
    """A white picture with a textured square, and the spec of an explanation of it."""
    view = np.full((64, 64, 3), 255, np.uint8)
    view[4:36, 6:38] = np.random.default_rng(1).integers(0, 256, (32, 32, 3))
    return StimulusSpec(keep_view(store, view), "b" * 64, "", 1, SALIENCY, 2, 7, RenderSpec()), view


def test_it_tells_ties_of_max_pooling_from_faults(
    saturated: tuple[StimulusSpec, Pixels], store: LocalStore
) -> None:
    """Other winners change most of the white area by much. One changed weight changes fewer pixels, but not
    there alone: their number tells nothing."""
    spec, view = saturated
    stored = gradients(pooled(), view)
    tie = compare_explanations(other_winners(pooled(), view), stored, spec, store)
    assert tie.difference is not None and tie.difference > 0.1 and tie.share > 0.3
    assert tie.is_beyond(1e-3) and tie.is_tied(1e-3)
    assert tie.textured is not None and tie.textured < 1e-5
    for weight in ("0.weight", "3.weight", "6.weight", "10.weight"):
        for drawn in (gradients, other_winners):
            fault = compare_explanations(drawn(faulty(weight, view), view), stored, spec, store)
            assert fault.is_beyond(1e-3) and not fault.is_tied(1e-3), (weight, drawn)


def test_it_calls_nothing_a_tie_in_a_picture_of_one_colour(store: LocalStore) -> None:
    """A fault would show nowhere else."""
    view = np.full((64, 64, 3), 255, np.uint8)
    spec = StimulusSpec(keep_view(store, view), "b" * 64, "", 1, SALIENCY, 2, 7, RenderSpec())
    tie = compare_explanations(other_winners(pooled(), view), gradients(pooled(), view), spec, store)
    assert tie.is_beyond(1e-3) and not tie.is_tied(1e-3)


def test_it_knows_areas_of_one_colour() -> None:
    view = np.arange(10 * 12 * 3, dtype=np.uint8).reshape(10, 12, 3)
    view[2:5, 3:6] = 7
    view[6:8, 3:9] = 7  # two rows are no square of three
    wanted = np.zeros((10, 12), bool)
    wanted[2:5, 3:6] = True
    np.testing.assert_array_equal(one_coloured(view), wanted)


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
