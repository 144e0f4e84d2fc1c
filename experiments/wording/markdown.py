"""Texts that people read: Markdown in, clean HTML out, and a digest of exactly what was shown."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache

import nh3

_TAGS = """
    a abbr b blockquote br code dd dl dt em figcaption figure h1 h2 h3 h4 hr i kbd li ol p strong sub sup
    table tbody td th thead tr ul
"""
SCHEMES = ("https:", "mailto:")
ALLOWED_TAGS = frozenset(_TAGS.split())


def html_of(text: str, words: Mapping[str, str] | None = None) -> str:
    """Markdown with {placeholders} as HTML that carries no script, style, picture or foreign request."""
    for name, value in (words or {}).items():
        text = text.replace("{" + name + "}", value)
    return _clean_html(text)


@lru_cache(maxsize=256)
def _clean_html(text: str) -> str:
    """A study's texts are few, and each reply on a session's state holds its instructions."""
    import markdown  # Here, since a study file is read without any text being turned into HTML.

    return nh3.clean(
        markdown.markdown(text, extensions=["tables", "sane_lists", "smarty"]),
        tags=set(ALLOWED_TAGS),
        attributes={"a": {"href"}},
        url_schemes={"https", "mailto"},
        # Without a scheme, "//host" would lead to another site as well.
        attribute_filter=_filter_link,
        link_rel="noopener noreferrer",
    )


def _filter_link(tag: str, name: str, value: str) -> str | None:
    return value if name != "href" or value.startswith(SCHEMES) else None


def text_digest(*parts: str) -> str:
    """SHA-256 of the texts in order, hexadecimal: what a consent or an answer refers to."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
