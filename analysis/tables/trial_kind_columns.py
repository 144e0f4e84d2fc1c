"""The columns that kinds of trial add to the table `trials`: declared by the kind, filled by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from analysis.columns import Column, names
from experiments.design.rng import Streams
from experiments.kinds.base import TrialView
from stimuli.spec import canonical_json


class ExportKind(Protocol):
    """The part of a kind that the export uses: a trial as one person met it, its columns, and their cells for
    one answer, by column name."""

    @property
    def columns(self) -> Sequence[Column]: ...

    def seen_by(self, trial: TrialView, person: str, streams: Streams) -> TrialView: ...

    def cells(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def noted(self, context: Mapping[str, Any]) -> Mapping[str, Any]: ...


KindOf = Callable[[str], ExportKind]


class ColumnClash(ValueError):
    """A kind of trial declares a column that has another meaning already, or fills one that it does not
    declare.
    """


def kind_columns(kinds: Mapping[str, ExportKind]) -> tuple[Column, ...]:
    """The columns that these kinds add, in their order; a column that several kinds declare alike appears
    once.

    Raises ColumnClash for a name that `trials` has already, or that two kinds declare differently.
    """
    added: dict[str, tuple[str, Column]] = {}
    for kind, exported in kinds.items():
        for column in exported.columns:
            if column.name in names("trials"):
                raise ColumnClash(
                    f"The kind '{kind}' declares the column '{column.name}', which every trial has; "
                    "choose another name."
                )
            first, known = added.setdefault(column.name, (kind, column))
            if known != column:
                raise ColumnClash(
                    f"The kinds '{first}' and '{kind}' declare the column '{column.name}' differently; use "
                    "two names, or one declaration."
                )
    return tuple(column for _, column in added.values())


def kind_cells(
    exported: ExportKind,
    extra: Sequence[Column],
    trial: TrialView,
    value: Mapping[str, Any],
    context: Mapping[str, Any],
) -> tuple[object, ...]:
    """The cells of `extra` for one answer and what the page noted beside it; other kinds' columns are
    empty."""
    if not extra:
        return ()
    cells = {**exported.noted(context), **exported.cells(trial, value)}
    unknown = set(cells) - {column.name for column in exported.columns}
    if unknown:
        raise ColumnClash(
            f"The kind '{trial.kind}' fills {', '.join(sorted(unknown))}, which it does not declare; add it "
            "to the kind's columns."
        )
    return tuple(_cell(cells.get(column.name), column) for column in extra)


def _cell(value: object, column: Column) -> object:
    return canonical_json(value) if column.dtype == "json" and value is not None else value
