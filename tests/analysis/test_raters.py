"""What is said of one rater at work, each number by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from analysis.rater_review import LIMITS, RatedTrial, rater_of

pytestmark = pytest.mark.pure


def page(position: int, points: str, *, sitting: int = 0, rt_ms: float = 9000, of: str = "") -> RatedTrial:
    """Points as "335", of an anchor if `of` names one."""
    given: Mapping[str, int] = {f"q{at}": int(point) for at, point in enumerate(points, 1)}
    return RatedTrial(sitting, position, given, rt_ms, (of or str(position), "rise"), bool(of))


def test_calm_work_has_no_flag() -> None:
    rater = rater_of([page(at, "234") for at in range(6)], [True, True])
    assert (rater.sittings, rater.trials, rater.ratings, rater.flags) == (1, 6, 18, ())
    assert (rater.straight_share, rater.rating_ms, rater.drift) == (0.0, 3000, 0.0)
    assert (rater.followed, rater.checks, rater.again, rater.again_distance) == (2, 2, 0, None)


def test_pages_with_one_answer_are_counted_among_those_with_three_questions() -> None:
    alike = ["333", "555", "123", "44", "1"]
    assert rater_of([page(at, points) for at, points in enumerate(alike)]).straight_share == 2 / 3
    assert rater_of([page(at, p) for at, p in enumerate(alike)]).flags == ("one answer to all",)
    assert rater_of([page(0, "333"), page(1, "123")]).flags == (), "half of the pages is the limit"
    assert rater_of([page(0, "4")]).straight_share is None


def test_the_time_is_the_median_per_rating() -> None:
    """1,200 ms for two, 2,100 for three and 9,000 for one: 600, 700 and 9,000 each."""
    pages = [page(0, "12", rt_ms=1200), page(1, "123", rt_ms=2100), page(2, "1", rt_ms=9000)]
    assert rater_of(pages).rating_ms == 700 and rater_of(pages).flags == ()
    assert rater_of(pages[:2]).flags == ("fast",)


def test_drift_is_the_last_third_less_the_first_over_sittings() -> None:
    """The order of sittings counts, not that in which they are given."""
    pages = [page(at, "45", sitting=1) for at in range(3)] + [page(at, "34") for at in range(3)]
    rater = rater_of(pages)
    assert (rater.sittings, rater.drift, rater.flags) == (2, 1.0, ("drift",))
    assert rater_of(pages[:5]).drift is None, "five pages are too few"


def test_a_missed_check_is_flagged() -> None:
    rater = rater_of([page(0, "12")], [True, False, True])
    assert (rater.followed, rater.checks, rater.flags) == (2, 3, ("missed checks",))


def test_anchors_are_compared_with_the_first_time_in_another_sitting() -> None:
    pages = [page(0, "15", of="a"), page(1, "33", of="a"), page(0, "35", sitting=1, of="a")]
    rater = rater_of([*pages, page(1, "55", sitting=1), page(0, "14", sitting=2, of="a")])
    # 3 - 1 and 5 - 5, then 1 - 1 and 4 - 5; the repetition within the sitting does not count.
    assert (rater.again, rater.again_distance, rater.flags) == (4, 0.75, ())
    far = rater_of([page(0, "1111", of="a"), page(0, "5111", sitting=1, of="a")])
    assert far.again_distance == 1.0 and "repeats differ" not in far.flags
    farther = rater_of([page(0, "1112", of="a"), page(0, "5311", sitting=1, of="a")])
    assert farther.again_distance == 1.75 and "repeats differ" in farther.flags
    assert "repeats differ" not in rater_of([page(0, "1", of="a"), page(0, "5", sitting=1, of="a")]).flags


def test_a_rater_without_answers_has_no_numbers() -> None:
    rater = rater_of([])
    assert (rater.trials, rater.straight_share, rater.rating_ms, rater.drift) == (0, None, None, None)
    assert rater.flags == ()


def test_the_limits_are_told_as_they_are() -> None:
    assert LIMITS.startswith(
        "one answer to all 3 or more questions on more than 50% of the pages, less than 0.7 s"
    )
