"""Formats of an export: name -> (tables, folder) -> rows per file, imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.registry import Table

if TYPE_CHECKING:
    from analysis.exports.base import Exporter

EXPORTERS: Table[Exporter] = Table(
    "format of an export",
    {
        "csv": "analysis.exports.delimited:write",
        "parquet": "analysis.exports.parquet:write",
        "psychds": "analysis.exports.psychds:write",
        "pasta": "analysis.exports.pasta_ratings:write",
    },
)


def get_exporter(name: str) -> Exporter:
    """The exporter of a format. Raises UnknownName."""
    return EXPORTERS.load(name)
