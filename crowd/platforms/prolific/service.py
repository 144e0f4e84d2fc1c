"""Prolific's verbs for one account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from crowd.platforms.base import (
    Account,
    BadOptions,
    IncomingMessage,
    ListedSubmission,
    Payment,
    PlatformError,
    Posted,
    PostingSpec,
    Prepared,
    Quote,
    Settled,
    Shown,
    Subscribed,
    Unread,
)
from crowd.platforms.prolific import bonuses, decisions, money, submissions
from crowd.platforms.prolific.demographics import demographics
from crowd.platforms.prolific.options import checked
from crowd.platforms.prolific.studies import Studies
from crowd.platforms.prolific.subscriptions import subscribe
from crowd.platforms.prolific.wire import Wire


class Prolific:
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
        self.account = account
        # A simulator runs on this machine, which no proxy of the environment reaches.
        self.wire = Wire(account.site.url, account.token, wait, clock, trust_env=not account.site.url)
        self.studies = Studies(self.wire, account)

    def __enter__(self) -> Prolific:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        self.wire.disconnect()

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return checked(options)

    def balance(self) -> tuple[str, int | None]:
        return money.balance(self.wire, self.account)

    def quote(self, spec: PostingSpec) -> Quote:
        return money.quote(self.wire, self.account, spec)

    def publish(self, spec: PostingSpec) -> Posted:
        return self.studies.publish(spec)

    def look(self, posted: Posted) -> Posted:
        return self.studies.look(posted)

    def revise(self, posted: Posted, spec: PostingSpec) -> Posted:
        return self.studies.revise(posted, spec)

    def pause(self, posted: Posted) -> Posted:
        return self.studies.pause(posted)

    def resume(self, posted: Posted) -> Posted:
        return self.studies.resume(posted)

    def close(self, posted: Posted) -> Posted:
        return self.studies.close(posted)

    def submissions(self, posted: Posted) -> Iterator[ListedSubmission | Unread]:
        return submissions.submissions(self.wire, posted)

    def submission(self, posted: Posted, submission: str) -> ListedSubmission | Unread | None:
        return submissions.submission(self.wire, posted, submission)

    def approve(self, posted: Posted, submissions: Sequence[str]) -> list[Settled]:
        return decisions.approve(self.wire, posted, submissions)

    def reject(self, posted: Posted, submission: str, message: str, category: str) -> None:
        decisions.reject(self.wire, posted, submission, message, category)

    def request_return(self, posted: Posted, submission: str, reason: str) -> None:
        decisions.request_return(self.wire, posted, submission, reason)

    def prepare(self, posted: Posted, payments: Sequence[Payment]) -> Prepared:
        return bonuses.prepare(self.wire, self.account, posted, payments)

    def pay(self, posted: Posted, prepared: Prepared, payments: Sequence[Payment]) -> list[Settled]:
        return bonuses.pay(self.wire, prepared, payments)

    def statement(self, posted: Posted, submissions: Sequence[str]) -> Iterator[Shown | Unread]:
        return bonuses.statement(self.wire, posted, submissions)

    def demographics(self, posted: Posted) -> Iterator[tuple[str, Mapping[str, str]]]:
        return demographics(self.wire, posted)

    def rejection_grounds(self, expected_minutes: float, failed_checks: int) -> str:
        return decisions.rejection_grounds(expected_minutes, failed_checks)

    def message(self, posted: Posted, person: str, body: str) -> None:
        """Sent once: a message cannot be taken back, and a repetition would arrive twice."""
        if not body.strip():
            raise BadOptions("The message is empty. Write something.")
        self.wire.send(
            "POST",
            "messages/",
            {"recipient_id": person, "body": body, "study_id": posted.external_id},
        )

    def messages(self, posted: Posted) -> Iterator[IncomingMessage]:
        return submissions.messages(self.wire, posted)

    def subscribe(self, address: str) -> Subscribed:
        return subscribe(self.wire, self.account.workspace, address)

    def keys(self) -> Mapping[str, Any]:
        """The public keys of signed entry. The caller keeps them for a while."""
        data = self.wire.get("/.well-known/study/jwks.json")
        if not isinstance(data, dict) or not isinstance(data.get("keys"), list):
            raise PlatformError("Prolific's keys for signed entry cannot be read.", permanent=True)
        return data
