"""The scripts of a study of advice give the report's numbers, in Python and in R."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.advised import Habit, advised_facts, decisions, frames_of, planted
from tests.analysis.exports.scripted import LANGUAGES, Key, Told, agrees, ends, package, run

pytestmark = [pytest.mark.pure, pytest.mark.parametrize("language", LANGUAGES)]
SHARES = (
    *("rair", "rsr", "over_reliance", "under_reliance", "to_right", "to_wrong"),
    *("from_right", "from_wrong", "switched"),
)


def expected(report: dict[str, Any]) -> Iterator[tuple[Key, float | None]]:
    for row in report["conditions"]:
        told = {what: row[what] for what in ("n", "items", "advice")}
        for measure in ("initial", "final", "gain", "over_advice", "over_better"):
            of = row[measure] or {"estimate": None, "interval": None}
            told |= {f"{measure}_estimate": of["estimate"], **ends(f"{measure}_", of["interval"])}
        yield from ((("conditions", row["name"], what), value) for what, value in told.items())
    for row in report["contrasts"]:
        of = row["difference"] or {"estimate": None, "interval": None, "p": None}
        told = {"estimate": of["estimate"], "p": of["p"], **ends("", of["interval"]), "p_holm": row["p_holm"]}
        pair = f"{row['measure']} {row['first']} - {row['second']}"
        yield from ((("contrasts", pair, what), value) for what, value in told.items())
    for row in report["reliance"]:
        told = {what: row[what] and row[what]["estimate"] for what in ("d_prime", "criterion")}
        for share in SHARES:
            of = row[share]
            told |= {share: of["share"], f"{share}_yes": of["yes"], f"{share}_total": of["total"]}
        yield from ((("reliance", row["name"], what), value) for what, value in told.items())


@pytest.fixture(scope="module")
def of_habits(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """48 people who take advice in four ways, three of whom are left out."""
    habits = {
        "alone": Habit(),
        "plain": Habit(takes_right=0.4, takes_wrong=0.3),
        "marked": Habit(takes_right=0.8, takes_wrong=0.1),
        "unrelated": Habit(takes_right=0.4, takes_wrong=0.4),
    }
    frames = planted(habits, people=12, seed=7, items=40, per_person=10, accuracy=0.7)
    people = frames.participants
    people.loc[people["session"] == "s-plain-3", "status"] = "screened"
    people.loc[people["session"] == "s-plain-4", "excluded_by_hand"] = True
    people.loc[people["session"] == "s-marked-5", "arrival"] = "unverified"
    folder = tmp_path_factory.mktemp("habits") / "p"
    return folder, package(folder, frames, advised_facts())


def test_gain_contrasts_and_reliance_are_those_of_the_report(language: str, of_habits: Told) -> None:
    folder, report = of_habits
    numbers, printed = run(language, folder)
    assert agrees(expected(report), numbers) == 4 * 18 + 10 * 5 + 4 * 29
    assert numbers["contrasts", "gain marked - alone", "p_holm"] < 0.05
    assert numbers["contrasts", "gain unrelated - plain", "p_holm"] > 0.05
    assert numbers["conditions", "plain", "n"] == 10 and numbers["conditions", "marked", "n"] == 11
    assert "Planned contrasts" in printed and "Not re-run here" in printed


def test_what_is_not_defined_is_no_number(language: str, tmp_path: Path) -> None:
    """One person per condition, no wrong advice that both met, and a condition without people."""
    frames = frames_of(
        {
            "alone": {"ada": decisions("i1 a a a a\ni2 b a b b\ni3 a a b b")},
            "plain": {"bo": decisions("i1 a a b a\ni4 b a b a\ni3 a a b a")},
        }
    )
    report = package(tmp_path / "p", frames, advised_facts())
    numbers, printed = run(language, tmp_path / "p")
    agrees(expected(report), numbers)
    assert "No item of one of the strata" in report["contrasts"][0]["problem"]
    assert not any(part == "contrasts" for part, _, _ in numbers)
    assert numbers["conditions", "marked", "n"] == 0 and ("reliance", "marked", "rair") not in numbers
    assert "marked: rair - (0 of 0)" in printed
