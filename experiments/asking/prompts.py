"""What a model is told besides the study's own words: who it is, and in which form it answers."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from experiments.asking.chat import Part
from stimuli.spec import content_key

Order = Literal["given", "reversed"]
ORDERS: tuple[Order, ...] = ("given", "reversed")
"""How the answers are listed in the question: as people have them, or the last first."""
_FORM = 'Reply with one JSON object and nothing else: {"answer": "VALUE"}.'
PROMPTS: Mapping[str, str] = {
    "plain": "You take part in a study, whose instructions follow. Answer each question about what is shown. "
    + _FORM,
    "layperson": "You take part in a study, whose instructions follow. Answer each question about what is "
    "shown as an ordinary person without training in machine learning would answer it. " + _FORM,
}
"""Variants of the first message, by name."""
UNREAD = "none"
"""In place of a variant, of a rater that reads no message."""
AGAIN = "This reply could not be read. " + _FORM
"""What is said of such a reply, with what is wrong with it in brackets behind."""
BLOCK = re.compile(r"</?(?:p|li|h[1-6]|div|ul|ol|br|table|tr)\b[^>]*>", re.IGNORECASE)
TAG = re.compile(r"<[^>]+>")


def prompt_digest(name: str) -> str:
    """Names the words of a variant; they may change with a version."""
    return "" if name == UNREAD else content_key([PROMPTS[name], AGAIN])[:12]


def system_text(prompt: str, *pages: str) -> str:
    """The first message of every request: the instructions and the page, as HTML, each text once."""
    first = "" if prompt == UNREAD else PROMPTS[prompt]
    return "\n\n".join(dict.fromkeys((first, *filter(None, map(plain, pages)))))


def plain(page: str) -> str:
    """The words of a page, a line for each paragraph."""
    text = html.unescape(TAG.sub("", BLOCK.sub("\n", page)))
    return "\n".join(line for line in (" ".join(row.split()) for row in text.splitlines()) if line)


def answers_text(answers: Sequence[tuple[str, str]], order: Order) -> str:
    """The answers that are accepted, (value, meaning), in that order."""
    rows = answers if order == "given" else tuple(reversed(answers))
    return "Answers:\n" + "\n".join(f'"{value}"' + (f": {text}" if text else "") for value, text in rows)


def scale_of(points: Sequence[str], low: str, high: str) -> list[tuple[str, str]]:
    """The points of a scale with its two ends in words."""
    return [(p, {0: low, len(points) - 1: high}.get(place, "")) for place, p in enumerate(points)]


def choices_of(buttons: Sequence[Mapping[str, Any]], *, with_keys: bool = False) -> list[tuple[str, str]]:
    """The buttons of a page; with their keys if the page speaks of keys."""
    return [
        (str(b["value"]), f"{b['text']} (key {b['key']})" if with_keys and b["key"] else str(b["text"]))
        for b in buttons
    ]


def words_of(text: Mapping[str, Any]) -> list[Part]:
    """A text with its marks: which pieces are marked, and how darkly, 0 to 1."""
    whole = "".join(token["text"] for token in text["tokens"])
    marked = [f"{t['text'].strip()} ({t['shade']:.2f})" for t in text["tokens"] if t["shade"]]
    return [f"Text: {whole}", *([f"Marked words, darkest 1: {', '.join(marked)}"] if marked else [])]
