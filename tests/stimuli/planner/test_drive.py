"""Many methods on many pictures: what is shared, what is full, and that no result depends on the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from stimuli.errors import BadSpec, NotApplicable, StimulusError
from stimuli.explainers import open_explainer
from stimuli.planner.asks import LayerScores, OwnPasses, Scores, Steps, SummedGradient, TextScores
from stimuli.planner.drive import Job, JobResult, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject, Trace
from stimuli.planner.variants import Cells, OnPath, PixelReplacements, Windows
from stimuli.spec import Component
from tests.stimuli.tiny import (
    SIDE,
    Tiny,
    convolutional_net,
    explained,
    pictures,
    seeded,
    subjects_of,
    token_net,
)

pytestmark = pytest.mark.pure
BY_TRACE: tuple[str, ...] = ("saliency", "gradient_x_input", "grad_cam")
METHODS: tuple[str | Component, ...] = (
    *BY_TRACE,
    Component("integrated_gradients", {"steps": 7}),
    Component("smooth_grad", {"draws": 5}),
    Component("occlusion", {"patch_share": 0.3, "stride_share": 0.3}),
)
NAMES = tuple(method if isinstance(method, str) else method.name for method in METHODS)
LAST = Windows([(0, 0), (0, 8), (8, 0), (8, 8), (16, 16)], 8, 0.5)


def asking(*asks: Any) -> Callable[[], Steps]:
    """A method that asks for everything at once and returns the answers."""

    def steps() -> Steps:
        return (yield asks)

    return steps


def run(network: Network, *jobs: Job) -> dict[Hashable, JobResult]:
    return {done.name: done for done in drive(jobs, network)}


def results(network: Network, subject: Subject, *starts: Callable[[], Steps]) -> list[Any]:
    """The results of each method on one picture, all in one drive; the first error is raised."""
    done = run(network, *(Job(at, subject, start) for at, start in enumerate(starts)))
    for outcome in done.values():
        if outcome.error is not None:
            raise outcome.error
    return [done[at].result for at in range(len(starts))]


@dataclass(frozen=True)
class Scaled:
    """A layer's output times each of `shares`."""

    shares: Sequence[float]

    def __len__(self) -> int:
        return len(self.shares)

    def make(self, activation: Tensor, places: Sequence[int]) -> Tensor:
        return torch.stack([activation * self.shares[place] for place in places])


@dataclass(frozen=True)
class Spoiled:
    """Copies of which one cannot be made; equal to those of `LAST`."""

    bad: int

    def __len__(self) -> int:
        return len(LAST)

    def identity(self, place: int) -> Hashable:
        return LAST.identity(place)

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        if self.bad in places:
            raise BadSpec("this copy cannot be made")
        return LAST.make(image, places)


def test_it_traces_a_picture_once_for_all_methods() -> None:
    net = convolutional_net()
    network = Network(net, rows=4)
    done = explained(net, subjects_of(pictures(4)), *BY_TRACE, network=network)
    assert len(done) == 12 and not any(outcome.error for outcome in done.values())
    assert (network.bill.forwards, network.bill.backwards, network.bill.calls) == (4, 4, 1)


def test_it_traces_again_only_for_what_it_has_not() -> None:
    network, [subject] = Network(convolutional_net(), rows=4), subjects_of(pictures(1))

    def curious() -> Steps:
        first = yield Trace(layers=("0",), gradients=True)
        again = yield Trace(layers=("0",))
        more = yield Trace(input_gradient=True)
        last = yield Trace(layers=("0",), input_gradient=True)
        return first, again, more, last

    [(first, again, more, last)] = results(network, subject, curious)
    assert again is first and last is more
    assert more.input_gradient is not None
    assert "0" in more.gradients  # scores behind that layer may still be asked for
    assert (network.bill.forwards, network.bill.backwards) == (2, 2)


def test_it_runs_equal_copies_once_across_methods() -> None:
    """The picture itself, a flat picture, and the same squares, asked for by several methods."""
    network, [subject] = Network(convolutional_net(), rows=64), subjects_of(pictures(1))
    halves = np.zeros((SIDE, SIDE), np.int64)
    halves[:, 12:] = 1
    shown = np.array([[True, True], [False, False], [True, False]])
    order = np.arange(SIDE * SIDE)
    answers = results(
        network,
        subject,
        asking(Trace()),
        asking(Scores(LAST), Scores(LAST, "probability")),
        asking(Scores(Windows(LAST.corners[::-1], 8, 0.5), "logits")),
        asking(Scores(Cells(halves, shown, 0.25))),
        asking(Scores(PixelReplacements(order, [0, 100, SIDE * SIDE], 0.25))),
        asking(Scores(OnPath((0.0, 0.5, 1.0), 0.25))),
    )
    # Five squares, one half, one part of the ranking, one point of the path, one flat picture; one trace.
    assert network.bill.forwards == 1 + 5 + 4
    assert network.bill.calls == 2
    logits, shares = answers[1]
    np.testing.assert_array_equal(answers[2][0][::-1, subject.target], logits)
    powers = np.exp(answers[2][0][::-1])
    np.testing.assert_allclose(shares, powers[:, subject.target] / powers.sum(1), rtol=1e-9)
    itself = float(answers[0][0].logits[subject.target])
    assert answers[3][0][0] == answers[4][0][0] == answers[5][0][2] == itself
    assert answers[3][0][1] == answers[4][0][2] == answers[5][0][0]


def test_it_runs_the_picture_itself_once_for_copies_of_it_alone() -> None:
    """Also with so many labels that all logits are kept only for methods that ask for them."""
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, 40))
    net = Tiny(seeded(module), tuple(str(at) for at in range(40)))
    itself = Cells(np.zeros((SIDE, SIDE), np.int64), np.array([[True], [True]]))
    network, [subject] = Network(net, rows=4), subjects_of(pictures(1))
    scores, whole = results(network, subject, asking(Scores(itself)), asking(Scores(itself, "logits")))
    assert (network.bill.forwards, network.bill.calls) == (1, 1)
    expected = net.module(subject.pixels[None])
    np.testing.assert_allclose(whole[0], expected.expand(2, 40), atol=1e-6)
    np.testing.assert_array_equal(scores[0], whole[0][:, subject.target])


def test_it_scores_copies_as_the_network_does() -> None:
    net = convolutional_net()
    [subject] = subjects_of(pictures(1), first=2)
    [(logit, probability, logits)] = results(
        Network(net, rows=4),
        subject,
        asking(Scores(LAST), Scores(LAST, "probability"), Scores(LAST, "logits")),
    )
    copies = LAST.make(subject.pixels, range(5))
    expected = net.module(copies).double().numpy()
    np.testing.assert_allclose(logits, expected, atol=1e-6)
    np.testing.assert_allclose(logit, expected[:, 2], atol=1e-6)
    np.testing.assert_allclose(probability, torch.from_numpy(expected).softmax(1)[:, 2], atol=1e-6)


def test_it_sums_gradients_as_a_loop_does() -> None:
    net = convolutional_net()
    [subject] = subjects_of(pictures(1), first=1)
    weights = [0.5, -1.0, 2.0, 0.0, 3.0]
    [(summed, nothing)] = results(
        Network(net, rows=2),
        subject,
        asking(SummedGradient(LAST, weights), SummedGradient(Windows([], 8, 0.5), [])),
    )
    expected = torch.zeros(3, SIDE, SIDE, dtype=torch.float64)
    for place, weight in enumerate(weights):
        copy = LAST.make(subject.pixels, [place]).requires_grad_()
        expected += weight * torch.autograd.grad(net.module(copy)[0, 1], copy)[0][0].double()
    np.testing.assert_allclose(summed, expected, atol=1e-6)
    assert summed.dtype == torch.float64 and not nothing.any()


def test_it_scores_behind_a_layer_as_a_pass_by_hand() -> None:
    net: Any = convolutional_net()
    [subject] = subjects_of(pictures(1))
    shares = (0.0, 0.5, 1.0, 2.0)
    [(traced, scores)] = results(
        Network(net, rows=3), subject, asking(Trace(("0",)), LayerScores("0", Scaled(shares)))
    )
    maps = net.module[0](subject.pixels[None])
    np.testing.assert_allclose(traced.activations["0"], maps[0], atol=1e-6)
    expected = [float(net.module[1:](share * maps)[0, 0]) for share in shares]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_it_fills_its_batches() -> None:
    """Three pictures, five squares each, rows of four: four batches, not six."""
    network = Network(convolutional_net(), rows=4)
    jobs = [Job(at, subject, asking(Scores(LAST))) for at, subject in enumerate(subjects_of(pictures(3)))]
    assert not any(done.error for done in run(network, *jobs).values())
    assert (network.bill.calls, network.bill.forwards, network.bill.padded) == (4, 15, 1)

    network = Network(convolutional_net(), rows=4)
    jobs = [
        Job(at, subject, asking(SummedGradient(LAST, [1.0] * 5)))
        for at, subject in enumerate(subjects_of(pictures(3)))
    ]
    run(network, *jobs)
    assert (network.bill.calls, network.bill.backwards) == (4, 15)


def test_it_waits_for_who_may_still_ask_before_it_runs_a_part_of_a_batch() -> None:
    """What a method asks after its trace joins the rows that others asked for at once."""
    network = Network(convolutional_net(), rows=8)
    first, second = subjects_of(pictures(2))

    def later() -> Steps:
        yield Trace()
        return (yield Scores(LAST))

    run(
        network,
        Job("at once", first, asking(Scores(Windows(LAST.corners[:3], 8, 0.5)))),
        Job("later", second, later),
    )
    assert (network.bill.calls, network.bill.forwards, network.bill.padded) == (2, 9, 1)


def test_it_finds_the_same_alone_and_beside_others() -> None:
    """One picture and one method alone, and all of all together in any order, in any batches."""
    net = convolutional_net()
    subjects = subjects_of(pictures(5))
    together = explained(net, subjects, *METHODS, rows=4)
    assert not any(outcome.error for outcome in together.values())
    turned = explained(net, subjects[::-1], *METHODS[::-1], rows=7)
    for at, subject in enumerate(subjects):
        for method, name in zip(METHODS, NAMES, strict=True):
            alone = explained(net, [subject], method, rows=2)[0, name].result.values
            for other in (together[at, name], turned[4 - at, name]):
                scale = float(np.abs(alone).max())
                np.testing.assert_allclose(other.result.values, alone, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize("make", [convolutional_net, token_net])
def test_it_finds_the_same_bits_in_any_order(make: Callable[[], Tiny]) -> None:
    """With batches of one size neighbours change nothing at all."""
    net = make()
    subjects = subjects_of(pictures(4))
    first = explained(net, subjects, *METHODS, rows=2)
    second = explained(net, subjects[::-1], *METHODS, rows=2)
    for at in range(4):
        for name in NAMES:
            ours, theirs = first[at, name].result.values, second[3 - at, name].result.values
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_it_keeps_apart_what_differs_in_target_or_seed() -> None:
    net = convolutional_net()
    image = pictures(1)[0]
    smooth = open_explainer(Component("smooth_grad", {"draws": 3}))
    subjects = [Subject(target, "one", seed, "", image) for target, seed in ((0, 1), (1, 1), (0, 2))]
    jobs = [Job(at, subject, lambda s=subject: smooth.explain(net, s)) for at, subject in enumerate(subjects)]  # type: ignore[misc]
    done = run(Network(net, rows=4), *jobs)
    for at, subject in enumerate(subjects):
        alone = run(Network(net, rows=4), Job(0, subject, lambda s=subject: smooth.explain(net, s)))  # type: ignore[misc]
        np.testing.assert_allclose(done[at].result.values, alone[0].result.values, atol=1e-6)
    assert not np.allclose(done[0].result.values, done[2].result.values)


def test_it_scores_the_picture_in_the_precision_of_its_copies() -> None:
    """Otherwise the precision of a copy would depend on whether another method traced the picture."""
    [subject] = subjects_of(pictures(1))
    itself = Cells(np.zeros((SIDE, SIDE), np.int64), np.array([[True]]))
    scores = []
    for starts in ([asking(Scores(itself))], [asking(Scores(itself)), asking(Trace())]):
        network = Network(convolutional_net(), precision="bfloat16", rows=4)
        scores.append(results(network, subject, *starts)[0][0])
    assert scores[0][0] == scores[1][0]


def fails_at_once() -> Steps:
    raise NotApplicable("not for this picture")
    yield


def fails_after_its_trace() -> Steps:
    yield Trace()
    raise BadSpec("nothing was found")


def fails_alone() -> Steps:
    def broken(network: Network, subject: Subject) -> None:
        raise StimulusError("its own pass broke")

    yield OwnPasses(broken)


def in_turn() -> Steps:
    """Asks for one trace after another."""
    first = yield Trace()
    second = yield Trace(layers=("0",))
    third = yield Trace(input_gradient=True)
    return first.logits, second.activations["0"], third.input_gradient


FAULTS: dict[str, tuple[Callable[[], Steps], str]] = {
    "at once": (fails_at_once, "not for this picture"),
    "after its trace": (fails_after_its_trace, "nothing was found"),
    "alone": (fails_alone, "its own pass broke"),
    "no concepts": (asking(Trace(concepts=True)), "has no concepts"),
    "no trace first": (asking(LayerScores("0", Scaled((1.0, 2.0)))), "need a trace of it first"),
    "a text": (asking(Scores(LAST), TextScores(["a"])), "explains texts, and was asked about a picture"),
    "a copy": (asking(Scores(Spoiled(3))), "this copy cannot be made"),
    "a copy for gradients": (asking(SummedGradient(Spoiled(0), [1.0] * 5)), "this copy cannot be made"),
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("is_first", [True, False])
def test_it_ends_a_job_that_cannot_be_and_no_other(kind: str, is_first: bool) -> None:
    start, words = FAULTS[kind]
    subjects = subjects_of(pictures(2))
    good = [
        Job("scores", subjects[0], asking(Scores(LAST), SummedGradient(LAST, [1.0] * 5))),
        Job("itself", subjects[1], asking(Trace(("0",)), Scores(OnPath((0.5, 1.0), 0.25)))),
        Job("same copies", subjects[0], asking(Scores(LAST, "probability"))),
        Job("in turn", subjects[1], in_turn),
    ]
    expected = run(Network(convolutional_net(), rows=4), *good)
    bad = Job("bad", subjects[0], start)
    outcomes = run(Network(convolutional_net(), rows=4), *([bad, *good] if is_first else [*good, bad]))
    assert set(outcomes) == {"bad", *expected}
    error = outcomes["bad"].error
    if kind == "a copy" and not is_first:  # others have made these copies before
        np.testing.assert_array_equal(outcomes["bad"].result[0], outcomes["scores"].result[0])
    else:
        assert error is not None and words in str(error)
    for name, done in expected.items():
        assert outcomes[name].error is None and done.error is None
        for ours, theirs in zip(outcomes[name].result, done.result, strict=True):
            if not hasattr(ours, "logits"):
                np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_it_lets_a_mistake_of_a_method_end_its_own_job() -> None:
    def mistaken() -> Steps:
        yield Trace()
        raise ZeroDivisionError("by nothing")

    def unreachable() -> Steps:
        yield Trace()
        raise ConnectionError("the store does not answer")

    subjects = subjects_of(pictures(2))
    network = Network(convolutional_net(), rows=2)
    jobs = Job(0, subjects[0], mistaken), Job(1, subjects[1], asking(Trace()))
    done = {outcome.name: outcome for outcome in drive(jobs, network)}
    assert str(done[0].error) == "ZeroDivisionError: by nothing" and done[1].error is None
    assert network.bill.forwards == 2
    # The error of a service belongs to no single job.
    with pytest.raises(ConnectionError):
        list(drive([Job(0, subjects[0], unreachable)], network))


def test_it_lets_jobs_follow_that_share_what_is_known() -> None:
    [subject] = subjects_of(pictures(1))
    network = Network(convolutional_net(), rows=2)
    windows = Windows([(3, 3), (5, 5)], 4, 0.1)

    def follow(done: JobResult) -> list[Job]:
        return [Job("second", subject, asking(Scores(windows)))] if done.name == "first" else []

    first = Job("first", subject, asking(Scores(windows)))
    done = {outcome.name: outcome.result for outcome in drive([first], network, follow=follow)}
    np.testing.assert_array_equal(done["first"], done["second"])
    assert network.bill.forwards == 2  # the second job reuses the first one's copies


class Watched:
    """A method that counts how often it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def start(self) -> Steps:
        try:
            yield Trace()
            yield Scores(LAST)
            yield Scores(Windows([(3, 3)], 5, 0.1))
        finally:
            self.closed += 1


def test_it_closes_the_methods_when_the_reader_stops() -> None:
    watched = [Watched() for _ in range(4)]
    subjects = subjects_of(pictures(4))
    jobs = [
        Job("quick", subjects[0], asking(Trace())),
        *(Job(at, subjects[at], method.start) for at, method in enumerate(watched)),
    ]
    going: Iterator[JobResult] = drive(jobs, Network(convolutional_net(), rows=4))
    assert next(going).name == "quick"
    assert [method.closed for method in watched] == [0, 0, 0, 0]
    going.close()  # type: ignore[attr-defined]
    assert [method.closed for method in watched] == [1, 1, 1, 1]


def test_it_closes_the_methods_when_a_job_fails_or_everything_does() -> None:
    failing, waiting = Watched(), Watched()
    subjects = subjects_of(pictures(2))

    def spoiled() -> Steps:
        try:
            yield Scores(Spoiled(1))
        finally:
            failing.closed += 1

    def mistaken() -> Steps:
        yield Trace()
        raise ConnectionError

    assert run(Network(convolutional_net(), rows=2), Job(0, subjects[0], spoiled))[0].error is not None
    assert failing.closed == 1
    with pytest.raises(ConnectionError):
        run(
            Network(convolutional_net(), rows=2),
            Job("waiting", subjects[0], waiting.start),
            Job("mistaken", subjects[1], mistaken),
        )
    assert waiting.closed == 1


def test_it_yields_each_result_as_it_ends_and_says_that_it_lives() -> None:
    beats: list[int] = []
    [subject] = subjects_of(pictures(1))
    network = Network(convolutional_net(), rows=2)
    jobs = [Job("long", subject, asking(Scores(LAST))), Job("short", subject, asking(Trace()))]
    names = [done.name for done in drive(jobs, network, lambda: beats.append(network.bill.calls))]
    assert names == ["short", "long"]
    assert beats == [1, 2, 3, 4]


def test_it_answers_who_asks_for_nothing() -> None:
    [subject] = subjects_of(pictures(1))
    network = Network(convolutional_net(), rows=2)

    def silent() -> Steps:
        return 7
        yield

    nothing = Windows([], 4, 0.0)
    [seven, empty] = results(
        network,
        subject,
        silent,
        asking(Scores(nothing), Scores(nothing, "logits"), LayerScores("0", Scaled(()))),
    )
    assert seven == 7
    assert [values.shape for values in empty] == [(0,), (0, 4), (0,)]
    assert network.bill.calls == 0
    assert list(drive([], network)) == []
