"""A second person for large payments: one login asks for a sum, another login confirms the same sum.

Off unless SECOND_PERSON_CENTS is set. Batches of a page pass here; the terminal's `settle` does not.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from crowd.ground.amounts import amount_of
from crowd.ground.audit import record
from crowd.ground.roles import roles_of
from crowd.models import AskedPayment, Posting, Submission


def asks_for_second(cents: int) -> bool:
    """Whether one person alone may not send this sum."""
    return 0 < settings.SECOND_PERSON_CENTS < cents


def waiting(posting: Posting, user: User, cents: int) -> AskedPayment | None:
    """What another login, which may still pay, asked for and this one may confirm: the same sum."""
    row = AskedPayment.objects.filter(posting=posting, cents=cents).exclude(user=user).first()
    if row is None or not row.user.is_active or "pay" not in roles_of(row.user, posting.study):
        return None
    return row


def confirm(posting: Posting, user: User, cents: int) -> bool:
    """Confirms what another login asked for. True once: of two confirmations at the same moment, for one."""
    row = waiting(posting, user, cents)
    if row is None or not AskedPayment.objects.filter(pk=row.pk, user=row.user, cents=cents).delete()[0]:
        return False
    record(
        posting.study,
        user.get_username(),
        f"Confirmed the payment of {_sum(posting, cents)} that {row.user.get_username()} asked for.",
    )
    return True


def ask(posting: Posting, user: User, cents: int) -> None:
    """Stores what a login asks for, in place of an earlier request; nothing is sent."""
    request = {"user": user, "cents": cents, "asked_at": timezone.now()}
    AskedPayment.objects.update_or_create(posting=posting, defaults=request)
    record(
        posting.study,
        user.get_username(),
        f"Asked to pay {_sum(posting, cents)}. Above "
        f"{amount_of(settings.SECOND_PERSON_CENTS, posting.currency)} another person must confirm it.",
    )


def approval_refused(submissions: Iterable[int]) -> str:
    """Why these submissions are not approved together, outside the batch; empty if they may be."""
    rows = Submission.objects.filter(pk__in=submissions).select_related("posting")
    rewards = [(row.posting.reward_cents, row.posting.currency) for row in rows]
    cents = sum(reward for reward, _ in rewards)
    if not asks_for_second(cents):
        return ""
    currency = rewards[0][1]
    return (
        f"Nothing was approved: together they are paid up to {amount_of(cents, currency)}, and above "
        f"{amount_of(settings.SECOND_PERSON_CENTS, currency)} two people are needed. Leave them to the batch "
        "on the money page."
    )


def _sum(posting: Posting, cents: int) -> str:
    return f"{amount_of(cents, posting.currency)} on {posting.platform} ({posting.mode})"
