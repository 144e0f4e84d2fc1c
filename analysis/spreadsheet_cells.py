"""Cells that no spreadsheet takes for a formula."""

from __future__ import annotations

import re
import unicodedata

STARTERS = frozenset("=+-@")
BREAKS = frozenset("\t\r\n")
"""A spreadsheet that splits at them sees what follows as a cell of its own."""
PLAIN = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
"""A plain number: it starts no formula."""


def escape_cell(text: str) -> str:
    """The text as a cell that no spreadsheet evaluates; `unescape_cell` is the exact inverse."""
    if text[:1].isalnum() or PLAIN.fullmatch(text):
        return text
    is_dangerous = text[:1] in BREAKS or text.startswith("'") or _visible(text) in STARTERS
    return "'" + text if is_dangerous else text


def unescape_cell(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell


def _visible(text: str) -> str:
    """The first character behind spaces, controls and marks without a shape, its wide and small forms as the
    usual one."""
    for character in text:
        if not character.isspace() and unicodedata.category(character)[0] not in "CZ":
            return unicodedata.normalize("NFKC", character)[:1]
    return ""
