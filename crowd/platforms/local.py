"""The local platform: people arrive with a plain address, and payment is by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crowd.platforms.base import Arrival, Exit, NotAnArrival, Outcome, Site
from crowd.platforms.query import fields_of

KIND = re.compile(r"[a-z_]{1,20}")


class Local:
    """`?person=…&submission=…` names the person; `&simulated=KIND` marks a simulated one."""

    name = "local"

    def arrival(self, query: str, site: Site) -> Arrival:
        fields = fields_of(query)
        person = fields.get("person", "")
        if not person:
            raise NotAnArrival("The address does not say who comes: it lacks person=…")
        simulated_kind = fields.get("simulated", "")
        if simulated_kind and not KIND.fullmatch(simulated_kind):
            raise NotAnArrival("simulated must name a kind: 1 to 20 small letters or underscores.")
        return Arrival(
            person=person,
            submission=fields.get("submission") or person,
            simulated_kind=simulated_kind,
        )

    def exit(
        self,
        outcome: Outcome,
        codes: Mapping[str, str],
        arrival: Arrival | None,
        site: Site,
        options: Mapping[str, Any],
    ) -> Exit:
        return Exit("none")  # fmt: skip

    def ancestors(self, site: Site) -> tuple[str, ...]:
        return ("'self'",)

    def form_targets(self, site: Site) -> tuple[str, ...]:
        return ()
