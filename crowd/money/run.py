"""A run over a posting: look at the platform, plan, confirm, send, look again. Terminal and pages use it."""

from __future__ import annotations

from django.utils import timezone

from crowd.ground.amounts import amount_of
from crowd.ground.audit import record
from crowd.ground.connections import service_of
from crowd.ground.locks import Held, exclusive
from crowd.models import Identity, Payout, Posting
from crowd.money.cap import learn
from crowd.money.ledger import UNSETTLED, decide_due, decide_for
from crowd.money.matching import Reconciled, reconcile, recover
from crowd.money.plan import plan_of
from crowd.money.sending import settle
from crowd.platforms.base import PlatformError, Service, Unsupported
from crowd.recruiting.sync import Synced, sync_posting
from experiments.errors import StudyError
from experiments.models import Session
from experiments.sessions import ENDED


def look(posting: Posting, *, bonuses: bool = False, replace: bool = True) -> Synced:
    """Reads the platform's list into our rows. With `bonuses` the lists of bonuses are read too, which take a
    call per person. Without `replace` nothing is changed on the platform."""
    return sync_posting(posting, is_owed, bonuses=bonuses, replace=replace)


def is_owed(identity: Identity) -> bool:
    """Whether a person is still to be paid, or may earn pay. Open sessions are read before the payouts are
    decided: one that ends in between counts as open."""
    sessions = Session.objects.filter(participant=identity.participant_id)
    if sessions.exclude(state__in=ENDED).exists():
        return True
    for session in sessions:
        decide_for(session)
    unsettled = Payout.objects.filter(session__participant=identity.participant_id, state__in=UNSETTLED)
    return unsettled.exists()


class NotRead(StudyError):
    """The platform's list could not be read, so nothing was paid and nothing is lost."""


def catch_up(posting: Posting, service: Service, *, replace: bool = True) -> Reconciled:
    """Settles all payouts that the platform's list can settle, and adds payouts for sittings that have ended.

    The caller holds the study's lock. Without `replace` nothing is changed on the platform, not even the
    number of places. Raises NotRead or PlatformError; it can be repeated after either.
    """
    recovered = recover(posting)
    read_at = timezone.now()
    synced = look(posting, replace=replace)
    if synced.error:
        raise NotRead(synced.error)
    posting.refresh_from_db()
    untold = learn(posting, service)
    decided = decide_due(posting)
    result = reconcile(posting, service, read_at)
    result.recovered, result.decided = recovered, decided
    result.notes += [untold] if untold else []
    return result


def pay(posting_id: int, by: str, typed_cents: int) -> None:
    """The task of a worker: reads the platform first, and pays only if the total is still the typed one. A
    failure is shown in the log and on the posting's card.
    """
    posting = Posting.objects.select_related("study").filter(pk=posting_id).first()
    if posting is None:
        return
    busy = "Another settle of this study is running. Wait until it has ended."
    try:
        with exclusive(f"settle-{posting.study.slug}", busy) as held:
            _pay(posting, by, typed_cents, held)
    except (StudyError, PlatformError, Unsupported) as error:
        _note(posting, by, f"Paying failed: {error} Nothing is lost; settle again later.")


def _pay(posting: Posting, by: str, typed_cents: int, held: Held) -> None:
    service = service_of(posting)
    catch_up(posting, service)
    plan = plan_of(posting)
    if plan.total_cents != typed_cents:
        typed = amount_of(typed_cents, plan.currency)
        _note(
            posting,
            by,
            f"Nothing was paid: {typed} was typed, and after a look at the platform {plan.total} is due. "
            "Look at the batch again.",
        )
        return
    outcome = settle(posting, plan, by, held=held, service=service)
    catch_up(posting, service)
    if outcome.stopped:
        _note(posting, by, f"Paying ended early: {outcome.stopped} Nothing is lost; settle again later.")


def _note(posting: Posting, by: str, sentence: str) -> None:
    Posting.objects.filter(pk=posting.pk).update(sync_error=sentence)
    record(posting.study, by, f"{posting.platform}: {sentence}")
