"""The three tables of a study as frames with declared columns; no database, no paradigm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pandas as pd

from analysis.columns import Column, Dtype, columns_of, names

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


def frame(table: str, rows: Rows, extra: Sequence[Column] = ()) -> pd.DataFrame:
    """Rows as a frame of that table: declared columns in declared order and dtype.

    Rows are sequences in column order, or mappings where a missing column becomes empty. `extra` are the
    columns that kinds of trial add. Raises KeyError for a column that is not declared.
    """
    rows, declared = list(rows), names(table, extra)
    unknown = {str(key) for row in rows if isinstance(row, Mapping) for key in row} - set(declared)
    if unknown:
        raise KeyError(f"{', '.join(sorted(unknown))}: not a column of {table}; declare it in columns.py.")
    return conform(pd.DataFrame(rows, columns=list(declared)), table, extra)


def streamed(table: str, rows: Rows, extra: Sequence[Column] = (), size: int = 20_000) -> pd.DataFrame:
    """The same from a stream, `size` rows at a time, so that a large study is never held as Python
    objects.
    """
    stream, parts = iter(rows), []
    while batch := list(islice(stream, size)):
        parts.append(frame(table, batch, extra))
    return pd.concat(parts, ignore_index=True) if parts else frame(table, [], extra)


def conform(made: pd.DataFrame, table: str, extra: Sequence[Column] = ()) -> pd.DataFrame:
    """The same frame with the declared dtypes; empty text stays the empty string."""
    columns = {}
    for column in columns_of(table, extra):
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


@dataclass(frozen=True, slots=True)
class Frames:
    """All tables of one study, or of a part of its sessions. `extra` are the columns of `trials` that the
    study's kinds of trial add.
    """

    trials: pd.DataFrame
    participants: pd.DataFrame
    stimuli: pd.DataFrame
    extra: tuple[Column, ...] = ()

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        return {"trials": self.trials, "participants": self.participants, "stimuli": self.stimuli}

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
        """The sessions of the main result: of people who are not unverified, kept by screening, and not left
        out by hand."""
        people = self.participants
        return self.keeping((people["status"] == "passed") & ~by_hand(people) & ~is_unverified(people))

    def keeping(self, mask: pd.Series) -> Frames:
        """The chosen sessions (rows of `participants`) with their trials; stimuli stay as they are."""
        people = self.participants[mask].reset_index(drop=True)
        trials = self.trials[self.trials["session"].isin(people["session"])].reset_index(drop=True)
        return Frames(trials, people, self.stimuli, self.extra)
