"""A kind of trial brings columns of its own; a study without such trials exports what it always did."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.columns import TRIALS, Column, codebook, columns_of, names
from analysis.exports import delimited
from analysis.exports.base import ExportError
from analysis.frames import Frames, frame
from analysis.tables.response_reader import read_frames
from analysis.tables.trial_kind_columns import ColumnClash, ExportKind, kind_cells, kind_columns
from experiments.design.rng import Streams
from experiments.kinds import KINDS, get_kind
from experiments.kinds.base import TrialView
from experiments.models import Response, Study, Trial
from tests.analysis import stored

BOXES = Column("boxes", "json", "Ids of the boxes, in the order in which they were filled.")
SWAPS = Column("swaps", "integer", "How often two cards changed places.", "swaps")
SURE = Column("sure", "text", "How sure the person was.", levels=("no", "yes"))
pure = pytest.mark.pure


@dataclass(frozen=True)
class Sort:
    """A made-up kind: cards are sorted into boxes."""

    columns: Sequence[Column] = (BOXES, SWAPS, SURE)
    more: Mapping[str, Any] = field(default_factory=dict)

    def seen_by(self, trial: TrialView, person: str, streams: Streams) -> TrialView:
        return trial

    def cells(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"boxes": ["b2", "b1"], "swaps": trial.position, **self.more}

    def noted(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"sure": context["sure"]} if "sure" in context else {}


PLAIN = get_kind("predict")
"""A kind that adds nothing."""


def kinds(name: str) -> ExportKind:
    return Sort() if name == "learn" else PLAIN


@pure
def test_it_adds_each_column_once_in_the_order_of_the_kinds() -> None:
    added = kind_columns({"sort": Sort(), "rank": Sort((SWAPS, SURE)), "plain": PLAIN})
    assert added == (BOXES, SWAPS, SURE)
    assert columns_of("trials", added) == (*TRIALS, BOXES, SWAPS, SURE)
    for table in ("participants", "stimuli"):
        assert columns_of(table, added) == columns_of(table)


@pure
@pytest.mark.parametrize("name", ["rt_ms", "response", "study"])
def test_it_refuses_a_name_that_every_trial_has(name: str) -> None:
    with pytest.raises(ColumnClash, match=f"'sort' declares the column '{name}', which every trial has"):
        kind_columns({"sort": Sort((Column(name, "text", "Mine."),))})


@pure
@pytest.mark.parametrize(
    "other",
    [
        Column("swaps", "number", SWAPS.meaning, "swaps"),
        Column("swaps", "integer", "Something else.", "swaps"),
        Column("swaps", "integer", SWAPS.meaning, "ms"),
        Column("swaps", "integer", SWAPS.meaning, "swaps", ("1", "2")),
    ],
)
def test_it_refuses_one_name_for_two_things(other: Column) -> None:
    with pytest.raises(ColumnClash, match="'sort' and 'rank' declare the column 'swaps' differently"):
        kind_columns({"sort": Sort(), "rank": Sort((other,))})


def view(kind: str = "sort") -> TrialView:
    return TrialView(
        **{"position": 3, "block": 0, "phase": "test", "kind": kind, "check": "", "condition": ""},  # type: ignore[arg-type]
        **{"choices": (), "expected": "", "truth": None, "predicted": None},  # type: ignore[arg-type]
    )


@pure
def test_it_fills_its_cells_and_leaves_those_of_others_empty() -> None:
    extra = (BOXES, SWAPS, SURE)
    assert kind_cells(Sort(more={"sure": "no"}), extra, view(), {}, {}) == ('["b2","b1"]', 3, "no")
    assert kind_cells(Sort(), extra, view(), {}, {}) == ('["b2","b1"]', 3, None)
    assert kind_cells(Sort(), extra, view(), {}, {"sure": "yes"}) == ('["b2","b1"]', 3, "yes")
    assert kind_cells(PLAIN, extra, view("plain"), {}, {}) == (None, None, None)
    assert kind_cells(Sort(), (), view(), {}, {}) == ()


@pure
def test_it_refuses_a_cell_without_a_column() -> None:
    with pytest.raises(ColumnClash, match="'sort' fills hidden, which it does not declare"):
        kind_cells(Sort(more={"hidden": 1}), (BOXES,), view(), {}, {})


@pure
def test_it_has_room_for_the_columns_of_all_registered_kinds() -> None:
    registered = {name: get_kind(name) for name in KINDS}
    added = kind_columns(registered)
    assert {column.name for column in added} == {c.name for kind in registered.values() for c in kind.columns}
    assert all(column.meaning.endswith(".") for column in added)


@pure
def test_it_describes_them_in_the_codebook() -> None:
    before, after = codebook(), codebook((BOXES, SWAPS, SURE))
    assert [entry for entry in after if entry in before] == before
    added = {entry["column"]: entry for entry in after if entry not in before}
    assert list(added) == ["boxes", "swaps", "sure"]
    assert {entry["table"] for entry in added.values()} == {"trials"}
    assert added["swaps"]["unit"] == "swaps" and added["swaps"]["meaning"] == SWAPS.meaning
    assert added["sure"]["levels"] == "no; yes"


@pure
def test_it_keeps_the_columns_through_every_choice_of_people() -> None:
    rows: list[dict[str, object]] = [{"session": "a", "swaps": 2, "boxes": "[]"}]
    trials = frame("trials", rows, (BOXES, SWAPS))
    people = frame("participants", [{"session": "a", "origin": "human", "status": "passed"}])
    frames = Frames(trials, people, frame("stimuli", []), (BOXES, SWAPS))
    for chosen in (frames.only("human"), frames.passed(), frames.kept()):
        assert chosen.extra == (BOXES, SWAPS) and list(chosen.trials["swaps"]) == [2]
    assert list(frames.only("simulated").trials.columns) == list(names("trials", (BOXES, SWAPS)))


@pure
def test_it_refuses_a_cell_of_the_wrong_type() -> None:
    with pytest.raises((TypeError, ValueError)):
        frame("trials", [{"session": "a", "swaps": "twice"}], (SWAPS,))


@pytest.fixture
def study() -> Study:
    study = stored.opened()
    stored.cast(study)
    return study


@pytest.mark.django_db
def test_it_exports_the_columns_of_the_kinds_that_a_study_has(study: Study, tmp_path: Path) -> None:
    frames = read_frames(study, kind_of=kinds)
    assert frames.extra == (BOXES, SWAPS, SURE)
    rows = delimited.write(frames, tmp_path)
    with (tmp_path / "trials.csv").open(newline="", encoding="utf-8") as handle:
        table = list(csv.DictReader(handle))
    assert tuple(table[0]) == (*names("trials"), "boxes", "swaps", "sure")
    for row in table:
        is_sort = row["kind"] == "learn"
        assert row["boxes"] == ('["b2","b1"]' if is_sort else "")
        assert row["swaps"] == (row["trial_index"] if is_sort else "")
    book = json.loads((tmp_path / "codebook.json").read_text())
    assert rows["codebook.json"] == len(book["columns"])
    described = [entry for entry in codebook() if entry["table"] in frames.listed]
    assert len(book["columns"]) == len(described) + 3
    pd.testing.assert_frame_equal(
        delimited.read(tmp_path / "trials.csv", "trials", frames.extra), frames.trials
    )
    with pytest.raises(ExportError, match="not those of 'trials'"):
        delimited.read(tmp_path / "trials.csv", "trials")


@pytest.mark.django_db
def test_it_exports_today_s_columns_if_no_trial_is_of_such_a_kind(study: Study) -> None:
    def sort_only(name: str) -> ExportKind:
        return Sort() if name == "sort" else PLAIN

    frames = read_frames(study, kind_of=sort_only)
    assert frames.extra == () and tuple(frames.trials.columns) == names("trials")
    pd.testing.assert_frame_equal(frames.trials, read_frames(study).trials)


@pytest.mark.django_db
def test_it_asks_each_kind_once(study: Study) -> None:
    asked = []

    def counting(name: str) -> ExportKind:
        asked.append(name)
        return PLAIN

    read_frames(study, kind_of=counting)
    assert asked == ["instructed", "learn", "predict"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "value", "is_passed"),
    [
        ("rate", {"q1": 4, "q2": 4}, True),
        ("rate", {"q1": 4, "q2": 3}, False),
        ("instructed", {"choice": "4"}, True),
        ("instructed", {"choice": "3"}, False),
        ("solve", {"choice": "4", "region": [1]}, True),
        ("review", {"accept": True}, False),
        ("learn", {"seen": True}, False),
    ],
)
def test_it_judges_a_check_by_the_rule_of_screening(
    study: Study, kind: str, value: dict[str, Any], is_passed: bool
) -> None:
    trial = Trial.objects.filter(check_kind="instructed", responses__isnull=False).first()
    assert trial is not None
    extra = {"questions": ["q1", "q2"]}
    Trial.objects.filter(pk=trial.pk).update(kind=kind, expected="4", extra=extra)
    Response.objects.filter(trial=trial).update(value=value)
    trials = read_frames(study).trials
    check = trials[(trials["trial_index"] == trial.position) & (trials["slot"] == trial.slot.ordinal)]
    assert list(check["check_passed"]) == [is_passed] and list(check["kind"]) == [kind]
    assert check["matches_model"].isna().all(), "a check is never scored"


@pytest.mark.django_db
def test_it_exports_what_the_kinds_of_today_say_of_an_answer(study: Study) -> None:
    answers = Response.objects.filter(trial__kind="predict", trial__check_kind="")
    for answer, (kind, value) in zip(
        answers[:2],
        (("review", {"accept": False}), ("solve", {"choice": "a", "region": [2, 5]})),
        strict=True,
    ):
        Trial.objects.filter(pk=answer.trial_id).update(kind=kind)
        Response.objects.filter(pk=answer.pk).update(value=value)
    trials = read_frames(study).trials.set_index("kind")
    assert {"accepted", "region_cells"} <= set(trials.columns)
    assert not trials.loc["review", "accepted"]
    assert trials.loc["solve", "region_cells"] == 2
    assert pd.isna(trials.loc["solve", "accepted"]) and pd.isna(trials.loc["review", "region_cells"])
    assert trials.loc["predict", ["accepted", "region_cells"]].isna().all(axis=None)
