"""Why a cell is empty: four codes.

A column `missing` names them beside the empty cells, which stay empty so that every program reads numbers
as numbers. An empty cell that `missing` does not name is not applicable. A cell of `missing` is "column=code"
for each column named, separated by semicolons, in the order of the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

Missing = Literal["not_applicable", "not_reached", "not_recorded", "withdrawn"]
CODES = get_args(Missing)
MEANINGS: Mapping[Missing, str] = {
    "not_applicable": "there is nothing that this cell could hold; the code of every empty cell that the "
    "column `missing` does not name",
    "not_reached": "the session has not come so far",
    "not_recorded": "the session came so far, and it was not stored, or could not be known",
    "withdrawn": "it was stored, and removed because the person asked for it",
}
PAGE = (
    *("input", "key", "keys", "side", "onset_ms", "image_px", "pixel_ratio", "image_deg", "frames"),
    *("dropped_frames", "refresh_ms", "hidden_count", "timing", "reservoir_ms", "focus_losses", "reloads"),
)
"""Columns of `trials` that the page fills."""
OPTIONAL = frozenset({"key", "keys", "reservoir_ms", "focus_losses", "reloads", "image_deg"})
"""Of these an empty cell says that there was nothing: no key was pressed, no reservoir is in the study."""


def missing_cell(codes: Mapping[str, Missing]) -> str:
    """A cell of `missing`."""
    return ";".join(f"{column}={code}" for column, code in codes.items())


def code_of(row: Mapping[str, object], column: str) -> Missing | None:
    """Why the cell of this column is empty in a row as read from a file; None if it is not empty."""
    cell = row[column]
    if cell is not None and cell == cell and cell != "":
        return None
    named: dict[str, Any] = dict(part.split("=") for part in str(row.get("missing") or "").split(";") if part)
    code: Missing = named.get(column, "not_applicable")
    return code


def gaps_of_answer(
    cells: Sequence[object], origin: str, is_calibrated: bool, served: Sequence[object]
) -> str:
    """The cell of `missing` for an answer. `cells` are those of PAGE, `served` those of trials that are
    handed out alone."""
    if origin in ("simulated", "model"):
        # A program has no screen, no keys and no clock of a page.
        return ""
    lacks = tuple(cell is None or cell == "" for cell in cells)
    return _gaps(lacks, is_calibrated, bool(served) and served[0] is None)


@lru_cache(maxsize=4096)
def _gaps(lacks: tuple[bool, ...], is_calibrated: bool, is_unserved: bool) -> str:
    codes: dict[str, Missing] = {}
    for column, is_lacking in zip(PAGE, lacks, strict=True):
        is_due = column not in OPTIONAL or (column == "image_deg" and is_calibrated)
        if is_lacking and is_due:
            codes[column] = "not_recorded"
    if is_unserved:
        codes |= {"server_ms": "not_recorded", "rt_over_server": "not_recorded"}
    return missing_cell(codes)
