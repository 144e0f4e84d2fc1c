"""The API of Mechanical Turk: HITs, assignments and money."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crowd.platforms.base import (
    Account,
    IncomingMessage,
    ListedSubmission,
    PlatformError,
    PlatformPosting,
    PostingSpec,
    PostingState,
    Quote,
    Unread,
    UnsupportedRequest,
)
from crowd.platforms.mturk.bonuses import Bonuses
from crowd.platforms.mturk.decisions import CONTROL, RAW_MAX, Decisions
from crowd.platforms.mturk.fees import dollars, floored_cents
from crowd.platforms.mturk.hits import OPEN_STATUS, Hit, Hits, is_replay
from crowd.platforms.mturk.offer_terms import CURRENCY, TurkTerms, quote_terms, terms_of
from crowd.platforms.mturk.options import check_options
from crowd.platforms.mturk.sqs_notices import specification
from crowd.platforms.mturk.wire import TurkError, TurkWire
from crowd.platforms.untrusted_text import printable

WORKER_PAGES = {"live": "https://worker.mturk.com", "sandbox": "https://workersandbox.mturk.com"}
MESSAGE_MAX = 4096
SUBJECT = "About a study that you took part in"
FAIR_FAILED_SHORT, FAIR_FAILED_LONG, SHORT_MINUTES = 1, 2, 5


class MTurk(Decisions, Bonuses):
    """One requester's account.

    `Posted.external_id` is the qualification "has taken part" of the posting, a separate one per posting, so
    that a later offer excludes its people by this id alone. `Posted.names` are the HITs. Mechanical Turk has
    neither requests to return nor messages from participants, who write by e-mail.
    """

    name = "mturk"
    supports = frozenset(("approve", "reject", "bonus", "message", "notices", "pause", "places"))

    def __init__(
        self,
        account: Account,
        wait: Callable[[float], object],
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__(TurkWire(account, wait, clock))
        self.account = account
        self.hits = Hits(self.wire)

    def disconnect(self) -> None:
        """Closes the connections that are kept for the next call."""
        self.wire.client.close()

    # Offering ----------------------------------------------------------------------------------------------

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return check_options(options)

    def balance(self) -> tuple[str, int | None]:
        try:
            held = self.wire.call("GetAccountBalance")["AvailableBalance"]
        except TurkError as error:
            raise TurkError(
                f"Mechanical Turk is not available to this account. {error} Amazon closed it to new "
                "customers in 2026; check the keys, or publish on another platform.",
                permanent=error.permanent,
                uncertain=False,
                code=error.code,
            ) from error
        return CURRENCY, floored_cents(held)

    def quote(self, spec: PostingSpec) -> Quote:
        terms = terms_of(spec, self.account.site)
        return quote_terms(terms, self.balance()[1])

    def publish(self, spec: PostingSpec) -> PlatformPosting:
        terms = terms_of(spec, self.account.site)
        hits = self.hits.of_reference(spec.reference)
        self._check_balance(terms, hits)
        qualification = self._qualification(spec.reference)
        kind = self.wire.call("CreateHITType", **terms.hit_type(qualification))["HITTypeId"]
        if self.account.queue_url:
            # Before people can come: a queue that Amazon refuses stops the posting here.
            self.wire.call(
                "UpdateNotificationSettings",
                HITTypeId=kind,
                Notification=specification(self.account.queue_url),
                Active=True,
            )
        facts = {
            "hit_type": kind,
            "lifetime_s": terms.lifetime_s,
            "base_cents": terms.base_cents,
            "options": dict(terms.options),
            "stopped": "",
        }
        return self._platform_posting(qualification, self.hits.grow(terms, kind, hits), facts)

    def look(self, posted: PlatformPosting) -> PlatformPosting:
        return self._platform_posting(posted.external_id, self._read(posted), posted.facts, posted)

    def revise(self, posted: PlatformPosting, spec: PostingSpec) -> PlatformPosting:
        terms = terms_of(spec, self.account.site)
        hits = self._every(posted, spec.reference)
        places = sum(hit.places for hit in hits)
        if spec.places < places:
            raise UnsupportedRequest(
                f"Mechanical Turk has {places} places and takes none back: {spec.places} is fewer. Pause "
                "or close the posting instead."
            )
        self._check_balance(terms, hits)
        lifetime_s = int(posted.facts["lifetime_s"])
        known = set(posted.facts["hits"])
        before = {hit.id: hit.places for hit in hits if hit.id in known}
        hits = self.hits.grow(terms, str(posted.facts["hit_type"]), hits)
        grown = [hit for hit in hits if before.get(hit.id) != hit.places]
        facts = {**posted.facts, "hits": _merge_hit_ids(posted, hits)}
        if posted.facts["stopped"]:
            self.hits.end(grown, lifetime_s)
        else:
            self.hits.reopen(grown, lifetime_s)
        return self.look(replace(posted, facts=facts))

    def pause(self, posted: PlatformPosting) -> PlatformPosting:
        return self._stop_posting(posted, "paused")

    def close(self, posted: PlatformPosting) -> PlatformPosting:
        return self._stop_posting(posted, "closed")

    def resume(self, posted: PlatformPosting) -> PlatformPosting:
        hits = self.hits.reopen(self._every(posted), int(posted.facts["lifetime_s"]))
        return self._platform_posting(posted.external_id, hits, {**posted.facts, "stopped": ""}, posted)

    # Submissions and money ---------------------------------------------------------------------------------

    def submissions(self, posted: PlatformPosting) -> Iterator[ListedSubmission | Unread]:
        """Every submitted assignment. Its worker gets the qualification "has taken part", without notice, so
        that Mechanical Turk offers them no other HIT of this study."""
        people: set[str] = set()
        for hit_id in posted.facts["hits"]:
            for listed in self.listed(hit_id, int(posted.facts["base_cents"])):
                if not isinstance(listed, Unread):
                    people.add(listed.person)
                yield listed
        self._grant(posted.external_id, people)

    def request_return(self, posted: PlatformPosting, submission: str, reason: str) -> None:
        raise UnsupportedRequest(
            "Mechanical Turk has no request to return submitted work. Write to the person, or approve it."
        )

    def demographics(self, posted: PlatformPosting) -> Iterator[tuple[str, Mapping[str, str]]]:
        raise UnsupportedRequest("Mechanical Turk tells nothing about its people. Ask them in the study.")

    def rejection_grounds(self, expected_minutes: float, failed_checks: int) -> str:
        """Grounds announced to people before: failed instructed checks, one if the announced time is under
        five minutes, else two."""
        if not math.isfinite(expected_minutes):
            return ""
        is_short = math.ceil(expected_minutes) < SHORT_MINUTES
        needed = FAIR_FAILED_SHORT if is_short else FAIR_FAILED_LONG
        if failed_checks < needed:
            return ""
        return (
            f"{failed_checks} failed instructed checks in a study of {expected_minutes:g} minutes, where "
            f"{needed} suffice."
        )

    # Messages and notices ----------------------------------------------------------------------------------

    def message(self, posted: PlatformPosting, person: str, body: str) -> None:
        if not body.strip() or len(body) > MESSAGE_MAX or CONTROL.search(body):
            raise UnsupportedRequest(
                f"A message must have 1 to {MESSAGE_MAX} characters and no control characters; this one "
                f"has {len(body)}."
            )
        reply = self.wire.call("NotifyWorkers", Subject=SUBJECT, MessageText=body, WorkerIds=[person])
        for failed in reply.get("NotifyWorkersFailureStatuses") or []:
            is_hard = failed.get("NotifyWorkersFailureCode") == "HardFailure"
            raise PlatformError(
                "Mechanical Turk did not deliver the message. "
                + (
                    "It lets us write only to people whose work we decided."
                    if is_hard
                    else "Try again later."
                ),
                permanent=is_hard,
            )

    def messages(self, posted: PlatformPosting) -> Iterator[IncomingMessage]:
        return iter(())

    # Inside ------------------------------------------------------------------------------------------------

    def _check_balance(self, terms: TurkTerms, hits: Sequence[Hit]) -> None:
        """Raises Unsupported if the account cannot pay the rewards of the places that are not there yet, with
        their fees."""
        missing = terms.spec.places - sum(hit.places for hit in hits)
        if missing < 1:
            return
        held, needed = self.balance()[1], terms.cost_cents(missing)
        if held is not None and held < needed:
            raise UnsupportedRequest(
                f"The account on Mechanical Turk holds {dollars(held)} {CURRENCY}, and {missing} more places "
                f"cost {dollars(needed)} with fees: {dollars(needed - held)} is missing. Add money there, or "
                "offer fewer places."
            )

    def _qualification(self, reference: str) -> str:
        """The posting's qualification "has taken part": found by its unique name, or created."""
        name = f"Took part in {reference}"
        if qualification_id := self._qualification_named(name):
            return qualification_id
        try:
            made = self.wire.call(
                "CreateQualificationType",
                Name=name,
                Description="Took part in one of our studies, which each person can take part in once.",
                QualificationTypeStatus="Active",
            )
            return str(made["QualificationType"]["QualificationTypeId"])
        except TurkError as error:
            qualification_id = self._qualification_named(name) if is_replay(error) else ""
            if not qualification_id:
                raise
            return qualification_id

    def _qualification_named(self, name: str) -> str:
        pages = self.wire.pages(
            "ListQualificationTypes",
            "QualificationTypes",
            MustBeRequestable=False,
            MustBeOwnedByCaller=True,
        )
        return next((str(raw["QualificationTypeId"]) for raw in pages if raw.get("Name") == name), "")

    def _grant(self, qualification: str, people: set[str]) -> None:
        """Best effort: our entry page refuses a second participation anyway; this saves people the click."""
        if not people:
            return
        try:
            granted = {
                raw["WorkerId"]
                for raw in self.wire.pages(
                    "ListWorkersWithQualificationType", "Qualifications", QualificationTypeId=qualification
                )
            }
            for person in sorted(people - granted):
                self.wire.call(
                    "AssociateQualificationWithWorker",
                    QualificationTypeId=qualification,
                    WorkerId=person,
                    IntegerValue=1,
                    SendNotification=False,
                )
        except PlatformError:
            return

    def _read(self, posted: PlatformPosting) -> list[Hit]:
        return self.hits.read(posted.facts["hits"])

    def _every(self, posted: PlatformPosting, reference: str = "") -> list[Hit]:
        """The stored HITs, and those created by a call that was cut off: their reference identifies them,
        also when the tokens of that call no longer work."""
        hits = self._read(posted)
        reference = reference or next((hit.reference for hit in hits if hit.reference), "")
        known = {hit.id for hit in hits}
        beside = self.hits.of_reference(reference) if reference else []
        return sorted([*hits, *(hit for hit in beside if hit.id not in known)], key=lambda hit: hit.index)

    def _stop_posting(self, posted: PlatformPosting, how: PostingState) -> PlatformPosting:
        hits = self.hits.end(self._every(posted), int(posted.facts["lifetime_s"]))
        return self._platform_posting(posted.external_id, hits, {**posted.facts, "stopped": how}, posted)

    def _platform_posting(
        self,
        external_id: str,
        hits: Sequence[Hit],
        facts: Mapping[str, Any],
        before: PlatformPosting | None = None,
    ) -> PlatformPosting:
        """The HITs as one posting. A deleted HIT (after 120 days) still counts with its stored values."""
        known = dict(facts)
        known["hits"] = _merge_hit_ids(before, hits)
        known["places"] = {**facts.get("places", {}), **{hit.id: hit.places for hit in hits}}
        known["taken"] = {**facts.get("taken", {}), **{hit.id: hit.places - hit.free for hit in hits}}
        group = next((hit.group for hit in hits), "")
        pages = self.account.site.url or WORKER_PAGES[self.account.site.mode]
        return PlatformPosting(
            external_id=external_id,
            state=_state(hits, known),
            raw=printable("+".join(sorted({hit.status for hit in hits}) or ["Disposed"]))[:RAW_MAX],
            places=sum(known["places"].values()),
            taken=sum(known["taken"].values()),
            facts=known,
            address=f"{pages.rstrip('/')}/projects/{group}/tasks" if group else "",
            names=tuple(known["hits"]),
        )


def _state(hits: Sequence[Hit], facts: Mapping[str, Any]) -> PostingState:
    lifetime_s = int(facts["lifetime_s"])
    if not hits:
        return "closed"
    ended = [hit.is_ended(lifetime_s) for hit in hits]
    can_come = any(hit.status == OPEN_STATUS and not over for hit, over in zip(hits, ended, strict=True))
    if facts["stopped"] and not can_come:
        return "closed" if facts["stopped"] == "closed" else "paused"
    # Full HITs are open: they were not ended, and more places reopen them.
    return "paused" if all(ended) else "open"


def _merge_hit_ids(before: PlatformPosting | None, hits: Sequence[Hit]) -> list[str]:
    known = list(before.facts["hits"]) if before else []
    return [*known, *(hit.id for hit in hits if hit.id not in known)]
