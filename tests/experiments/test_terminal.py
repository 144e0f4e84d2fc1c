"""Tables of the commands: nothing is cut off, on a terminal of 80 columns and in a pipe."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console

from experiments.terminal import Terminal

pytestmark = pytest.mark.pure
COLUMNS = ("condition", "items", "empty, by answer", "target leak [95 %]")
LEAK = "0.55 [0.40,\N{NO-BREAK SPACE}0.70], p\N{NO-BREAK SPACE}0.300"
ANSWERS = ("arctic fox", "grey fox", "kit fox", "red fox")
ROWS = [
    (name, 20, ", ".join(f"{a} 0/{n}".replace(" ", "\N{NO-BREAK SPACE}") for a in ANSWERS), LEAK)
    for name, n in (("integrated_gradients", 5), ("lrp", 10))
]


def printed(width: int, *, piped: bool) -> list[str]:
    terminal, out = Terminal(), StringIO()
    terminal.console = Console(
        file=out, width=width, force_terminal=not piped, no_color=True, highlight=False, soft_wrap=True
    )
    terminal.table("The form of explanations", COLUMNS, ROWS)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in out.getvalue().splitlines()]


def plain(cell: object) -> str:
    return str(cell).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("width", [40, 80])
def test_a_pipe_gets_every_row_in_one_line(width: int) -> None:
    title, head, *rows = printed(width, piped=True)
    assert title == "The form of explanations" and tuple(re.split(r"\s{2,}", head.strip())) == COLUMNS
    read = [tuple(re.split(r"\s{2,}", row.strip())) for row in rows]
    assert read == [tuple(map(plain, row)) for row in ROWS]


@pytest.mark.parametrize("width", [72, 80, 100])
def test_on_a_narrow_terminal_a_cell_goes_on_in_its_column(width: int) -> None:
    """Read back by the places of the headings, which are those of the columns."""
    _, head, *lines = printed(width, piped=False)
    assert all(len(line) <= width for line in [head, *lines])
    starts = [head.index(name) for name in ("condition", "items", "empty", "target")]
    ends = [*starts[1:], width]
    cells = [[line.ljust(width)[a:b].strip() for a, b in zip(starts, ends, strict=True)] for line in lines]
    read: list[list[str]] = []
    for first, *others in cells:
        if first in [row[0] for row in ROWS]:
            read.append([first, *others])
        else:
            read[-1] = [f"{a} {b}".strip() for a, b in zip(read[-1], [first, *others], strict=True)]
    texts = [[row[0], *row[2:]] for row in read if row[0]]
    assert [[t.strip() for t in row] for row in texts] == [
        [plain(row[0]), plain(row[2]), plain(row[3])] for row in ROWS
    ]
    whole = " ".join(part for row in cells for part in row)
    for unbroken in ("[0.40, 0.70]", "p 0.300", *(f"{answer} 0/" for answer in ANSWERS)):
        assert unbroken in whole


def test_words_that_are_wider_than_a_terminal_are_not_lost() -> None:
    whole = "\n".join(printed(20, piped=False))
    for word in ("integrated_gradients", "arctic fox 0/5", "[0.40, 0.70],", "p 0.300"):
        assert word in whole


@pytest.mark.parametrize(("width", "most"), [(60, 60), (100, 100), (160, 100)])
def test_sentences_stand_in_short_lines_at_a_terminal_alone(width: int, most: int) -> None:
    told = "one two three " * 40 + "https://example.org/" + "x" * 120
    terminal, out = Terminal(), StringIO()
    terminal.console = Console(file=out, width=width, force_terminal=True, highlight=False, soft_wrap=True)
    terminal.line(f"\nStep 1. {told}")
    lines = out.getvalue().splitlines()
    assert lines[0] == "" and " ".join(line.strip() for line in lines[1:]) == f"Step 1. {told}"
    assert max(len(line) for line in lines[:-1]) in range(most - 6, most + 1) and len(lines[-1]) == 140
    out.truncate(0)
    terminal.line(told, is_whole=True)
    assert told in out.getvalue()
    piped = StringIO()
    terminal.console = Console(file=piped, width=width, highlight=False, soft_wrap=True)
    terminal.line(told)
    assert piped.getvalue() == f"{told}\n"
