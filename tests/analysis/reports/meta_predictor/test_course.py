"""What people saw, trial by trial and item by item, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.reports.meta_predictor.learning_times import sections
from tests.analysis.worlds import facts, frames_of

pytestmark = pytest.mark.pure
NAMES = ("baseline", "grad_cam")
RIGHT = {"baseline": np.array([[3, 1], [2, 1]]), "grad_cam": np.array([[3, 3], [3, 0]])}
"""Of three answers per block the first ones are right."""


def parts(frames: Frames | None = None, **changes: Any) -> dict[str, Section]:
    study = replace(facts(NAMES), **changes)
    made = sections(frames or frames_of(RIGHT, 3), study, ("K = 5", "K = 10"))
    return {part.key: part for part in made}


def test_it_sorts_items_by_how_many_got_them_right() -> None:
    rows = parts()["items"].content
    assert [(row["item"], row["n"], row["accuracy"]) for row in rows] == [
        ("item-1-1", 4, 0.25),
        ("item-1-2", 4, 0.25),
        ("item-0-2", 4, 0.75),
        ("item-1-0", 4, 0.75),
        ("item-0-0", 4, 1.0),
        ("item-0-1", 4, 1.0),
    ]
    by = rows[0]["by_condition"]
    assert (by["baseline"], by["grad_cam"]) == ({"n": 2, "accuracy": 0.0}, {"n": 2, "accuracy": 0.5})


def test_it_draws_each_item_in_each_condition() -> None:
    section = parts()["items"]
    (figure,) = section.figures
    cells = figure.draw().axes[0].images[0].get_array()
    assert figure.data is not None
    told = [100 * row[3] for row in figure.data.rows if isinstance(row[3], float)]
    assert np.asarray(cells).T.ravel().tolist() == pytest.approx(told)
    assert cells.shape == (2, 6)


def test_it_leaves_a_gap_for_an_item_that_a_condition_did_not_see() -> None:
    frames = frames_of(RIGHT, 3)
    trials = frames.trials
    gone = (trials["condition"] == "grad_cam") & (trials["item"] == "item-1-1")
    section = parts(replace(frames, trials=trials[~gone].reset_index(drop=True)))["items"]
    row = next(row for row in section.content if row["item"] == "item-1-1")
    assert row["by_condition"]["grad_cam"] == {"n": 0, "accuracy": None} and row["n"] == 2
    assert np.isnan(section.figures[0].draw().axes[0].images[0].get_array().data).sum() == 1


def test_it_follows_learning_from_trial_to_trial() -> None:
    rows = parts()["course"].content["trials"]
    shares = {(row["condition"], row["trial"]): row["accuracy"] for row in rows}
    assert [shares["baseline", trial] for trial in range(1, 7)] == [1.0, 1.0, 0.5, 1.0, 0.0, 0.0]
    assert [shares["grad_cam", trial] for trial in range(1, 7)] == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5]
    for row in rows:
        assert row["interval"][0] <= row["accuracy"] <= row["interval"][1]
    assert [row[0] for row in parts()["course"].tables[0].rows] == ["K = 5", "K = 10"]


def test_it_draws_the_limits_that_screen_by_time() -> None:
    frames = frames_of({name: np.full((8, 2), 2) for name in NAMES}, 3)
    rng = np.random.default_rng(1)
    trials = frames.trials.assign(rt_ms=rng.integers(400, 4000, len(frames.trials)))
    people = frames.participants.assign(duration_s=rng.uniform(200, 900, len(frames.participants)))
    screening = {
        "total_minutes": {"limit": [1.5, 30], "timing": "after"},
        "fastest_median_ms": {"limit": 500},
    }
    section = parts(Frames(trials, people, frames.stimuli), screening=screening)["times"]
    assert section.content["limits"] == {"answer_s": [0.5], "session_min": [1.5, 30.0]}
    left, right = section.figures[0].draw().axes
    dashed = [[x.get_xdata()[0] for x in axes.lines if x.get_linestyle() == "--"] for axes in (left, right)]
    assert dashed == [[0.5], [1.5, 30.0]]
    curve = next(line for line in left.lines if line.get_linestyle() == "-")
    area = np.trapezoid(curve.get_ydata(), np.log10(curve.get_xdata()))
    assert area == pytest.approx(1, abs=0.1), "a density over the logarithm"


def test_it_draws_no_density_of_equal_times_and_says_nothing_without_answers() -> None:
    assert parts()["times"].figures == ()
    frames = frames_of(RIGHT, 3)
    assert sections(replace(frames, trials=frames.trials.iloc[:0]), facts(NAMES), ()) == []
