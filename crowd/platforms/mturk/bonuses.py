"""Bonuses: each is one call, sent once, recognised by our reference in its reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crowd.platforms.base import (
    BonusStatement,
    Line,
    Payment,
    PlatformError,
    PlatformPosting,
    PreparedPayments,
    Settlement,
    Unread,
)
from crowd.platforms.mturk.decisions import CONTROL, ids_of, submission_of
from crowd.platforms.mturk.fees import cents_of, dollars, fee_cents, rates_of
from crowd.platforms.mturk.hits import GONE, is_replay, token
from crowd.platforms.mturk.offer_terms import REFERENCE
from crowd.platforms.mturk.wire import TurkError, TurkWire

OURS = re.compile(r"\[ref ([A-Za-z0-9-]{1,60})\]\s*\Z")
REASON_MAX = 1000
UNLISTED = frozenset((GONE, "assignmentdoesnotexist"))


class Bonuses:
    """Pays bonuses and reads which were paid, for one account."""

    def __init__(self, wire: TurkWire) -> None:
        self.wire = wire

    def prepare(self, posted: PlatformPosting, payments: Sequence[Payment]) -> PreparedPayments:
        """Mechanical Turk has no batches, so nothing is announced; what it would refuse is refused here."""
        rates = rates_of(posted.facts["options"])
        for payment in payments:
            _check(payment)
        return PreparedPayments(
            external_id="",
            cents=sum(payment.cents for payment in payments),
            fees_cents=sum(fee_cents(payment.cents, rates) for payment in payments),
        )

    def pay(
        self, posted: PlatformPosting, prepared: PreparedPayments, payments: Sequence[Payment]
    ) -> list[Settlement]:
        """A call without an answer leaves its payment unknown; the others go on."""
        for payment in payments:
            _check(payment)
        if sum(payment.cents for payment in payments) != prepared.cents:
            raise PlatformError(
                f"The payments come to another sum than the {prepared.cents} cents that were prepared; "
                "nothing was paid.",
                permanent=True,
            )
        return [self._pay_bonus(payment) for payment in payments]

    def statement(
        self, posted: PlatformPosting, submissions: Sequence[str]
    ) -> Iterator[BonusStatement | Unread]:
        """By HIT if that takes fewer calls than by assignment. A row that does not say whose it is may be of
        any person of its HIT, so then each assignment is asked for by itself."""
        hits, wanted = posted.facts["hits"], dict.fromkeys(submissions)
        lines: dict[str, list[Line | None]] = {"": [None]}
        if len(hits) < len(wanted):
            lines = self._lines((hit_id, {"HITId": hit_id}) for hit_id in hits)
        if "" in lines:
            lines = self._lines((each, {"AssignmentId": ids_of(each)[0]}) for each in wanted)
        for submission in wanted:
            shown = lines.get(submission, [])
            if None in shown:
                why = "Mechanical Turk shows a bonus whose amount or receiver cannot be read."
                yield Unread(why, submission)
            else:
                counts = Counter(line for line in shown if line)
                yield BonusStatement(submission, tuple(replace(line, count=n) for line, n in counts.items()))

    def _lines(self, queries: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, list[Line | None]]:
        """Submission -> its lines; None for a line that cannot be read. A line of no submission that can be
        read counts for the assignment that was asked for, else for the submission ""."""
        lines: dict[str, list[Line | None]] = {}
        for asked, query in queries:
            for submission, line in self._of(**query):
                owner = submission or (asked if "AssignmentId" in query else "")
                lines.setdefault(owner, []).append(line if submission else None)
        return lines

    def _pay_bonus(self, payment: Payment) -> Settlement:
        assignment_id, person = ids_of(payment.submission)
        try:
            self.wire.call(
                "SendBonus",
                WorkerId=person,
                AssignmentId=assignment_id,
                BonusAmount=dollars(payment.cents),
                Reason=_reason(payment),
                UniqueRequestToken=token("bonus", payment.reference),
            )
        except TurkError as error:
            if is_replay(error):
                return self._paid_before(payment, assignment_id)
            return error.settlement(payment.reference)
        return Settlement(payment.reference, "sent")

    def _paid_before(self, payment: Payment, assignment_id: str) -> Settlement:
        """An earlier call with this token was taken: the list of bonuses shows its result."""
        try:
            references = {line.reference for _, line in self._of(AssignmentId=assignment_id) if line}
        except TurkError as error:
            return Settlement(payment.reference, "unknown", str(error))
        if payment.reference in references:
            return Settlement(payment.reference, "sent", "It was paid by an earlier call.")
        return Settlement(payment.reference, "unknown", "It was called before, but is not on the list yet.")

    def _of(self, **which: str) -> Iterator[tuple[str, Line | None]]:
        try:
            for raw in self.wire.pages("ListBonusPayments", "BonusPayments", **which):
                yield _line(raw)
        except TurkError as error:
            if error.code not in UNLISTED:
                raise


def _line(raw: Mapping[str, Any]) -> tuple[str, Line | None]:
    """A bonus of the list: its submission (empty if it cannot be read), and the line of the statement (None
    if its amount cannot be read)."""
    reason = raw.get("Reason")
    ours = OURS.search(reason) if isinstance(reason, str) else None
    try:
        cents = cents_of(str(raw.get("BonusAmount")))
    except (ValueError, ArithmeticError):
        return submission_of(raw), None
    return submission_of(raw), Line("bonus", cents, reference=ours[1] if ours else "")


def _check(payment: Payment) -> None:
    if not REFERENCE.fullmatch(payment.reference):
        raise PlatformError("The reference of a payment must be letters, digits or hyphens.", permanent=True)
    if ids_of(payment.submission)[1] != payment.person:
        raise PlatformError(
            "A payment names another person than its submission; nothing was sent.", permanent=True
        )
    if payment.cents < 1:
        raise PlatformError(f"A payment of {payment.cents} cents cannot be sent; at least 1.", permanent=True)


def _reason(payment: Payment) -> str:
    """What the person reads, with our reference, by which the list tells payments apart."""
    said = CONTROL.sub(" ", payment.reason).strip()[:REASON_MAX] or "Thank you for taking part."
    return f"{said} [ref {payment.reference}]"
