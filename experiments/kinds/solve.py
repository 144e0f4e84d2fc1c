"""A task to be solved: an answer or "cannot say", and for an answer the region that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kinds import base

CANNOT_SAY = "cannot_say"
"""The reserved choice of a person who finds no solution."""
OVERLAP_MIN = 0.5
"""Intersection over union with the planted region from which a mark shows the figure."""

NOTED = ("strokes", "undos", "first_stroke_ms", "marked_with")
MARKED_WITH = ("keyboard", "mouse", "touch", "pen", "several")


class SolveContent(base.Content):
    """`grid` is the side of the grid of cells on which a region is marked."""

    image: base.Media | None
    grid: int
    choices: tuple[base.Button, ...]


class Solve(base.Kind):
    """The trial's `extra` holds `grid`, and `use`, which says what the item is for. Of a known task it may
    hold `planted`, the cells that are known to hold the figure, and `truth`."""

    name: ClassVar[str] = "solve"
    content_model: ClassVar[type[base.Content]] = SolveContent
    seconds: ClassVar[float] = 12.0
    has_maps: ClassVar[bool] = False
    is_marked: ClassVar[bool] = True
    columns: ClassVar[tuple[base.Column, ...]] = (
        base.Column("region_cells", "integer", "Solutions: how many cells of the grid were marked.", "cells"),
        base.Column(
            "region", "json", "Solutions: the cells that were marked, from 0, row by row; empty if none were."
        ),
        base.Column("strokes", "integer", "Solutions: strokes of brush and eraser that changed a cell."),
        base.Column("undos", "integer", "Solutions: how often a stroke was taken back."),
        base.Column(
            "first_stroke_ms",
            "integer",
            "Solutions: from the onset to the first stroke, on the page on which it was made.",
            "ms",
        ),
        base.Column("marked_with", "text", "Solutions: what the region was marked with.", levels=MARKED_WITH),
        base.USE,
    )

    def content(self, trial: base.TrialView, scene: base.Scene) -> SolveContent:
        return SolveContent(
            image=scene.image(), grid=_grid(trial), choices=base.label_buttons(scene.buttons, scene)
        )

    def check(self, trial: base.TrialView, value: base.Value) -> None:
        """{"choice", "region"}: distinct cells in ascending order on the trial's own grid.

        A region goes with an answer: "cannot say" has none, and an answer has one unless the trial's `extra`
        says `region = false`.
        """
        if "choice" not in value or not value.keys() <= {"choice", "region"}:
            raise base.InvalidResponse(
                f'expected {{"choice": …, "region": […] or null}}, got the keys {base.keys_of(value)}'
            )
        base.check_member(trial.choices, value["choice"])
        region = value.get("region")
        if value["choice"] == CANNOT_SAY and region is not None:
            raise _region_error('must be null beside "cannot say": a region shows an answer')
        if region is None:
            if value["choice"] != CANNOT_SAY and trial.extra.get("region", True):
                raise _region_error("is missing: an answer needs the cells that show it")
            return
        _check_region(region, _grid(trial))

    def audited(self, trial: base.TrialView, value: base.Value) -> bool | None:
        """The right answer, and a region that covers the planted one, if any is known."""
        if trial.extra.get("use") != base.KNOWN:
            return None
        if value["choice"] != trial.extra["truth"]:
            return False
        planted = frozenset(trial.extra.get("planted", ()))
        marked = frozenset(value.get("region") or ())
        return not planted or len(marked & planted) >= OVERLAP_MIN * len(marked | planted)

    def cells(self, trial: base.TrialView, value: base.Value) -> Mapping[str, Any]:
        region = value.get("region")
        return {
            "region_cells": None if region is None else len(region),
            "region": region,
            "use": trial.extra.get("use", "task"),
        }

    def noted(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: context[name] for name in NOTED if name in context}

    def preview(self, trial: base.TrialView) -> base.Value:
        choice = CANNOT_SAY if CANNOT_SAY in trial.choices else trial.choices[0]
        return {"choice": choice, "region": None if choice == CANNOT_SAY else [0]}

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        solved = observer.locate(trial, CANNOT_SAY)
        region = None if solved.cells is None else list(solved.cells)
        noted: dict[str, Any] = {"strokes": 0 if region is None else 1, "undos": 0}
        if region is not None:
            noted |= {"first_stroke_ms": solved.took_ms, "marked_with": "mouse"}
        return base.Reply({"choice": solved.choice, "region": region}, solved.took_ms, solved.took_ms, noted)


def _grid(trial: base.TrialView) -> int:
    return int(trial.extra["grid"])


def _check_region(region: object, grid: int) -> None:
    limit = grid * grid
    if not isinstance(region, list) or not 1 <= len(region) <= limit:
        raise _region_error(f"must be null or a list of 1 to {limit} cells of the {grid} x {grid} grid")
    last = -1
    for cell in region:
        if type(cell) is not int or not last < cell < limit:
            raise _region_error(
                f"must hold distinct whole numbers from 0 to {limit - 1} in ascending order, the cells of "
                f"the {grid} x {grid} grid; got {str(cell)[:20]!r} after {last}"
            )
        last = cell


def _region_error(sentence: str) -> base.InvalidResponse:
    return base.InvalidResponse(f"region {sentence}", {"region": sentence})
