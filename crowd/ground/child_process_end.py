"""Processes that start others."""

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
