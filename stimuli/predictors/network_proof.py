"""The proof of a network before it is taken: the same rows have the same answers, in any batch.

A study draws a picture once and shows it to many; what is drawn again must be the same. So a network that is
random, keeps a count, or reads its neighbours in a batch is refused, by running it: two equal batches of
noise, and one of them cut in another way. One that draws random numbers is also run with every random number
at its least and at its greatest, so that a rare draw is found too, and may not differ in a single bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stimuli.errors import BadSpec, ShapeMismatch, StimulusError, first_line, is_out_of_memory

TOLERANCE = 1e-3
"""How far two answers may lie apart, as a share of the largest: adding up in another order costs 1e-6."""
MORE_RUNS = 50
"""Of a network that draws random numbers without any effect so far."""
MAX_SHOWN = 4


class Unrepeatable(BadSpec):
    """A network has other answers for what it was asked before."""


@contextmanager
def network_errors(inputs: str, remedy: str) -> Iterator[None]:
    """What a network raises within, as one sentence: ShapeMismatch. Errors of files and memory pass."""
    try:
        yield
    except (StimulusError, OSError):
        raise
    except Exception as error:  # a network may raise any
        if is_out_of_memory(error):
            raise
        raise ShapeMismatch(f"the model does not take {inputs} ({first_line(error)}); {remedy}") from error


def prove(ask: Callable[[slice], Tensor], count: int, thing: str) -> Tensor:
    """The answers (count, ...) to all rows of one batch, of which `ask` answers those of a slice.

    `thing` is what a row is, "picture" or "text". Raises Unrepeatable, with two answers that differ. Random
    numbers that others draw are not moved.
    """
    with _random_states() as is_moved, torch.no_grad():
        every = slice(0, count)
        whole, again = ask(every), ask(every)
        _compare(whole, again, thing, _RANDOM, 0 if is_moved() else TOLERANCE)
        for part in (slice(0, count - 1), slice(count - 1, count)):
            answers = ask(part)
            _compare(whole[part], answers, thing, _RANDOM if is_moved() else _BATCH)
        if is_moved():
            for _ in range(MORE_RUNS):
                _compare(answers, ask(part), thing, _RANDOM, 0)
            for extreme in (0, 1):
                with _Extreme(extreme), suppress(ShapeMismatch):  # it may not compute with an extreme
                    again = ask(every)
                _compare(whole, again, thing, _RANDOM)
    return whole


_RANDOM = (
    "gives other answers at every run",
    "it is random, or keeps a count: write functional.dropout(x, p, training=self.training), take noise, "
    "stochastic depth and sampling out of its forward pass, and call .eval() before it is exported",
)
_BATCH = (
    "gives another answer when other rows stand in the batch",
    "it takes statistics of the batch, as BatchNorm does in training mode or without running statistics: "
    "call .eval() before it is exported, and use track_running_stats=True",
)


def _compare(
    whole: Tensor, other: Tensor, thing: str, fault: tuple[str, str], share: float = TOLERANCE
) -> None:
    """Unrepeatable if answers differ by more than this share of the largest."""
    if other.shape != whole.shape:
        raise ShapeMismatch(
            f"the model returns {tuple(whole.shape)} for {thing}s of a batch and {tuple(other.shape)} for "
            f"them in another; one row of logits per {thing} is needed"
        )
    first, second = (values.double().reshape(len(whole), -1) for values in (whole, other))
    is_same = (first == second) | (first.isnan() & second.isnan())
    apart = torch.where(is_same, torch.zeros_like(first), (first - second).abs()).amax(1)
    largest = float(first.nan_to_num(0, 0, 0).abs().max())
    if not bool((apart <= share * largest).all()):
        row = int(apart.argmax())
        what, remedy = fault
        limit = f"differ by {share * largest:.2g} ({share:g} of the largest)" if share else "not differ"
        raise Unrepeatable(
            f"the network {what}: for the same {thing} {_numbers(first[row])}, then {_numbers(second[row])}, "
            f"which may {limit}; {remedy}"
        )


def _numbers(row: Tensor) -> str:
    shown = ", ".join(f"{float(value):.4g}" for value in row[:MAX_SHOWN])
    return f"({shown}{', …' if len(row) > MAX_SHOWN else ''})"


class _Extreme(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within, every random number is `value`; attention draws none by itself, but is marked as if it did."""

    def __init__(self, value: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.value = value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags and "attention" not in func.name():
            for tensor in tree_leaves(result):
                tensor.fill_(self.value)
        return result


@contextmanager
def _random_states() -> Iterator[Callable[[], bool]]:
    """Tells whether random numbers of torch, numpy or Python were drawn within, and undoes it at the end."""

    def states() -> tuple[Any, ...]:
        _, keys, *places = np.random.get_state(legacy=True)
        return (
            torch.get_rng_state().numpy().tobytes(),
            random.getstate(),
            np.asarray(keys).tobytes(),
            tuple(places),
        )

    before, kept = states(), (torch.get_rng_state(), np.random.get_state(), random.getstate())
    try:
        yield lambda: states() != before
    finally:
        torch.set_rng_state(kept[0])
        np.random.set_state(kept[1])
        random.setstate(kept[2])
