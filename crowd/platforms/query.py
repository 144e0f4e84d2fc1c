"""Reading an untrusted query string."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from crowd.platforms.base import NotAnArrival
from crowd.platforms.untrusted_text import printable

FIELDS_MAX = 20
MAX_LENGTH = 200
KIND = re.compile(r"[a-z_]{1,20}")
LONG = {"prolific_token": 4000, "legible_model": 2000}
"""Fields that may be longer: signed tokens."""


def fields_of(query: str) -> dict[str, str]:
    """The last value of each field. Raises NotAnArrival for what no platform sends: too many fields, too long
    ones, characters that no database stores."""
    try:
        parsed = parse_qs(query.lstrip("?"), max_num_fields=FIELDS_MAX)
    except ValueError as error:
        raise NotAnArrival(f"The address has more than {FIELDS_MAX} fields.") from error
    fields = {name: values[-1] for name, values in parsed.items()}
    for name, value in fields.items():
        shown, limit = printable(name[:40]), LONG.get(name, MAX_LENGTH)
        if len(value) > limit:
            raise NotAnArrival(f"{shown} has more than {limit} characters.")
        if not (name + value).isprintable():
            raise NotAnArrival(f"{shown} holds characters that no platform sends.")
    return fields


def simulated_kind_of(fields: Mapping[str, str]) -> str:
    """The kind of simulated person, which only a rehearsal has; empty: a person. Raises NotAnArrival."""
    kind = fields.get("simulated", "")
    if kind and not KIND.fullmatch(kind):
        raise NotAnArrival("simulated must name a kind: 1 to 20 small letters or underscores.")
    return kind
