"""The panel's interface: one address for each verb, JSON both ways. A payment carries our reference, and is
paid once, however often it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx

from crowd.platforms.base import (
    Account,
    BadOptions,
    BonusStatement,
    IncomingMessage,
    Line,
    ListedSubmission,
    Payment,
    PlatformError,
    PlatformPosting,
    PostingSpec,
    PreparedPayments,
    Quote,
    Settlement,
    Unread,
    UnsupportedRequest,
)

FEE_CENTS = 3
"""On each payment."""


class ToyService:
    name = "toy"
    supports = frozenset({"approve", "bonus", "pause", "places"})

    def __init__(
        self,
        account: Account,
        wait: Callable[[float], object],
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.account, self.wait = account, wait

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if options:
            raise BadOptions(f"[platforms.toy] has no keys; {sorted(options)[0]!r} was given. Remove it.")
        return {}

    def balance(self) -> tuple[str, int | None]:
        return "USD", None

    def quote(self, spec: PostingSpec) -> Quote:
        rewards, bonuses = spec.places * spec.reward_cents, spec.places * spec.bonus_max_cents
        payments = spec.places * (1 + bool(bonuses))
        lines = (("rewards", rewards), ("bonuses at most", bonuses), ("fees", payments * FEE_CENTS))
        return Quote(spec.currency, lines)

    def publish(self, spec: PostingSpec) -> PlatformPosting:
        return self._posted("publish", reference=spec.reference, url=spec.url, places=spec.places,
                            reward=spec.reward_cents, codes=dict(spec.codes))  # fmt: skip

    def look(self, posted: PlatformPosting) -> PlatformPosting:
        return self._posted("look", job=posted.external_id)

    def revise(self, posted: PlatformPosting, spec: PostingSpec) -> PlatformPosting:
        return self._posted("revise", job=posted.external_id, places=spec.places)

    def pause(self, posted: PlatformPosting) -> PlatformPosting:
        return self._posted("turn", job=posted.external_id, state="paused")

    def resume(self, posted: PlatformPosting) -> PlatformPosting:
        return self._posted("turn", job=posted.external_id, state="open")

    def close(self, posted: PlatformPosting) -> PlatformPosting:
        return self._posted("turn", job=posted.external_id, state="closed")

    def submissions(self, posted: PlatformPosting) -> Iterator[ListedSubmission | Unread]:
        for row in self._ask("list", job=posted.external_id)["rows"]:
            reward = (Line("reward", row["paid"]),) if row["paid"] else ()
            yield ListedSubmission(
                row["id"], row["who"], row["state"], row["state"], row["code"], lines=reward
            )

    def submission(self, posted: PlatformPosting, submission: str) -> ListedSubmission | Unread | None:
        rows = self.submissions(posted)
        return next((row for row in rows if row.submission == submission), None)

    def approve(self, posted: PlatformPosting, submissions: Sequence[str]) -> list[Settlement]:
        states = self._ask("approve", job=posted.external_id, ids=list(submissions))["states"]
        return [
            Settlement(name, "sent" if states.get(name) == "approved" else "failed") for name in submissions
        ]

    def reject(self, posted: PlatformPosting, submission: str, message: str, category: str) -> None:
        raise UnsupportedRequest("The panel rejects no one. Approve, or write to it.")

    def request_return(self, posted: PlatformPosting, submission: str, reason: str) -> None:
        raise UnsupportedRequest("The panel does not ask for returns. Write to it.")

    def prepare(self, posted: PlatformPosting, payments: Sequence[Payment]) -> PreparedPayments:
        return PreparedPayments("", sum(payment.cents for payment in payments), FEE_CENTS * len(payments))

    def pay(
        self, posted: PlatformPosting, prepared: PreparedPayments, payments: Sequence[Payment]
    ) -> list[Settlement]:
        settled = []
        for payment in payments:
            try:
                self._ask("bonus", id=payment.submission, cents=payment.cents, reference=payment.reference)
                settled.append(Settlement(payment.reference, "sent"))
            except PlatformError as error:
                state = "unknown" if error.uncertain else "failed"
                settled.append(Settlement(payment.reference, state, str(error)))  # type: ignore[arg-type]
        return settled

    def statement(
        self, posted: PlatformPosting, submissions: Sequence[str]
    ) -> Iterator[BonusStatement | Unread]:
        bonuses = self._ask("bonuses", job=posted.external_id)["bonuses"]
        for name in dict.fromkeys(submissions):
            counts = Counter((cents, reference) for cents, reference in bonuses.get(name, ()))
            yield BonusStatement(
                name, tuple(Line("bonus", cents, n, ref) for (cents, ref), n in counts.items())
            )

    def rejection_grounds(self, expected_minutes: float, failed_checks: int) -> str:
        return ""

    def message(self, posted: PlatformPosting, person: str, body: str) -> None:
        raise UnsupportedRequest("The panel hands on no messages.")

    def messages(self, posted: PlatformPosting) -> Iterator[IncomingMessage]:
        return iter(())

    def _posted(self, verb: str, **members: Any) -> PlatformPosting:
        job = self._ask(verb, **members)
        return PlatformPosting(
            job["id"], job["state"], job["state"], job["places"], job["taken"], names=(job["id"],)
        )

    def _ask(self, verb: str, **members: Any) -> dict[str, Any]:
        try:
            reply = httpx.post(
                f"{self.account.site.url}/api/{verb}", json=members, trust_env=False, timeout=30
            )
        except httpx.RequestError as error:
            raise PlatformError(f"The panel gave no answer to {verb}.", uncertain=True) from error
        if reply.status_code >= 400:
            raise PlatformError(
                f"The panel answered {reply.status_code} to {verb}.",
                permanent=reply.status_code < 429,
                uncertain=reply.status_code >= 500,
            )
        return dict(reply.json())
