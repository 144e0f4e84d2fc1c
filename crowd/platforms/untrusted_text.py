"""Texts from outside."""

from __future__ import annotations


def printable(text: str, but: str = "") -> str:
    """A text from outside without what cannot be stored or shown: control characters and halves of pairs.
    The characters of `but` stay."""
    return "".join(c if c.isprintable() or c in but else "?" for c in text)
