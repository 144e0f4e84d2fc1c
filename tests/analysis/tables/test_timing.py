"""The quality of a trial's timing and the size of its picture to the eye."""

from __future__ import annotations

import math
from typing import Any
from uuid import uuid4

import pytest

from analysis.tables.response_reader import read_frames
from analysis.timing_and_visual_angle import degrees_of, timing_of
from experiments.models import Event, Gate, Response
from tests.analysis.stored import opened, sitting

GOOD = {"frames": 6, "refresh_ms": 16.67, "dropped_frames": 0, "hidden_count": 0}


@pytest.mark.pure
@pytest.mark.parametrize(
    ("change", "timing"),
    [
        ({}, "ok"),
        ({"frames": 3}, "ok"),
        ({"dropped_frames": 1}, "dropped"),
        ({"frames": 2}, "short"),
        ({"frames": 2, "dropped_frames": 1}, "short"),
        ({"refresh_ms": None}, "unknown"),
        ({"refresh_ms": None, "frames": 2}, "unknown"),
        ({"frames": None}, "unknown"),
        ({"hidden_count": 1, "refresh_ms": None}, "hidden"),
    ],
)
def test_it_says_the_worst_that_is_known(change: dict[str, Any], timing: str) -> None:
    assert timing_of({**GOOD, **change}) == timing
    assert timing_of({}) == "unknown"


@pytest.mark.pure
def test_a_centimetre_at_57_cm_is_a_degree() -> None:
    """The rule of thumb: at 180/pi cm a centimetre has one degree, less a ten-thousandth."""
    assert degrees_of(100, 1, 10, 1800 / math.pi) == pytest.approx(1, abs=1e-4)


@pytest.mark.pure
def test_it_follows_the_display_and_not_the_zoom() -> None:
    # 320 CSS px at 2 device pixels each on 7.56 px/mm are 84.66 mm; at 42.33 mm half of it has 45 degrees.
    assert degrees_of(320, 2, 7.56, 640 / 7.56 / 2) == pytest.approx(90)
    assert degrees_of(640, 1, 7.56, 570) == degrees_of(320, 2, 7.56, 570)


@pytest.mark.pure
@pytest.mark.parametrize("unknown", range(4))
def test_what_is_not_known_has_no_degrees(unknown: int) -> None:
    known: list[float | None] = [320.0, 1.0, 3.78, 570.0]
    known[unknown] = None
    assert degrees_of(*known) is None


@pytest.mark.django_db
def test_the_tables_hold_what_page_and_gate_measured() -> None:
    study = opened()
    ada = sitting(study, "ada", condition="control")
    sitting(study, "bo", condition="baseline")
    value = {"px_per_mm": 7.56, "distance_mm": 640 / 7.56 / 2, "tries": []}
    Gate.objects.create(session=ada, kind="screen", attempt=0, value=value, text_digest="d")
    told = [("display", {"refresh_ms": 8.0}), ("display", {"refresh_ms": 16.0}), ("fullscreen_entered", {})]
    for kind, detail in [*told, ("fullscreen_left", {}), ("fullscreen_entered", {})]:
        Event.objects.create(session=ada, uuid=uuid4(), kind=kind, at_ms=1, detail=detail)
    Response.objects.filter(session=ada).update(context={**GOOD, "image_px": 320, "pixel_ratio": 2})
    frames = read_frames(study)
    people = frames.participants.set_index("condition")
    # 8 ms are 125 Hz; the first page counts.
    row = people.loc["control", ["px_per_mm", "refresh_hz", "fullscreen_entries", "fullscreen_exits"]]
    assert list(row) == [7.56, 125.0, 2, 1]
    assert people.loc["baseline", ["px_per_mm", "distance_mm", "refresh_hz"]].isna().all()
    trials = frames.trials.groupby("condition", observed=True)
    assert set(trials.get_group("control")["timing"]) == {"ok"}
    assert set(trials.get_group("control")["frames"]) == {6}
    assert trials.get_group("control")["image_deg"].to_numpy() == pytest.approx(90)
    assert set(trials.get_group("baseline")["timing"]) == {"unknown"}
    assert trials.get_group("baseline")["image_deg"].isna().all()
