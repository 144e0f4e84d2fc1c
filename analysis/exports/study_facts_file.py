"""study.json: what a reporter needs besides the tables, so that a package alone gives a report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from analysis.columns import Column
from analysis.exports import delimited, parquet
from analysis.exports.base import ExportError
from analysis.facts import StudyFacts
from analysis.frames import Frames

NAME = "study.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class OriginFile:
    """One exported origin: the facts for its report, and the file with the report of the export's moment
    (empty if there is none; `why` says then why).

    `absent` are the keys of the report's sections that the package's tables cannot give, since they count
    sessions that are not in it.
    """

    facts: StudyFacts
    report: str = ""
    why: str = ""
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyFile:
    """The whole file. `tables` gives the file of each table, from the package's folder; none if the format
    is not one of tables. `extra` are the columns that the kinds of trial add to `trials`.
    """

    version: int
    code_version: str
    study: str
    paradigm: str
    cleaned: bool
    tables: Mapping[str, str]
    extra: tuple[Column, ...]
    origins: Mapping[str, OriginFile] = field(default_factory=dict)

    @property
    def has_csv(self) -> bool:
        """Whether the tables are CSV, which scripts without us can read."""
        return any(name.endswith(".csv") for name in self.tables.values())


_TYPE = TypeAdapter(StudyFile)


def as_text(content: StudyFile) -> str:
    """The file's text. A fact that joined after the first packages is not written while it is empty, so that
    those are still read."""
    empty = {name for name, origin in content.origins.items() if not origin.facts.wording}
    exclude = {"origins": {name: {"facts": {"wording"}} for name in empty}}
    return _TYPE.dump_json(content, indent=1, exclude=exclude).decode() + "\n"


def parse(text: str) -> StudyFile:
    """The exact inverse of `as_text`. Raises ExportError for a text of another version or kind."""
    try:
        content = _TYPE.validate_json(text, strict=True)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise ExportError(
            f"{NAME}: cannot be read by this version of Legible ({where}: {error.errors()[0]['msg']}); use "
            "the version that manifest.json names as code_version."
        ) from None
    if content.version != VERSION or as_text(content) != text:
        raise ExportError(
            f"{NAME}: was written by version {content.code_version} of Legible, which stores more or other "
            "facts than this one; use that version."
        )
    return content


def read_study_file(folder: Path) -> StudyFile:
    """The file of a package. Raises ExportError if it is missing or cannot be read."""
    try:
        return parse((folder / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExportError(
            f"{folder / NAME}: is missing, so no report can be made; a package made with --public has none "
            "(its scripts give the planned analysis), else export the study again."
        ) from None


def read_tables(folder: Path, content: StudyFile, held: Collection[str] = ()) -> Frames:
    """The tables of a package as the frames that were exported; `held` as for `Reader.frames`. Raises
    ExportError if its format has none, or a table cannot be read."""
    if not content.tables:
        raise ExportError(
            f"{folder}: this format holds no tables, so no report can be made from it; export as csv."
        )
    frames: dict[str, pd.DataFrame] = {}
    for table, name in content.tables.items():
        read = parquet.read if name.endswith(parquet.SUFFIX) else delimited.read
        frames[table] = read(folder / name, table, content.extra, held if table == "trials" else ())
    return Frames(**frames, extra=content.extra)
