"""What a page has to know of a language by its tag: the forms in which it counts, and its direction."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

RULES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CATEGORIES = ("zero", "one", "two", "few", "many", "other")
"""CLDR's names of plural forms."""
TAG = r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$"
"""A language, perhaps its script, perhaps a region (BCP 47): "uk", "zh-Hant", "ar-EG"."""


def forms_of(tag: str) -> tuple[str, ...]:
    """The forms of a sentence with a whole number in it; the last one serves where a browser knows others."""
    language = tag.partition("-")[0]
    for forms, languages in RULES["forms"].items():
        if language in languages.split():
            return tuple(forms.split())
    return ("other",)


def direction_of(tag: str) -> Literal["ltr", "rtl"]:
    """Which way the language is written, by the tag's script, else by the usual one there."""
    rules = {name: text.split() for name, text in RULES["right_to_left"].items()}
    language, script, region = re.fullmatch(r"(\w+?)(?:-([A-Z][a-z]{3}))?(?:-(\w+))?", tag).groups()  # type: ignore[union-attr]
    if script:
        is_left = script in rules["scripts"]
    else:
        place = f"{language}-{region}"
        is_left = place in rules["regions"] or (
            language in rules["languages"] and place not in rules["regions_left"]
        )
    return "rtl" if is_left else "ltr"
