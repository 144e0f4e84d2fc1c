"""The local platform: people arrive with a plain address, and payment is by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowd.platforms.base import Arrival, BadOptions, Entry, NotAnArrival, Site
from crowd.platforms.link import check_same_address
from crowd.platforms.query import fields_of, simulated_kind_of
from crowd.platforms.traits import Platform, Traits

PLATFORM = Platform(
    traits=Traits(
        title="Local",
        modes=frozenset({"live", "rehearsal"}),
        confirms_arrivals="never",
        pays_base_for_all=False,
        pays_returned=False,
        repeats_safely=False,
        keeps_references=False,
        lists_active=False,
        listed_within_s=0,
        is_ours=True,
    ),
    entry="crowd.platforms.local:Local",
)


class Local(Entry):
    """`?person=…&submission=…` names the person; `&simulated=KIND` marks a simulated one."""

    name = "local"

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The table of the study. Raises BadOptions."""
        for key in sorted(set(options) - {"same_address"}):
            raise BadOptions(f"platforms.local.{key} is not a key of this table: it has same_address.")
        check_same_address(options, "local")
        return dict(options)

    def arrival(self, query: str, site: Site) -> Arrival:
        fields = fields_of(query)
        person = fields.get("person", "")
        if not person:
            raise NotAnArrival("The address does not say who comes: it lacks person=…")
        return Arrival(
            person=person,
            submission=fields.get("submission") or person,
            simulated_kind=simulated_kind_of(fields),
        )

    def ancestors(self, site: Site) -> tuple[str, ...]:
        return ("'self'",)
