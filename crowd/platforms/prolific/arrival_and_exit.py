"""Arrivals from Prolific and exits to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from crowd.platforms.base import Arrival, Entry, Exit, NotAnArrival, Outcome, Site
from crowd.platforms.query import fields_of, simulated_kind_of

APP = "https://app.prolific.com"
PERSON, STUDY, SUBMISSION = "PROLIFIC_PID", "STUDY_ID", "SESSION_ID"
PLACEHOLDERS = {name: "{{%" + name + "%}}" for name in (PERSON, STUDY, SUBMISSION)}
TOKEN = "prolific_token"
ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
PREVIEW = Arrival(person="preview", submission="preview", preview=True)


class ProlificEntry(Entry):
    """`?PROLIFIC_PID=…&STUDY_ID=…&SESSION_ID=…`; the session is the submission.

    A study with weightings is split into parts, whose ids are known only from their first submissions: there
    the address's STUDY_ID decides nothing, and the list says whether the submission is this study's.
    """

    name = "prolific"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.is_split = any(rule.get("weightings") for rule in options.get("filters") or ())

    def arrival(self, query: str, site: Site) -> Arrival:
        fields = fields_of(query)
        given = {name: fields.get(name, "") for name in PLACEHOLDERS}
        if any(value.startswith("{{%") for value in given.values()):
            return PREVIEW
        missing = [name for name, value in given.items() if not value]
        if missing:
            raise NotAnArrival(
                f"The address lacks {', '.join(missing)}. Open the study from its page on Prolific."
            )
        for name, value in given.items():
            if not ID.fullmatch(value):
                raise NotAnArrival(
                    f"{name} does not have the form of an id: 1 to 64 letters, digits, - or _. "
                    "Open the study from its page on Prolific."
                )
        return Arrival(
            person=given[PERSON],
            submission=given[SUBMISSION],
            posting="" if self.is_split else given[STUDY],
            signature=fields.get(TOKEN, ""),
            simulated_kind=simulated_kind_of(fields) if site.mode == "rehearsal" else "",
        )

    def exit(
        self,
        outcome: Outcome,
        codes: Mapping[str, str],
        arrival: Arrival | None,
        site: Site,
        options: Mapping[str, Any],
    ) -> Exit:
        code = codes.get(outcome, "")
        if not code:
            return Exit("none")
        return Exit("GET", f"{app_of(site)}/submissions/complete?cc={quote(code, safe='')}")


def app_of(site: Site) -> str:
    """The address of the pages that people see."""
    return site.url.rstrip("/") or APP
