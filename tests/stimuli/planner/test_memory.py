"""Memory that runs out while copies are made: fewer at a time, the same numbers, no job lost."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from stimuli.planner.asks import LayerScores, Scores, SummedGradient, TextScores
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.text import drive_texts
from stimuli.planner.values import Subject, Trace
from stimuli.planner.variants import Windows
from tests.stimuli.planner.test_drive import asking
from tests.stimuli.text_toys import Logits, ToyText, subject_of
from tests.stimuli.tiny import convolutional_net, pictures, subjects_of

pytestmark = pytest.mark.pure

SQUARES = Windows([(top, left) for top in (0, 8, 16) for left in (0, 8, 16)], 8, 0.5)
WEIGHTS = np.linspace(-1, 2, len(SQUARES)).tolist()
ERRORS: list[Callable[[], Exception]] = [
    lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    lambda: RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    lambda: MemoryError("Unable to allocate 3.00 GiB for an array"),
]


@dataclass(frozen=True)
class Heavy:
    """The squares, of which at most `most` can be made at a time; as a layer's output they scale it."""

    most: int
    error: Callable[[], Exception] = ERRORS[0]

    def __len__(self) -> int:
        return len(SQUARES)

    def identity(self, place: int) -> Hashable:
        return SQUARES.identity(place)

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        if len(places) > self.most:
            raise self.error()
        if len(image) == 3:
            return SQUARES.make(image, places)
        return torch.stack([image * (place / 8) for place in places])


def answers(most: int, rows: int, error: Callable[[], Exception] = ERRORS[0]) -> tuple[Any, Network]:
    network = Network(convolutional_net(), rows=rows)
    heavy = Heavy(most, error)
    steps = asking(Trace(("0",)), Scores(heavy), SummedGradient(heavy, WEIGHTS), LayerScores("0", heavy))
    outcomes = list(
        drive([Job(subject.key, subject, steps) for subject in subjects_of(pictures(2))], network)
    )
    assert not [outcome.error for outcome in outcomes if outcome.error is not None]
    return {outcome.name: outcome.result[1:] for outcome in outcomes}, network


@pytest.mark.parametrize("error", ERRORS)
def test_it_makes_fewer_copies_at_a_time_when_memory_runs_out(error: Callable[[], Exception]) -> None:
    roomy, untroubled = answers(16, 16)
    results, network = answers(3, 16, error)
    assert network.rows == 2
    for name, expected in roomy.items():
        for values, other in zip(results[name], expected, strict=True):
            np.testing.assert_allclose(values, other, atol=1e-5)
    # No copy ran twice.
    for count in ("forwards", "backwards", "tails"):
        assert getattr(network.bill, count) == getattr(untroubled.bill, count)


def test_it_ends_the_job_whose_single_copy_does_not_fit_and_no_other() -> None:
    network = Network(convolutional_net(), rows=8)
    [subject] = subjects_of(pictures(1))
    far = Windows([(4, 4), (4, 12)], 8, 0.5)
    jobs = [Job("heavy", subject, asking(Scores(Heavy(0)))), Job("light", subject, asking(Scores(far)))]
    done = {outcome.name: outcome for outcome in drive(jobs, network)}
    assert "one picture does not fit into memory" in str(done["heavy"].error)
    assert done["light"].error is None and len(done["light"].result[0]) == 2


class NarrowText(ToyText):
    """Texts of which at most three run at a time."""

    def text_batches(self, texts: Sequence[str], rows: int) -> Iterator[tuple[list[int], Logits]]:
        for places, logits in super().text_batches(texts, rows):
            if rows > 3:
                raise MemoryError("Unable to allocate 3.00 GiB for an array")
            yield places, logits


def test_it_runs_fewer_texts_at_a_time_when_memory_runs_out() -> None:
    def logits(text: str) -> tuple[float, float]:
        return float(len(text)), float(text.count("a"))

    texts = [f"a{'ba' * at}" for at in range(11)]
    subject: Subject = subject_of(texts[0], 0)
    [roomy], [narrow] = (
        list(drive_texts([Job("text", subject, asking(TextScores(texts)))], net, rows=16))
        for net in (ToyText(logits), NarrowText(logits))
    )
    assert narrow.error is None
    np.testing.assert_array_equal(narrow.result[0], roomy.result[0])
