"""Placebos: real maps in the wrong place, and random fields that look like them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from stimuli import pipeline
from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import bind_to_items, check_explainer, open_explainer
from stimuli.explainers.controls.borrowed import by_rank, donor_places
from stimuli.explainers.controls.smooth import surrogate
from stimuli.explainers.donor_maps import permutations_in, randomised_key
from stimuli.pipeline import Bench, StimulusFailure, attempt
from stimuli.planner.values import Subject, counted_generator
from stimuli.predictors import open_predictor, restore
from stimuli.predictors.base import NormalisedNetwork, TorchPredictor
from stimuli.predictors.randomised import NOISE_PICTURES, noise_pictures, randomise_weights
from stimuli.quality.look_decodability import LOOKS, Decodability, decode, looks_of
from stimuli.render.attribution_field import field_of
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import PredictedItem, Source, prepare, spec_for, survey
from stimuli.store import LocalStore, files
from tests.stimuli.material import render, values_of
from tests.stimuli.tiny import (
    Tiny,
    linear_net,
    maps_of,
    pictures,
    pooled_net,
    seeded,
    subjects_of,
    token_net,
)

pytestmark = pytest.mark.pure
SIDE = 32
SALIENCY = Component("saliency")
TINY_NETWORK = Component("trained_cnn", {"epochs": 1, "width": 2, "input_px": SIDE, "train_items": 8})
World = tuple[Source, list[PredictedItem], LocalStore]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Six pictures of each of two classes, and a network that is trained for one pass on as many others."""
    folder = tmp_path_factory.mktemp("placebos")
    for split, label, index in product(("model", "people"), ("dark", "light"), range(6)):
        place = folder / "images" / split / label
        place.mkdir(parents=True, exist_ok=True)
        draws = np.random.default_rng([index, len(split), len(label)])
        picture = draws.integers(0, 120, (40, 48, 3), dtype=np.uint8) + (80 if label == "light" else 0)
        Image.fromarray(picture.astype(np.uint8)).save(place / f"{split}{index}.png")
    store = LocalStore(folder / "store")
    source = prepare(Component("folder", {"path": "images"}), TINY_NETWORK, folder, store)
    return source, survey(source, store), store


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    yield
    pipeline._restored.clear()


def control_specs(world: World, name: str, **params: object) -> list[StimulusSpec]:
    source, items, _ = world
    set_ = bind_to_items(Component(name, params), items, 5)
    return [spec_for(item, source, set_[at], RenderSpec(), 5) for at, item in enumerate(items)]


def own_specs(world: World, method: Component = SALIENCY) -> list[StimulusSpec]:
    source, items, _ = world
    return [spec_for(item, source, method, RenderSpec(), 5) for item in items]


def maps(specs: Sequence[StimulusSpec], store: LocalStore) -> list[NDArray[np.float32]]:
    list(render(specs, store))
    return [values_of(store, spec.attribution_key) for spec in specs]


def test_it_shows_the_very_maps_of_the_method_on_other_items(world: World) -> None:
    """By item the donor's map to the bit; as a set the same maps."""
    plain, lent = maps(own_specs(world), world[2]), maps(control_specs(world, "other_item"), world[2])
    keys = {item.image_key: at for at, item in enumerate(world[1])}
    explainers = [spec.explainer for spec in control_specs(world, "other_item")]
    donors = [keys[str(entry.params["item"])] for entry in explainers if entry is not None]
    for at, donor in enumerate(donors):
        assert donor != at
        np.testing.assert_array_equal(lent[at], plain[donor])
    assert Counter(made.tobytes() for made in lent) == Counter(made.tobytes() for made in plain)


def test_it_makes_no_map_of_a_donor_twice(world: World) -> None:
    """The method's own condition has made them: no file of a map joins but the one that is shown."""
    store = world[2]
    maps(own_specs(world), store)
    before = len(list(store.keys("maps/")))
    maps(control_specs(world, "other_item", donors="any_label"), store)
    assert len(list(store.keys("maps/"))) == before + len(world[1])


def test_it_shows_the_map_of_the_other_class(world: World) -> None:
    plain = own_specs(world)
    others = maps([replace(spec, target=1 - spec.target) for spec in plain], world[2])
    np.testing.assert_array_equal(maps(control_specs(world, "other_class"), world[2]), others)


@pytest.mark.parametrize("layers", [0, 1])
def test_it_shows_the_map_of_the_randomised_network(world: World, layers: int) -> None:
    """The places are those of the map that the method makes of the network when it is permuted by hand, the
    values to the bit those of the item's own map.
    """
    source, items, store = world
    made = maps(control_specs(world, "randomised_network", layers=layers, seed=3), store)
    network = restore(store.get(files.predictor_file(source.predictor_key)))
    assert isinstance(network, TorchPredictor)
    net = randomise_weights(network, layers, 3)
    views = net.inputs([files.read_view(store, item.image_key) for item in items])
    subjects = [
        Subject(item.index, item.image_key, 5, image=view) for item, view in zip(items, views, strict=True)
    ]
    by_hand, real = maps_of("saliency", net, subjects, rows=16), maps(own_specs(world), store)
    for shown, drawn, plain in zip(made, by_hand, real, strict=True):
        np.testing.assert_array_equal(np.sort(shown, axis=None), np.sort(plain, axis=None))
        in_order = shown.ravel()[np.lexsort((shown.ravel(), drawn.ravel()))]
        assert np.mean(np.diff(in_order) < 0) < 0.01  # rounding may exchange neighbours
        assert not np.allclose(shown, plain, atol=1e-3 * float(plain.max()))


def test_it_gives_values_by_rank_and_orders_equal_pixels_by_their_surround() -> None:
    """By hand: a peak on a plain of zeros gets the largest value, and the plain falls with the distance."""
    peak, real = np.zeros((9, 9), np.float32), np.arange(81, dtype=np.float32)[::-1].reshape(9, 9)
    peak[2, 3] = 5
    shown = by_rank(peak, real)
    assert shown[2, 3] == 80 and sorted(shown.ravel()) == list(range(81))
    assert shown[2, 4] > shown[2, 5] > shown[2, 6] > shown[5, 6] > shown[8, 8]
    flat = np.full((9, 9), 3, np.float32)
    np.testing.assert_array_equal(by_rank(flat, real), flat)
    np.testing.assert_array_equal(by_rank(real, flat), flat)


def test_it_has_the_histogram_of_the_method(world: World) -> None:
    """So that numbers of a histogram cannot tell it: of the drawn fields they are equal to the bit."""
    plain, lent = maps(own_specs(world), world[2]), maps(control_specs(world, "randomised_network"), world[2])
    fields = [[field_of(plane, RenderSpec()) for plane in planes] for planes in (plain, lent)]
    for first, second in zip(*fields, strict=True):
        np.testing.assert_array_equal(np.sort(first, axis=None), np.sort(second, axis=None))
        apart = np.abs(looks_of(first) - looks_of(second)) > 1e-9
        told = {name for name, differs in zip(LOOKS, apart, strict=True) if differs}
        assert told <= {"edges", "bytes", "slope", "corner_peak", "corner_mean"}


def test_it_draws_a_placebo_alone_as_in_company(world: World, tmp_path: Path) -> None:
    specs = [*control_specs(world, "randomised_network"), *control_specs(world, "other_item")]
    together = maps(specs, world[2])
    alone = LocalStore(tmp_path / "alone")
    for key in [*world[2].keys("views/"), *world[2].keys("predictors/")]:
        alone.put(key, world[2].get(key))
    for spec, made in zip(specs[3:15:6], together[3:15:6], strict=True):
        np.testing.assert_allclose(maps([spec], alone)[0], made, atol=1e-6 * float(np.abs(made).max()))


def test_it_says_why_a_map_cannot_be_lent(world: World) -> None:
    source, items, store = world
    lost = Component("other_item", {"item": "0" * 64, "target": 0})
    unnamed = Component("other_item")
    specs = [spec_for(items[0], source, method, RenderSpec(), 5) for method in (lost, unnamed)]
    results = list(attempt([*specs, *own_specs(world)[:1]], Bench(store)))
    assert [type(result) for result in results] == [StimulusFailure, StimulusFailure, type(results[2])]
    reasons = [result.error for result in results[:2] if isinstance(result, StimulusFailure)]
    assert "build_stimuli" in reasons[0] and "names no donor" in reasons[1]


@pytest.mark.parametrize("name", ["smooth_random", "other_item", "other_class", "randomised_network"])
def test_it_takes_the_method_as_it_is_set_and_no_control(name: str) -> None:
    whole = check_explainer(Component(name, {"of": "smooth_grad", "parameters": '{"draws": 4}'}))
    assert whole.params["parameters"] == '{"draws":4,"sigma":0.2}'
    for control in ("random", "other_item"):
        with pytest.raises(BadSpec, match=f"'{name}' cannot .* '{control}'"):
            open_explainer(Component(name, {"of": control}))
    with pytest.raises(NotApplicable, match="GradCam"):
        open_explainer(Component(name, {"of": "grad_cam"})).require(linear_net(), "")


def people(groups: str, labels: str) -> list[PredictedItem]:
    return [
        PredictedItem(f"{at:02d}", "", group, label, ord(label) - 97, 0.5, (0.0, 1.0), f"view {at}", 8, 8)
        for at, (group, label) in enumerate(zip(groups, labels, strict=True))
    ]


@pytest.mark.parametrize("rule", ["same_label", "other_label", "any_label"])
def test_it_lends_every_map_once_and_never_within_a_group(rule: str) -> None:
    items = people("aabbcdefghij", "aaaaaabbbbbb")
    chosen = set()
    for seed in range(20):
        places = donor_places(items, rule, seed)
        assert sorted(places) == list(range(12))
        chosen.add(tuple(places))
        for item, donor in zip(items, (items[at] for at in places), strict=True):
            assert item.group != donor.group
            assert rule == "any_label" or (item.index == donor.index) == (rule == "same_label")
        turned = donor_places(items[::-1], rule, seed)
        assert [11 - at for at in turned[::-1]] == places
    assert len(chosen) == 20


def test_it_lends_as_evenly_as_the_labels_allow() -> None:
    items = people("abcdefgh", "aaaaaabb")
    lent = Counter(donor_places(items, "other_label", 1))
    assert sorted(lent.values()) == [1, 1, 3, 3]
    with pytest.raises(BadSpec, match="2 of 8 items, such as '06', have no donor of another group"):
        donor_places(people("abcdefgg", "aaaaaabb"), "same_label", 1)
    assert donor_places([], "same_label", 1) == []


def test_it_permutes_the_weights_of_each_tensor() -> None:
    """The same values in other places, by the documented stream; a second time to the bit."""
    before = dict(pooled_net().module.named_parameters())
    after, again = (dict(randomise_weights(pooled_net(), 0, 4).module.named_parameters()) for _ in range(2))  # type: ignore[arg-type]
    for name, weights in before.items():
        drawn = counted_generator(f"weights\x1f4\x1f{name}").permutation(weights.numpy().ravel())
        np.testing.assert_array_equal(after[name].numpy().ravel(), drawn)
        assert torch.equal(after[name], again[name])
    other = dict(randomise_weights(pooled_net(), 0, 5).module.named_parameters())  # type: ignore[arg-type]
    assert not any(torch.equal(other[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("net", "layers", "changed"),
    [
        (pooled_net, 1, {"3"}),
        (pooled_net, 3, {"3", "0.4", "0.3"}),
        (token_net, 2, {"head", "last"}),
        (token_net, 3, {"head", "last", "blocks.1.mixer.2"}),
    ],
)
def test_it_permutes_the_last_layers_of_the_pass(net: object, layers: int, changed: set[str]) -> None:
    """The cascade of Adebayo et al.: from the logits down."""
    assert callable(net)
    before = dict(net().module.named_parameters())
    after = dict(randomise_weights(net(), layers, 4).module.named_parameters())
    moved = {name.rpartition(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert moved == changed


def test_it_takes_running_statistics_anew() -> None:
    """Behind each normalisation every channel of the noise pictures has mean 0 and variance 1, before weight
    and bias; also behind the second one, whose input the first has changed."""
    net = Tiny(NormalisedNetwork(pooled_net().module, (0.0,) * 3, (1.0,) * 3), ("a",) * 4)
    module = randomise_weights(net, 0, 4).module  # type: ignore[arg-type]
    seen = {}
    for name, part in module.named_modules():
        if isinstance(part, nn.BatchNorm2d):
            part.register_forward_hook(lambda m, _, out, name=name: seen.update({name: (m, out.clone())}))
    with torch.no_grad():
        module(noise_pictures(24, 4))
    assert len(seen) == 2
    for part, output in seen.values():
        plain = (output - part.bias.view(1, -1, 1, 1)) / part.weight.view(1, -1, 1, 1)
        np.testing.assert_allclose(plain.mean((0, 2, 3)), 0, atol=1e-4)
        np.testing.assert_allclose(plain.var((0, 2, 3), correction=0), 1, atol=2e-3)


def test_it_keeps_the_statistics_of_layers_below_the_permuted_ones() -> None:
    before = dict(pooled_net().module.named_buffers())
    for layers, changed in ((1, set()), (3, {"0.4"}), (5, {"0.4", "0.1"})):
        after = dict(randomise_weights(pooled_net(), layers, 4).module.named_buffers())  # type: ignore[arg-type]
        moved = {name.rpartition(".")[0] for name in before if not torch.equal(before[name], after[name])}
        assert moved == changed


class Exported(nn.Module):
    """A convolution, a normalisation with statistics far from what it meets, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.norm(self.first(x)).relu().mean((2, 3)))
        return logits


def test_it_permutes_an_exported_program(tmp_path: Path) -> None:
    """A .pt2 file of a study: its parts are named as in the network, its statistics are taken anew."""
    network = seeded(Exported())
    batch = {"x": {0: torch.export.Dim("pictures")}}
    program = torch.export.export(network, (torch.rand(2, 3, 16, 16),), dynamic_shapes=batch)
    torch.export.save(program, tmp_path / "model.pt2")
    params = {"weights": "model.pt2", "input_px": 16, "labels": ["a", "b"]}
    stored = open_predictor(Component("torch_image", params), tmp_path, None).dump()
    before, after, top = (
        restore(stored),
        randomise_weights(opened(stored), 0, 1),
        randomise_weights(opened(stored), 1, 1),
    )
    states = [predictor.module.state_dict() for predictor in (before, after, top)]  # type: ignore[union-attr]
    changed = [{name for name in states[0] if not torch.equal(states[0][name], s[name])} for s in states[1:]]
    assert {"network.first.weight", "network.norm.running_var", "network.last.weight"} <= changed[0]
    assert "network.last.weight" in changed[1] <= {"network.last.weight", "network.last.bias"}
    for name in ("network.first.weight", "network.last.weight"):
        np.testing.assert_array_equal(
            np.sort(states[1][name], axis=None), np.sort(states[0][name], axis=None)
        )


def opened(stored: bytes) -> TorchPredictor:
    predictor = restore(stored)
    assert isinstance(predictor, TorchPredictor)
    return predictor


def looks_apart(world: World, name: str) -> Decodability:
    """Whether the looks of saliency's maps differ from those of its placebo."""
    specs = [*own_specs(world), *control_specs(world, name)]
    fields = [field_of(plane, RenderSpec()) for plane in maps(specs, world[2])]
    count = len(world[1])
    rows = np.arange(2 * count)
    return decode([looks_of(field) for field in fields], rows < count, rows % count, 1)


def test_it_cannot_be_told_by_its_looks(world: World) -> None:
    """The maps of other items are the method's own; salt is told at once."""
    assert looks_apart(world, "other_item").low < 0.6 and looks_apart(world, "other_item").p > 0.5
    salt = looks_apart(world, "random")
    assert salt.p < 0.05 and salt.auc > 0.9


def test_it_refuses_networks_without_so_many_weights() -> None:
    with pytest.raises(NotApplicable, match="has 1 layers with weights, and 2 were"):
        randomise_weights(linear_net(), 2, 0)  # type: ignore[arg-type]
    bare = Tiny(nn.Flatten(), ("a", "b"))
    with pytest.raises(NotApplicable, match="no weights"):
        open_explainer(Component("randomised_network", {"of": "none"})).require(bare, "")


def test_it_writes_permutations_into_the_key() -> None:
    key = randomised_key(randomised_key("ab12", 0, 7), 3, 1)
    stored, changes = permutations_in(key)
    assert (stored, list(changes)) == ("ab12", [(0, 7), (3, 1)])
    assert permutations_in("ab12")[0] == "ab12" and not list(permutations_in("ab12")[1])


def test_it_draws_noise_with_the_spectrum_of_photographs() -> None:
    noise = noise_pictures(64, 1)
    assert noise.shape == (NOISE_PICTURES, 3, 64, 64) and noise.min() >= 0 and noise.max() <= 1
    power = np.square(np.abs(np.fft.fft2(noise.numpy()))).mean((0, 1))
    assert np.log(power[0, 2:16].mean() / power[0, 16:32].mean()) > np.log(4)


def blob(side: int = 48) -> NDArray[np.float64]:
    down, across = np.mgrid[:side, :side]
    values: NDArray[np.float64] = np.exp(
        -(np.square(down - 0.2 * side) + np.square(across - 0.9 * side)) / 60
    )
    return values


def rough(side: int = 48) -> NDArray[np.float64]:
    return np.random.default_rng(1).standard_normal((side, side)) * (0.2 + blob(side))


@pytest.mark.parametrize("make", [blob, rough])
def test_it_draws_a_field_with_the_values_and_the_spectrum_of_the_map(make: object) -> None:
    """The values to the bit, the slope of the spectrum nearly and on average, in places of its own. Pixels of
    the blob that are merely permuted have a slope of 0 and thirteen times its steps."""
    assert callable(make)
    source = make()
    fields = [surrogate(source, counted_generator(str(seed))) for seed in range(8)]
    for field in fields:
        np.testing.assert_array_equal(np.sort(field, axis=None), np.sort(source, axis=None))
    assert np.mean([slope_of(field) for field in fields]) == pytest.approx(slope_of(source), abs=0.4)
    assert np.mean([steps_of(field) for field in fields]) < 2.5 * steps_of(source)
    assert abs(np.mean([np.corrcoef(field.ravel(), source.ravel())[0, 1] for field in fields])) < 0.25


def slope_of(field: NDArray[np.float64]) -> float:
    return float(looks_of(field.astype(np.float32))[LOOKS.index("slope")])


def steps_of(field: NDArray[np.float64]) -> float:
    return float(np.abs(np.diff(field, axis=0)).mean())


def test_it_imitates_an_empty_map_by_an_empty_one() -> None:
    assert not maps_of("smooth_random", linear_net(), subjects_of(pictures(1)), of="none").any()
