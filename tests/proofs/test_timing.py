"""The short form of the proof `timing`: laws of order on any machine; no speed is asserted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.proofs.timing import apart, early, errors_of, miscounted
from tests.proofs.timing_ways import CannotMake, Span, Trial, controlled, headless, presented

FRAME_MS = 1000 / 60
TRUE = Trial(
    inserted_ms=990.0,
    stamp=Span(1000.0, 1100.0),
    record=Span(1000.0, 1100.0),
    frames=6,
    drawn=6,
    dropped=0,
    rt_ms=500.0,
    pressed_ms=1500.0,
    refresh_ms=FRAME_MS,
)


@pytest.mark.browser
def test_no_stamp_is_before_its_picture_and_frames_are_those_that_were_drawn() -> None:
    """If frames can be begun from outside, a busy machine changes nothing in their order."""
    try:
        trials = controlled(60.0, 8, 0)
    except CannotMake:
        trials = headless(8, 0)
        assert early(trials) == []
    else:
        assert [*early(trials), *apart(trials), *miscounted(trials)] == []
    assert len(trials) == 8


@pytest.mark.pure
@pytest.mark.parametrize(
    ("law", "trial"),
    [
        (early, replace(TRUE, inserted_ms=1001.0)),
        (apart, replace(TRUE, record=Span(1000.0 - 2 * FRAME_MS, 1100.0))),
        (apart, replace(TRUE, record=Span(1000.0 + 2 * FRAME_MS, 1100.0))),
        (miscounted, replace(TRUE, drawn=5)),
        (miscounted, replace(TRUE, frames=12, drawn=12)),
    ],
)
def test_it_notices_a_stamp_that_is_wrong(law: Callable[[Sequence[Trial]], list[str]], trial: Trial) -> None:
    assert law([TRUE]) == []
    assert len(law([TRUE, trial])) == 1


@pytest.mark.pure
def test_errors_are_our_number_less_the_records() -> None:
    late = replace(TRUE, stamp=Span(1004.0, 1102.0), rt_ms=497.0)
    assert errors_of([late]) == {
        "onset": [4.0],
        "offset": [2.0],
        "time on the screen": [-2.0],
        "response time": [-3.0],
    }


@pytest.mark.pure
def test_a_picture_is_presented_with_the_first_frame_that_was_committed_after_it() -> None:
    """A trace by hand, in microseconds: frame 2 was dropped, frame 4 has nothing of the page."""

    def frame(
        number: int, begun: int, committed: int | None, ended: int, state: str
    ) -> list[dict[str, object]]:
        shared = {"pid": 1, "id2": {"local": hex(number)}}
        report = {"frame_reporter": {"state": state}}
        rows = [{"name": "PipelineReporter", "ph": "b", "ts": begun, "args": report, **shared}]
        if committed is not None:
            rows.append({"name": "SendBeginMainFrameToCommit", "ph": "e", "ts": committed, **shared})
        return [*rows, {"name": "PipelineReporter", "ph": "e", "ts": ended, "args": {}, **shared}]

    def mark(name: str, at: int) -> dict[str, object]:
        return {"name": name, "ph": "I", "ts": at, "args": {"data": {"startTime": (at - 500) / 1000}}}

    trace = [
        *frame(1, 1_000, 4_000, 17_000, "STATE_PRESENTED_ALL"),
        mark("stimulus", 5_000),
        *frame(2, 17_000, 20_000, 34_000, "STATE_DROPPED"),
        *frame(3, 34_000, 36_000, 51_000, "STATE_PRESENTED_ALL"),
        mark("mask", 60_000),
        *frame(4, 51_000, None, 68_000, "STATE_PRESENTED_PARTIAL"),
        *frame(5, 68_000, 70_000, 85_000, "STATE_PRESENTED_ALL"),
    ]
    assert presented(trace) == ([Span(51.0, 85.0)], 0.5)
