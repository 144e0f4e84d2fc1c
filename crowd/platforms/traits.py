"""What the core must know of a platform before it asks it anything, and where its two sides are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from crowd.platforms.base import Mode

Confirmation = Literal["at_join", "at_submission", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a platform can and cannot do. There are no defaults for what decides about money or people: a new
    platform says each.

    title: its name as people read it
    modes: how real a posting on it can be
    confirms_arrivals: when it can say that a person who arrived is one of its people
    pays_base_for_all: approving pays the same reward for every submission, however the session ended
    pays_returned: a bonus reaches a submission that was returned or timed out
    repeats_safely: a bonus that is sent again under the same reference is paid once
    keeps_references: its statement shows our reference with each bonus
    lists_active: its list shows submissions that are not handed in yet
    listed_within_s: how long after a call its statement may still lack the payment, in seconds
    approvals_max: how many submissions a call of `approve` should have; each may read the whole list
    approves_after_days: after so many days it approves by itself what is not decided
    approves_after_option: the option of the study's table that says how many, if there is one
    signs_entry: it can sign the addresses of arrivals
    is_ours: the people of the laboratory come to this very server; no rule of a marketplace applies
    grounds: its categories of a rejection, in words
    account: what the account needs from the environment: field of Account -> setting
    optional: those settings without which it works all the same
    switch: a setting that must be true before real money moves
    notice_secret: the setting with the secret of its notifications over the web
    """

    title: str
    modes: frozenset[Mode]
    confirms_arrivals: Confirmation
    pays_base_for_all: bool
    pays_returned: bool
    repeats_safely: bool
    keeps_references: bool
    lists_active: bool
    listed_within_s: int
    approvals_max: int = 50
    approves_after_days: int | None = None
    approves_after_option: str = ""
    signs_entry: bool = False
    is_ours: bool = False
    grounds: Mapping[str, str] = field(default_factory=dict)
    account: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    switch: str = ""
    notice_secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """One platform: its traits, and its parts as "module:attribute", imported on first use.

    entry: a class of arrivals and exits, made with the study's table (base.Entry)
    service: a class that speaks with the platform for an account (base.Service); empty: it has no interface
    for machines, so nothing can be listed or paid
    signature: verifies signed entry (base.Signature)
    notice: reads one delivery over the web: (headers, body, secret, now) -> notifications
    queue: takes notifications from a queue: (account, handle) -> anything
    """

    traits: Traits
    entry: str
    service: str = ""
    signature: str = ""
    notice: str = ""
    queue: str = ""
