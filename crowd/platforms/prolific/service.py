"""Prolific's verbs for one account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from crowd.platforms.base import (
    Account,
    BadOptions,
    PlatformError,
    PlatformPosting,
    PostingSpec,
    Quote,
    SubscriptionSet,
)
from crowd.platforms.prolific import money
from crowd.platforms.prolific.bonuses import ProlificBonuses
from crowd.platforms.prolific.decisions import ProlificDecisions
from crowd.platforms.prolific.demographics import demographics
from crowd.platforms.prolific.options import read_options
from crowd.platforms.prolific.studies import Studies
from crowd.platforms.prolific.subscriptions import subscribe
from crowd.platforms.prolific.wire import ProlificWire


class Prolific(Studies, ProlificDecisions, ProlificBonuses):
    """One account on Prolific, or on a simulator of it. Connections are closed by `disconnect`, at the end of
    a `with` block, or with the object."""

    name = "prolific"
    supports = frozenset(
        {
            "approve",
            "reject",
            "request_return",
            "bonus",
            "message",
            "messages",
            "notices",
            "pause",
            "places",
            "demographics",
        }
    )

    def __init__(
        self,
        account: Account,
        wait: Callable[[float], object],
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        # A simulator runs on this machine, which no proxy of the environment reaches.
        wire = ProlificWire(account.site.url, account.token, wait, clock, trust_env=not account.site.url)
        super().__init__(wire, account)

    def __enter__(self) -> Prolific:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        self.wire.disconnect()

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return read_options(options)

    def balance(self) -> tuple[str, int | None]:
        return money.balance(self.wire, self.account)

    def quote(self, spec: PostingSpec) -> Quote:
        return money.quote(self.wire, self.account, spec)

    def demographics(self, posted: PlatformPosting) -> Iterator[tuple[str, Mapping[str, str]]]:
        return demographics(self.wire, posted)

    def message(self, posted: PlatformPosting, person: str, body: str) -> None:
        """Sent once: a message cannot be taken back, and a repetition would arrive twice."""
        if not body.strip():
            raise BadOptions("The message is empty. Write something.")
        self.wire.send(
            "POST",
            "messages/",
            {"recipient_id": person, "body": body, "study_id": posted.external_id},
        )

    def subscribe(self, address: str) -> SubscriptionSet:
        return subscribe(self.wire, self.account.workspace, address)

    def keys(self) -> Mapping[str, Any]:
        """The public keys of signed entry. The caller keeps them for a while."""
        data = self.wire.get("/.well-known/study/jwks.json")
        if not isinstance(data, dict) or not isinstance(data.get("keys"), list):
            raise PlatformError("Prolific's keys for signed entry cannot be read.", permanent=True)
        return data
