"""The smallest window in which a study shows a whole trial, from what the study puts on its pages.

The constants are those of the page's own layout (frontend/src/style/trials.css), in CSS pixels; a test
measures both against each other in a browser. Widths of words are estimated from above, as servers lack
fonts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from experiments.definition.study import DeviceTable, StudyDefinition
from experiments.kinds import get_kind
from experiments.kinds.base import TrialKind
from experiments.paradigms import design_of, get_paradigm
from experiments.wording.sentence_tables import buttons_of

STACKED_MAX_PX = 560
"""Up to this width the examples stand below the answers; only studies that let phones in are shown so."""
LOW_MAX_PX = 560
"""Up to this height the frame of the page is lower, if the window is not narrow as well."""
PHONE = (390, 664)
"""What a phone of 6 inches leaves to a page, held upright, below the address and above the bar."""
HALF = 0.5
"""The smallest size of a picture, a share of `picture_px`: at 200 % zoom it is as large as it was meant."""

PICTURE_PX = 320
"""The side of a picture if the paradigm has no key for it."""
GAP_PX, GAP_STACKED_PX = 24, 12
MARGINS_PX = 32
EXAMPLES_PX, EXAMPLES_STACKED_PX = 128, 172
BOARD_PX, BOARD_STACKED_PX, BOARD_WIDE_PX = 364, 328, 608
"""The least width of question and answers: up to four answers, the same upright, more answers and texts."""
FRAME_PX, FRAME_LOW_PX = 120, 56
"""Top and bottom of the page."""
ASK_PX, ASK_LOW_PX = 64, 52
CAPTION_PX = 50
"""Below a picture: its caption and the meaning of its colours."""
ANSWER_PX, ANSWER_GAP_PX, ANSWER_LINE_PX, ANSWER_EDGES_PX, KEY_PX = 60, 12, 22.5, 15, 77
"""A button: its least height, the room between two, a line of its text, its edges, what key and edges take in
width."""
GAP_MANY_PX, KEY_MANY_PX, SMALL_MANY_PX = 8, 53, 16
"""The same of ten answers and more: what is between two, what key and edges take, and the size of letters."""
TEXT_LINE_PX, TEXT_LINE_LOW_PX, TEXT_EDGES_PX, TEXT_EDGES_LOW_PX = 32, 27, 28, 24
TEXT_CHARACTERS = 280
"""The longest text that the window is made for: a short message. Studies of longer ones state a window."""
FORM_LOW_MAX_PX, SCALE_PX, LABEL_PX = 900, 252, 32
"""Up to this width pictures of a form stand closer; the least width of five points; the line that names the
model's answer."""
COMPARED = 3 / 8
"""The smallest size of a picture in a pair on a form, a share of `picture_px`."""
POINTS_PX, QUESTION_PX = 76, 87
"""A scale with its ends, the room above included; three lines of a question with its edges."""
TOOLS_PX, TOOL_PX, TOOLS_TALL_PX = 358, 44, 94
"""Of a page that is marked: its tools beside each other, their height, that of two rows of written ones."""
CHOOSING_PX, COLUMN_PX = 238, 12
"""The least width of its answers, and what is between them and the picture."""
LINE_PX, LINE_TALL_PX, SAID_PX, SAID_TALL_PX, SEND_PX, HINT_PX = 28, 32, 57, 80, 56, 60
"""The question over its answers; what is said below them; the button; what the keyboard does."""
PART_GAP_PX, CHOICE_PX, CHOICE_GAP_PX, CHOICE_GAP_SHORT_PX = 8, 56, 6, 4
"""Between its parts; an answer, and what is between two: rows, and columns of short ones."""
CHOICE_KEY_PX, CHOICE_EDGES_PX, CHOICE_NONE_KEY_PX, CHOICE_NONE_LETTER_PX = 60, 11, 52, 15
"""What key and edges of an answer take, in width and in height; the same width of "cannot say" in a narrow
place, and the size of its letters."""
SHORT = 2
"""Characters of answers that stand close to each other."""
NAMING, NAMED_LINE_PX, NAMED_PX = "xxx xxxxxxx xxx xxxxxxxxx", 24, 48
"""What stands before an answer that is named above the buttons, at its longest; the height of such a line and
of the question below; and how much of both the room of a question holds."""
PLATE_COLUMNS, TOUCH_PX = 6, 44
"""Answers beside each other on the page of a plate, and the least width of what is touched."""
SIDE_NAME_PX, SIDE_GAP_PX, STIMULI_GAP_PX = 24, 8, 12
"""Over each half of a pair, between its rows, and between a text and a pair."""
LETTER, SPACE = 0.56, 0.34
"""Mean width of a letter in running words, and of a space, in a wide face; as shares of its size."""
SMALL_PX, LARGE_PX = 18, 20
"""Sizes of letters: of answers, and of texts in a low window; of texts otherwise."""
WIDE = 1.1
"""Texts are reckoned in letters wider than the mean by this: some have short words of wide letters."""
WORD = 7
"""Letters of a word where only the length of a text is known: long ones, since lines end before them."""


@dataclass(frozen=True, slots=True)
class Window:
    """A size in CSS pixels."""

    width_px: int
    height_px: int

    def holds(self, width_px: float, height_px: float) -> bool:
        """Whether a window of that size is at least as large as this one."""
        return width_px >= self.width_px and height_px >= self.height_px


@dataclass(frozen=True, slots=True)
class Board:
    """What needs room on a study's trial pages. `across` pictures stand beside each other; `answers` are the
    texts on the buttons, `says` how many of them are named above the buttons as well."""

    picture_px: int
    across: int
    answers: tuple[str, ...]
    has_examples: bool
    has_texts: bool
    has_pairs: bool = False
    has_pictures: bool = True
    says: int = 0

    @property
    def least_px(self) -> int:
        """The side of the smallest picture that the layout makes of `picture_px`."""
        return ceil(HALF * self.picture_px)

    @property
    def columns(self) -> int:
        """Answers beside each other, as in the style sheet."""
        count = len(self.answers)
        return 2 if count <= 4 else 3 if count <= 9 else 5

    @property
    def answers_px(self) -> int:
        """Height of all answers where the board is narrowest, and of what stands above them besides a
        question."""
        is_many = len(self.answers) > 9
        gap, key, letter = (
            (GAP_MANY_PX, KEY_MANY_PX, SMALL_MANY_PX) if is_many else (GAP_PX, KEY_PX, SMALL_PX)
        )
        inner = (self._board_px(GAP_PX) - (self.columns - 1) * gap) / self.columns - key
        lines = max((lines_of(text, inner, letter) for text in self.answers), default=1)
        row = max(ANSWER_PX, ceil(lines * ANSWER_LINE_PX + ANSWER_EDGES_PX))
        rows = max(1, ceil(len(self.answers) / self.columns))
        return rows * row + (rows - 1) * ANSWER_GAP_PX + self._named_px()

    def _named_px(self) -> int:
        """What named answers and the question take beyond the room of a question."""
        lines = [lines_of(f"{NAMING} {text}", BOARD_STACKED_PX, SMALL_PX) for text in self.answers]
        rows = self.says * max(lines, default=0) + 1
        return max(0, rows * NAMED_LINE_PX - NAMED_PX)

    def needed(self) -> Window:
        """The smallest window with the examples beside the stimulus."""
        beside = EXAMPLES_PX + 2 * GAP_PX if self.has_examples else 0
        width = max(STACKED_MAX_PX + 1, MARGINS_PX + beside + self._board_px(GAP_PX))
        room = width - MARGINS_PX - beside
        low = FRAME_LOW_PX + ASK_LOW_PX + self._trial_px(room, is_low=True)
        tall = FRAME_PX + ASK_PX + self._trial_px(room, is_low=False)
        # A window between the two would have the higher frame and no room for it.
        return Window(width, low if tall <= LOW_MAX_PX + 1 else tall)

    def needed_upright(self) -> Window:
        """The smallest narrow window, with the examples below the answers."""
        pictures = self.across * self.least_px + (self.across - 1) * GAP_STACKED_PX
        width = MARGINS_PX + max(pictures, BOARD_WIDE_PX if len(self.answers) > 4 else BOARD_STACKED_PX)
        examples = EXAMPLES_STACKED_PX + GAP_STACKED_PX if self.has_examples else 0
        trial = self._trial_px(width - MARGINS_PX, is_low=True)
        return Window(width, FRAME_PX + ASK_PX + trial + examples)

    def _board_px(self, gap_px: int) -> int:
        least = BOARD_WIDE_PX if self.has_texts or len(self.answers) > 4 else BOARD_PX
        return max(self.across * self.least_px + (self.across - 1) * gap_px, least)

    def _trial_px(self, width_px: int, *, is_low: bool) -> int:
        """Height of the highest stimulus and its answers on a board of that width; a check that names one of
        four keys shows no picture."""
        heights = [self.least_px + CAPTION_PX] if self.has_pictures else []
        if self.has_texts:
            text = " ".join(["x" * WORD] * ceil(TEXT_CHARACTERS / (WORD + 1)))
            lines = lines_of(text, width_px - MARGINS_PX, WIDE * (SMALL_PX if is_low else LARGE_PX))
            line_px = TEXT_LINE_LOW_PX if is_low else TEXT_LINE_PX
            heights.append(lines * line_px + (TEXT_EDGES_LOW_PX if is_low else TEXT_EDGES_PX))
        if self.has_pairs:
            above = heights[-1] + STIMULI_GAP_PX if self.has_texts else SIDE_GAP_PX + self.least_px
            heights.append(above + SIDE_NAME_PX + SIDE_GAP_PX + self.least_px)
        return max(max(heights, default=0) + self.answers_px, CAPTION_PX + 2 * ANSWER_PX + ANSWER_GAP_PX)


@dataclass(frozen=True, slots=True)
class Form:
    """What needs room on a page of questions, which scrolls as a whole: what is rated stays in view, and what
    a question compares is seen with its scale."""

    picture_px: int
    has_pairs: bool

    @property
    def least_px(self) -> int:
        """The side of the smallest picture that is rated."""
        return ceil(HALF * self.picture_px)

    @property
    def compared_px(self) -> int:
        """The side of the smallest picture that is compared."""
        return ceil(COMPARED * self.picture_px)

    def needed(self) -> Window:
        """The smallest window with the questions beside what is rated."""
        pair = 2 * self.compared_px + GAP_STACKED_PX if self.has_pairs else 0
        width = MARGINS_PX + 2 * self.least_px + GAP_STACKED_PX + GAP_PX + max(SCALE_PX, pair)
        if width > FORM_LOW_MAX_PX:
            width += GAP_PX - GAP_STACKED_PX
        low, tall = (frame + self.least_px + CAPTION_PX + LABEL_PX for frame in (FRAME_LOW_PX, FRAME_PX))
        height = low if tall <= LOW_MAX_PX + 1 else tall
        return Window(max(STACKED_MAX_PX + 1, width), max(height, self._question_px()))

    def needed_upright(self) -> Window:
        """The smallest narrow window, with the questions below what is rated."""
        width = MARGINS_PX + max(2 * self.least_px + GAP_STACKED_PX, SCALE_PX)
        rated = self.least_px + CAPTION_PX + LABEL_PX
        return Window(width, max(rated + QUESTION_PX + POINTS_PX, self._question_px()))

    def _question_px(self) -> int:
        """Height of what a question compares, with its scale."""
        pair = SIDE_NAME_PX + 2 * (SIDE_GAP_PX + self.compared_px) if self.has_pairs else 0
        return pair + POINTS_PX


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """What needs room on a page whose picture is marked: the tools below it, the answers beside or below it.
    `none` is the answer that nothing can be said, the last one."""

    picture_px: int
    named: tuple[str, ...]
    none: str

    @property
    def least_px(self) -> int:
        """The side of the smallest picture that the layout makes of `picture_px`."""
        return ceil(HALF * self.picture_px)

    @property
    def answers_px(self) -> int:
        """Height of all answers on a narrow page, below the picture."""
        width = max(self.least_px, TOOLS_PX)
        if not self._is_short:
            return self._long_px(width)
        # Six across; "cannot say" is as wide as two.
        rows, column = ceil((len(self.named) + 2) / 6), (width - 5 * CHOICE_GAP_SHORT_PX) / 6
        inner = 2 * column + CHOICE_GAP_SHORT_PX - CHOICE_NONE_KEY_PX
        last = _choice_px(lines_of(self.none, inner, CHOICE_NONE_LETTER_PX))
        return (rows - 1) * (CHOICE_PX + CHOICE_GAP_PX) + last

    def needed(self) -> Window:
        """The smallest window with the answers beside the picture."""
        width = MARGINS_PX + max(self.least_px, TOOLS_PX) + COLUMN_PX + CHOOSING_PX
        answers = self._beside_px()
        send = SEND_PX + 2 * PART_GAP_PX
        low = max(self.least_px + PART_GAP_PX + TOOL_PX, LINE_PX + answers + SAID_PX + send)
        tall = max(self.least_px + PART_GAP_PX + TOOLS_TALL_PX, LINE_TALL_PX + answers + SAID_TALL_PX + send)
        tall += FRAME_PX + PART_GAP_PX + HINT_PX
        return Window(max(STACKED_MAX_PX + 1, width), FRAME_LOW_PX + low if tall <= LOW_MAX_PX + 1 else tall)

    def needed_upright(self) -> Window:
        """The smallest narrow window, with the answers below the picture."""
        picture = self.least_px + PART_GAP_PX + TOOL_PX
        rest = LINE_PX + self.answers_px + SAID_PX + SEND_PX + 3 * PART_GAP_PX
        return Window(MARGINS_PX + max(self.least_px, TOOLS_PX), FRAME_PX + picture + rest)

    @property
    def _is_short(self) -> bool:
        return all(len(text) <= SHORT for text in self.named)

    def _beside_px(self) -> int:
        if not self._is_short:
            return self._long_px(CHOOSING_PX)
        none = _choice_px(lines_of(self.none, CHOOSING_PX - CHOICE_KEY_PX, SMALL_PX))
        return ceil(len(self.named) / 5) * (CHOICE_PX + CHOICE_GAP_PX) + none

    def _long_px(self, width_px: int) -> int:
        """Two across, and "cannot say" below them."""
        inner = (width_px - CHOICE_GAP_PX) / 2 - CHOICE_KEY_PX
        pairs = [self.named[at : at + 2] for at in range(0, len(self.named), 2)]
        rows = [_choice_px(max(lines_of(text, inner, SMALL_PX) for text in pair)) for pair in pairs]
        none = _choice_px(lines_of(self.none, width_px - CHOICE_KEY_PX, SMALL_PX))
        return sum(rows) + none + len(rows) * CHOICE_GAP_PX


def _choice_px(lines: int) -> int:
    return max(CHOICE_PX, ceil(lines * ANSWER_LINE_PX + CHOICE_EDGES_PX))


@dataclass(frozen=True, slots=True)
class PlatePage:
    """What needs room on the page of a plate of the colour check: the plate without a caption, the question,
    and ten digits and one wide answer in two rows of six."""

    picture_px: int

    @property
    def least_px(self) -> int:
        """The side of the smallest plate."""
        return ceil(HALF * self.picture_px)

    def needed(self) -> Window:
        """The smallest window that is not narrow."""
        low, tall = FRAME_LOW_PX + ASK_LOW_PX + self._page_px, FRAME_PX + ASK_PX + self._page_px
        width = max(STACKED_MAX_PX + 1, MARGINS_PX + BOARD_WIDE_PX)
        return Window(width, low if tall <= LOW_MAX_PX + 1 else tall)

    def needed_upright(self) -> Window:
        """The smallest narrow window."""
        answers_px = PLATE_COLUMNS * TOUCH_PX + (PLATE_COLUMNS - 1) * GAP_MANY_PX
        return Window(MARGINS_PX + max(self.least_px, answers_px), FRAME_PX + ASK_PX + self._page_px)

    @property
    def _page_px(self) -> int:
        return self.least_px + 2 * ANSWER_PX + ANSWER_GAP_PX


def lines_of(text: str, width_px: float, letter_px: float) -> int:
    """How many lines a text takes, broken at spaces and hyphens, and within a word wider than a line."""
    lines, used = 1, 0.0
    for word in re.findall(r"[^\s-]+-?|-", text):
        width = len(word) * LETTER * letter_px
        if used and used + width > width_px:
            lines, used = lines + 1, 0.0
        broken = max(0, ceil(width / width_px) - 1)
        lines, used = lines + broken, used + width - broken * width_px + SPACE * letter_px
    return lines


def board_of(definition: StudyDefinition) -> Board:
    """What the trial pages of a study hold, but for forms and pages that are marked."""
    design, paradigm = design_of(definition), get_paradigm(definition.paradigm)
    is_beside = getattr(design, "display", "beside") == "beside"
    kinds = _kinds(definition)
    boards = [kind for kind in kinds if not (kind.is_form or kind.is_marked)]
    is_marked = any(kind.is_marked for kind in kinds)
    return Board(
        picture_px=getattr(design, "picture_px", PICTURE_PX),
        # Beside pages that are marked there are checks alone, which show no picture.
        across=2 if is_beside and not is_marked else 1,
        answers=() if is_marked else tuple(text for _, text in answers_of(definition)),
        has_examples=getattr(design, "reservoir", "off") != "off",
        has_texts="text" in paradigm.modalities,
        has_pairs=any(kind.has_pairs for kind in boards),
        has_pictures="image" in paradigm.modalities and not is_marked,
        says=max((kind.says for kind in boards), default=0),
    )


def marked_of(definition: StudyDefinition) -> MarkedPage | None:
    """What the pages hold that are marked; None if the study has none."""
    if not any(kind.is_marked for kind in _kinds(definition)):
        return None
    *named, none = (text for _, text in buttons_of(definition))
    return MarkedPage(board_of(definition).picture_px, tuple(named), none)


def answers_px_of(definition: StudyDefinition) -> int:
    """The height that the page keeps for the answers of a trial."""
    marked = marked_of(definition)
    return board_of(definition).answers_px if marked is None else marked.answers_px


def answers_of(definition: StudyDefinition) -> tuple[tuple[str, str], ...]:
    """(value, text) of the study's answers that stand on buttons; none if its questions are forms. Beside a
    picture that is marked, the last one is that nothing can be said, and is left out."""
    kinds, buttons = _kinds(definition), buttons_of(definition)
    if any(kind.is_form for kind in kinds):
        return ()
    return buttons[:-1] if any(kind.is_marked for kind in kinds) else buttons


def needed_of(definition: StudyDefinition) -> tuple[Window, ...]:
    """The smallest windows in which every page of the trials is shown as it is meant; one is enough."""
    board, marked = board_of(definition), marked_of(definition)
    shown: list[Board | Form | MarkedPage | PlatePage] = [board, *([] if marked is None else [marked])]
    shown += [Form(board.picture_px, kind.has_pairs) for kind in _kinds(definition) if kind.is_form]
    shown += [PlatePage(board.picture_px)] if definition.plates is not None else []
    wide = _both([page.needed() for page in shown])
    return (wide, _both([page.needed_upright() for page in shown])) if definition.device.phones else (wide,)


def _kinds(definition: StudyDefinition) -> list[TrialKind]:
    return [get_kind(name) for name in get_paradigm(definition.paradigm).kinds_of(definition)]


def windows_of(definition: StudyDefinition) -> tuple[Window, ...]:
    """The smallest windows that are let in: one is enough. What a study states replaces what is computed."""
    return tuple(_window_on_device(window, definition.device) for window in needed_of(definition))


def _both(windows: Sequence[Window]) -> Window:
    return Window(max(w.width_px for w in windows), max(w.height_px for w in windows))


def _window_on_device(window: Window, device: DeviceTable) -> Window:
    return Window(device.min_width_px or window.width_px, device.min_height_px or window.height_px)
