"""Anybody's table with one row per answer, and what its columns are: checked, counted, one value per cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NAMED_MAX = 5
"""So many rows or people are named in a sentence."""
MISSING_NUMBERS = {"", "na", "n/a", "nan", "none", "null", "."}
MISSING_NAMES = {"", "NA", "NaN", "nan"}
"""A level may be called "none" or "null": a condition without an explanation often is."""


class BadTable(ValueError):
    """The table or the names of its columns cannot be analysed; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Columns by what they are. `dv`: what was measured, a number; `times`: response times beside it;
    `signal`: 1 or 0, whether yes (1) is right; `correlate`: a number that goes with each answer."""

    dv: str
    between: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    subject: str = ""
    item: str = ""
    covariates: tuple[str, ...] = ()
    times: str = ""
    signal: str = ""
    correlate: str = ""

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is named."""
        named = (self.dv, *self.between, *self.within, self.subject, self.item, *self.covariates)
        named += (self.times, self.signal, self.correlate)
        return tuple(name for name in named if name)


@dataclass(frozen=True, slots=True)
class TidyTable:
    """`rows`: the answers that are analysed, numbers as float64, everything else as text. `people`: one row
    per person, indexed by their names, with the columns of factors between people and of covariates.
    `cells`: float64 (people, cells), one mean per person and cell of the factors within people, the last
    factor's levels changing fastest; one cell without such factors. `notes`: what was left out or averaged.
    """

    roles: Roles
    rows: pd.DataFrame
    people: pd.DataFrame
    cells: NDArray[np.float64]
    levels: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]

    @property
    def is_binary(self) -> bool:
        """Whether every answer is 0 or 1."""
        return bool(self.rows[self.roles.dv].isin((0, 1)).all())

    @property
    def items(self) -> int:
        """How many items there are; 0 if no column names them."""
        return int(self.rows[self.roles.item].nunique()) if self.roles.item else 0


def read_table(path: Path) -> pd.DataFrame:
    """A CSV file, or a Parquet file if pandas can read one here; every cell as it stands. Raises BadTable."""
    try:
        if path.suffix.lower() in {".parquet", ".pq"}:
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except ImportError as error:
        raise BadTable(
            f"{path.name}: pandas has no reader of Parquet here; install pyarrow, or save the table as CSV."
        ) from error
    except UnicodeDecodeError as error:
        raise BadTable(f"{path.name} is not in UTF-8; save it as CSV in UTF-8.") from error
    except pd.errors.EmptyDataError as error:
        raise BadTable(
            f"{path.name} cannot be read as a table, for it is empty; its first line names the columns."
        ) from error
    except (OSError, pd.errors.ParserError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(". ")
        remedy = "give a CSV with as many cells in every row as in the first, or a Parquet file"
        raise BadTable(f"{path.name} cannot be read as a table: {reason}; {remedy}.") from error
    return frame


def tidy(frame: pd.DataFrame, roles: Roles) -> TidyTable:
    """The table by its roles. Raises BadTable for columns that are not there or named twice, text in place of
    numbers, no rows, a factor of one level, people in two groups, and repeated cells without items."""
    _check_columns(frame, roles)
    notes: list[str] = []
    rows = _typed(frame, roles, notes)
    if roles.signal and not rows[roles.signal].isin((0, 1)).all():
        odd = rows[roles.signal][~rows[roles.signal].isin((0, 1))].iloc[0]
        raise BadTable(
            f"Column {roles.signal!r} holds {odd:g}; a signal is 1 (yes is right) or 0 (no is "
            "right): recode the column."
        )
    if not roles.subject:
        rows = rows.assign(**{"": [f"row {number}" for number in rows.index]})
    person = roles.subject or ""
    levels = {name: tuple(_in_order(rows[name])) for name in (*roles.between, *roles.within)}
    for name, values in levels.items():
        lost = _lost(frame[name], values, notes)
        if len(values) < 2:
            why = f"; {lost} has no row without a missing value" if lost else ""
            raise BadTable(
                f"Column {name!r} has one value only ({values[0]}){why}, so nothing can be compared; "
                f"{'look at the missing values' if lost else 'name another'}."
            )
    people = _people(rows, roles, person)
    _check_repeats(rows, roles, person, notes)
    cells, people, rows = _cells(rows, people, roles, levels, person, notes)
    # A level may be left without people.
    for name in roles.between:
        there = tuple(value for value in levels[name] if value in set(people[name]))
        if gone := ", ".join(value for value in levels[name] if value not in there):
            notes.append(f"{name}: {gone} has no person with all cells and is not compared.")
        levels[name] = there
        if len(levels[name]) < 2:
            raise BadTable(
                f"Only one group of {name!r} has people with all cells; look at the missing values."
            )
    return TidyTable(roles, rows, people, cells, levels, tuple(notes))


def _check_columns(frame: pd.DataFrame, roles: Roles) -> None:
    columns = [str(name) for name in frame.columns]
    unknown = [name for name in roles.used if name not in columns]
    if unknown:
        # One column with such marks in its name is a table that another program separates otherwise.
        other = len(columns) == 1 and any(mark in columns[0] for mark in ";\t")
        remedy = " Separate the cells by commas: save the table as CSV (comma) again." if other else ""
        raise BadTable(f"There is no column {unknown[0]!r}; the table has: {', '.join(columns)}.{remedy}")
    twice = [name for name in roles.used if roles.used.count(name) > 1]
    if twice:
        raise BadTable(f"Column {twice[0]!r} is named for two roles; name it once.")
    if any(columns.count(name) > 1 for name in roles.used):
        raise BadTable("Two columns of the table have the same name; rename one of them.")
    if roles.within and not roles.subject:
        raise BadTable("Factors within people need the column of people: add --subject.")
    if not len(frame):
        raise BadTable("The table has no rows; give one row per answer below the names of the columns.")


def _typed(frame: pd.DataFrame, roles: Roles, notes: list[str]) -> pd.DataFrame:
    """Numbers as float64, names as text, without the rows in which one of them is missing; the rows are
    numbered as in the file, whose first line names the columns."""
    frame = frame.set_axis(range(2, len(frame) + 2), axis=0)
    numbers = {roles.dv, roles.times, roles.signal, roles.correlate, *roles.covariates}
    typed, missing = {}, pd.Series(False, index=frame.index)
    for name in roles.used:
        column = frame[name]
        text = column.astype(str).str.strip()
        lacks = column.isna() | text.isin(MISSING_NAMES)
        if name in numbers:
            lacks = lacks | text.str.lower().isin(MISSING_NUMBERS)
            values = pd.to_numeric(text.replace({"True": "1", "False": "0"}), errors="coerce")
            wrong = values.isna() & ~lacks
            if wrong.any():
                row = wrong.index[wrong][0]
                is_comma = re.fullmatch(r"[-+]?\d*,\d+", text[row])
                remedy = (
                    "write decimals with a point"
                    if is_comma
                    else "recode it, for example right as 1 and wrong as 0"
                )
                raise BadTable(
                    f"Column {name!r} holds text in {wrong.sum()} rows, first {text[row]!r} in row {row}: "
                    f"numbers are needed: {remedy}."
                )
            typed[name] = values.astype("float64")
            lacks = lacks | ~np.isfinite(typed[name])
        else:
            typed[name] = text
        if lacks.any():
            what = "missing or infinite" if name in numbers and np.isinf(typed[name]).any() else "missing"
            notes.append(f"{name} is {what} in {int(lacks.sum())} of {len(frame)} rows ({_some(lacks)}).")
        missing = missing | lacks
    rows = pd.DataFrame(typed)[~missing]
    if not len(rows):
        raise BadTable(f"No row has all of {', '.join(roles.used)}; look at the missing values.")
    if missing.any():
        notes.append(f"{int(missing.sum())} rows with a missing value are left out, {len(rows)} remain.")
    return rows


def _some(chosen: pd.Series) -> str:
    """The first rows that are chosen."""
    rows = list(chosen.index[chosen])
    more = f" and {len(rows) - NAMED_MAX} more" if len(rows) > NAMED_MAX else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:NAMED_MAX]))}{more}"


def _lost(column: pd.Series, left: Sequence[str], notes: list[str]) -> str:
    """The levels of a factor that missing values have emptied, which a note names."""
    told = (name for name in _in_order(column.dropna().astype(str).str.strip()) if name not in MISSING_NAMES)
    lost = ", ".join(name for name in told if name not in left)
    if lost:
        notes.append(f"{column.name}: {lost} has no row without a missing value and is not compared.")
    return lost


def _in_order(column: pd.Series) -> list[str]:
    """Levels in the order of their first rows, which is the order that the table's author chose."""
    return list(dict.fromkeys(column))


def _people(rows: pd.DataFrame, roles: Roles, person: str) -> pd.DataFrame:
    """One row per person. Raises BadTable for a person with two values of what is said of people."""
    fixed = [*roles.between, *roles.covariates]
    first = rows.drop_duplicates(person).set_index(person)[fixed]
    for name in fixed:
        counts = rows.groupby(person, sort=False)[name].nunique()
        if (counts > 1).any():
            who = counts.index[counts > 1][0]
            raise BadTable(
                f"{who} has {counts[who]} values of {name!r}, which is said of people; name it within "
                "people, or give each person one value."
            )
    return first


def _check_repeats(rows: pd.DataFrame, roles: Roles, person: str, notes: list[str]) -> None:
    """Repeated cells are averaged if the items are named, else refused."""
    cell = [person, *roles.within]
    sizes = rows.groupby(cell, sort=False).size()
    if sizes.max() == 1:
        return
    worst = sizes.index[sizes > 1][0]
    where = ", ".join(map(str, worst if isinstance(worst, tuple) else (worst,)))
    if not roles.item:
        raise BadTable(
            f"{int((sizes > 1).sum())} cells have several rows, the first is {where} with {sizes[worst]}; "
            "rows of one person are not independent: name the items by --item to average them, or the factor "
            "within people by --within."
        )
    again = rows.groupby([*cell, roles.item], sort=False).size()
    if again.max() > 1:
        place = ", ".join(map(str, again.index[again > 1][0]))
        raise BadTable(f"{place} stands in {again.max()} rows; give one row per person, cell and item.")
    few, many = int(sizes.min()), int(sizes.max())
    spread = str(few) if few == many else f"{few} to {many}"
    notes.append(f"Each person's cell is the mean of {spread} items.")


def _cells(
    rows: pd.DataFrame,
    people: pd.DataFrame,
    roles: Roles,
    levels: dict[str, tuple[str, ...]],
    person: str,
    notes: list[str],
) -> tuple[NDArray[np.float64], pd.DataFrame, pd.DataFrame]:
    """Means of cells (people, cells) of people who have them all; the others are counted and named."""
    if not roles.within:
        means = rows.groupby(person, sort=False)[roles.dv].mean().reindex(people.index)
        return means.to_numpy(dtype=np.float64)[:, None], people, rows
    means = rows.groupby([person, *roles.within], sort=False)[roles.dv].mean()
    wide = means.unstack(list(range(1, len(roles.within) + 1)))
    order = pd.MultiIndex.from_product([levels[name] for name in roles.within])
    if len(roles.within) == 1:
        order = order.get_level_values(0)
    wide = wide.reindex(index=people.index, columns=order)
    lacks = wide.isna().any(axis=1)
    if lacks.all():
        raise BadTable(f"No person has a value in all {len(order)} cells of {' x '.join(roles.within)}.")
    if lacks.any():
        named = ", ".join(map(str, wide.index[lacks][:NAMED_MAX]))
        notes.append(f"{int(lacks.sum())} people lack a cell and are left out: {named}.")
    kept = wide[~lacks]
    return kept.to_numpy(dtype=np.float64), people[~lacks], rows[rows[person].isin(kept.index)]
