"""What decides the last bits of a sum on this processor: recorded in the provenance, never in a key."""

from __future__ import annotations

import ctypes
import logging
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

logger = logging.getLogger(__name__)

# From mkl_service.h: what MKL_CBWR_Get returns, and the bit that STRICT adds.
_EVERYTHING, _AUTO, _STRICT = -1, 2, 0x10000
_BRANCHES = {0: "OFF", 1: "OFF", 2: "AUTO", 3: "COMPATIBLE"}


@cache
def arithmetic() -> dict[str, str | int]:
    """`cpu`: instruction set of torch's own kernels; `threads`: how many share a sum; `mkl_cbwr`: MKL's mode.

    Logs a warning if MKL runs without STRICT: a matrix product then rounds a row differently at another place
    of its batch, so that a map depends on its neighbours in the last bits.
    """
    mode = mkl_mode()
    if mode != "none" and not mode.endswith("STRICT"):
        logger.warning(
            "MKL runs in mode %s: maps may differ in their last bits with the company in a batch. Set "
            "MKL_CBWR=AUTO,STRICT before the process starts: crowd/settings.py sets it, which is too late if "
            "matrices were multiplied before.",
            mode,
        )
    return {
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "mkl_cbwr": mode,
    }


def make_repeatable() -> None:
    """Bring MKL into the mode AUTO,STRICT, unless it is in one already: what the settings do for the
    processes of a server. Nothing happens after the first product of matrices; `arithmetic` then warns.
    """
    if mkl_mode() == "OFF":
        with suppress(OSError, AttributeError):
            _mkl().mkl_serv_cbwr_set(_AUTO | _STRICT)


def _mkl() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


def mkl_mode() -> str:
    """The mode of conditional numerical reproducibility in force, as MKL_CBWR spells it; "none" without MKL.

    Asked of the library itself: it reads the environment once, at its first call, and the variable may have
    changed since.
    """
    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return "none"
    try:
        code = int(_mkl().mkl_serv_cbwr_get(_EVERYTHING))
    except (OSError, AttributeError):
        return "unknown"  # a build that keeps MKL in another file
    branch = code & ~_STRICT
    return _BRANCHES.get(branch, f"BRANCH {branch}") + (",STRICT" if code & _STRICT else "")
