"""Rules, commands and money in words, on a page."""

from __future__ import annotations

from django import template
from django.template.defaultfilters import stringfilter

from crowd.ground.amounts import amount_of as money_text
from crowd.ground.copyable_commands import as_typed
from experiments.paradigms.screening import rule_word

register = template.Library()
register.filter("rule_word", rule_word)
register.filter("as_typed", stringfilter(as_typed))


@register.filter
def money(cents: int, currency: str) -> str:
    """An amount in whole cents as text."""
    return money_text(cents, currency)
