"""The server's own sentences, one table per language; a paradigm may say some of them in its own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.definition import StudyDefinition
from experiments.paradigms import get_paradigm
from experiments.sentences import table_of, words_for
from experiments.window import windows_of


def page_words(definition: StudyDefinition) -> Mapping[str, str]:
    """Phrases of the browser's page that this study says otherwise, by the page's own keys."""
    page = table_of(definition.language)["page"]
    voices = get_paradigm(definition.paradigm).voices(definition)
    phrases: dict[str, str] = {}
    for voice in [voice for voice in voices if voice in page] or ["neutral"]:
        phrases |= page[voice]
    return phrases


def legend_of(definition: StudyDefinition) -> str:
    """What marks mean, in one sentence that is true of every condition, in Markdown: for texts of the study
    and for the legend."""
    words: Mapping[str, Any] = table_of(definition.language)["legend"]
    recipe = definition.render.spec()
    if get_paradigm(definition.paradigm).modalities == ("text",):
        return str(words["text"])
    form: str = recipe.style
    if recipe.sign == "diverging":
        form = "diverging" if recipe.style == "heat" else "contour_diverging"
    most, least = words[recipe.colormap]
    return str(words[form]).format(most=most, least=least)


def sight_words(definition: StudyDefinition) -> str:
    """What a person who cannot see pictures is told before the consent; empty if the study shows none."""
    if "image" not in get_paradigm(definition.paradigm).modalities:
        return ""
    sight = table_of(definition.language)["sight"]
    return f"{sight['needed']} {sight['paid' if definition.reward.amount_cents else 'free']}"


def entry_words(language: str) -> Mapping[str, str]:
    """The sentences around a study: why a person is not admitted, and what a preview says."""
    entry: Mapping[str, str] = table_of(language)["entry"]
    return entry


def pay_words(language: str) -> Mapping[str, str]:
    """The sentences about pay, on every page that ends a session."""
    pay: Mapping[str, str] = table_of(language)["pay"]
    return pay


def money(cents: int, currency: str, language: str) -> str:
    """An amount as people of a language read it: 1,234.50 USD, in German 1.234,50 USD."""
    words = pay_words(language)
    whole = f"{cents // 100:,}".replace(",", words["group"])
    return f"{whole}{words['point']}{cents % 100:02d} {currency}"


def placeholders(definition: StudyDefinition) -> dict[str, str]:
    """What a text may name in braces, so that time and pay are written in one place only."""
    reward, window = definition.reward, windows_of(definition)[-1]
    return {
        "title": definition.title,
        "minutes": f"{reward.expected_minutes:g}",
        "reward": money(reward.amount_cents, reward.currency, definition.language),
        "contact": definition.ethics.contact,
        "approval": definition.ethics.approval,
        "minimum_age": str(definition.ethics.minimum_age),
        "min_width_px": str(window.width_px),
        "min_height_px": str(window.height_px),
        "legend": legend_of(definition),
    }


__all__ = [
    "FOLDER",
    "LANGUAGES",
    "entry_words",
    "legend_of",
    "money",
    "page_words",
    "pay_words",
    "placeholders",
    "sight_words",
    "table_of",
    "words_for",
]
