"""Arrivals: `?who=…&job=…`; the exit is an address with the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowd.platforms.base import Arrival, Exit, NotAnArrival, Outcome, Site
from crowd.platforms.query import fields_of


class ToyEntry:
    name = "toy"

    def __init__(self, options: Mapping[str, Any]) -> None:
        pass

    def arrival(self, query: str, site: Site) -> Arrival:
        fields = fields_of(query)
        if not fields.get("who") or not fields.get("job"):
            raise NotAnArrival("The address lacks who=… or job=…. Open the study from the panel's page.")
        kind = fields.get("simulated", "") if site.mode == "rehearsal" else ""
        return Arrival(person=fields["who"], submission=fields["job"], simulated_kind=kind)

    def exit(
        self,
        outcome: Outcome,
        codes: Mapping[str, str],
        arrival: Arrival | None,
        site: Site,
        options: Mapping[str, Any],
    ) -> Exit:
        code = codes.get(outcome, "")
        return Exit("GET", f"{site.url}/done?cc={code}") if code else Exit("none")

    def ancestors(self, site: Site) -> tuple[str, ...]:
        return ()

    def form_targets(self, site: Site) -> tuple[str, ...]:
        return ()
