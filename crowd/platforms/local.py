"""The local platform: people come by a plain address, and nobody is paid by a machine."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from crowd.platforms.base import Arrival, Exit, NotAnArrival, Outcome

MAX_LENGTH = 200
KIND = re.compile(r"[a-z_]{1,20}")


class Local:
    """`?person=…&submission=…` names who comes; `&simulated=KIND` says that it is no person."""

    name = "local"

    def arrival(self, query: str) -> Arrival:
        try:
            fields = {
                name: values[-1] for name, values in parse_qs(query.lstrip("?"), max_num_fields=20).items()
            }
        except ValueError as error:
            raise NotAnArrival("The address has too many fields.") from error
        person = fields.get("person", "")
        if not person:
            raise NotAnArrival("The address does not say who comes: it lacks person=…")
        for name, value in fields.items():
            if len(value) > MAX_LENGTH:
                raise NotAnArrival(f"{name} has more than {MAX_LENGTH} characters.")
        simulated_kind = fields.get("simulated", "")
        if simulated_kind and not KIND.fullmatch(simulated_kind):
            raise NotAnArrival("simulated must name a kind: 1 to 20 small letters or underscores.")
        return Arrival(
            person=person,
            submission=fields.get("submission") or person,
            simulated_kind=simulated_kind,
        )

    def exit(self, outcome: Outcome, submission: str) -> Exit:
        return Exit("none")
