"""The contract of a platform. Pure: no database, no environment, no clock of its own.

A platform has two sides. `Entry` reads arrivals and makes exits; it needs no network and no account.
`Service` speaks with the platform itself: it posts the study, lists submissions, pays. Money is in whole
minor units (cents, pence) everywhere; an adapter converts at its own boundary and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from crowd.platforms.untrusted_text import printable

Outcome = Literal[
    "complete", "failed_checks", "screened", "declined", "device", "turned_away", "failure", "withdrawn"
]
"""How a person leaves: finished; finished but failed instructed checks; sent away at quiz or practice; no
consent; unsuitable device; no slot left; our fault; withdrew."""
Mode = Literal["live", "sandbox", "rehearsal"]
SubmissionState = Literal[
    "reserved", "active", "awaiting", "approved", "partly_approved", "rejected", "returned", "timed_out",
    "screened_out", "unknown",
]  # fmt: skip
PostingState = Literal["draft", "open", "paused", "closed", "unknown"]
Kind = Literal["base", "bonus", "screen_out", "compensation"]
LineKind = Literal["reward", "screen_out", "bonus"]


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


class UnsupportedRequest(Exception):
    """A platform cannot express what was asked of it. Nothing was sent; the message says what to do."""


ALL_REFUSED = 5
"""If so many payments or more are all refused, the cause is none of their people."""


class PlatformError(Exception):
    """A call to a platform failed.

    `permanent`: the same call will fail again (bad request, no right, no money). `uncertain`: the request may
    have taken effect (an answer was lost, or came as 5xx); read the platform's state; do not repeat the call.
    `of_account`: the cause is our account, so that it fails alike for everybody. `is_busy`: there were too
    many calls. `about` are outside ids that
    the platform names; they are never part of the message.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        uncertain: bool = False,
        of_account: bool = False,
        is_busy: bool = False,
        about: Collection[str] = (),
    ) -> None:
        # It is stored and shown, and may quote what the platform said.
        super().__init__(printable(message))
        self.permanent = permanent
        self.uncertain = uncertain
        self.of_account, self.is_busy = of_account, is_busy
        self.about = frozenset(about)

    def settlement(self, reference: str) -> Settlement:
        """What it says of the one payment or decision that was asked for."""
        refused = self.permanent and not self.uncertain and not self.of_account
        return Settlement(reference, "unknown" if self.uncertain else "failed", str(self), is_refused=refused)


class ForgedEntry(ValueError):
    """A token is missing, foreign, old or does not fit the address. The message may be shown."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says. One (session, issued_at) opens one session; a second browser's is a replay."""

    session: str
    issued_at: datetime


class BadNotice(ValueError):
    """A notification is forged, stale or unreadable; it is refused and nothing is stored."""


@dataclass(frozen=True, slots=True)
class PostingSpec:
    """A study as it is to be offered. Everything a platform needs, nothing that names a condition.

    `reference` is ours: 1 to 60 of [A-Za-z0-9-], stored on the platform, so that publishing twice finds the
    first posting again. `url` is the participant's address with our own query, to which the adapter adds the
    platform's placeholders. `screened_cents` is due to a person sent away at quiz or practice. `excluded` are
    the platform's ids of earlier postings whose people may not come. `options` is the study's
    [platforms.<name>] table after `Service.check_options`.
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
    say). `currency` is the account's; a study in another one is refused by `Service.quote`."""

    currency: str
    lines: tuple[tuple[str, int], ...]
    balance_cents: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def total_cents(self) -> int:
        return sum(cents for _, cents in self.lines)


@dataclass(frozen=True, slots=True)
class PlatformPosting:
    """A posting as the platform has it. `facts` is the adapter's own memory (plain JSON values), stored and
    given back unread; `address` is the researcher's page on the platform. `names` are what the platform calls
    it, or parts of it: an arrival and a notification name one of them. `reward_cents` is what approving pays,
    as the platform says it now; None if it does not."""

    external_id: str
    state: PostingState
    raw: str
    places: int
    taken: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    address: str = ""
    names: tuple[str, ...] = ()
    reward_cents: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a platform's statement: what it shows as paid to one person.

    reward: what approving paid; screen_out: what the platform itself paid for being screened out; bonus: all
    else. A line has an identity only if the platform keeps our `reference`; else it is kind and amount in
    cents, and `count` how many there are of it.
    """

    kind: LineKind
    cents: int
    count: int = 1
    reference: str = ""


@dataclass(frozen=True, slots=True)
class ListedSubmission:
    """A submission as the platform lists it. `submission` and `person` have the same form as in Arrival, so
    that their keyed hashes are equal. `lines` are what the list itself shows as paid; bonuses are asked for
    (`Service.statement`)."""

    submission: str
    person: str
    state: SubmissionState
    raw: str
    code: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    return_requested: bool = False
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class BonusStatement:
    """The bonuses that the platform shows for one submission, all of them."""

    submission: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Unread:
    """A row of a list, or the statement of one submission, that cannot be read. It is set aside and named;
    the others go on. `why` holds no id of a person; `submission` is empty if the row does not say it."""

    why: str
    submission: str = ""


@dataclass(frozen=True, slots=True)
class Payment:
    """One amount to one person. `reference` is that of the ledger row, the same in every attempt."""

    reference: str
    submission: str
    person: str
    cents: int
    reason: str


@dataclass(frozen=True, slots=True)
class PreparedPayments:
    """Payments announced to the platform, not paid yet. `external_id` is the platform's batch (empty if it
    has none) and must be stored before `Service.pay`. `cents` is what the platform understood."""

    external_id: str
    cents: int
    fees_cents: int = 0


@dataclass(frozen=True, slots=True)
class Settlement:
    """The result of one payment or decision: `sent`, `failed` (it did not take effect), `unknown` (it may
    have). `message` says why. `is_refused`: this one alone, and for good."""

    reference: str
    state: Literal["sent", "failed", "unknown"]
    message: str = ""
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message from a participant. `external_id` is unique on the platform."""

    external_id: str
    person: str
    body: str
    posting: str = ""
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification, verified. It only triggers a sync: what it claims is read from the platform again."""

    event_id: str
    kind: str
    posting: str = ""
    submission: str = ""


class Entry(Protocol):
    """Arrivals and exits of one platform: `Entry(options)`, with the study's table."""

    name: str

    def __init__(self, options: Mapping[str, Any]) -> None:
        return

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
        return Exit("none")

    def ancestors(self, site: Site) -> tuple[str, ...]:
        """Origins that may frame the participant's page; empty: none."""
        return ()

    def form_targets(self, site: Site) -> tuple[str, ...]:
        """Origins that the page may post its last form to; empty: none."""
        return ()


class Service(Protocol):
    """The verbs of one platform, for one account: `Service(account, wait, clock)`, where `wait(seconds)`
    passes the time between two tries, and `clock()` gives seconds of a clock that only runs forward. No call
    and no list goes on without end. Every verb raises PlatformError or Unsupported.

    Reading may be repeated by the adapter itself. `publish`, `revise`, `pause`, `resume`, `close`, `approve`,
    `reject`, `request_return` are safe to repeat by the caller. `pay` and `message` are sent once, without
    any retry at any layer.
    """

    name: str
    supports: frozenset[str]

    def __init__(
        self, account: Account, wait: Callable[[float], object], clock: Callable[[], float] = ...
    ) -> None: ...

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The study's table with defaults filled. Raises BadOptions."""
        ...

    def balance(self) -> tuple[str, int | None]:
        """Currency and free balance of the account, in whole minor units; None if the platform does not say
        it."""
        ...

    def quote(self, spec: PostingSpec) -> Quote: ...
    def publish(self, spec: PostingSpec) -> PlatformPosting:
        """Finds the posting by its reference or creates it, opens it, and reads back the result. Unsupported,
        with the sum that is missing, if the account cannot pay the rewards."""
        ...

    def look(self, posted: PlatformPosting) -> PlatformPosting: ...
    def revise(self, posted: PlatformPosting, spec: PostingSpec) -> PlatformPosting:
        """Raises the number of places to `spec.places`; fewer is Unsupported, and more than the account can
        pay."""
        ...

    def pause(self, posted: PlatformPosting) -> PlatformPosting: ...
    def resume(self, posted: PlatformPosting) -> PlatformPosting: ...
    def close(self, posted: PlatformPosting) -> PlatformPosting:
        """Ends recruitment and reads back; people who have begun may finish."""
        ...

    def submissions(self, posted: PlatformPosting) -> Iterator[ListedSubmission | Unread]:
        """Every submission of the posting, over all pages."""
        ...

    def submission(self, posted: PlatformPosting, submission: str) -> ListedSubmission | Unread | None:
        """One submission; None if the posting has none of that id, as far as the platform says."""
        ...

    def approve(self, posted: PlatformPosting, submissions: Sequence[str]) -> list[Settlement]:
        """Pays the reward of each, once; one that was approved before is `sent`. References are the
        submissions."""
        ...

    def reject(self, posted: PlatformPosting, submission: str, message: str, category: str) -> None: ...
    def request_return(self, posted: PlatformPosting, submission: str, reason: str) -> None: ...
    def prepare(self, posted: PlatformPosting, payments: Sequence[Payment]) -> PreparedPayments:
        """Announces bonuses; pays nothing. A prepared batch that is never paid is harmless."""
        ...

    def pay(
        self, posted: PlatformPosting, prepared: PreparedPayments, payments: Sequence[Payment]
    ) -> list[Settlement]: ...
    def statement(
        self, posted: PlatformPosting, submissions: Sequence[str]
    ) -> Iterator[BonusStatement | Unread]:
        """What the platform shows as bonuses: one answer for each submission, also if it has none."""
        ...

    def rejection_grounds(self, expected_minutes: float, failed_checks: int) -> str:
        """Why the platform's rules permit a named person to reject; empty: they do not."""
        ...

    def demographics(self, posted: PlatformPosting) -> Iterator[tuple[str, Mapping[str, str]]]:
        """What people told the platform of themselves. Per submission: column -> value, in the platform's
        words, without ids of people. Unsupported unless "demographics" is among `supports`."""
        ...

    def message(self, posted: PlatformPosting, person: str, body: str) -> None: ...
    def messages(self, posted: PlatformPosting) -> Iterator[IncomingMessage]: ...


class SigningService(Service, Protocol):
    """A service whose platform signs the addresses of arrivals."""

    def keys(self) -> Mapping[str, Any]:
        """The platform's public keys. The caller keeps them for a while."""
        ...


@dataclass(frozen=True, slots=True)
class SubscriptionSet:
    """The subscriptions to a platform's notifications now. `secret` signs them; it is set only if it was made
    now, because making another one would end the first."""

    secret: str
    made: tuple[str, ...]
    kept: tuple[str, ...]


class NotifyingService(Service, Protocol):
    """A service whose platform notifies an address of ours."""

    def subscribe(self, address: str) -> SubscriptionSet:
        """Subscribes `address` to what a sync wants to know. Repeatable: what exists is kept."""
        ...


class Signature(Protocol):
    """Verifies that the platform itself made an address."""

    def check(
        self, token: str, keys: Mapping[str, Any], host: str, fields: Mapping[str, str], now: datetime
    ) -> Claims:
        """Checks a token against the platform's keys, our host, the fields of the address, and the time.

        `fields` are those of the query string, `host` is ours without scheme. Raises ForgedEntry; before
        that, `is_unknown_key` tells whether fresh keys may help.
        """
        ...

    def is_unknown_key(self, token: str, keys: Mapping[str, Any]) -> bool:
        """Whether the token names a key that is not among these."""
        ...
