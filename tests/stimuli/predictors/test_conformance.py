"""Every registered explainer keeps what the interface promises, ours or a package's.

A method is tried on small networks that it accepts, with parameters that make it cheap. What it asks is
answered by the planner.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import (
    BORROWED,
    EXPLAINERS,
    RECORDED,
    SEEDED,
    Explainer,
    check_explainer,
    open_explainer,
    version_of,
)
from stimuli.explainers.base import sign_of
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.text import drive_texts
from stimuli.planner.values import Subject
from stimuli.predictors.concepts.head_fits import fit_qda
from stimuli.predictors.concepts.head_interface import ANNOTATIONS, CLIP, Bottleneck, ConceptKind
from stimuli.predictors.concepts.head_layers import head_layer, head_of, set_head
from stimuli.predictors.image.bcos_layers import bcos_network
from stimuli.predictors.randomised import randomise_weights
from stimuli.predictors.text.base import TextPredictor, assemble_text
from stimuli.predictors.text.text_encoders import EmbeddedEncoder, Head, TextNetwork
from stimuli.registry import LATER, bounds, choices, declared_parameters
from stimuli.spec import Component
from stimuli.types import ConceptAttribution, Layout, PixelAttribution, TokenAttribution, Weights
from tests.stimuli.tiny import Tiny, convolutional_net, pictures, pooled_net, seeded, subjects_of, token_net

pytestmark = pytest.mark.pure

CHEAP: dict[str, dict[str, object]] = {
    "integrated_gradients": {"steps": 5},
    "smooth_grad": {"draws": 4},
    "occlusion": {"patch_share": 0.25, "stride_share": 0.25},
    "rise": {"masks": 60, "grid": 4},
    "lime_image": {"samples": 40, "segmentation": "grid-1", "segments": 9, "stability": 1},
    "shap_partition": {"evaluations": 40},
    "lime_cbm": {"samples": 200},
    "rise_cbm": {"masks": 60},
    "lime_text": {"samples": 60},
    "shap_text": {"exact_words": 6, "orders": 3},
}
KNOWS_NO_NETWORK = {"none", "bottom_up_saliency", "spectral_residual"}
"""Controls that are made of the item alone."""
KNOWS_NO_CLASS = KNOWS_NO_NETWORK | {"attention_rollout", "eigen_cam", "deep_feature_factorization"}
DRAWS = {
    *("smooth_grad", "lime_image", "random", "permuted", "smooth_random"),
    *("lime_cbm", "lime_text", "shap_text", "random_text"),
}
BANKS = {"rise", "rise_cbm"}
"""Methods that draw once per seed, for all items of a study."""
FREE_TEXTS = {"layer", "of", "method", "arguments", "mask_word", "parameters", "item"}
"""Parameters that name something: what they may be is not a list, and is checked when they are used."""
TEXTS = (
    "The old wolf ran over the snow to the river.",
    "A bright yellow boat, and nobody in it!",
    "Was it the grey fox that nobody had seen?",
)
METHODS = [name for name in EXPLAINERS if name != RECORDED]
every_method = pytest.mark.parametrize("name", METHODS)
Net = Any


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Passes this small are slower on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class ConceptTiny(Tiny):
    """Its last layer but one puts out concept values."""

    def concept_module(self) -> nn.Module:
        return self.module.get_submodule("3")


def concept_net(kind: ConceptKind = ANNOTATIONS, head: str = "linear", seed: int = 3) -> Tiny:
    """Convolutions, five concepts, four classes by a head on the concepts."""
    samples = np.random.default_rng(1).normal(0, 1, (60, 5))
    module = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU()),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 5),
        head_layer(head, 4, 5),
    )
    redrawn(seeded(module), seed)
    if head == "qda":
        classes = np.random.default_rng(seed).integers(0, 4, 60)
        set_head(module[-1], fit_qda(samples, classes, 4))
    concepts = ("fur", "wheel", "snow", "ear", "tail")
    bottleneck = Bottleneck(concepts, head_of(module[-1]), kind, samples)
    layouts = {"0": Layout("maps", 6, 12, 12)}
    return ConceptTiny(module, ("a", "b", "c", "d"), "0", layouts, bottleneck=bottleneck)


def bcos_net() -> Tiny:
    """Four B-cos layers."""
    with torch.random.fork_rng(devices=[]):
        module = bcos_network(2, 4, 2.0, 1)
    return Tiny(seeded(module), ("a", "b", "c", "d"), "features", {"features": Layout("maps", 8, 3, 3)})


def sure(net: Tiny) -> Tiny:
    """The network with larger logits: methods that read probabilities see differences."""
    *_, last = (part for part in net.module.modules() if isinstance(part, nn.Linear))
    last.weight.data *= 8
    return net


def text_net() -> TextPredictor:
    """Hashed words and an untrained head."""
    encoder = EmbeddedEncoder(1, 64)
    network = TextNetwork(encoder, Head(encoder.width, 3, "mean"))
    seeded(network)
    return assemble_text(network, labels=("a", "b", "c"), architecture={}, payload=b"", provenance={})


def redrawn(module: nn.Module, seed: int) -> nn.Module:
    """Other random weights of the same sizes, every layer's own."""
    draws = torch.Generator().manual_seed(seed)
    for weights in module.parameters():
        weights.data = (weights.std(correction=0) or 0.5) * torch.randn(weights.shape, generator=draws)
    return module


def network_of(net: Net) -> nn.Module:
    module: nn.Module = net.network if isinstance(net, TextPredictor) else net.module
    return module


@dataclass(frozen=True)
class Case:
    """A method, a network that it accepts, and three items."""

    name: str
    method: Explainer
    net: Net
    subjects: tuple[Subject, ...]
    networks: dict[int, Network] = field(default_factory=dict)

    def run(self, subjects: Sequence[Subject] | None = None, rows: int = 4) -> list[Weights]:
        asked = self.subjects if subjects is None else subjects
        if self.name in BORROWED:
            asked = [self.lent(subject) for subject in asked]
        jobs = [
            Job(place, subject, partial(self.method.explain, self.net, subject))
            for place, subject in enumerate(asked)
        ]
        if self.method.kind == "text":
            done = {outcome.name: outcome for outcome in drive_texts(jobs, self.net, rows)}
        else:
            network = self.networks.setdefault(rows, Network(self.net, rows=rows))
            done = {outcome.name: outcome for outcome in drive(jobs, network)}
        for outcome in done.values():
            if outcome.error is not None:
                raise outcome.error
        return [done[place].result for place in range(len(asked))]

    def lent(self, subject: Subject) -> Subject:
        """The item with what the control borrows: its own map, and the one of the picture upside down, of the
        next class, or in the network with permuted weights, as its name says."""
        lender, net = subject, self.net
        if self.name == "other_item":
            lender = replace(subject, key=f"{subject.key}-donor", image=subject.pixels.flip(1))
        elif self.name == "other_class":
            lender = replace(subject, target=(subject.target + 1) % len(net.labels))
        else:
            net = randomise_weights(deepcopy(net), 0, 0)
        method = open_explainer(Component("saliency"))
        for name, of, item in (("map", net, lender), ("own", self.net, subject)):
            (done,) = drive([Job(0, item, partial(method.explain, of, item))], Network(of, rows=4))
            subject = replace(subject, lent={**(subject.lent or {}), name: done.result})
        return subject


NETS: dict[str, Callable[[], Net]] = {
    **dict.fromkeys(("attention_rollout", "generic_attention"), lambda: sure(token_net())),
    "bcos": bcos_net,
    "clip_linear": lambda: concept_net(CLIP),
    "clip_qda": lambda: concept_net(CLIP, "qda"),
}
"""Methods that explain one kind of network only; the others explain the usual one of their kind."""
USUAL: dict[str, Callable[[], Net]] = {
    "image": lambda: sure(pooled_net()),
    "concept": concept_net,
    "text": text_net,
}


def case_of(name: str) -> Case:
    method = open_explainer(Component(name, CHEAP.get(name, {})))
    net = NETS.get(name, USUAL[method.kind])()
    if method.kind == "text":
        subjects = [Subject(at, f"text-{at}", 7, text=text) for at, text in enumerate(TEXTS)]
        return Case(name, method, net, tuple(subjects))
    method.require(net, net.layer)
    return Case(name, method, net, tuple(subjects_of(pictures(3), layer=net.layer)))


@cache
def usual(name: str) -> tuple[Case, list[Weights]]:
    """The case and its results, as the other tests compare them."""
    case = case_of(name)
    return case, case.run()


def numbers(results: Sequence[Weights]) -> list[NDArray[np.float64]]:
    return [np.asarray(result.values, np.float64).ravel() for result in results]


def apart(some: Sequence[Weights], others: Sequence[Weights]) -> float:
    """How far pictures of results are apart, at most 2: 1 less the correlation of the values. 0 if both
    say nothing, 1 if one does. Which words are not marked counts, so their values are not centred.
    """
    distances = []
    for values, other in zip(numbers(some), numbers(others), strict=True):
        if not isinstance(some[0], TokenAttribution):
            values, other = values - values.mean(), other - other.mean()
        length = np.linalg.norm(values) * np.linalg.norm(other)
        distances.append(1 - float(values @ other) / length if length else float(values.any() or other.any()))
    return float(max(distances))


def same(some: Sequence[Weights], others: Sequence[Weights], share: float = 1e-4) -> None:
    """Equal up to the rounding of single precision in other batches."""
    for values, other in zip(numbers(some), numbers(others), strict=True):
        np.testing.assert_allclose(values, other, atol=share * max(1e-12, np.abs(values).max(initial=0)))


@every_method
def test_it_returns_what_its_kind_promises(name: str) -> None:
    case, results = usual(name)
    assert len(results) == 3
    for subject, attribution in zip(case.subjects, results, strict=True):
        assert attribution.values.dtype == np.float32 and np.isfinite(attribution.values).all()
        assert attribution.values.flags.c_contiguous and attribution.values.flags.writeable
        assert all(type(value) is float and np.isfinite(value) for value in attribution.checks.values())
        if case.method.kind == "image":
            assert isinstance(attribution, PixelAttribution)
            assert attribution.values.shape == tuple(subject.pixels.shape[1:])
            assert attribution.signed or (attribution.values >= 0).all()
            assert attribution.signed is sign_of(case.method)
        elif case.method.kind == "concept":
            assert isinstance(attribution, ConceptAttribution)
            assert attribution.concepts == case.net.bottleneck.concepts
            assert attribution.values.shape == (len(attribution.concepts),)
            assert attribution.order in ("ascending", "descending")
        else:
            assert isinstance(attribution, TokenAttribution)
            assert attribution.values.shape == (len(attribution.spans),)
            edges = [edge for span in attribution.spans for edge in span]
            assert edges == sorted(edges) and all(start < end for start, end in attribution.spans)
            assert not edges or (edges[0] >= 0 and edges[-1] <= len(subject.text))


@every_method
def test_it_marks_something(name: str) -> None:
    """All but the empty control say something about at least one of the items."""
    _, results = usual(name)
    assert any(values.any() for values in numbers(results)) == (name != "none")


@every_method
def test_it_repeats_itself_to_the_bit(name: str) -> None:
    _, first = usual(name)
    for result, other in zip(first, case_of(name).run(), strict=True):
        np.testing.assert_array_equal(result.values, other.values)
        assert dict(result.checks) == dict(other.checks)


@every_method
def test_it_explains_an_item_alone_as_in_company(name: str) -> None:
    case, together = usual(name)
    for place, subject in enumerate(case.subjects):
        same(case.run([subject]), [together[place]])


@every_method
def test_it_does_not_depend_on_order_or_size_of_batches(name: str) -> None:
    case, usually = usual(name)
    same(case.run(case.subjects[::-1], rows=2)[::-1], usually)


@every_method
def test_it_explains_nothing_without_items(name: str) -> None:
    assert usual(name)[0].run([]) == []


@every_method
def test_it_draws_by_key_and_seed_alone(name: str) -> None:
    """Another key or seed draws anew; they change nothing if nothing is drawn."""
    case, usually = usual(name)
    other_key = case.run([replace(subject, key=f"other-{subject.key}") for subject in case.subjects])
    other_seed = case.run([replace(subject, seed=8) for subject in case.subjects])
    assert (apart(other_key, usually) > 1e-9) == (name in DRAWS)
    assert (apart(other_seed, usually) > 1e-9) == (name in DRAWS | BANKS)


def test_it_declares_which_methods_draw() -> None:
    """Of those that are declared, captum's may draw and shap_cbm does with many concepts."""
    assert DRAWS | BANKS | {"captum", "shap_cbm"} == SEEDED


@every_method
def test_it_leaves_network_and_item_as_they_were(name: str) -> None:
    case = case_of(name)
    with unchanged(network_of(case.net)), untouched(case.subjects):
        case.run()


@every_method
def test_it_works_where_gradients_are_switched_off(name: str) -> None:
    case, usually = usual(name)
    with torch.no_grad():
        results = case.run()
        assert not torch.is_grad_enabled()
    same(results, usually)


def test_it_keeps_nothing_in_memory() -> None:
    """After the first runs, whose caches may stay, no tensor with values outlives a run of any method."""
    cases = [usual(name)[0] for name in METHODS]
    counts = []
    for _ in range(2):
        for case in cases:
            case.run(case.subjects[:1])
        gc.collect()
        counts.append(sum(type(value) in (Tensor, nn.Parameter) for value in gc.get_objects()))
    assert counts[0] >= counts[1], f"tensors after each round: {counts}"


@contextmanager
def unchanged(module: nn.Module) -> Iterator[None]:
    """Weights, buffers, flags, hooks and random states are the same afterwards."""
    before = {key: value.clone() for key, value in module.state_dict().items()}
    state = list(flags(module))
    streams = torch.get_rng_state(), repr(np.random.get_state())
    yield
    assert list(flags(module)) == state
    after = module.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert torch.equal(torch.get_rng_state(), streams[0])
    assert repr(np.random.get_state()) == streams[1]


def flags(module: nn.Module) -> Iterator[object]:
    for name, part in module.named_modules():
        hooks = (
            part._forward_hooks,
            part._forward_pre_hooks,
            part._backward_hooks,
            part._backward_pre_hooks,
        )
        yield name, part.training, type(part), [len(some) for some in hooks], sorted(vars(part))
    for name, weights in module.named_parameters():
        yield name, weights.requires_grad, weights.grad is None, len(weights._backward_hooks or {})


@contextmanager
def untouched(subjects: Sequence[Subject]) -> Iterator[None]:
    images = [subject.image for subject in subjects]
    copies = [None if image is None else image.clone() for image in images]
    yield
    for image, copy in zip(images, copies, strict=True):
        if image is not None and copy is not None:
            assert torch.equal(image, copy) and not image.requires_grad and image.grad is None


@every_method
def test_it_depends_on_the_weights_or_on_none_of_them(name: str) -> None:
    """The sanity check of Adebayo et al. 2018: every layer's weights drawn anew."""
    case, usually = usual(name)
    fresh = case_of(name)
    if case.method.kind == "concept":
        head = "qda" if name == "clip_qda" else "linear"
        net = concept_net(case.net.bottleneck.kind, head, seed=11)
        fresh = Case(name, case.method, net, case.subjects)
    else:
        redrawn(network_of(fresh.net), 11)
    results = fresh.run()
    if name in KNOWS_NO_NETWORK:
        for result, other in zip(results, usually, strict=True):
            np.testing.assert_array_equal(result.values, other.values)
    else:
        assert apart(results, usually) > 0.05


@every_method
def test_it_depends_on_the_class_or_on_none(name: str) -> None:
    case, usually = usual(name)
    labels = len(case.net.labels)
    results = case.run([replace(subject, target=(subject.target + 1) % labels) for subject in case.subjects])
    if name in KNOWS_NO_CLASS:
        same(results, usually)
    else:
        assert apart(results, usually) > 0.01


@every_method
def test_it_depends_on_the_item(name: str) -> None:
    case, usually = usual(name)
    if case.method.kind == "image":
        items = [replace(subject, image=case.subjects[0].pixels.flip(2)) for subject in case.subjects[:1]]
    else:
        items = [replace(case.subjects[0], text=TEXTS[1], image=case.subjects[1].image)]
    first = numbers(case.run(items))[0]
    expected = numbers(usually[:1])[0]
    assert name == "none" or first.shape != expected.shape or not np.allclose(first, expected)


@every_method
def test_it_declares_its_parameters(name: str) -> None:
    for key, parameter in declared_parameters(EXPLAINERS.load(name)).items():
        default = parameter.default
        assert type(default) in (bool, int, float, str)
        if isinstance(default, bool):
            continue
        if isinstance(default, str):
            words = choices(parameter)
            assert words or key in FREE_TEXTS, f"{key} says not what it may be"
            assert not words or (default == words[0] and len(set(words)) == len(words) > 1)
            wrong: object = "no such word"
        else:
            allowed = bounds(parameter)
            assert set(allowed) == {"ge", "le"}, f"{key} has no limits"
            assert allowed["ge"] <= default <= allowed["le"] and allowed["ge"] < allowed["le"]
            wrong = type(default)(allowed["le"] + 1)
        if not isinstance(default, str) or choices(parameter):
            with pytest.raises(BadSpec, match=key):
                open_explainer(Component(name, {key: wrong}))


@every_method
def test_it_is_a_value_with_a_version(name: str) -> None:
    component = Component(name, CHEAP.get(name, {}))
    explainer, other = open_explainer(component), open_explainer(component)
    assert explainer == other and hash(explainer) == hash(other)
    assert type(version_of(component)) is int and version_of(component) >= 1
    assert explainer.kind in ("image", "concept", "text")
    assert not hasattr(explainer, "__dict__"), "slotted"
    with pytest.raises((AttributeError, TypeError)):
        explainer.kind = "frozen"  # type: ignore[misc, assignment]
    assert open_explainer(written := check_explainer(component)) == explainer
    kinds = get_type_hints(type(explainer), include_extras=True)
    names = {parameter.name for parameter in fields(explainer)}  # type: ignore[arg-type]
    later = {name for name in names if LATER in getattr(kinds[name], "__metadata__", ())}
    assert names - later <= set(written.params) <= names


@every_method
def test_it_names_its_source(name: str) -> None:
    """In square brackets with the year, or it says that it is ours or another library's."""
    text = type(open_explainer(Component(name))).__doc__ or ""
    assert re.search(r"\[[^\]]*\d{4}[^\]]*\]", text) or re.search(r"\b(ours|our own|captum)\b", text, re.I), (
        text
    )


@every_method
def test_it_refuses_what_it_cannot_explain_with_a_remedy(name: str) -> None:
    """Before anything runs: the network is accepted and explained, or a whole sentence says why not."""
    method = open_explainer(Component(name, CHEAP.get(name, {})))
    nets = [text_net()] if method.kind == "text" else [token_net(), convolutional_net(), concept_net()]
    for net in nets:
        layer = getattr(net, "layer", "")
        try:
            method.require(net, layer)
        except NotApplicable as error:
            assert len(str(error)) > 40 and str(error)[0] != " "
        else:
            subject = replace(case_of(name).subjects[0], layer=layer)
            Case(name, method, net, (subject,)).run()
