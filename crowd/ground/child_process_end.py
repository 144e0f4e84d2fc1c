"""Processes that start others, and how they end."""

from __future__ import annotations

import ctypes
import signal
import sys

END_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


def end_with_parent() -> None:
    """This process ends with the one that started it: else it keeps the port while it waits for its clients.
    Elsewhere than on Linux it lives on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)


def end_with_signals() -> None:
    """A command that is told to end, or whose terminal is closed, stops what it has started before it
    goes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            continue  # As under nohup.
        signal.signal(number, lambda number, _: sys.exit(128 + number))
