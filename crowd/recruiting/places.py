"""How many places a posting offers: never more than slots are free, and replacements within its cap.

The row says what is wanted; the platform is changed to match and read back, so every call may be repeated. A
caller that reads a platform and stores its answer holds the posting's lock meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from crowd.ground.audit import record
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.ground.process_locks import Busy, exclusive
from crowd.models import Posting, Submission
from crowd.platforms import has_service, platforms_with_service
from crowd.platforms.base import PlatformError, PlatformPosting
from crowd.study_check.publication_quote import quote_of, spec_of
from experiments.errors import StudyError
from experiments.models import Session, Slot, Study
from experiments.opening.opening import plan_pilot
from experiments.selectors import definition_of, free_slots
from stimuli.types import Progress

AT_WORK = ("reserved", "active", "unknown")
HANDED_IN = ("awaiting", "approved", "partly_approved")
OFFERED = (Posting.State.OPEN, Posting.State.PAUSED)
BUSY_S, PAUSE_S = 60.0, 0.2
"""How long a researcher's command waits for a sync to end, and how often it tries."""


@contextmanager
def alone_with(posting: Posting, wait_s: float | None = None) -> Iterator[Posting]:
    """The posting as it is now, under a lock: no other caller speaks with its platform about it meanwhile.

    Every caller that reads the platform and stores its answer needs the lock: otherwise it would undo what
    changed in between. Not reentrant. Raises Busy if the lock is held for longer than `wait_s`.
    """
    busy = (
        f"{posting.platform} is being asked about this posting at this moment, so nothing was done. Try "
        "again in a minute."
    )
    tries = 1 + round((BUSY_S if wait_s is None else wait_s) / PAUSE_S)
    with ExitStack() as stack:
        for left in reversed(range(tries)):
            try:
                stack.enter_context(exclusive(f"sync-{posting.pk}", busy))
                break
            except Busy:
                if not left:
                    raise
                rest(PAUSE_S)
        posting.refresh_from_db()
        yield posting


def rest(seconds: float) -> None:
    """The pause between two tries."""
    time.sleep(seconds)


def places_text(posting: Posting) -> str:
    what = "pilot places" if posting.pilot else "places"
    return f"{what} on {posting.platform} ({posting.mode})"


def no_room(wanted: int, free: int, pilot: bool) -> str:
    """Why so many places cannot be offered."""
    which = "pilot places" if pilot else "places"
    if free < 1:
        return (
            f"{wanted} {which} cannot be offered: none is free. Close another posting, or extend the study."
        )
    if wanted < 1:
        return f"{wanted} {which} cannot be offered. Offer 1 to {free}."
    return (
        f"{wanted} {which} are more than the {free} that are free. Offer at most {free}; what people hold "
        "or another posting offers is not free."
    )


def tried_by(mode: str) -> Q:
    """Slots that are free again once a posting of this mode is committed: going live ends what simulated
    people hold and what was tried in a sandbox, a rehearsal ends the one before it."""
    if mode == Posting.Mode.LIVE:
        sandbox = Q(holder__submission__posting__mode=Posting.Mode.SANDBOX)
        return Q(holder__origin=Session.Origin.SIMULATED) | sandbox
    if mode == Posting.Mode.REHEARSAL:
        return Q(
            holder__submission__posting__mode=Posting.Mode.REHEARSAL,
            holder__submission__posting__platform__in=platforms_with_service(),
        )
    return Q(pk__in=[])


def room(study: Study, pilot: bool = False, *, before: str = "", but: Posting | None = None) -> int:
    """Slots that no session holds and no posting (`but` this one) has promised. `before` a posting of that
    mode is committed, what it will end already counts as free."""
    free = free_slots(study, pilot=pilot).count()
    postings = Posting.objects.filter(study=study, pilot=pilot, platform__in=platforms_with_service())
    postings = postings.exclude(state=Posting.State.CLOSED)
    if before:
        held = Slot.objects.filter(tried_by(before), study=study, pilot=pilot)
        free += held.filter(Q(kept=True) | Q(lease_ends_at__gte=timezone.now())).count()
    if before in {Posting.Mode.LIVE, Posting.Mode.REHEARSAL}:
        postings = postings.exclude(mode=Posting.Mode.REHEARSAL)
    if but is not None:
        postings = postings.exclude(key=but.key)
    return free - sum(outstanding(posting) for posting in postings.select_related("study"))


def outstanding(posting: Posting) -> int:
    """Places that may still need a slot: not taken yet, or taken by a person who has no slot yet."""
    since = timezone.now() - timedelta(minutes=definition_of(posting.study).lease_minutes)
    not_here = Q(session=None, seen_at__isnull=False)
    at_gates = Q(session__state=Session.State.GATES, session__started_at__gte=since)
    # People for whom no platform vouches count while they hold a place of their address, so that a flood of
    # invented names does not seem to need all slots.
    at_gates &= Q(session__hold=None) | Q(session__hold__number__isnull=False)
    coming = Submission.objects.filter(not_here | at_gates, posting=posting, state__in=AT_WORK)
    return max(0, posting.places - posting.taken) + coming.count()


def ensure_pilot(study: Study, places: int, progress: Progress, *, before: str = "") -> int:
    """Plans so many pilot slots that `places` of them are free; returns how many are new."""
    short = places - room(study, True, before=before)
    if short <= 0:
        return 0
    return plan_pilot(study, Slot.objects.filter(study=study, pilot=True).count() + short, progress)


def remember(posting: Posting, posted: PlatformPosting) -> Posting:
    """Stores what the platform says of a posting; `posting` is the row as it was when the platform was asked,
    and later changes stay. The row's places are what is wanted: they never shrink, and a closed row stays
    closed."""
    with transaction.atomic():
        # Read again: it may have been closed while the platform answered.
        row = Posting.objects.select_for_update().get(id=posting.pk)
        is_stale = row.state != posting.state
        again = row.state == Posting.State.CLOSED and posted.state in {"open", "paused"} and not is_stale
        if not is_stale:
            row.state = _state_of(row, posted)
            row.raw_state = posted.raw[:40]
        row.unclear_at = (row.unclear_at or timezone.now()) if posted.state == "unknown" else None
        ended = row.state == Posting.State.CLOSED
        row.closed_at = (row.closed_at or timezone.now()) if ended else None
        row.external_id = posted.external_id or row.external_id
        row.taken = posted.taken
        row.shown_cents = row.shown_cents if posted.reward_cents is None else posted.reward_cents
        row.places = max(row.places, posted.places)
        row.facts = _merge_facts(row.facts, posting.facts, posted.facts)
        row.names = [*row.names, *(name for name in posted.names if name not in row.names)]
        row.address = posted.address
        row.sync_error = _OPEN_AGAIN.format(platform=row.platform, raw=posted.raw[:40]) if again else ""
        row.save(update_fields=REMEMBERED)
    posting.refresh_from_db()
    return posting


REMEMBERED = ("state", "raw_state", "unclear_at", "closed_at", "external_id", "names", "address", "taken",
"shown_cents", "places", "facts", "sync_error")  # fmt: skip


def _state_of(row: Posting, posted: PlatformPosting) -> Posting.State:
    if row.state == Posting.State.CLOSED:
        return Posting.State.CLOSED
    if posted.state == "unknown":
        # People may come already; a state that we cannot read must not turn them away.
        return Posting.State.OPEN if row.state == Posting.State.DRAFT else Posting.State(row.state)
    return Posting.State(posted.state)


def _merge_facts(now: Mapping[str, Any], seen: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """The adapter's facts to store. The adapter was given `seen` and returned `told`; `now` is stored now.

    Entries are only added to lists and tables, so that nothing that exists on the platform is lost. A value
    that was changed meanwhile stays.
    """
    merged = dict(now)
    for name, value in told.items():
        stored, before = now.get(name), seen.get(name)
        if isinstance(value, Mapping) and isinstance(stored, Mapping):
            merged[name] = _merge_facts(stored, before if isinstance(before, Mapping) else {}, value)
        elif isinstance(value, list) and isinstance(stored, list):
            merged[name] = [*stored, *(entry for entry in value if entry not in stored)]
        elif name not in now or stored == before:
            merged[name] = value
    return merged


_OPEN_AGAIN = (
    "It was closed here, and {platform} says {raw!r} again: somebody opened it there. Close it there."
)


def note_error(posting: Posting, error: PlatformError, remedy: str) -> None:
    """Stores, for the researcher, what went wrong with a posting and what to do."""
    became = "may have taken effect" if error.uncertain else "did not take effect"
    sentence = f"{posting.platform} failed, and the request {became}: {error} To go on, {remedy}."
    posting.sync_error = sentence
    Posting.objects.filter(id=posting.pk).update(sync_error=sentence)


def finish_places(posting: Posting, offered: int) -> bool:
    """Offers the places of the row if an earlier call was cut off; returns whether it was. The caller holds
    the posting's lock."""
    if posting.state not in OFFERED or offered >= posting.places or not has_service(posting.platform):
        return False
    service = service_of(posting)
    # A researcher may have ended it on the platform's page just now, and more places would reopen it there.
    if remember(posting, service.look(posted_of(posting))).state not in OFFERED:
        return False
    remember(posting, service.revise(posted_of(posting), spec_of(posting)))
    return True


def add_places(posting: Posting, count: int, by: str = "") -> Posting:
    """Offers so many places more; the cap grows with them. The row is committed first, and a call that is cut
    off is finished by the next sync. Raises StudyError if there are too few free slots."""
    if count < 1:
        raise StudyError(f"{count} places cannot be added. Add at least 1.")
    with alone_with(posting):
        return _add_places(posting, count, by)


def _add_places(posting: Posting, count: int, by: str) -> Posting:
    if posting.state not in OFFERED:
        raise StudyError(f"The posting on {posting.platform} is {posting.state}. Publish a new one.")
    cost = quote_of(posting, posting.places + count).total_cents if has_service(posting.platform) else 0
    with transaction.atomic():
        # All postings of a study share its free slots.
        Study.objects.select_for_update().get(id=posting.study_id)
        free = room(posting.study, posting.pilot)
        if count > free:
            raise StudyError(no_room(count, free, posting.pilot))
        posting.refresh_from_db()
        posting.wanted += count
        posting.places += count
        posting.cap_cents = max(posting.cap_cents, cost)
        posting.save(update_fields=["wanted", "places", "cap_cents"])
    record(posting.study, by, f"Adds {count} {places_text(posting)}.")
    return _raise_places(posting, count, count)


def _raise_places(posting: Posting, count: int, wanted: int) -> Posting:
    """Tells the platform; if it certainly refused, the row is restored."""
    if not has_service(posting.platform):
        return posting
    try:
        posted = service_of(posting).revise(posted_of(posting), spec_of(posting))
    except PlatformError as error:
        if error.permanent and not error.uncertain:
            before = {"places": posting.places - count, "wanted": posting.wanted - wanted}
            Posting.objects.filter(id=posting.pk).update(**before)
            posting.refresh_from_db()
        else:
            note_error(posting, error, "wait: the next sync brings the platform to the places of the row")
        raise
    return remember(posting, posted)


def top_up(posting: Posting, budget_cents: int | None = None) -> int:
    """Opens replacements for people who used a place without filling a slot; returns how many.

    Never more than slots are free, and never beyond the posting's cap (or `budget_cents`), with every place
    of the posting counted at its highest cost. A returned submission needs no replacement: the platform opens
    that place again by itself. The caller holds the posting's lock and has read its list: the stored
    submissions are trusted.
    """
    if posting.state != Posting.State.OPEN or not has_service(posting.platform) or _missing(posting) < 1:
        return 0
    # A submission may have been returned after the posting was read and before its list was read. The lower
    # of the two numbers is never too low, so no place is opened twice.
    looked = service_of(posting).look(posted_of(posting))
    if looked.state != "open":
        # Stopped on the platform's page meanwhile: more places would reopen it there. In a state that we do
        # not know, they might too.
        return 0
    posting.taken = min(posting.taken, looked.taken)
    count = min(_missing(posting), room(posting.study, posting.pilot))
    count = _affordable(posting, count, posting.cap_cents if budget_cents is None else budget_cents)
    if count < 1:
        return 0
    still = Posting.objects.filter(id=posting.pk, state=Posting.State.OPEN)
    if still.update(places=posting.places + count) != 1:
        return 0
    posting.refresh_from_db()
    record(posting.study, "", f"Opens {count} replacements: {places_text(posting)}.")
    _raise_places(posting, count, 0)
    return count


def _missing(posting: Posting) -> int:
    held = Slot.objects.filter(study=posting.study, pilot=posting.pilot, holder__submission__posting=posting)
    filled = held.filter(Q(kept=True) | Q(lease_ends_at__gte=timezone.now())).count()
    # Handed in without having come: a code that was passed on. It is paid for or rejected by a named person;
    # a replacement before that would pay for the next one too.
    strays = Submission.objects.filter(posting=posting, session=None, state__in=HANDED_IN)
    return posting.wanted - filled - outstanding(posting) - strays.count()


def _affordable(posting: Posting, count: int, budget_cents: int) -> int:
    if count < 1:
        return 0
    more = quote_of(posting, posting.places + count).total_cents
    if more <= budget_cents:
        return count
    now = quote_of(posting).total_cents
    # Fees are rounded, so the platform is asked what a single place costs.
    fits = min(count - 1, (budget_cents - now) * count // max(1, more - now) + 1)
    while fits > 0 and quote_of(posting, posting.places + fits).total_cents > budget_cents:
        fits -= 1
    return max(0, fits)
