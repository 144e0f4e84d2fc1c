"""Parquet with the types of the codebook: texts as they are, whole numbers and flags that may be empty, times
in UTC. One row group per part, so that no table is held."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from analysis.exports.base import ExportError
from analysis.exports.delimited import write_codebook
from analysis.frames import Tables, frame


def write(tables: Tables, folder: Path) -> Mapping[str, int]:
    """One file per table, and the codebook; returns rows per file. Raises ExportError without pyarrow."""
    arrow, files = _library("pyarrow"), _library("pyarrow.parquet")
    rows = {}
    for table in tables.listed:
        # The empty frame also tells pandas the types to read the columns with.
        schema = arrow.Schema.from_pandas(frame(table, [], tables.extra), preserve_index=False)
        name = f"{table}.parquet"
        rows[name] = 0
        with files.ParquetWriter(folder / name, schema) as writer:
            for part in tables.parts(table):
                writer.write_table(arrow.Table.from_pandas(part, schema=schema, preserve_index=False))
                rows[name] += len(part)
    return rows | write_codebook(tables, folder)


def _library(name: str) -> Any:
    """Imported here alone: nothing else needs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ExportError(
            "Parquet needs the package pyarrow: install it by pip install 'legible[parquet]', "
            "or export as csv."
        ) from error
