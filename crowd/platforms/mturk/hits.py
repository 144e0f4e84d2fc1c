"""The HITs of one posting: found again, created, enlarged, ended. Every verb may be repeated after any crash:
it reads first, and what it creates carries a token that works once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from crowd.platforms.base import PlatformError
from crowd.platforms.mturk.fees import NINE
from crowd.platforms.mturk.offer_terms import TurkTerms
from crowd.platforms.mturk.wire import TurkError, TurkWire

TOKEN_MAX = 64
YEAR = timedelta(days=365)
OPEN_STATUS = "Assignable"
HIT_ID = re.compile(r"\b[A-Z0-9]{10,64}\b")
GONE = "hitdoesnotexist"
TOO_SMALL_OR_OLD = frozenset(("invalidmaximumassignmentsincrease", "hittoooldforextension"))


@dataclass(frozen=True, slots=True)
class Hit:
    """A HIT as Mechanical Turk has it. `free` counts places not taken; `reference` and `index` are ours."""

    id: str
    kind: str
    group: str
    status: str
    places: int
    free: int
    created: datetime
    expires: datetime
    reference: str
    index: int

    def is_ended(self, lifetime_s: int) -> bool:
        """Whether no new person can come, although there may be places left.

        There is no clock here, but ending a HIT moves its end to an earlier time than the original one.
        """
        planned = self.created + timedelta(seconds=lifetime_s)
        early = self.expires < planned - timedelta(seconds=2)
        return early or (self.status != OPEN_STATUS and self.free > 0)


def hit_of(raw: Mapping[str, Any]) -> Hit:
    reference, _, index = str(raw.get("RequesterAnnotation") or "").rpartition("-")
    return Hit(
        id=raw["HITId"],
        kind=raw.get("HITTypeId", ""),
        group=raw.get("HITGroupId", ""),
        status=str(raw.get("HITStatus", "")),
        places=int(raw.get("MaxAssignments", 0)),
        free=int(raw.get("NumberOfAssignmentsAvailable", 0)),
        created=raw["CreationTime"].astimezone(UTC),
        expires=raw["Expiration"].astimezone(UTC),
        reference=reference if index.isdigit() else "",
        index=int(index) if index.isdigit() else -1,
    )


def token(*parts: object) -> str:
    """The same parts, the same token: at most 64 characters."""
    text = "-".join(str(part) for part in parts)
    if len(text) <= TOKEN_MAX:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


class Hits:
    """Verbs on the HITs of postings, for one account."""

    def __init__(self, wire: TurkWire) -> None:
        self.wire = wire

    def of_reference(self, reference: str) -> list[Hit]:
        """Those of an offer that exist, in order, over all pages of the account."""
        listed = [hit_of(raw) for raw in self.wire.pages("ListHITs", "HITs")]
        return sorted((hit for hit in listed if hit.reference == reference), key=lambda hit: hit.index)

    def read(self, hit_ids: Sequence[str]) -> list[Hit]:
        """Those that still exist; Mechanical Turk forgets a HIT after 120 days."""
        return [hit for hit_id in hit_ids if (hit := self._one(hit_id)) is not None]

    def grow(self, terms: TurkTerms, kind: str, hits: Sequence[Hit]) -> list[Hit]:
        """HITs with as many places as the offer has. The last one grows as far as it may without a higher
        fee; then new ones are created."""
        grown = list(hits)
        while (missing := terms.spec.places - sum(hit.places for hit in grown)) > 0:
            last = grown[-1] if grown else None
            more = _room(last, missing, terms.options["batch"]) if last else 0
            enlarged = self._enlarge_hit(last, more, terms.spec.reference) if last and more else None
            if enlarged:
                grown[-1] = enlarged
            else:
                size = min(missing, NINE) if terms.options["batch"] == "nine" else missing
                grown.append(self._create_hit(terms, kind, last.index + 1 if last else 0, size))
        return grown

    def end(self, hits: Sequence[Hit], lifetime_s: int) -> list[Hit]:
        """No new person may come; people who have begun may finish. Raises PlatformError if this fails."""
        for hit in hits:
            # Its creation time is in the past on every clock.
            self.wire.call("UpdateExpirationForHIT", HITId=hit.id, ExpireAt=hit.created)
        after = self.read([hit.id for hit in hits])
        still = [hit for hit in after if hit.status == OPEN_STATUS and not hit.is_ended(lifetime_s)]
        if still:
            raise PlatformError(
                f"{len(still)} of {len(hits)} HITs are still open on Mechanical Turk. Try again, or end them "
                "on its own pages."
            )
        return after

    def reopen(self, hits: Sequence[Hit], lifetime_s: int) -> list[Hit]:
        """Reopens ended HITs until their original end or, if that is past, for a year."""
        reopened = []
        for hit in hits:
            current = hit
            for lifetime in (timedelta(seconds=lifetime_s), YEAR):
                if current.is_ended(lifetime_s):
                    until = current.created + lifetime
                    self.wire.call("UpdateExpirationForHIT", HITId=hit.id, ExpireAt=until)
                    current = self._one(hit.id) or current
            if current.is_ended(lifetime_s):
                raise PlatformError(
                    "A HIT is older than a year and cannot be opened again. Close this posting and publish "
                    "the study anew.",
                    permanent=True,
                )
            reopened.append(current)
        return reopened

    def _one(self, hit_id: str) -> Hit | None:
        try:
            return hit_of(self.wire.call("GetHIT", HITId=hit_id)["HIT"])
        except TurkError as error:
            if error.code == GONE:
                return None
            raise

    def _enlarge_hit(self, hit: Hit, more: int, reference: str) -> Hit | None:
        """The HIT with more places; None if Mechanical Turk does not let it grow."""
        total = hit.places + more
        try:
            self.wire.call(
                "CreateAdditionalAssignmentsForHIT",
                HITId=hit.id,
                NumberOfAdditionalAssignments=more,
                UniqueRequestToken=token(reference, hit.index, "to", total),
            )
        except TurkError as error:
            if error.code in TOO_SMALL_OR_OLD or error.code == GONE:
                return None
            if not is_replay(error):
                raise
        after = self._one(hit.id)
        if after is None or after.places < total:
            raise PlatformError(
                "Mechanical Turk says that it added these places before, but does not show them. "
                "Try again later.",
                uncertain=True,
            )
        return after

    def _create_hit(self, terms: TurkTerms, kind: str, index: int, places: int) -> Hit:
        reference = terms.spec.reference
        try:
            return hit_of(
                self.wire.call(
                    "CreateHITWithHITType",
                    HITTypeId=kind,
                    MaxAssignments=places,
                    LifetimeInSeconds=terms.lifetime_s,
                    Question=terms.question,
                    RequesterAnnotation=f"{reference}-{index}",
                    UniqueRequestToken=token(reference, index),
                )["HIT"]
            )
        except TurkError as error:
            if not is_replay(error):
                raise
            return self._earlier_hit(error, reference, index)

    def _earlier_hit(self, error: TurkError, reference: str, index: int) -> Hit:
        """The HIT that an earlier request with the same token made: its message names it."""
        named = self.read(HIT_ID.findall(error.full))
        for hit in [*named, *self.of_reference(reference)]:
            if (hit.reference, hit.index) == (reference, index):
                return hit
        raise TurkError(
            "Mechanical Turk says that it made this HIT before, but does not show it. Try again later.",
            uncertain=True,
        ) from error


def is_replay(error: TurkError) -> bool:
    """Whether a request was refused because an earlier one like it took effect."""
    return "alreadyexists" in error.code


def _room(hit: Hit, missing: int, batch: str) -> int:
    """How many places a HIT may get. One made with nine or fewer never grows to ten."""
    if batch == "nine" or hit.places <= NINE:
        room = max(NINE - hit.places, 0)
        return min(missing, room) if batch == "nine" or missing <= room else 0
    return missing
