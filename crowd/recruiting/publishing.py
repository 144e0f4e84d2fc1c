"""Offering a study on a platform: published from a committed row, paused, closed and verified.

The row comes before every request, so each call may be repeated after any crash: what exists on the platform
is found by the row's key, and nothing is made twice.
"""

from __future__ import annotations

import secrets
from typing import get_args

from django.db import IntegrityError, transaction
from django.utils import timezone

from crowd.ground.audit import record
from crowd.ground.platform_accounts import open_service, posted_of, service_of
from crowd.models import Posting
from crowd.platforms import PLATFORMS, entry_of, has_service, platforms_with_service, traits_of
from crowd.platforms.base import BadOptions, Mode, Outcome, PlatformError, PlatformPosting, Site
from crowd.recruiting.places import (
    add_places,
    alone_with,
    ensure_pilot,
    finish_places,
    no_room,
    note_error,
    places_text,
    remember,
    room,
    top_up,
    tried_by,
)
from crowd.study_check.publication_quote import check_ethics, quote_of, recruiting_of, spec_of
from crowd.study_check.quality_record import check_acknowledged
from experiments.definition.study import Policy
from experiments.errors import InvalidStudy, StudyError
from experiments.models import Slot, Study
from experiments.selectors import definition_of
from experiments.sessions.slot_assignment import free_rehearsed_slots

__all__ = ["add_places", "close", "commit", "ensure_pilot", "post_by_hand", "open_posting",
           "pause", "plan_posting", "posting_of", "publish_posting", "remember", "resume", "room",
           "top_up"]  # fmt: skip

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 10


def new_codes(platform: str, policy: Policy) -> dict[str, str]:
    """A code per outcome, for this posting only: one code does not reveal another.

    If every submission is paid, outcomes that are due nothing get no code: the person returns the place.
    """
    unpaid = _unpaid(policy) if traits_of(platform).pays_base_for_all else set()
    return {
        outcome: "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))
        for outcome in get_args(Outcome)
        if outcome not in unpaid
    }


def _unpaid(policy: Policy) -> set[str]:
    outcomes = {"declined", "device"}
    if not policy.screened_share:
        outcomes.add("screened")
    if not policy.turned_away_share:
        outcomes.add("turned_away")
    if policy.withdrawn == "none":
        outcomes |= {"withdrawn", "failure"}
    return outcomes


def posting_of(study: Study, platform: str, mode: str, pilot: bool = False) -> Posting | None:
    """The posting that is not closed, of which there is at most one."""
    postings = Posting.objects.filter(study=study, platform=platform, mode=mode, pilot=pilot)
    return postings.exclude(state=Posting.State.CLOSED).select_related("study").first()


def plan_posting(
    study: Study,
    platform: str,
    mode: Mode,
    *,
    pilot: bool = False,
    places: int | None = None,
    cap_cents: int | None = None,
    site: str = "",
) -> Posting:
    """The posting as it is, or as it would be: nothing is stored or sent. A draft takes the given places and
    cap; an open posting stays as it is.

    Raises StudyError if the study may not be offered so: not open, forbidden by ethics, stimuli with a
    warning that is not acknowledged, options that the platform refuses or that differ from the posting's,
    more places than are free. Pilot slots must be planned before (`ensure_pilot`).
    """
    check_study(study, platform, mode, pilot=pilot)
    existing = posting_of(study, platform, mode, pilot)
    if existing is not None and existing.site != site:
        existing = None
    options = _options(study, platform, Site(mode, site))
    if existing is None and mode == "live":
        _check_said(study, platform)
        check_acknowledged(study)
    if existing is not None:
        _check_unchanged(existing, options)
        if existing.state != Posting.State.DRAFT:
            return existing
    free = room(study, pilot, before=mode, but=existing)
    wanted = places if places is not None else existing.places if existing is not None else free
    if not 1 <= wanted <= free:
        raise StudyError(no_room(wanted, free, pilot))
    reward = definition_of(study).reward
    posting = existing or Posting(
        study=study,
        platform=platform,
        mode=mode,
        site=site,
        pilot=pilot,
        state=Posting.State.DRAFT,
        reward_cents=reward.amount_cents,
        currency=reward.currency,
        codes=new_codes(platform, definition_of(study).policy),
        options=options,
    )
    posting.places = posting.wanted = wanted
    if cap_cents is not None or places is not None:
        posting.cap_cents = cap_cents or 0
    return posting


def _check_said(study: Study, platform: str) -> None:
    """Signed entry shuts out people who invent an address, but only some accounts have it, and the platform
    has no call that says which; so the study says it, and no default decides it by silence."""
    _, platforms = recruiting_of(study)
    if traits_of(platform).signs_entry and "signed_entry" not in platforms.get(platform, {}):
        raise StudyError(
            f"[platforms.{platform}] signed_entry is not said. Write signed_entry = true if your account has "
            "it: then only people whom the platform vouches for can come. Else write false: people are "
            "confirmed after they have come."
        )


def _check_unchanged(posting: Posting, options: dict[str, object]) -> None:
    """What a platform was told, or may have been told, cannot be taken back."""
    changed = sorted(k for k in options if k in posting.options and options[k] != posting.options[k])
    if changed:
        raise StudyError(
            f"[platforms.{posting.platform}] {', '.join(changed)} differs from the posting that is "
            f"{posting.state} there. Restore it; or close that posting, and publish anew."
        )


def check_study(study: Study, platform: str, mode: Mode, *, pilot: bool = False) -> None:
    """Raises StudyError if this study may not be offered on this platform."""
    if pilot and mode != "live" and has_service(platform):
        raise StudyError(
            f"A pilot has people, and only simulated ones come to a {mode}: it takes the study's own slots "
            "and frees them again. Leave out --pilot, or publish the pilot --live."
        )
    if study.state != Study.State.OPEN:
        draft = study.state == Study.State.DRAFT
        remedy = f"Open it first: study_open {study.slug}" if draft else "Choose a new slug."
        raise StudyError(f"{study.slug!r} is {study.state}, and only an open study can be offered. {remedy}")
    live = Posting.objects.filter(study=study, mode=Posting.Mode.LIVE)
    if mode == "rehearsal" and has_service(platform) and live.exists():
        raise StudyError(
            f"{study.slug!r} has a live posting, so no simulated people may come. Rehearse before going "
            "live, or under another slug."
        )
    problems = check_ethics(definition_of(study), platform)
    if problems:
        raise InvalidStudy(f"{study.slug}, offered on {platform},", problems)


def _options(study: Study, platform: str, site: Site) -> dict[str, object]:
    """The study's [platforms.<name>] table with defaults filled, checked by the platform's adapter."""
    recruitment, platforms = recruiting_of(study)
    for name in sorted(set(platforms) - set(PLATFORMS)):
        known = ", ".join(PLATFORMS)
        raise StudyError(f"[platforms.{name}]: there is no such platform. Use one of {known}.")
    options = platforms.get(platform, {})
    try:
        if not has_service(platform):
            check = getattr(entry_of(platform, options), "check_options", dict)
            return dict(check(options))
        checked = open_service(platform, site).check_options(options)
    except BadOptions as error:
        raise StudyError(str(error)) from error
    if "keywords" in checked and not checked["keywords"]:
        checked["keywords"] = list(recruitment.keywords)
    return checked


def publish_posting(
    study: Study,
    platform: str,
    mode: Mode,
    *,
    pilot: bool = False,
    places: int | None = None,
    cap_cents: int | None = None,
    site: str = "",
    by: str = "",
) -> Posting:
    """Offers the study, once: a repeat finds the row and, by its reference, what the platform has.

    Raises StudyError, Unsupported, PlatformError; after an error the row stays a draft, to be repeated.
    """
    check_study(study, platform, mode, pilot=pilot)
    if pilot and places is not None and posting_of(study, platform, mode, pilot) is None:
        ensure_pilot(study, places, lambda what, done, total: None, before=mode)
    posting = plan_posting(study, platform, mode, pilot=pilot, places=places, cap_cents=cap_cents, site=site)
    return open_posting(commit(posting, by), by)


def _still_open(study_id: int) -> None:
    """Locks the study, so that it cannot be closed while a posting is being made."""
    if Study.objects.select_for_update().get(id=study_id).state != Study.State.OPEN:
        raise StudyError("The study was closed at this moment, so nothing is offered.")


def commit(posting: Posting, by: str = "") -> Posting:
    """Stores a planned posting before its platform is called. If the same posting was stored at the same
    moment, that row is returned."""
    if posting.state != Posting.State.DRAFT:
        return posting
    is_new = posting._state.adding
    if has_service(posting.platform) and not posting.cap_cents:
        posting.cap_cents = quote_of(posting).total_cents
    try:
        with transaction.atomic():
            _still_open(posting.study_id)
            if is_new:
                _end_what_was_tried(posting)
            free = room(posting.study, posting.pilot, but=posting)
            if posting.places > free:
                raise StudyError(no_room(posting.places, free, posting.pilot))
            posting.save(force_insert=is_new, force_update=not is_new)
    except IntegrityError:
        existing = posting_of(posting.study, posting.platform, posting.mode, posting.pilot)
        if existing is None:
            raise
        return existing
    if is_new:
        record(posting.study, by, f"Offers {posting.places} {places_text(posting)}.")
    return posting


def _end_what_was_tried(posting: Posting) -> None:
    """A rehearsal's simulator ends with its command, so its posting and its people's slots end when the next
    one begins, or when the study goes live; so do the slots that were held in a sandbox."""
    if posting.mode == Posting.Mode.SANDBOX:
        return
    old = Posting.objects.filter(
        study=posting.study, mode=Posting.Mode.REHEARSAL, platform__in=platforms_with_service()
    )
    old = old.exclude(state=Posting.State.CLOSED)
    old.update(state=Posting.State.CLOSED, closed_at=timezone.now())
    slots = Slot.objects.filter(id__in=Slot.objects.filter(tried_by(posting.mode), study=posting.study))
    slots.update(holder=None, lease_ends_at=None, kept=False)


def post_by_hand(
    study: Study, platform: str, *, live: bool = False, pilot: bool = False, by: str = ""
) -> tuple[Posting, int]:
    """Offers the study on a platform without an interface: one row, for rehearsal until it is live.
    Repeatable. Returns the posting, and how many places of simulated people are free again."""
    check_study(study, platform, "live" if live else "rehearsal")
    options = _options(study, platform, Site())
    postings = Posting.objects.filter(study=study, platform=platform, pilot=pilot)
    posting = postings.exclude(state=Posting.State.CLOSED).order_by("id").first()
    if live and not traits_of(platform).is_ours and (posting is None or not posting.live):
        check_acknowledged(study)
    if posting is None:
        reward = definition_of(study).reward
        with transaction.atomic():
            _still_open(study.pk)
            posting = Posting.objects.create(
                study=study,
                platform=platform,
                pilot=pilot,
                reward_cents=reward.amount_cents,
                currency=reward.currency,
                codes=new_codes(platform, definition_of(study).policy),
            )
        record(study, by, f"Offers {places_text(posting)}.")
    Posting.objects.filter(id=posting.pk).update(options=options)
    freed = 0
    if live and not posting.live:
        Posting.objects.filter(id=posting.pk).update(mode=Posting.Mode.LIVE)
        freed = free_rehearsed_slots(study)
        record(study, by, f"Live: {places_text(posting)}; {freed} places of simulated people are free again.")
    posting.refresh_from_db()
    return posting, freed


def open_posting(posting: Posting, by: str = "") -> Posting:
    """Makes the platform match the row: finds or creates the posting, opens it, and stores the result."""
    if not has_service(posting.platform):
        if posting.state == Posting.State.DRAFT:
            Posting.objects.filter(id=posting.pk).update(state=Posting.State.OPEN)
            posting.refresh_from_db()
        return posting
    with alone_with(posting):
        return _open_there(posting, by)


def _open_there(posting: Posting, by: str) -> Posting:
    service = service_of(posting)
    try:
        if posting.state == Posting.State.DRAFT:
            posted = service.publish(spec_of(posting))
            remember(posting, posted)
            record(posting.study, by, f"Published: {places_text(posting)} is {posting.state}.")
        else:
            posted = remember_look(posting)
        finish_places(posting, posted.places)
    except PlatformError as error:
        note_error(posting, error, "publish it again: what exists there is found, nothing is made twice")
        raise
    return posting


def remember_look(posting: Posting) -> PlatformPosting:
    """Reads the posting from its platform and stores what it says. The caller holds the posting's lock."""
    posted = service_of(posting).look(posted_of(posting))
    remember(posting, posted)
    return posted


def pause(posting: Posting, by: str = "") -> Posting:
    """No new person may come; people who have begun may finish."""
    return _turn(posting, "pause", Posting.State.PAUSED, by)


def resume(posting: Posting, by: str = "") -> Posting:
    return _turn(posting, "resume", Posting.State.OPEN, by)


def close(posting: Posting, by: str = "") -> Posting:
    """Ends recruitment, verified: the row stays as it is until the platform, read back, says closed."""
    return _turn(posting, "close", Posting.State.CLOSED, by)


def _turn(posting: Posting, verb: str, wanted: Posting.State, by: str) -> Posting:
    with alone_with(posting):
        if posting.state == Posting.State.CLOSED:
            if wanted == Posting.State.CLOSED:
                return posting
            raise StudyError(
                f"The posting on {posting.platform} is closed, and that is final. Publish a new one."
            )
        if has_service(posting.platform):
            _turn_there(posting, verb, wanted)
        else:
            closed_at = timezone.now() if wanted == Posting.State.CLOSED else None
            Posting.objects.filter(id=posting.pk).update(state=wanted, closed_at=closed_at)
            posting.refresh_from_db()
    record(posting.study, by, f"{DONE[verb]}: {places_text(posting)}.")
    return posting


DONE = {"pause": "Paused", "resume": "Resumed", "close": "Closed"}


def _turn_there(posting: Posting, verb: str, wanted: Posting.State) -> None:
    if not posting.external_id:
        raise StudyError(
            f"The posting on {posting.platform} is a draft, and may or may not exist there. Publish it "
            f"again, which finds it or makes it, then {verb} it."
        )
    service = service_of(posting)
    act = {"pause": service.pause, "resume": service.resume, "close": service.close}[verb]
    try:
        posted = act(posted_of(posting))
        if posted.state != wanted:
            posted = service.look(posted)
    except PlatformError as error:
        note_error(posting, error, f"{verb} it again")
        raise
    remember(posting, posted)
    if posting.state != wanted:
        raise StudyError(
            f"{posting.platform} was asked to {verb} the posting and still says {posted.raw!r}, so it "
            f"stays {posting.state} here. Look at it there, then {verb} it again."
        )
