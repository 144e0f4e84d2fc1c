"""The names of the screening rules on a page."""

from __future__ import annotations

from django import template
from django.template.defaultfilters import stringfilter

from crowd.ground.amounts import amount_of as money_text
from crowd.ground.commands import as_typed

register = template.Library()
RULE_WORDS = {
    "practice_attempts_max": "Failed the practice",
    "quiz_attempts_max": "Failed the quiz",
    "training_attempts_max": "Failed the training",
    "lane": "No place for this person",
    "instructed_share_min": "Missed instructed checks",
    "repeat_share_min": "Missed repeat checks",
    "known_share_min": "Missed known tasks",
    "total_minutes": "Too fast or too slow",
    "fastest_median_ms": "Answered too fast",
    "side_share_max": "Nearly always one answer",
    "straight_share_max": "One answer to all questions of a page",
    "fastest_rating_ms": "Rated too fast",
    "incomplete": "Did not finish",
    "withdrawn": "Withdrew",
    "surplus": "Surplus: the place had gone on",
    "unanswered": "A model gave no answer that can be read",
    "excluded_by_hand": "Left out by hand",
}


@register.filter
def rule_word(rule: str) -> str:
    """A rule in words; one that is not listed keeps its name."""
    return RULE_WORDS.get(rule) or rule.replace("_", " ").capitalize()


register.filter("as_typed", stringfilter(as_typed))


@register.filter
def money(cents: int, currency: str) -> str:
    """An amount in whole cents as text."""
    return money_text(cents, currency)
