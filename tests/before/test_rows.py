"""The database of f38355e, migrated: every row and every value of every old column is there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.before.restored import Database, Rows

pytestmark = pytest.mark.both_databases("migrations of stored rows")
RENAMED_TABLES: dict[str, str] = {}
"""Old name -> new name."""
RENAMED_COLUMNS: dict[tuple[str, str], str] = {}
"""(old table, old column) -> new column."""
MOVED_ENTRIES = {
    ("crowd_posting", "facts"): {
        **{"legible_wanted": "wanted", "legible_address": "address", "legible_fees": "fee_rates"},
    },
}
"""(old table, old column of JSON) -> entry -> the column that holds it now."""
MOVED_COLUMNS = {("crowd_submission", "bonuses")}
"""Old columns whose values are rows of a table of their own now
(test_it_keeps_every_bonus_that_was_listed)."""
MADE_BY_MIGRATE = {"django_migrations"}
"""Tables that a migration adds rows to; old rows must still be there."""


def lost(table: str, before: Rows, after: Rows) -> list[str]:
    """What was stored and is missing now, as sentences."""
    losses = []
    for key, row in before.items():
        row_now = after.get(key)
        if row_now is None:
            losses.append(f"{table} {key} is gone")
            continue
        for column, value in row.items():
            name = RENAMED_COLUMNS.get((table, column), column)
            if (table, column) in MOVED_COLUMNS:
                continue
            if name not in row_now:
                losses.append(f"{table}.{column} is gone")
            elif same(row_now[name]) != same(stayed(table, column, value, row_now)):
                losses.append(f"{table}.{column} of {key} was {value!r:.60} and is {row_now[name]!r:.60}")
    return losses


def stayed(table: str, column: str, value: object, row_now: Mapping[str, object]) -> object:
    """The old value without the entries that have columns of their own now and are equal there."""
    old, moved = same(value), MOVED_ENTRIES.get((table, column))
    if not isinstance(old, dict) or moved is None:
        return value
    return {name: entry for name, entry in old.items() if same(row_now.get(moved.get(name, ""))) != entry}


def same(value: object) -> object:
    """JSON may be stored with other blanks, and SQLite's flags are numbers."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


@pytest.fixture(scope="module")
def tables(migrated: tuple[Database, Database]) -> dict[str, tuple[Rows, Rows]]:
    before, after = migrated
    return {
        table: (before.rows(table), after.rows(RENAMED_TABLES.get(table, table))) for table in before.tables()
    }


def test_it_keeps_every_value_of_every_row(tables: dict[str, tuple[Rows, Rows]]) -> None:
    assert [line for table, pair in tables.items() for line in lost(table, *pair)] == []


def test_it_keeps_every_bonus_that_was_listed(migrated: tuple[Database, Database]) -> None:
    """Each as a line of the platform's statement; and each payout has the submission of its session."""
    before, after = migrated
    lines = Counter[tuple[object, object]]()
    for line in after.rows("crowd_statementline").values():
        if line["kind"] == "bonus":
            lines[str(line["submission_id"]), line["cents"]] += int(str(line["count"]))
    listed = Counter[tuple[object, object]]()
    for key, row in before.rows("crowd_submission").items():
        bonuses = same(row["bonuses"])
        listed.update((str(key), cents) for cents in (bonuses if isinstance(bonuses, list) else []))
    assert listed and listed <= lines
    submissions = {str(key): row for key, row in after.rows("crowd_submission").items()}
    for payout in after.rows("crowd_payout").values():
        assert submissions[str(payout["submission_id"])]["session_id"] == payout["session_id"]


def test_it_makes_no_person_and_no_money_of_its_own(tables: dict[str, tuple[Rows, Rows]]) -> None:
    """A migration may fill new tables; in these it may add nothing."""
    for table in ("session", "participant", "response", "gate", "event", "trial", "slot"):
        before, after = tables[f"experiments_{table}"]
        assert len(before) == len(after) > 0, table
    for table in ("posting", "identity", "submission", "payout", "payoutbatch", "message", "notice"):
        before, after = tables[f"crowd_{table}"]
        assert len(before) == len(after) > 0, table


def test_the_dump_holds_every_state_that_there_is(tables: dict[str, tuple[Rows, Rows]]) -> None:
    """Otherwise the comparison would leave out states that occur in real use."""
    sessions = tables["experiments_session"][0].values()
    assert {row["state"] for row in sessions} == {
        *("gates", "assigned", "running", "finished", "withdrawn", "declined", "turned_away"),
    }
    assert {row["verdict"] for row in sessions} == {
        *("", "passed", "screened", "incomplete", "withdrawn", "declined"),
    }
    assert {row["origin"] for row in sessions} == {"human", "simulated", "pilot", "preview"}
    assert sum(same(row["excluded"]) != {} for row in sessions) == 1
    assert sum(same(row["erased"]) != {} for row in sessions) == 3
    payouts = tables["crowd_payout"][0].values()
    assert {row["state"] for row in payouts} == {"due", "sent", "unknown", "withheld"}
    postings = tables["crowd_posting"][0].values()
    assert {row["platform"] for row in postings} == {"local", "link", "prolific"}
    assert {row["state"] for row in tables["experiments_study"][0].values()} == {"open", "closed", "draft"}
    measured = [row["value"] for row in tables["stimuli_measurement"][0].values()]
    assert measured and None not in measured
    assert tables["analysis_report"][0] and tables["analysis_release"][0] and tables["experiments_event"][0]


@pytest.mark.parametrize("spoilt", ["a value", "a column", "a row"])
def test_it_would_notice_a_loss(tables: dict[str, tuple[Rows, Rows]], spoilt: str) -> None:
    before, after = tables["experiments_response"]
    copy = {key: dict(row) for key, row in after.items()}
    first = next(iter(copy))
    if spoilt == "a value":
        copy[first]["rt_ms"] = None
    elif spoilt == "a column":
        for row in copy.values():
            del row["rt_ms"]
    else:
        del copy[first]
    assert lost("experiments_response", before, copy) != []
