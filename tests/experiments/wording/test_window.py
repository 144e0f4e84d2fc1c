"""The smallest window: what it follows from, what a study states, and what it was before it was computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.definition.study import StudyDefinition
from experiments.errors import InvalidStudy
from experiments.paradigms.answer_keys import keys_to_choose
from experiments.study_files.load import find_study, load_study
from experiments.wording.smallest_window import (
    PHONE,
    PlatePage,
    Window,
    answers_of,
    answers_px_of,
    board_of,
    lines_of,
    windows_of,
)
from tests.experiments.definitions import definition
from tests.world import write_study

pytestmark = pytest.mark.pure

SHIPPED = ("wolf-or-husky", "grass-or-gravel", "leaves", "foxes")


def needed(design: dict[str, Any] | None = None, **tables: Any) -> Window:
    return windows_of(definition(design=design or {}, **tables))[0]


def test_the_window_is_the_sum_of_what_a_trial_shows() -> None:
    """Two pictures of 160 px (half of 320) are narrower than question and answers (364); margins 32, examples
    128 and two gaps of 24. Frame 56, picture with 50 for caption and legend, question 52, answers 60."""
    assert needed() == Window(364 + 32 + 128 + 2 * 24, 56 + 160 + 50 + 52 + 60)
    large = {"picture_px": 500}
    assert needed(large) == Window(2 * 250 + 24 + 32 + 128 + 48, 56 + 250 + 50 + 52 + 60)
    assert needed({**large, "reservoir": "off"}).width_px == 561
    huge = {"picture_px": 1000, "reservoir": "off"}
    assert needed(huge).width_px == 2 * 500 + 24 + 32
    assert needed({**huge, "display": "overlay"}).width_px == 561


def test_a_plate_of_the_colour_check_fits_it_too() -> None:
    """The plate of 160 px without a caption, the question (52) and two rows of answers (60, 12 between) below
    a frame of 56; 608 wide and margins. Upright six answers of 44 px with 8 between, in the higher frame."""
    small = {"reservoir": "off", "picture_px": 320, "display": "overlay"}
    checked: dict[str, Any] = {"plates": {}}
    assert needed(small).width_px == 561
    assert needed(small, **checked) == Window(608 + 32, 56 + 52 + 160 + 60 + 12 + 60)
    both = windows_of(definition(design=small, device={"phones": True}, **checked))
    assert both[1] == Window(328 + 32, 120 + 64 + 160 + 60 + 12 + 60)
    assert PlatePage(320).needed_upright() == Window(6 * 44 + 5 * 8 + 32, both[1].height_px)
    assert PlatePage(1000).needed() == Window(640, 120 + 64 + 500 + 132)


def test_a_higher_trial_needs_the_higher_frame_too() -> None:
    """Above 560 px the frame takes 64 px more and the question 12, so no window between the two is let in."""
    assert needed({"picture_px": 534}).height_px == 56 + 267 + 50 + 52 + 60 == 561 - 76
    assert needed({"picture_px": 536}).height_px == 120 + 268 + 50 + 64 + 60


@pytest.mark.parametrize(
    ("text", "width_px", "lines"),
    [("", 100, 1), ("aa", 20, 1), ("aa bb", 50, 1), ("aa bb", 40, 2), ("aaaa", 20, 2), ("aa-bb", 40, 2)],
)
def test_it_breaks_lines_as_a_page_does(text: str, width_px: float, lines: int) -> None:
    """A letter has 10 px here and a space 6.07; a word wider than a line is broken."""
    assert lines_of(text, width_px, 10 / 0.56) == lines


def test_longer_answers_make_higher_buttons() -> None:
    short, long = (
        definition({"classes": ["a", "b"]}),
        definition({"classes": ["a", "giant schnauzer of the lake"]}),
    )
    assert board_of(short).answers_px == 60 < board_of(long).answers_px
    four = definition({"classes": ["a", "b", "c", "d"]})
    assert board_of(four).answers_px == 2 * 60 + 12


@pytest.mark.parametrize("slug", SHIPPED)
def test_a_shipped_study_lets_in_a_common_screen_at_200_percent(slug: str) -> None:
    study = load_study(find_study(slug))
    [window] = windows_of(study)
    assert window.holds(1280 / 2, 800 / 2) and not window.holds(*PHONE)


def test_what_a_study_states_counts() -> None:
    assert needed(device={"min_width_px": 1000}) == Window(1000, needed().height_px)
    assert needed(device={"min_width_px": 800, "min_height_px": 600}) == Window(800, 600)
    both = windows_of(definition(device={"phones": True, "min_width_px": 800}))
    assert [window.width_px for window in both] == [800, 800]


def test_a_study_of_before_keeps_its_window_and_its_digest() -> None:
    """Every stored definition held 700 x 500 if its file stated nothing. The digest was written down then."""
    new = definition()
    old = new.model_dump(mode="json") | {"device": {"min_width_px": 700, "min_height_px": 500}}
    read = StudyDefinition.model_validate(old)
    assert windows_of(read) == (Window(700, 500),) != windows_of(new)
    assert read.digest == new.digest == "0032ad1f3014a87b9be84dee6d746ef643f6c0a5c0b367861e32cb59dd4af719"
    assert new.as_met()["device"] == {"min_width_px": 700, "min_height_px": 500}
    assert definition(device={"phones": True}).digest != new.digest


def test_phones_are_let_in_if_a_trial_fits_one() -> None:
    wide, upright = windows_of(definition(device={"phones": True}))
    assert upright.holds(*PHONE) and not wide.holds(*PHONE)
    assert upright.width_px == 2 * 160 + 12 + 32


def test_a_study_whose_trials_fit_no_phone_cannot_let_phones_in(tmp_path: Path) -> None:
    path = write_study(tmp_path, picture_px="picture_px = 800")
    path.write_text(path.read_text() + "[device]\nphones = true\n")
    with pytest.raises(InvalidStudy) as caught:
        load_study(path)
    [problem] = caught.value.problems
    assert problem.key == "device.phones" and "390 x 664" in problem.limit and "844 x 878" in problem.limit


def solving(classes: str, **design: Any) -> Window:
    study = definition(
        {"classes": list(classes)},
        paradigm="blind_review",
        design={"role": "solve", **design},
        conditions=[{"name": "people", "role": "source"}],
        device={"phones": True},
    )
    return windows_of(study)[0]


def test_a_task_that_is_marked_needs_its_tools_beside_its_answers() -> None:
    """Tools 358, answers 238, 12 between, margins 32. Frame 56; question 28, two rows of digits of 56 and 6,
    "cannot say" 56, what is said 57, the button 56, two gaps of 8."""
    right = 28 + 2 * (56 + 6) + 56 + 57 + 56 + 2 * 8
    assert solving("0123456789") == Window(32 + 358 + 12 + 238, 56 + right)
    assert solving("01234") == Window(640, 56 + right - 62)
    # A picture of 260 px with its tools (44 and 8) is higher than two rows of answers.
    assert solving("01234", picture_px=520).height_px == 56 + 260 + 52


def test_a_large_picture_that_is_marked_needs_the_higher_frame() -> None:
    """Frame 120, tools in two rows 94, what the keyboard does 60, two gaps of 8."""
    assert solving("0123456789", picture_px=640) == Window(32 + 358 + 12 + 238, 120 + 320 + 94 + 60 + 2 * 8)


def test_upright_all_of_a_task_stands_below_each_other() -> None:
    """Six digits across, then four and "cannot say", which is as wide as two."""
    study = definition(
        {"classes": list("0123456789")},
        paradigm="blind_review",
        design={"role": "solve"},
        conditions=[{"name": "people", "role": "source"}],
        device={"phones": True},
    )
    answers = 56 + 6 + 56
    assert answers_px_of(study) == answers
    assert windows_of(study)[1] == Window(32 + 358, 120 + 160 + 44 + 28 + answers + 57 + 56 + 4 * 8)
    assert windows_of(study)[1].holds(*PHONE)


def test_leads_have_two_buttons_and_two_pictures_however_many_answers_there_are() -> None:
    judged = definition(
        {"classes": list("0123456789")},
        paradigm="blind_review",
        design={"role": "review", "solutions_from": "tasks"},
        conditions=[{"name": "people", "role": "source"}],
    )
    assert windows_of(judged) == (needed({"reservoir": "off"}),)
    assert keys_to_choose(answers_of(judged)) == ("f", "j") and answers_px_of(judged) == 60
