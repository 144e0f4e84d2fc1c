"""Formats of an export: name -> dotted path of (frames, manifest, folder) -> None, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from analysis.exports.base import Exporter, ExportError

EXPORTERS = {
    "csv": "analysis.exports.delimited:write",
}


def get_exporter(name: str) -> Exporter:
    """The exporter of a format. Raises ExportError where there is none."""
    try:
        module, function = EXPORTERS[name].split(":")
    except KeyError:
        raise ExportError(f"Format '{name}' is not known; choose one of {', '.join(EXPORTERS)}.") from None
    return cast(Exporter, getattr(import_module(module), function))
