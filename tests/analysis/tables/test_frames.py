"""Frames have their declared columns and dtypes for every input."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.columns import TABLES, UNITS, codebook, names
from analysis.frames import DTYPES, Frames, MixedOrigins, by_hand, frame, whole_table

pytestmark = pytest.mark.pure
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def people(*rows: tuple[str, str, bool]) -> pd.DataFrame:
    keys = ("session", "status", "excluded_by_hand")
    return frame("participants", [{"origin": "human", **dict(zip(keys, row, strict=True))} for row in rows])


def test_it_declares_every_column_once_with_a_meaning() -> None:
    for table, columns in TABLES.items():
        assert len(set(names(table))) == len(columns), table
        for column in columns:
            assert column.meaning.endswith(".") and column.dtype in DTYPES, column.name
    assert set(UNITS) == set(TABLES)
    assert len(codebook()) == sum(map(len, TABLES.values()))


@pytest.mark.parametrize("table", TABLES)
def test_it_has_all_columns_even_without_rows(table: str) -> None:
    made = frame(table, [])
    assert tuple(made.columns) == names(table) and len(made) == 0
    assert {c.name: str(made[c.name].dtype) for c in TABLES[table]} == {
        c.name: DTYPES[c.dtype] for c in TABLES[table]
    }


def test_it_takes_rows_in_order_or_by_name() -> None:
    by_name = frame("trials", [{"study": "s", "rt_ms": 7}])
    in_order = frame(
        "trials", [["s" if n == "study" else 7 if n == "rt_ms" else None for n in names("trials")]]
    )
    pd.testing.assert_frame_equal(by_name, in_order)
    assert by_name.loc[0, "participant"] == "" and by_name["shown_ms"].isna().all()


def test_it_names_columns_that_are_not_declared() -> None:
    with pytest.raises(KeyError, match="secret, worker_id: not a column of trials; declare it"):
        frame("trials", [{"worker_id": "A1", "secret": 1}])


def test_it_refuses_rows_of_another_length() -> None:
    with pytest.raises(ValueError, match="columns"):
        frame("trials", [["s", "p"]])


def test_it_brings_all_times_to_utc() -> None:
    berlin = AT.astimezone(timezone(timedelta(hours=2)))
    made = frame("trials", [{"received_at": AT}, {"received_at": berlin}, {"received_at": None}])
    assert list(made["received_at"][:2]) == [pd.Timestamp(AT)] * 2
    assert pd.isna(made["received_at"][2])


@settings(max_examples=30)
@given(st.lists(st.text(max_size=5), max_size=12), st.integers(1, 5))
def test_it_streams_the_same_frame(texts: list[str], size: int) -> None:
    rows = [{"study": text, "rt_ms": number} for number, text in enumerate(texts)]
    pd.testing.assert_frame_equal(whole_table("trials", iter(rows), size=size), frame("trials", rows))


def test_it_treats_a_missing_decision_as_no_exclusion() -> None:
    table = people(("a", "passed", True), ("b", "passed", False))
    table.loc[1, "excluded_by_hand"] = pd.NA
    assert list(by_hand(table)) == [True, False]


def frames() -> Frames:
    table = people(
        ("a", "passed", False), ("b", "passed", True), ("c", "screened", False), ("d", "running", False)
    )
    trials = frame("trials", [{"session": s, "trial_index": i} for s in "abcd" for i in range(2)])
    return Frames(trials, table, frame("stimuli", []))


def test_it_keeps_trials_with_their_people() -> None:
    for chosen, sessions in (
        (frames().passed(), "ab"),
        (frames().kept(), "a"),
        (frames().only("human"), "abcd"),
    ):
        assert list(chosen.participants["session"]) == list(sessions)
        assert list(chosen.trials["session"]) == [s for s in sessions for _ in range(2)]
        assert list(chosen.trials.index) == list(range(2 * len(sessions)))


def test_it_divides_people_without_losing_any() -> None:
    whole = frames()
    mask = whole.participants["status"] == "passed"
    parts = (whole.keeping(mask), whole.keeping(~mask))
    for table in ("participants", "trials"):
        assert sum(len(part.tables[table]) for part in parts) == len(whole.tables[table])


def test_it_refuses_to_mix_origins() -> None:
    mixed = frames()
    mixed.participants.loc[0, "origin"] = "simulated"
    assert mixed.origins == ["human", "simulated"]
    with pytest.raises(MixedOrigins, match="come from human, simulated, which are never mixed; choose one"):
        mixed.one_origin()
    assert mixed.only("simulated").one_origin() == "simulated"
    assert mixed.only("pilot").one_origin() == "human", "nobody: reported as a study without people"
