"""Latin squares and Williams designs, as rows of level indices from 0."""

from __future__ import annotations


def latin_square(size: int) -> tuple[tuple[int, ...], ...]:
    """The cyclic Latin square: row g, column c holds (g + c) mod size.

    Each level stands once in every row and once in every column. With size 3 this is the assignment of item
    subsets to groups and conditions of Gonzalez and Søgaard 2020.
    """
    if size < 1:
        raise ValueError(f"a Latin square has at least 1 level, asked for {size}")
    return tuple(tuple((row + column) % size for column in range(size)) for row in range(size))


def williams(size: int) -> tuple[tuple[int, ...], ...]:
    """Orders of `size` levels, balanced for first-order carry-over.

    Every level stands equally often in every period, and every ordered pair of different levels follows one
    another equally often: once in the `size` sequences for an even size, twice in the 2 * size sequences for
    an odd one (six sequences for three levels). Reference: Williams 1949.
    """
    if size < 1:
        raise ValueError(f"a Williams design has at least 1 level, asked for {size}")
    if size == 1:
        return ((0,),)
    zigzag = [0]
    for step in range(1, size):
        zigzag.append((zigzag[-1] + (step if step % 2 else -step)) % size)
    rows = [tuple((level + shift) % size for level in zigzag) for shift in range(size)]
    if size % 2:
        rows += [tuple(reversed(row)) for row in rows]
    return tuple(rows)
