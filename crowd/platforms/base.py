"""What a platform must say about arrivals and exits. Pure: no network, no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Outcome = Literal["complete", "screened", "declined", "turned_away", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """Who comes: the platform's person and submission, as the query string says; `preview` never takes a
    slot."""

    person: str
    submission: str
    preview: bool = False
    simulated_kind: str = ""
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """Where the page goes at the end: a redirect, a form to post, or nowhere."""

    method: Literal["GET", "POST", "none"]
    url: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return {"method": self.method, "url": self.url, "fields": dict(self.fields)}


class NotAnArrival(ValueError):
    """A query string does not say who comes; the message says what is missing."""


class Platform(Protocol):
    """The verbs of a platform."""

    name: str

    def arrival(self, query: str) -> Arrival:
        """Reads an untouched query string. Raises NotAnArrival."""
        ...

    def exit(self, outcome: Outcome, submission: str) -> Exit:
        """The way back for an outcome."""
        ...
