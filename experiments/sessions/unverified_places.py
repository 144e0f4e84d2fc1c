"""Places of people for whom no platform vouches: an address holds only so many of them at a time.

A place is a number among those of the address. It is taken on arrival, and lapses when the person gives no
sign of life; a person who goes on takes one again, with the next page or the claim, if one is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from experiments.errors import TooMany
from experiments.models import Hold, Session
from experiments.selectors import definition_of
from experiments.wording.sentences import entry_words

REST_S = 180
"""How long a person at the gates keeps the place after the last sign of life."""
FORGET_S = 24 * 3600
"""How long the address of a person who stays at the gates is known by its hash."""
TRIES = 5
RETRY_S = 60
WIDER = (("part", 2), ("network", 4))
"""A network of IPv6 of 56 or 48 bits, which one customer may have, holds so many times as many places as one
of 64."""
CHECKS: list[Callable[[Session], None]] = []
"""What the room above asks of an unsure person who takes or keeps a place, in the same transaction; each may
raise TooMany."""
UNSURE = (Session.Arrival.UNVERIFIED, Session.Arrival.UNCONFIRMABLE)


def reserve(session: Session, senders: Sequence[str], most: int, wider: Sequence[str] = ("", "")) -> None:
    """Takes a place for a session that has just begun. `senders` names the address, first as it is counted
    today, then as it may have been counted yesterday; `wider` the networks of 56 and 48 bits that it is in,
    if it is one of IPv6. Raises TooMany."""
    part, network = wider
    hold = Hold.objects.create(
        session=session, sender=senders[0], part=part, network=network, most=most, ends_at=timezone.now()
    )
    _take(hold, _rest_ends(), senders)


def recognise(session: Session, senders: Sequence[str], most: int) -> None:
    """A person came back whose address was forgotten: the next page takes a place at the present one."""
    Hold.objects.filter(session=session, sender="").update(sender=senders[0], most=most)


def is_elsewhere(session: Session, senders: Sequence[str]) -> bool:
    """Whether the session began at another address than this one, as far as its address is known."""
    began = Hold.objects.filter(session=session).exclude(sender="")
    return began.exclude(sender__in=senders).exists()


def renew(session: Session, until: datetime | None = None) -> None:
    """A sign of life of a person at the gates, or the claim of a slot `until` its lease ends. Raises TooMany
    if the place had lapsed and the address has no other."""
    if session.arrival not in UNSURE:
        return
    for check in CHECKS:
        check(session)
    ends_at = until or _rest_ends()
    held = Hold.objects.filter(session=session)
    if held.filter(number__isnull=False, released=False).update(ends_at=ends_at):
        return
    hold = held.first()
    if hold is None:
        return
    if hold.released or not hold.sender:
        raise _refusal(hold, hold.most)
    _take(hold, ends_at, (hold.sender,))


def give_up(session: Session) -> None:
    """The session holds no place any more, so nothing of its address is kept."""
    Hold.objects.filter(session=session).delete()


def purge(now: datetime) -> None:
    """Removes what is known of addresses whose place is over. Repeatable."""
    over = Hold.objects.filter(ends_at__lt=now)
    over.exclude(session__state=Session.State.GATES).delete()
    waiting = over.filter(ends_at__lt=now - timedelta(seconds=FORGET_S)).exclude(sender="")
    waiting.update(sender="", part="", network="", number=None)


def _take(hold: Hold, ends_at: datetime, senders: Sequence[str]) -> None:
    """The lowest free number of the address; the database decides between two who want the same."""
    for name, times in WIDER:
        network = getattr(hold, name)
        held = Hold.objects.filter(number__isnull=False, ends_at__gte=timezone.now(), **{name: network})
        if network and held.exclude(pk=hold.pk).count() >= times * hold.most:
            raise _refusal(hold, times * hold.most)
    rows = Hold.objects.filter(sender__in=[sender for sender in senders if sender])
    for _ in range(TRIES):
        rows.filter(number__isnull=False, ends_at__lt=timezone.now()).update(number=None)
        taken = set(rows.filter(number__isnull=False).values_list("number", flat=True))
        number = next((n for n in range(hold.most) if n not in taken), None)
        if number is None:
            break
        try:
            with transaction.atomic():
                if Hold.objects.filter(pk=hold.pk).update(number=number, ends_at=ends_at):
                    return
        except IntegrityError:
            continue
    raise _refusal(hold, hold.most)


def _rest_ends() -> datetime:
    return timezone.now() + timedelta(seconds=REST_S)


def _refusal(hold: Hold, most: int) -> TooMany:
    words = entry_words(definition_of(hold.session.study))
    return TooMany(words["network_full"].format(count=most), RETRY_S)
