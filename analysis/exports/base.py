"""What an exporter is: tables and a folder in, files and their row counts out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from analysis.frames import Tables


class ExportError(ValueError):
    """An export cannot be written or read; the message names the file and what to do."""


class Exporter(Protocol):
    """Writes the tables and the codebook into an empty folder; returns rows per file name (codebook: 0
    rows counted).
    """

    def __call__(self, tables: Tables, folder: Path) -> Mapping[str, int]: ...
