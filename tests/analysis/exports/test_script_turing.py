"""The scripts of a reverse Turing test give the report's numbers, in Python and in R."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.frames import Frames
from tests.analysis.exports.scripted import LANGUAGES, Key, Told, agrees, ends, package, run
from tests.analysis.reports.reverse_turing.test_reverse_turing_report import (
    NAMES,
    between,
    square,
    turing_facts,
    turing_frames,
)

pytestmark = [pytest.mark.pure, pytest.mark.parametrize("language", LANGUAGES)]
MEASURES = ("accuracy", "truth", "f1", "test_s", "train_s")


def expected(report: dict[str, Any]) -> Iterator[tuple[Key, float | None]]:
    for row in report["conditions"]["rows"]:
        name = row["name"]
        told = {"n": row["n"], "majority": row["strategies"]["majority"], "gold": row["strategies"]["gold"]}
        for measure in MEASURES:
            told |= {measure: row[measure], **ends(f"{measure}_", row["intervals"][measure])}
        yield from ((("conditions", name, what), value) for what, value in told.items())
    for name, row in report["belief"].items():
        told = {what: row[what] for what in ("n", "model", "truth", "gap")} | ends("", row["interval"])
        yield from ((("belief", name, what), value) for what, value in told.items())
    for part in ("tests", "first_period"):
        for row in report[part] or ():
            n, n_baseline = row["n"]
            told = {"n": n, "n_baseline": n_baseline}
            told |= {what: row[what] for what in ("effect", "p", "p_holm")}
            yield from (
                ((part, f"{row['condition']} {row['measure']}", what), value) for what, value in told.items()
            )


def timed(frames: Frames, seed: int, *, tied: bool) -> Frames:
    """Answers that take different times; whole seconds tie sums."""
    rng = np.random.default_rng(seed)
    times = rng.integers(2, 9, len(frames.trials)) * 1000 + (
        0 if tied else rng.permutation(len(frames.trials))
    )
    trials = frames.trials.assign(rt_ms=times).astype({"rt_ms": "Int64"})
    return Frames(trials, frames.participants, frames.stimuli, frames.extra)


CHANCES = {"none": 0.5, "lime": 0.8, "control": 0.55}


@pytest.mark.long(stays="test_the_same_people_are_compared_as_the_report_does")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("people", [8, 24])
def test_different_people_are_compared_as_the_report_does(
    language: str, people: int, tied: bool, tmp_path: Path
) -> None:
    """24 people are too many for the exact test, and ties too."""
    frames = timed(between(CHANCES, people, seed=people), 4, tied=tied)
    report = package(tmp_path / "p", frames, turing_facts())
    numbers, printed = run(language, tmp_path / "p")
    assert agrees(expected(report), numbers) == 3 * 18 + 3 * 6 + 6 * 5
    assert numbers["tests", "lime accuracy", "p_holm"] < 0.05 < numbers["tests", "control accuracy", "p"]
    assert "Against the baseline" in printed and "first" not in printed
    assert "Not re-run here" in printed and "mixed models" in printed


@pytest.fixture(scope="module", params=[1, 3])
def squares(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """As many rounds of the square."""
    frames = timed(square(CHANCES, request.param, seed=2), 5, tied=False)
    folder = tmp_path_factory.mktemp("squares") / "p"
    return folder, package(folder, frames, turing_facts())


def test_the_same_people_are_compared_as_the_report_does(language: str, squares: Told) -> None:
    folder, report = squares
    numbers, printed = run(language, folder)
    assert report["tests"][0]["within"] and len(report["first_period"]) == 2
    agrees(expected(report), numbers)
    assert "Only the condition that each person met first" in printed


def test_what_cannot_be_computed_is_no_number(language: str, tmp_path: Path) -> None:
    """Equal scores, a missing answer, no training, and a person who was left out."""
    answers = [True, True, False, False]
    frames = turing_frames([(f"{name}-{j}", [(name, answers)]) for name in NAMES[:2] for j in range(3)])
    trials, people = frames.trials, frames.participants
    trials.loc[trials.index[(trials["session"] == "none-0") & (trials["phase"] == "test")][0], "response"] = (
        ""
    )
    trials = trials[(trials["session"] != "lime-1") | (trials["phase"] == "test")]
    people.loc[people["session"] == "lime-2", "excluded_by_hand"] = True
    people.loc[people["session"] == "none-2", "arrival"] = "unverified"
    report = package(tmp_path / "p", Frames(trials, people, frames.stimuli), turing_facts())
    numbers, printed = run(language, tmp_path / "p")
    agrees(expected(report), numbers)
    rows = {row["name"]: row for row in report["conditions"]["rows"]}
    assert (rows["none"]["n"], rows["lime"]["n"], rows["control"]["n"]) == (2, 2, 0)
    assert ("tests", "lime accuracy", "p") not in numbers and "p = -" in printed
