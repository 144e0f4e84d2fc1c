"""The contract of a platform. Pure: no database, no environment, no clock of its own.

A platform has two sides. `Door` reads arrivals and makes exits; it needs no network and no account. `Market`
speaks with the platform itself: it offers the study, lists submissions, pays. Money is in whole minor units
(cents, pence) everywhere; an adapter converts at its own boundary and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

Outcome = Literal[
    "complete", "failed_checks", "screened", "declined", "device", "turned_away", "failure", "withdrawn"
]
"""How a person leaves: finished; finished but failed instructed checks; sent away at quiz or practice; no
consent; unsuitable device; no slot left; our fault; withdrew."""
Mode = Literal["live", "sandbox", "rehearsal"]
WorkState = Literal[
    "reserved", "active", "awaiting", "approved", "partly_approved", "rejected", "returned", "timed_out",
    "screened_out", "unknown",
]  # fmt: skip
PostingState = Literal["draft", "open", "paused", "closed", "unknown"]
Kind = Literal["base", "bonus", "screen_out", "compensation"]


@dataclass(frozen=True, slots=True)
class Site:
    """The address of a platform. `url` is empty for the real one, else the address of a simulator."""

    mode: Mode = "live"
    url: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """Our account on a platform. Secrets come from the environment and are never stored, printed or logged.

    Prolific: `token`, `workspace`, `project`. MTurk: `key_id` and `secret` (empty: Amazon's usual places),
    `queue_url` of the notifications.
    """

    site: Site
    token: str = field(default="", repr=False)
    workspace: str = ""
    project: str = ""
    key_id: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    queue_url: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An arrival: the platform's person and submission, as the query string says (unproved).

    `realm` is the register that `person` belongs to: the same person who arrives from another platform of the
    same realm is recognised. `posting` is the platform's own name for what was offered (empty: it has none).
    A `preview` never takes a place. `signature` is the signed token in the address, if any; `return_to` an
    address that the platform asked us to post to, checked.
    """

    person: str
    submission: str
    preview: bool = False
    simulated_kind: str = ""
    slot: int | None = None
    realm: str = ""
    posting: str = ""
    signature: str = ""
    return_to: str = ""


@dataclass(frozen=True, slots=True)
class Exit:
    """What the page does at the end: follow a redirect, post a form, or stay."""

    method: Literal["GET", "POST", "none"]
    url: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return {"method": self.method, "url": self.url, "fields": dict(self.fields)}


class NotAnArrival(ValueError):
    """A query string does not name a person and a submission; the message says what is missing."""


class BadOptions(ValueError):
    """The study's options for a platform are wrong; the message names key, value, limit and remedy."""


class Unsupported(Exception):
    """A platform cannot express what was asked of it. Nothing was sent; the message says what to do."""


class PlatformError(Exception):
    """A call to a platform failed.

    `permanent`: the same call will fail again (bad request, no right, no money). `uncertain`: the request may
    have taken effect (an answer was lost, or came as 5xx); read the platform's state; do not repeat the call.
    """

    def __init__(self, message: str, *, permanent: bool = False, uncertain: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.uncertain = uncertain


class BadNotice(ValueError):
    """A notification is forged, stale or unreadable; it is refused and nothing is stored."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A study as it is to be offered. Everything a platform needs, nothing that names a condition.

    `reference` is ours: 1 to 60 of [A-Za-z0-9-], stored on the platform, so that publishing twice finds the
    first posting again. `url` is the participant's address with our own query, to which the adapter adds the
    platform's placeholders. `screened_cents` is due to a person sent away at quiz or practice. `excluded` are
    the platform's ids of earlier postings whose people may not come. `options` is the study's
    [platforms.<name>] table after `Market.check_options`.
    """

    reference: str
    title: str
    description: str
    url: str
    places: int
    reward_cents: int
    currency: str
    expected_minutes: float
    maximum_minutes: float
    codes: Mapping[Outcome, str]
    screened_cents: int = 0
    turned_away_cents: int = 0
    withdrawn: Literal["pro_rata", "full", "none"] = "pro_rata"
    bonus_max_cents: int = 0
    minimum_age: int = 18
    content_warning: str = ""
    excluded: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quote:
    """What a posting costs at most, line by line, and what the account holds (None: the platform does not
    say). `currency` is the account's; a study in another one is refused by `Market.quote`."""

    currency: str
    lines: tuple[tuple[str, int], ...]
    balance_cents: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def total_cents(self) -> int:
        return sum(cents for _, cents in self.lines)


@dataclass(frozen=True, slots=True)
class Posted:
    """A posting as the platform has it. `facts` is the adapter's own memory (plain JSON values), stored and
    given back unread; `address` is the researcher's page on the platform."""

    external_id: str
    state: PostingState
    raw: str
    places: int
    taken: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    address: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A submission as the platform lists it. `submission` and `person` have the same form as in Arrival, so
    that their keyed hashes are equal. `bonuses` are the bonuses paid so far, in cents, if the list tells them
    (else None: ask `Market.bonuses`)."""

    submission: str
    person: str
    state: WorkState
    raw: str
    code: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    return_requested: bool = False
    bonuses: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Payment:
    """One amount to one person. `reference` is that of the ledger row, the same in every attempt."""

    reference: str
    submission: str
    person: str
    cents: int
    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """Payments announced to the platform, not paid yet. `external_id` is the platform's batch (empty if it
    has none) and must be stored before `Market.pay`. `cents` is what the platform understood."""

    external_id: str
    cents: int
    fees_cents: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of one payment or decision: `sent`, `failed` (it did not take effect), `unknown` (it may
    have). `message` says why."""

    reference: str
    state: Literal["sent", "failed", "unknown"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Bonus:
    """A bonus on the platform's own list. `reference` is ours, if the platform keeps it."""

    submission: str
    cents: int
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message from a participant. `external_id` is unique on the platform."""

    external_id: str
    person: str
    body: str
    posting: str = ""
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification, verified. It only triggers a sync: what it claims is read from the platform again."""

    event_id: str
    kind: str
    posting: str = ""
    submission: str = ""


class Door(Protocol):
    """Arrivals and exits of one platform."""

    name: str

    def arrival(self, query: str, site: Site) -> Arrival:
        """Reads an untouched query string. Raises NotAnArrival."""
        ...

    def exit(
        self,
        outcome: Outcome,
        codes: Mapping[str, str],
        arrival: Arrival | None,
        site: Site,
        options: Mapping[str, Any],
    ) -> Exit:
        """The exit for an outcome. `arrival` is None if the page no longer knows its query."""
        ...  # fmt: skip

    def ancestors(self, site: Site) -> tuple[str, ...]:
        """Origins that may frame the participant's page; empty: none."""
        ...

    def form_targets(self, site: Site) -> tuple[str, ...]:
        """Origins that the page may post its last form to; empty: none."""
        ...


class Market(Protocol):
    """The verbs of one platform, for one account: `Market(account, wait)`, where `wait(seconds)` passes the
    time between two tries. Every verb raises PlatformError or Unsupported.

    Reading may be repeated by the adapter itself. `publish`, `revise`, `pause`, `resume`, `close`, `approve`,
    `reject`, `request_return` are safe to repeat by the caller. `pay` and `message` are sent once, without
    any retry at any layer.
    """

    name: str
    supports: frozenset[str]

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The study's table with defaults filled. Raises BadOptions."""
        ...

    def quote(self, offer: Offer) -> Quote: ...
    def publish(self, offer: Offer) -> Posted:
        """Finds the posting by its reference or creates it, opens it, and reads back the result."""
        ...

    def look(self, posted: Posted) -> Posted: ...
    def revise(self, posted: Posted, offer: Offer) -> Posted:
        """Raises the number of places to `offer.places`; fewer is Unsupported."""
        ...

    def pause(self, posted: Posted) -> Posted: ...
    def resume(self, posted: Posted) -> Posted: ...
    def close(self, posted: Posted) -> Posted:
        """Ends recruitment and reads back; people who have begun may finish."""
        ...

    def submissions(self, posted: Posted) -> Iterator[Work]:
        """Every submission of the posting, over all pages."""
        ...

    def approve(self, posted: Posted, submissions: Sequence[str]) -> list[Settled]:
        """Pays the reward of each, once; one that was approved before is `sent`. References are the
        submissions."""
        ...

    def reject(self, posted: Posted, submission: str, message: str, category: str) -> None: ...
    def request_return(self, posted: Posted, submission: str, reason: str) -> None: ...
    def prepare(self, posted: Posted, payments: Sequence[Payment]) -> Prepared:
        """Announces bonuses; pays nothing. A prepared batch that is never paid is harmless."""
        ...

    def pay(self, posted: Posted, prepared: Prepared, payments: Sequence[Payment]) -> list[Settled]: ...
    def bonuses(self, posted: Posted, submissions: Sequence[str]) -> Iterator[Bonus]:
        """Bonuses on the platform's own list, for reconciling."""
        ...

    def rejection_grounds(self, expected_minutes: float, failed_checks: int) -> str:
        """Why the platform's rules permit a named person to reject; empty: they do not."""
        ...

    def message(self, posted: Posted, person: str, body: str) -> None: ...
    def letters(self, posted: Posted) -> Iterator[Letter]: ...
    def notified(self, headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> list[Notified]:
        """Verifies and reads one delivery. Raises BadNotice."""
        ...
