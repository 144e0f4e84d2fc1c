"""The toy's two lines: in the table of platforms, and in that of simulators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def registered() -> Iterator[None]:
    from crowd.platforms import PLATFORMS
    from crowd.rehearsal import SIMULATORS

    with ExitStack() as stack:
        stack.enter_context(PLATFORMS.added("toy", "tests.toy_platform:PLATFORM"))
        stack.enter_context(SIMULATORS.added("toy", "tests.toy_platform.simulator:simulate"))
        yield
