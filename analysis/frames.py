"""The tables of a study as frames with declared columns; no database, no paradigm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
import pandas as pd

from analysis.columns import CodebookQuestion, Column, Dtype, columns_of, names

# Texts are stored alike whether or not pyarrow, which is for exports alone, is installed.
pd.set_option("mode.string_storage", "python")
DTYPES: Mapping[Dtype, str] = {
    "text": "string",
    "integer": "Int64",
    "number": "float64",
    "flag": "boolean",
    "time": "datetime64[us, UTC]",
    "json": "string",
}


class MixedOrigins(ValueError):
    """The tables hold people and simulated observers together; choose one origin."""


Rows = Iterable[Sequence[object] | Mapping[str, object]]
PART_ROWS = 5_000
"""Rows of a table that are held as Python objects at once."""


class Tables(Protocol):
    """What an export is written from: tables in parts, or as a whole where a format needs that."""

    @property
    def extra(self) -> tuple[Column, ...]: ...

    @property
    def listed(self) -> tuple[str, ...]: ...

    @property
    def asked(self) -> Sequence[CodebookQuestion]: ...

    @property
    def is_public(self) -> bool: ...

    def parts(self, table: str) -> Iterator[pd.DataFrame]: ...

    def frames(self) -> Frames: ...


def frame(table: str, rows: Rows, extra: Sequence[Column] = (), held: Collection[str] = ()) -> pd.DataFrame:
    """Rows as a frame of that table: declared columns in declared order and dtype.

    Rows are sequences in column order, or mappings where a missing column becomes empty. `extra` are the
    columns that kinds of trial add. `held` as for `conform`. Raises KeyError for a column that is not
    declared.
    """
    rows, declared = list(rows), names(table, extra)
    unknown = {str(key) for row in rows if isinstance(row, Mapping) for key in row} - set(declared)
    if unknown:
        raise KeyError(f"{', '.join(sorted(unknown))}: not a column of {table}; declare it in columns.py.")
    return conform(pd.DataFrame(rows, columns=list(declared)), table, extra, held)


def parts(
    table: str,
    rows: Rows,
    extra: Sequence[Column] = (),
    size: int = PART_ROWS,
    held: Collection[str] = (),
) -> Iterator[pd.DataFrame]:
    """The same from a stream in frames of `size` rows, so that a large study is never held as Python
    objects; a table without rows is one empty frame."""
    stream, has_rows = iter(rows), False
    while batch := list(islice(stream, size)):
        has_rows = True
        yield frame(table, batch, extra, held)
    if not has_rows:
        yield frame(table, [], extra, held)


def whole_table(
    table: str,
    rows: Rows,
    extra: Sequence[Column] = (),
    size: int = PART_ROWS,
    held: Collection[str] = (),
) -> pd.DataFrame:
    """The whole table from a stream."""
    return join_parts(parts(table, rows, extra, size, held))


class Pieces:
    """A table that grows by its parts. Equal texts are one object; no second copy of the table is held."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._columns: dict[str, list[pd.Series]] = defaultdict(list)

    def add(self, part: pd.DataFrame) -> None:
        for name, series in part.items():
            pieces, is_text = self._columns[str(name)], series.dtype == DTYPES["text"]
            pieces.append(self._share_texts(series) if is_text else series)
            # Many small pieces would lie scattered in memory that cannot be given back once they are joined.
            while len(pieces) > 1 and len(pieces[-2]) <= len(pieces[-1]):
                pieces[-2:] = [pd.concat(pieces[-2:], ignore_index=True)]

    def _share_texts(self, texts: pd.Series) -> pd.Series:
        codes, distinct = pd.factorize(texts)
        objects = [self._known.setdefault(text, text) for text in distinct]
        return pd.Series(np.array(objects, dtype=object)[codes], dtype=DTYPES["text"])

    def whole(self) -> pd.DataFrame:
        """The table; columns are joined one by one, and the pieces are gone afterwards."""
        names = list(self._columns)
        columns = {name: pd.concat(self._columns.pop(name), ignore_index=True) for name in names}
        return pd.DataFrame(columns, copy=False)


def join_parts(of: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The whole table from its parts, of which there is at least one."""
    pieces = Pieces()
    for part in of:
        pieces.add(part)
    return pieces.whole()


def conform(
    made: pd.DataFrame, table: str, extra: Sequence[Column] = (), held: Collection[str] = ()
) -> pd.DataFrame:
    """The same frame with the declared dtypes, of the columns that are held (`columns_of`); empty text stays
    the empty string."""
    columns = {}
    for column in columns_of(table, extra, held):
        series = made[column.name]
        if column.dtype in ("text", "json"):
            columns[column.name] = series.astype("string").fillna("")
        elif column.dtype == "time":
            # Whole milliseconds, as they are exported: a report is the same from rows and from a package.
            times = pd.to_datetime(series, utc=True).astype(DTYPES["time"])
            columns[column.name] = times.dt.floor("ms")
        else:
            columns[column.name] = series.astype(DTYPES[column.dtype])
    return pd.DataFrame(columns)


def by_hand(people: pd.DataFrame) -> pd.Series:
    """Which of these sessions a named person has left out; none without such a decision."""
    return people["excluded_by_hand"].fillna(False).astype(bool)


def is_unverified(people: pd.DataFrame) -> pd.Series:
    """Which of these sessions are of people whom their platform could have listed and did not."""
    return (people["arrival"] == "unverified").astype(bool)


def is_kept(people: pd.DataFrame) -> pd.Series:
    """Which of these sessions belong to the main result: of people who are not unverified, kept by screening,
    and not left out by hand."""
    return (people["status"] == "passed") & ~by_hand(people) & ~is_unverified(people)


@dataclass(frozen=True, slots=True)
class Frames:
    """The tables of one study that are analysed, or of a part of its sessions. `extra` are the columns of
    `trials` that the study's kinds of trial add.
    """

    trials: pd.DataFrame
    participants: pd.DataFrame
    stimuli: pd.DataFrame
    extra: tuple[Column, ...] = ()

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        return {"trials": self.trials, "participants": self.participants, "stimuli": self.stimuli}

    @property
    def listed(self) -> tuple[str, ...]:
        return tuple(self.tables)

    @property
    def asked(self) -> Sequence[CodebookQuestion]:
        """Questions are in a table of their own, which is not analysed."""
        return ()

    @property
    def is_public(self) -> bool:
        """Whether the profile for publication has been applied."""
        return False

    def parts(self, table: str) -> Iterator[pd.DataFrame]:
        yield self.tables[table]

    def frames(self) -> Frames:
        return self

    @property
    def origins(self) -> list[str]:
        return sorted(str(origin) for origin in self.participants["origin"].unique())

    def one_origin(self) -> str:
        """The origin of every session. Raises MixedOrigins if there is more than one."""
        if len(self.origins) > 1:
            raise MixedOrigins(
                f"These sessions come from {', '.join(self.origins)}, which are never mixed; "
                "choose one origin."
            )
        return self.origins[0] if self.origins else "human"

    def only(self, origin: str) -> Frames:
        return self.keeping(self.participants["origin"] == origin)

    def confirmed(self) -> Frames:
        """Without the sessions of people whom their platform could have listed and did not."""
        return self.keeping(~is_unverified(self.participants))

    def passed(self) -> Frames:
        """The sessions that screening kept."""
        return self.keeping(self.participants["status"] == "passed")

    def kept(self) -> Frames:
        """The sessions of the main result."""
        return self.keeping(is_kept(self.participants))

    def keeping(self, mask: pd.Series) -> Frames:
        """The chosen sessions (rows of `participants`) with their trials; stimuli stay as they are."""
        if mask.all():
            # A study of one origin: no second copy of a million rows.
            return self
        people = self.participants[mask].reset_index(drop=True)
        trials = self.trials[self.trials["session"].isin(people["session"])].reset_index(drop=True)
        return Frames(trials, people, self.stimuli, self.extra)
