"""Anybody's table with one row per answer, and what its columns are: checked, counted, one value per cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stimuli import table_reader
from stimuli.errors import first_of
from stimuli.table_reader import counted, other_separator

NAMED_MAX = 5
"""So many rows or people are named in a sentence."""
MISSING_NUMBERS = {"", "na", "n/a", "nan", "none", "null", "."}
UNCLEAR_NAMES = {"NA", "NaN", "nan", "null", "NULL", "None", "N/A", "n/a"}
"""Words by which one program writes a missing value, and another a level of that name."""
THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")


class BadTable(ValueError):
    """The table or the names of its columns cannot be analysed; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Cells as text, indexed by the lines of the file at which their rows begin (rows of a Parquet file by
    their numbers). `in_quotes(column, rows)` says which of the rows, from 0, have quotation marks there."""

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    in_quotes: Callable[[int, Sequence[int]], list[bool]] | None = None


@dataclass(frozen=True, slots=True)
class UnclearWords:
    """What words such as NA mean in a column of names: nothing (`missing`) or themselves (`levels`). A word
    in quotation marks speaks of cells that have them in the file."""

    missing: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


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

    def parts(self) -> list[tuple[str, pd.DataFrame]]:
        """The rows by level of the first factor, or all of them."""
        factors = (*self.roles.between, *self.roles.within)
        if not factors:
            return [("all", self.rows)]
        codes = self.rows[factors[0]].to_numpy()
        return [(level, self.rows[codes == level]) for level in self.levels[factors[0]]]


def read_table(path: Path) -> SourceTable:
    """A CSV file (a .tsv or .tab file has tabs), or a Parquet file if pandas can read one here; every cell as
    it stands. Raises BadTable."""
    if path.suffix.lower() in {".parquet", ".pq"}:
        return SourceTable(_numbered(_parquet(path)))
    separator = "\t" if path.suffix.lower() in {".tsv", ".tab"} else ","
    try:
        shape = table_reader.plain_shape(path, separator)
        frame, notes = _of_shape(path, shape) if shape else _of_records(path, separator)
    except table_reader.TableError as error:
        raise BadTable(str(error)) from None
    return SourceTable(frame, notes, partial(table_reader.in_quotes, path, separator))


def _of_shape(path: Path, shape: table_reader.PlainShape) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The cells of a file that has been read through once, by the faster parser of pandas."""
    frame = pd.read_csv(
        path,
        sep=shape.separator,
        header=None,
        names=range(len(shape.names)),
        skiprows=shape.line - 1,
        index_col=False,
        dtype=str,
        na_filter=False,
        encoding=shape.encoding,
    )
    index = pd.RangeIndex(shape.line, shape.line + shape.rows, name="line")
    return frame.set_axis(index, axis=0).set_axis(list(shape.names), axis=1), ()


def _of_records(path: Path, separator: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    table = table_reader.read_table(path, separator)
    frame = pd.DataFrame(dict(enumerate(table.columns)), dtype=str, index=pd.Index(table.lines, name="line"))
    return frame.set_axis(list(table.names), axis=1), table.notes


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise BadTable(
            f"{path.name}: pandas has no reader of Parquet here; install pyarrow, or save the table as CSV."
        ) from error
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(". ")
        raise BadTable(f"{path.name} cannot be read as Parquet: {reason}; save the table as CSV.") from error


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows numbered as in a file whose first line names the columns."""
    return frame.set_axis(pd.RangeIndex(2, len(frame) + 2, name="row"), axis=0)


def tidy(source: SourceTable | pd.DataFrame, roles: Roles, words: UnclearWords = UnclearWords()) -> TidyTable:
    """The table by its roles. Raises BadTable for columns that are not there or named twice, text in place of
    numbers, words in place of names that may mean a missing value (unless `words` says), no rows, a factor of
    one level, people in two groups, and repeated cells without items."""
    if isinstance(source, pd.DataFrame):
        source = SourceTable(_numbered(source))
    frame = source.frame
    _check_columns(frame, roles)
    notes = list(source.notes)
    rows = _convert_columns(source, roles, words, notes)
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
        lost = _note_missing_levels(frame[name], values, notes)
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
        other = next((mark for mark in ";\t" if len(columns) == 1 and mark in columns[0]), "")
        remedy = f" {other_separator(other).capitalize()}." if other else ""
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


def _convert_columns(
    source: SourceTable, roles: Roles, words: UnclearWords, notes: list[str]
) -> pd.DataFrame:
    """Numbers as float64, names as text in NFC, without the rows in which one of them is missing."""
    frame = source.frame
    numbers = {roles.dv, roles.times, roles.signal, roles.correlate, *roles.covariates}
    typed, missing = {}, pd.Series(False, index=frame.index)
    for name in roles.used:
        column = frame[name]
        text = column.astype(str).str.strip()
        lacks = column.isna() | (text == "")
        if name in numbers:
            lacks = lacks | text.str.lower().isin(MISSING_NUMBERS)
            values = pd.to_numeric(text.replace({"True": "1", "False": "0"}), errors="coerce")
            if (wrong := values.isna() & ~lacks).any():
                raise BadTable(_say_text(name, text[wrong]))
            typed[name] = values.astype("float64")
            lacks = lacks | ~np.isfinite(typed[name])
        else:
            typed[name] = text.str.normalize("NFC")
            lacks = lacks | _missing_names(source, name, text, words)
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


def _say_text(name: str, wrong: pd.Series) -> str:
    """What a column of numbers holds instead, and what to do."""
    places = [f"{value!r} in {wrong.index.name} {line}" for line, value in wrong.items()]
    if (unclear := wrong[wrong.str.fullmatch(THOUSANDS)]).size:
        first = str(unclear.iloc[0])
        as_decimal, as_whole = first.replace(",", "."), first.replace(",", "")
        can = "can be read two ways" if first.count(",") == 1 else "has separators of thousands"
        ways = f" ({as_decimal} or {as_whole})" if first.count(",") == 1 else ""
        remedy = f"{first} {can}{ways}: write decimals with a point and no separator of thousands"
    elif wrong.str.fullmatch(DECIMAL_COMMA).any():
        remedy = "write decimals with a point"
    else:
        remedy = "recode it, for example right as 1 and wrong as 0"
    rows = counted(len(wrong), "row")
    return f"Column {name!r} holds text in {rows} ({first_of(places)}): numbers are needed: {remedy}."


def _missing_names(source: SourceTable, name: str, text: pd.Series, words: UnclearWords) -> pd.Series:
    """Which cells are missing by what `words` says of them. Raises BadTable for those of which it says
    nothing: R writes a missing value without quotation marks, and a level of that name with them."""
    lacks = pd.Series(False, index=text.index)
    declared = {word.strip('"') for word in (*words.missing, *words.levels)}
    rows = np.flatnonzero(text.isin(UNCLEAR_NAMES | declared))
    has_marks = [False] * len(rows)
    if source.in_quotes and len(rows):
        has_marks = source.in_quotes(list(source.frame.columns).index(name), text.index[rows].tolist())
    unclear: dict[str, list[str]] = {}
    for row, marks in zip(rows, has_marks, strict=True):
        word = str(text.iloc[row])
        exact = f'"{word}"' if marks else word
        said = next((to for to in (exact, word) if to in words.missing or to in words.levels), None)
        if said is None:
            unclear.setdefault(exact, []).append(str(text.index[row]))
        elif said in words.missing:
            lacks.iloc[row] = True
    if unclear:
        raise BadTable(_say_unclear(name, text.index.name, unclear))
    return lacks


def _say_unclear(name: str, line: str, unclear: dict[str, list[str]]) -> str:
    held = " and ".join(
        f"{word} in {counted(len(places), 'row')} ({line} {first_of(places)})"
        for word, places in unclear.items()
    )
    options = [f"'{word}'" if '"' in word else word for word in unclear]
    remedy = f"add --missing {options[0]} to leave such rows out, or --level {options[0]} if it is a name"
    if len(options) > 1:
        ways = " ".join(
            f"--level {word}" if word.startswith("'") else f"--missing {word}" for word in options
        )
        remedy = f"say of each whether it is missing or a level, such as {ways}"
    return f"Column {name!r} holds {held}, which may be a missing value or a name: {remedy}."


def _some(chosen: pd.Series) -> str:
    """The first rows that are chosen."""
    rows = list(chosen.index[chosen])
    more = f" and {len(rows) - NAMED_MAX} more" if len(rows) > NAMED_MAX else ""
    return f"{chosen.index.name}{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:NAMED_MAX]))}{more}"


def _note_missing_levels(column: pd.Series, left: Sequence[str], notes: list[str]) -> str:
    """The levels of a factor that missing values have emptied, which a note names."""
    told = _in_order(column.dropna().astype(str).str.strip().str.normalize("NFC"))
    lost = ", ".join(name for name in told if name not in left and name not in {"", *UNCLEAR_NAMES})
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
            who = counts.index[counts > 1]
            values = _in_order(rows.loc[rows[person] == who[0], name])
            if name in roles.between:
                names = " and ".join(f"{value}{who[0]}" for value in values[:2])
                remedy = (
                    f"if people are numbered anew in each group, give each a name, such as {names}; "
                    "if they met several, name it within people"
                )
            else:
                remedy = "give each person one value"
            people = f"{counted(len(who), 'person', 'people')} ({first_of(list(map(str, who)))})"
            raise BadTable(
                f"{people} with more than one value of {name!r}, which is said of people: {who[0]} has "
                f"{len(values)}; {remedy}."
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
