"""The scripts of a study of ratings give the report's numbers, in Python and in R."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.frames import Frames
from tests.analysis.exports.scripted import LANGUAGES, Key, Told, agrees, ends, package, run
from tests.analysis.rated import METHODS, all_rated, pictures_of, planted, rating_facts, rating_frames

pytestmark = [pytest.mark.pure, pytest.mark.parametrize("language", LANGUAGES)]
COUNTED = ("explanations", "ratings", "shared", "mean", "mean_asked", "mode", "mode_asked", "missing")


def expected(report: dict[str, Any]) -> Iterator[tuple[Key, float | None]]:
    for row in report["conditions"]:
        told = {what: row[what] for what in COUNTED} | ends("", row["interval"])
        told |= {f"points_{at}": count for at, count in enumerate(row["points"], start=1)}
        yield from ((("conditions", f"{row['name']} {row['question']}", what), told[what]) for what in told)
    for part, key in (("pairs", "comparisons"), ("forms", "forms")):
        for row in report[key]:
            told = {what: row[what] for what in ("pictures", "people", "p", "p_holm")}
            told |= {"estimate": row["difference"], **ends("", row["interval"])}
            pair = (
                f"{row['question']} {row['first']} - {row['second']}" if part == "pairs" else row["question"]
            )
            yield from (((part, pair, what), value) for what, value in told.items())
    for question, told in report["agreement"].items():
        for who in ("kept", "all"):
            for what in ("alpha", "units", "ratings"):
                value = told[f"alpha_{who}"][what] if told[f"alpha_{who}"] else None
                if value is not None or what == "alpha":
                    yield ("agreement", f"{who} {question}", what), value


@pytest.fixture(scope="module")
def unbalanced(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Two questions, one reversed by the study's own words, unbalanced: five of twelve raters per picture."""
    frames = planted(
        {"grad_cam": 0.9, "random": 0.0, "clip_linear": 0.4},
        raters=12, items=14, per_item=5, seed=3, asked=("clear", "odd"),
    )  # fmt: skip
    words = {"text": 'Is it ]} "odd": \\?', "low": "no", "high": "yes"}
    wording = [{"id": "clear", **words}, {**words, "id": "odd", "reverse": True}]
    facts = rating_facts(asked=("clear", "odd"))
    facts = dataclasses.replace(facts, design={**facts.design, "wording": wording})
    people = frames.participants
    people.loc[people["session"] == "p003", "status"] = "screened"
    people.loc[people["session"] == "p004", "excluded_by_hand"] = True
    people.loc[people["session"] == "p005", "arrival"] = "unverified"
    folder = tmp_path_factory.mktemp("unbalanced") / "p"
    return folder, package(folder, frames, facts)


def test_people_and_pictures_are_drawn_as_in_the_report(language: str, unbalanced: Told) -> None:
    folder, report = unbalanced
    numbers, printed = run(language, folder)
    assert agrees(expected(report), numbers) == 6 * 15 + 6 * 7 + 2 * 7 + 2 * 6
    turned = (
        numbers["conditions", "grad_cam odd", "mean"] + numbers["conditions", "grad_cam odd", "mean_asked"]
    )
    assert turned == pytest.approx(6) and numbers["forms", "clear", "pictures"] == 14
    assert numbers["pairs", "clear grad_cam - random", "p_holm"] < 0.05
    assert numbers["agreement", "all clear", "ratings"] > numbers["agreement", "kept clear", "ratings"]
    assert "Saliency less concepts" in printed and "Not re-run here" in printed


@pytest.mark.long(stays="test_people_and_pictures_are_drawn_as_in_the_report")
def test_shared_pictures_anchors_and_missing_questions_count_as_in_the_report(
    language: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(8)
    frames = all_rated(lambda *place: int(rng.integers(1, 6)), raters=7, items=5, names=METHODS[:2])
    trials = frames.trials
    trials.loc[trials["item"] == "i4", "anchor"] = True
    lacks = (trials["item"] == "i0") & (trials["condition"] == "grad_cam")
    trials.loc[lacks, "response"] = trials.loc[lacks, "response"].str.replace(r',"q5":\d', "", regex=True)
    pictures = pictures_of(5, METHODS)
    same = {("i1", "clip_linear"): "grad_cam", ("i2", "clip_linear"): "grad_cam"}
    made = rating_frames([], [], pictures, same)
    report = package(
        tmp_path / "p", Frames(trials, frames.participants, made.stimuli, frames.extra), rating_facts()
    )
    numbers, _ = run(language, tmp_path / "p")
    agrees(expected(report), numbers)
    assert numbers["conditions", "clip_linear q1", "shared"] == 14
    assert numbers["conditions", "grad_cam q5", "missing"] == 1 / 4
    assert numbers["conditions", "grad_cam q1", "ratings"] == 4 * 7, "the anchor is not in it"


def test_equal_ratings_have_no_p_and_no_alpha(language: str, tmp_path: Path) -> None:
    frames = all_rated(lambda *place: 4, raters=3, items=3, names=METHODS[:2], asked=("q1",))
    report = package(tmp_path / "p", frames, rating_facts(METHODS[:2], asked=("q1",)))
    numbers, printed = run(language, tmp_path / "p")
    agrees(expected(report), numbers)
    assert ("pairs", "q1 grad_cam - random", "p") not in numbers
    assert ("agreement", "kept q1", "alpha") not in numbers and "q1: -, -" in printed
