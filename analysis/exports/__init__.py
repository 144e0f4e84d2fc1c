"""Formats of an export: name -> (tables, folder) -> rows per file, imported on first use."""

from __future__ import annotations

from analysis.exports.base import Exporter
from stimuli.registry import Table

EXPORTERS: Table[Exporter] = Table(
    "format of an export",
    {
        "csv": "analysis.exports.delimited:write",
        "parquet": "analysis.exports.parquet:write",
        "pasta": "analysis.exports.pasta:write",
    },
)


def get_exporter(name: str) -> Exporter:
    """The exporter of a format. Raises UnknownName."""
    return EXPORTERS.load(name)
