"""What a named person decides about one submission's money: send again, accept what the platform shows, write
down what was paid by hand. Each needs a name and a reason; the log keeps both."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat

from crowd.ground import audit, platform_clock
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting, StatementLine, Submission
from crowd.money.expense_cap import check_room
from crowd.money.ledger import INSTEAD, SPENT_STATES, PayoutRefused, name_and_reason, terms_of
from crowd.money.payout_grace import minutes_of
from crowd.money.payout_readiness import other_reward_of
from crowd.money.platform_statement import Tally, name_in_sentence, tallies
from crowd.platforms import traits_of

State = Payout.State


def tally_of(submission: Submission) -> Tally | None:
    """The submission's payouts beside its statement; None if it has neither."""
    return tallies(submission.posting, platform_clock.now(), only=submission).get(submission.pk)


def grant_reward(submission: Submission, who: str, reason: str) -> Payout:
    """Creates the reward as a payout that the policy does not owe, in a person's name: also for a person who
    never joined. It is sent by approving the submission, within the cap. Raises PayoutRefused."""
    name_and_reason(who, reason)
    posting = submission.posting
    with transaction.atomic():
        # One decision about a submission at a time: two would each read the ledger without the other's row.
        Submission.objects.select_for_update().get(pk=submission.pk)
        rows = Payout.objects.filter(submission=submission)
        if rows.filter(state=Payout.State.WITHHELD).exists():
            raise PayoutRefused("A payout of theirs is withheld. Release it first, then approve.")
        instead = rows.filter(kind__in=INSTEAD, state__in=SPENT_STATES).first()
        if instead is not None:
            raise PayoutRefused(
                f"They were paid {amount_of(instead.cents, instead.currency)} already, and approving pays "
                "the whole reward on top. Ask them to return the submission."
            )
        base = rows.filter(kind=Payout.Kind.BASE).first()
        text = f"Granted by {who}: {reason}"
        values = {"state": Payout.State.DUE, "decided_by": who, "error": "", "batch": None}
        if base is None:
            base = Payout.objects.create(
                posting=posting,
                submission=submission,
                session_id=submission.session_id,
                kind=Payout.Kind.BASE,
                cents=terms_of(posting).base_cents,
                currency=posting.currency,
                reason=text,
                decided_by=who,
            )
        elif base.state == Payout.State.FAILED:
            Payout.objects.filter(pk=base.pk).update(**values, reason=f"{base.reason} {text}")
        elif base.state != Payout.State.DUE:
            raise PayoutRefused(
                f"Their reward is {base.get_state_display()}. Nothing more is due by approving."
            )
        check_room(Posting.objects.get(pk=posting.pk), base.cents, "approve")
    return base


def send_again(submission: Submission, who: str, reason: str) -> int:
    """Makes payouts due again that the platform should show and does not; returns how many.

    Only a person who asked the platform can know that they will not arrive: if they do, a second payment
    cannot be taken back. Raises PayoutRefused if none is missing.
    """
    name_and_reason(who, reason)
    with transaction.atomic():
        Submission.objects.select_for_update().get(pk=submission.pk)
        tally = tally_of(submission)
        rows = (*tally.missing, *tally.withdrawn) if tally is not None else ()
        if not rows:
            raise PayoutRefused(
                f"No payment to {name_in_sentence(submission)} is missing on {submission.posting.platform}: "
                "only one that was sent, and that its list does not show in time, can be sent again."
            )
        for row in rows:
            _update(row, who, f"Sent again by {who}: {reason}", State.DUE)
        total = amount_of(sum(row.cents for row in rows), rows[0].currency)
        _log(
            submission,
            who,
            f"Made {total} of {name_in_sentence(submission)} due again, which never arrived: {reason}",
        )
    return len(rows)


def accept(submission: Submission, who: str, reason: str) -> None:
    """Brings the ledger in line with the platform's statement, in a person's name: what it shows beyond the
    ledger is explained, and what was sent and is not shown counts as not paid. Raises PayoutRefused if both
    agree already, or while a payment is still expected."""
    name_and_reason(who, reason)
    with transaction.atomic():
        Submission.objects.select_for_update().get(pk=submission.pk)
        tally = tally_of(submission)
        if tally is None or not tally.is_open:
            raise PayoutRefused(
                f"The platform's statement and the ledger agree about {name_in_sentence(submission)}."
            )
        if not tally.may_be_accepted:
            raise PayoutRefused(
                f"A payment to {name_in_sentence(submission)} may still appear on the list, and what is "
                f"shown may be it. Wait until {minutes_of(submission.posting)} minutes after it, then settle."
            )
        for kind, cents in tally.surplus:
            line = StatementLine.objects.filter(submission=submission, kind=kind, cents=cents)
            line = line.filter(count__gt=F("accepted")).order_by("pk")
            StatementLine.objects.filter(pk__in=line.values("pk")[:1]).update(
                accepted=F("accepted") + 1, accepted_by=who, accepted_reason=reason
            )
        for row in (*tally.missing, *tally.withdrawn):
            _update(
                row, who, f"Not on the platform's statement, which {who} accepted: {reason}", State.FAILED
            )
        shown = amount_of(tally.surplus_cents, submission.posting.currency)
        gone = sum(row.cents for row in (*tally.missing, *tally.withdrawn))
        _log(
            submission,
            who,
            f"Accepted the platform's statement of {name_in_sentence(submission)}: {shown} more than the "
            f"ledger, {amount_of(gone, submission.posting.currency)} less: {reason}",
        )


def accept_reward(posting: Posting, who: str, reason: str) -> int:
    """Takes the reward that the platform shows for what approving pays, in a person's name, within the cap;
    returns how many rewards that are due are of that amount now. Raises PayoutRefused."""
    name_and_reason(who, reason)
    with transaction.atomic():
        # Payments take the same row: none is planned by the old reward once this is stored.
        row = Posting.objects.select_for_update().get(pk=posting.pk)
        before = terms_of(row).base_cents
        if not other_reward_of(row) or row.shown_cents is None:
            raise PayoutRefused(
                f"{traits_of(row.platform).title} shows the reward that approving is to pay. There is "
                "nothing to accept."
            )
        if row.shown_cents < before:
            raise PayoutRefused(
                f"{amount_of(row.shown_cents, row.currency)} is less than the "
                f"{amount_of(before, row.currency)} that people were promised. Set it back there; or pay by "
                "hand, and write it down."
            )
        due = Payout.objects.filter(posting=row, kind=Payout.Kind.BASE, state=State.DUE, cents=before)
        count = due.update(
            cents=row.shown_cents,
            reason=Concat("reason", Value(f" Accepted as shown on the platform by {who}: {reason}")),
        )
        Posting.objects.filter(pk=row.pk).update(accepted_cents=row.shown_cents)
        audit.record(
            row.study,
            who,
            f"Accepted the reward that {row.platform} shows, {amount_of(row.shown_cents, row.currency)} in "
            f"place of {amount_of(before, row.currency)}: {reason}",
        )
    posting.refresh_from_db()
    return count


def pay_by_hand(payout: Payout, who: str, receipt: str) -> None:
    """Writes down that a payout was paid outside of the platform. `receipt` says how, and where the proof is.
    Raises PayoutRefused if it may reach the person by the platform."""
    name_and_reason(who, receipt)
    allowed = (State.DUE, State.FAILED, State.WITHHELD)
    with transaction.atomic():
        # A run that sends it takes the same row: it is paid there or here, never in both ways.
        rows = Payout.objects.select_for_update(of=("self",))
        row = rows.select_related("submission__posting__study").get(pk=payout.pk)
        if row.state not in allowed:
            raise PayoutRefused(
                f"The payout is {row.get_state_display()}, so it may reach them by the platform. Settle it."
            )
        total = amount_of(row.cents, row.currency)
        check_room(Posting.objects.get(pk=row.posting_id), row.cents, "by hand")
        now = platform_clock.now()
        Payout.objects.filter(pk=row.pk).update(
            state=State.BY_HAND, decided_by=who, receipt=receipt, sent_at=now, error="", batch=None
        )
        _log(row.submission, who, f"Paid {total} to {name_in_sentence(row.submission)} by hand: {receipt}")


def _update(row: Payout, who: str, text: str, state: State) -> None:
    Payout.objects.filter(pk=row.pk, state=row.state).update(
        state=state, sent_at=None, confirmed_at=None, decided_by=who, reason=f"{row.reason} {text}", error=""
    )


def _log(submission: Submission, who: str, what: str) -> None:
    audit.record(submission.posting.study, who, what)
