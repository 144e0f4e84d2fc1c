"""Permuted blocks: the order in which levels are offered, balanced after every round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.design.rng import Streams


def permuted_blocks(counts: Sequence[int], streams: Streams, name: str = "conditions") -> Iterator[int]:
    """The level of each ordinal; level i occurs `counts[i]` times.

    There are max(counts) rounds, each in an order of its own (stream `name`, round). A level with the largest
    count stands in every round; one with fewer is spread over the rounds as evenly as whole numbers allow.
    With equal counts every block of len(counts) consecutive ordinals therefore holds each level exactly once,
    and after any number of ordinals two levels differ by at most one. Reference: Matts and Lachin 1988, on
    permuted block randomisation.
    """
    if any(count < 0 for count in counts):
        raise ValueError(f"counts must not be negative: {list(counts)}")
    rounds = max(counts, default=0)
    for index in range(rounds):
        due = [
            level
            for level, count in enumerate(counts)
            if (index + 1) * count // rounds > index * count // rounds
        ]
        order = streams(name, index).permutation(len(due))
        yield from (due[int(place)] for place in order)


def permuted_level(count: int, index: int, streams: Streams, name: str) -> int:
    """The level (0 to count-1) of one index; every run of `count` indices is a permutation of the levels.

    Does not need the indices before it, so a plan can be drawn for slot j alone.
    """
    block, place = divmod(index, count)
    return int(streams(name, block).permutation(count)[place])
