"""Parquet with the types of the codebook: texts as they are, whole numbers and flags that may be empty, times
in UTC. One row group per part, so that no table is held."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.columns import Column, Dtype, columns_of
from analysis.exports.base import ExportError
from analysis.exports.delimited import write_codebook
from analysis.frames import Tables, conform, frame, join_parts

SUFFIX = ".parquet"
TYPES: Mapping[Dtype, tuple[str, ...]] = {
    "text": ("is_string", "is_large_string"),
    "json": ("is_string", "is_large_string"),
    "integer": ("is_integer",),
    "number": ("is_floating",),
    "flag": ("is_boolean",),
    "time": ("is_timestamp",),
}
"""Tests in pyarrow.types, of which one must hold for a column of that type; versions of pandas differ in how
they store texts."""


def write(tables: Tables, folder: Path) -> Mapping[str, int]:
    """One file per table, and the codebook; returns rows per file. Raises ExportError without pyarrow."""
    arrow, files = _library("pyarrow"), _library("pyarrow.parquet")
    rows = {}
    for table in tables.listed:
        # The empty frame also tells pandas the types to read the columns with.
        schema = arrow.Schema.from_pandas(frame(table, [], tables.extra), preserve_index=False)
        name = f"{table}{SUFFIX}"
        rows[name] = 0
        with files.ParquetWriter(folder / name, schema) as writer:
            for part in tables.parts(table):
                writer.write_table(arrow.Table.from_pandas(part, schema=schema, preserve_index=False))
                rows[name] += len(part)
    return rows | write_codebook(tables, folder)


def read(path: Path, table: str, extra: Sequence[Column] = (), held: Collection[str] = ()) -> pd.DataFrame:
    """A written table as the frame it was. `extra`: see `Frames`; `held`: see `columns_of`. Raises
    ExportError without pyarrow, and for a file that is no Parquet, lacks a column or holds one of another
    type."""
    arrow, files = _library("pyarrow"), _library("pyarrow.parquet")
    try:
        with files.ParquetFile(path) as source:
            _check(path.name, source.schema_arrow, table, extra)
            columns = [column.name for column in columns_of(table, extra, held)]
            groups = (source.read_row_group(at, columns).to_pandas() for at in range(source.num_row_groups))
            # A table without rows has no group.
            empty = frame(table, [], extra, held)
            return join_parts(chain([empty], (conform(group, table, extra, held) for group in groups)))
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise ExportError(
            f"{path.name}: cannot be read as Parquet ({why}); export the study again."
        ) from error


def _check(name: str, schema: Any, table: str, extra: Sequence[Column]) -> None:
    """ExportError unless the columns and their types are those of the table."""
    types = _library("pyarrow.types")
    declared = columns_of(table, extra)
    wanted = [column.name for column in declared]
    if schema.names != wanted:
        odd = [f"'{column}' is missing" for column in wanted if column not in schema.names]
        odd += [f"'{column}' does not belong" for column in schema.names if column not in wanted]
        said = ", ".join(odd) or "they stand in another order"
        raise ExportError(
            f"{name}: its columns are not those of '{table}' in this version of Legible: {said}."
        )
    for column in declared:
        kind = schema.field(column.name).type
        if not any(getattr(types, test)(kind) for test in TYPES[column.dtype]):
            raise ExportError(
                f"{name}: the column '{column.name}' holds {kind}, and the codebook says {column.dtype}; "
                "export the study again."
            )


def _library(name: str) -> Any:
    """Imported here alone: nothing else needs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ExportError(
            "Parquet needs the package pyarrow: install it by pip install 'legible[parquet]', "
            "or export as csv."
        ) from error
