"""A plain link: another panel, a class, a mailing list. People arrive with an address that names them, and
leave by another address or with a code. There is no interface for machines, so payment is by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import quote, urlsplit

from crowd.platforms.base import Arrival, BadOptions, Entry, Exit, NotAnArrival, Outcome, Site
from crowd.platforms.query import fields_of
from crowd.platforms.traits import Platform, Traits

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,39}")
PANEL = re.compile(r"[a-z0-9][a-z0-9_\-]{0,39}")
KEYS = ("panel", "person_field", "submission_field", "exits", "same_address")
PLACEHOLDER = re.compile(r"\{([a-z]*)\}")
ALLOWED = {"code", "person", "submission"}
FORBIDDEN = re.compile(r"[\s<>\"'`\\\x00-\x1f]")
LENGTH_MAX = 500
SAME_ADDRESS_MAX = 1000
RESERVED = {"via", "resume", "preview", "legible_model"}
"""Fields of ours, which no panel can use."""


PLATFORM = Platform(
    traits=Traits(
        title="Link",
        modes=frozenset({"live", "rehearsal"}),
        confirms_arrivals="never",
        pays_base_for_all=False,
        pays_returned=False,
        repeats_safely=False,
        keeps_references=False,
        lists_active=False,
        listed_within_s=0,
    ),
    entry="crowd.platforms.link:Link",
)


class Link(Entry):
    """`panel` is the register that people's names belong to; the fields are what the panel calls them."""

    name = "link"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.panel = str(options.get("panel") or "link")
        self.person_field = str(options.get("person_field") or "person")
        self.submission_field = str(options.get("submission_field") or "submission")

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The table with defaults filled. Raises BadOptions."""
        unknown = sorted(set(options) - set(KEYS))
        if unknown:
            raise BadOptions(
                f"platforms.link.{unknown[0]} is not a key of this table: it has {', '.join(KEYS)}."
            )
        filled = {"panel": "link", "person_field": "person", "submission_field": "submission", **options}
        for key, pattern in (("panel", PANEL), ("person_field", NAME), ("submission_field", NAME)):
            value = filled[key]
            if not isinstance(value, str) or not pattern.fullmatch(value) or value in RESERVED:
                raise BadOptions(
                    f"platforms.link.{key} = {value!r}: give 1 to 40 letters, digits, - or _, and none of "
                    f"{', '.join(sorted(RESERVED))}."
                )
        check_same_address(filled, "link")
        exits = filled.setdefault("exits", {})
        if not isinstance(exits, Mapping):
            raise BadOptions("platforms.link.exits must be a table of outcome = address.")
        for outcome, address in exits.items():
            if outcome not in get_args(Outcome):
                raise BadOptions(
                    f"platforms.link.exits.{outcome}: unknown; choose among {', '.join(get_args(Outcome))}."
                )
            problem = _problem_of(address)
            if problem:
                raise BadOptions(f"platforms.link.exits.{outcome} = {str(address)[:80]!r}: {problem}")
        return filled

    def arrival(self, query: str, site: Site) -> Arrival:
        fields = fields_of(query)
        person = fields.get(self.person_field, "")
        if not person:
            raise NotAnArrival(f"The address does not say who comes: it lacks {self.person_field}=…")
        submission = fields.get(self.submission_field) or person
        return Arrival(person=person, submission=submission, realm=self.panel)

    def exit(
        self,
        outcome: Outcome,
        codes: Mapping[str, str],
        arrival: Arrival | None,
        site: Site,
        options: Mapping[str, Any],
    ) -> Exit:
        """The panel's own address for the outcome; if it has none, or lacks what the address needs, the code
        to be typed."""
        code = codes.get(outcome, "")
        by_hand = Exit("none", fields={"code": code} if code else {})
        address = options.get("exits", {}).get(outcome, "")
        if not address or _problem_of(address):
            return by_hand
        known = {"code": code}
        if arrival is not None:
            known |= {"person": arrival.person, "submission": arrival.submission}
        if not all(known.get(name) for name in PLACEHOLDER.findall(address)):
            return by_hand
        return Exit("GET", PLACEHOLDER.sub(lambda match: quote(known[match[1]], safe=""), address))


def check_same_address(options: Mapping[str, Any], name: str) -> None:
    """How many people of one address may take part at a time, if a study says so. Raises BadOptions."""
    most = options.get("same_address", 1)
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= SAME_ADDRESS_MAX:
        raise BadOptions(
            f"platforms.{name}.same_address = {most!r}: give a whole number of people from 1 to "
            f"{SAME_ADDRESS_MAX}."
        )


def _problem_of(address: object) -> str:
    """Why an address may not be an exit; empty: it may."""
    if not isinstance(address, str) or not 0 < len(address) <= LENGTH_MAX:
        return f"an address of at most {LENGTH_MAX} characters is needed."
    if FORBIDDEN.search(address):
        return "blanks, quotes and angle brackets do not belong into an address. Percent-encode them."
    if "{" in address.split("?")[0].split("#")[0].removeprefix("https://").split("/")[0]:
        return "the host must be written out."
    unknown = set(PLACEHOLDER.findall(address)) - ALLOWED
    if unknown or "{" in PLACEHOLDER.sub("", address) or "}" in PLACEHOLDER.sub("", address):
        return "only {code}, {person} and {submission} can be filled in."
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme != "https" or "@" in parts.netloc:
        return "an https:// address without a password is needed."
    return ""
