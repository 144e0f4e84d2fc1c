"""Tables laid out as Psych-DS wants them: data/ with names of keywords; else the same files as `csv`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysis.exports import delimited
from analysis.frames import Tables

FOLDER = "data"


def write(tables: Tables, folder: Path) -> Mapping[str, int]:
    """The files of `csv`, each table as data/study-SLUG_description-TABLE_data.csv; returns rows per file."""
    rows = dict(delimited.write(tables, folder))
    slugs = [str(slug) for part in tables.parts("participants") for slug in part["study"].head(1)]
    slug = slugs[0] if slugs else "study"
    (folder / FOLDER).mkdir()
    for table in tables.listed:
        name = table_path(slug, table)
        (folder / f"{table}.csv").rename(folder / name)
        rows[name] = rows.pop(f"{table}.csv")
    return rows


def table_path(slug: str, table: str) -> str:
    """A table's file; values of keywords are letters and digits alone."""
    study, described = ("".join(c for c in text if c.isascii() and c.isalnum()) for text in (slug, table))
    return f"{FOLDER}/study-{study}_description-{described}_data.csv"
