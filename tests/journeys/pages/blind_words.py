"""What a page tells in words that blind studies must not have: who or what gave an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

FORBIDDEN = re.compile(
    r"\bA\.?I\.?\b|\bK\.?I\.?\b|(?i:model|machine|predict|expla|legib|maschine|vorhers|erklär|lesbar)"
)
TOLD = """() => [
    document.title,
    document.body.innerText,
    ...[...document.querySelectorAll("meta")].flatMap(e => [e.name, e.content]),
    ...[...document.querySelectorAll("body *")].flatMap(e =>
        [...e.attributes]
            .filter(({ name }) => /^(aria-.*|alt|title|placeholder|value|name|download)$/.test(name))
            .map(({ value }) => value)),
]"""
"""All that a person can read: the tab, the page, its metadata, and the words that are only heard."""


def told(page: Page) -> list[str]:
    """Texts with a forbidden word, of what is seen and of the accessibility tree."""
    texts: list[str] = page.evaluate(TOLD)
    texts.append(page.locator("body").aria_snapshot())
    return [text for text in texts if FORBIDDEN.search(text)]
