"""Pictures read several at a time: Pillow and NumPy let other threads go on while they draw or decode."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Asked = TypeVar("Asked")
Read = TypeVar("Read")


def side_by_side(read: Callable[[Asked], Read], items: Sequence[Asked]) -> Iterator[Read]:
    """What `read` gives for each of `items`, in their order; as many at a time as there are cores. The first
    error of `read` is raised in its turn, and what has not begun by then is left out.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1) as readers:
        yield from readers.map(read, items)
