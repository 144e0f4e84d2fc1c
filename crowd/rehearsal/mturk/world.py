"""The state of the simulated Mechanical Turk: HITs, the work on them, and what happens with time.

Everything here runs under `lock`, which is the clock's: a scheduled call never sees a half-made change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.mturk.eligibility import MASTERS, meets
from crowd.rehearsal.mturk.notices import Notices
from crowd.rehearsal.mturk.purse import CENT, FEE, STEP, Purse, fee_on, reward_rate
from crowd.rehearsal.mturk.questions import answers_document
from crowd.rehearsal.mturk.records import (
    GONE,
    LISTED,
    Event,
    Hit,
    HitType,
    Paid,
    Person,
    QualificationType,
    Refused,
    Work,
)
from crowd.rehearsal.people import Habits
from experiments.design.rng import Streams

TOKENS_LAST = timedelta(hours=24)
OVERRIDE_WITHIN = timedelta(days=30)
BONUS_WITHIN = timedelta(days=180)
DISPOSED_AFTER_S = 120 * 86_400
PREVIEW_S = 300
AGAIN_S = 86_400
"""An automatic approval without enough money is tried again a day later."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True, slots=True)
class Options:
    """The platform's behaviour, as far as accounts differ or the real platform varies.

    `qualification_delay_s` passes between granting a qualification and its effect, on the simulator's clock.
    Outside pages must be https on the real platform; one on this machine rarely is.
    """

    balance_cents: int = 1_000_000
    qualification_delay_s: float = 0.0
    https_only: bool = False
    events_per_notice: int = 1


class World:
    """The whole state. Its methods change it or raise Refused; none of them does input or output."""

    def __init__(self, clock: Clock, seed: int, options: Options) -> None:
        self.clock, self.lock, self.options = clock, clock.lock, options
        self.purse = Purse(Decimal(options.balance_cents) / 100)
        self._habits = Habits(seed)
        self._ids = Streams(seed)("mturk", "ids")
        self.paging, self.odd = Streams(seed)("mturk", "paging"), Streams(seed)("mturk", "odd")
        self.types: dict[str, HitType] = {}
        self.hits: dict[str, Hit] = {}
        self.people: dict[str, Person] = {}
        self.all_work: dict[str, list[Work]] = {}
        self.qualifications: dict[str, QualificationType] = {}
        self.listed_bonuses: list[Paid] = []
        self.soft_failing: set[str] = set()
        self.tokens: dict[tuple[str, str], tuple[datetime, str]] = {}
        self.notices = Notices(self.new_id("A", 14), partial(self.new_id, "", 32), options.events_per_notice)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def new_id(self, start: str, length: int) -> str:
        drawn = self._ids.integers(len(LETTERS), size=length - len(start))
        return start + "".join(LETTERS[int(number)] for number in drawn)

    # Requests that may be repeated -------------------------------------------------------------------------

    def remembered(self, scope: str, token: str | None) -> str:
        """What an earlier request with this token made; empty: unknown, or the token has expired."""
        at, what = self.tokens.get((scope, token or ""), (self.now, ""))
        return what if self.now - at < TOKENS_LAST else ""

    def remember(self, scope: str, token: str | None, what: str) -> None:
        if token:
            self.tokens[scope, token] = (self.now, what)

    # HITs --------------------------------------------------------------------------------------------------

    def hit_type(
        self,
        *,
        title: str,
        description: str,
        keywords: str,
        reward: Decimal,
        duration_s: int,
        approval_s: int,
        requirements: Sequence[Mapping[str, Any]],
    ) -> HitType:
        """The HIT type with these properties: identical ones are the same type."""
        for kind in self.types.values():
            same = (
                kind.title,
                kind.description,
                kind.keywords,
                kind.reward,
                kind.duration_s,
                kind.approval_s,
            )
            if same == (title, description, keywords, reward, duration_s, approval_s) and _text(
                kind.requirements
            ) == _text(requirements):
                return kind
        kind = HitType(
            self.new_id("3", 30), self.new_id("3", 30), title, description, keywords, reward, duration_s,
            approval_s, tuple(requirements),
        )  # fmt: skip
        self.types[kind.id] = kind
        return kind

    def create_hit(
        self, kind: HitType, places: int, lifetime_s: int, question: str, annotation: str | None
    ) -> Hit:
        """Offers a HIT. The account must be able to pay for all of it; nothing is taken yet."""
        self.purse.require(places * self.cost_of_place(kind, places))
        expires = self.now + timedelta(seconds=lifetime_s)
        hit = Hit(self.new_id("3", 30), kind, self.now, expires, places, question, annotation)
        self.hits[hit.id] = hit
        self.tell("HITCreated", hit)
        self.clock.after(lifetime_s, partial(self._expired, hit))
        return hit

    def cost_of_place(self, kind: HitType, places: int) -> Decimal:
        return kind.reward + fee_on(kind.reward, self.rate(kind, places))

    def rate(self, kind: HitType, places: int) -> Decimal:
        masters = any(
            requirement["QualificationTypeId"] in MASTERS and requirement["Comparator"] != "DoesNotExist"
            for requirement in kind.requirements
        )
        return reward_rate(places, masters)

    def hit(self, hit_id: str) -> Hit:
        hit = self.hits.get(hit_id)
        if hit is None or hit.is_disposed:
            raise Refused("HITDoesNotExist", f"Hit {hit_id} does not exist.")
        return hit

    def add_places(self, hit: Hit, added: int) -> None:
        if hit.places < STEP <= hit.places + added:
            raise Refused(
                "InvalidMaximumAssignmentsIncrease",
                f"HIT {hit.id} has fewer than {STEP} assignments and cannot grow to it or beyond.",
            )
        self.purse.require(added * self.cost_of_place(hit.kind, hit.places))
        hit.places += added
        self.tell("HITExtended", hit)
        self._turned(hit)

    def expire_at(self, hit: Hit, expires: datetime) -> None:
        """A time in the past ends the offer now; those who hold an assignment may still submit."""
        later = expires > hit.expires and expires > self.now
        hit.expires = expires if expires > self.now else min(hit.expires, self.now)
        if later:
            hit.expiry_told = False
            self.tell("HITExtended", hit)
        self.clock.after(max(0.0, (hit.expires - self.now).total_seconds()), partial(self._expired, hit))
        self._turned(hit)

    def _expired(self, hit: Hit) -> None:
        if hit.expires <= self.now and not hit.expiry_told and not hit.is_disposed:
            hit.expiry_told = True
            self.tell("HITExpired", hit)
            self._turned(hit)

    def _turned(self, hit: Hit) -> None:
        """Follows a HIT into and out of review."""
        if hit.status(self.now) != "Reviewable":
            hit.reviewable_since = None
        elif hit.reviewable_since is None:
            hit.reviewable_since = self.now
            self.tell("HITReviewable", hit)
            self.clock.after(DISPOSED_AFTER_S, partial(self._forgotten, hit, self.now))

    def _forgotten(self, hit: Hit, since: datetime) -> None:
        if hit.reviewable_since != since or hit.is_disposed:
            return
        if hit.counted("Submitted"):
            self.clock.after(AGAIN_S, partial(self._forgotten, hit, since))
            return
        hit.is_disposed = True
        self.tell("HITDisposed", hit)

    # Workers' side -----------------------------------------------------------------------------------------

    def person(self, worker: str) -> Person:
        """The worker of this id; an unknown one is created with ordinary properties."""
        return self.people.setdefault(worker, Person(worker))

    def new_person(self, **known: Any) -> Person:
        """A worker with a habit of their own from the seed, and ordinary properties."""
        known.setdefault("habit", self._habits.of(len(self.people)))
        person = Person(self.new_id("A", 14), **known)
        self.people[person.id] = person
        return person

    def may(self, person: Person, hit: Hit, action: str) -> bool:
        """Whether the worker may Accept, Preview or Discover this HIT, as far as rights go."""
        return meets(person, hit.kind.requirements, self.qualifications, action, self.now)

    def worked_on(self, person: Person, hit: Hit) -> bool:
        return any(work.worker == person.id and work.status not in GONE for work in hit.work)

    def preview(self, person: Person, hit: Hit) -> None:
        """A preview. For a while it counts as pending, as on the platform."""
        if not self.may(person, hit, "Preview"):
            raise Refused("DoesNotMeetRequirements", "The worker may not preview this HIT.")
        hit.previews += 1
        self.clock.after(PREVIEW_S, partial(_end_preview, hit))

    def accept(self, person: Person, hit: Hit) -> Work:
        status = hit.status(self.now)
        if status != "Assignable":
            raise Refused("InvalidHITState", _wrong_state("HIT", hit.id, "Assignable", status))
        if self.worked_on(person, hit):
            raise Refused(
                "ExceedsMaxAssignmentsPerWorker", "A worker takes one assignment of a HIT, no more."
            )
        if not self.may(person, hit, "Accept"):
            raise Refused("DoesNotMeetRequirements", "The worker lacks a qualification.")
        deadline = self.now + timedelta(seconds=hit.kind.duration_s)
        work = Work(self._assignment_id(person, hit), person.id, hit, self.now, deadline)
        hit.work.append(work)
        self.all_work.setdefault(work.id, []).append(work)
        self.tell("AssignmentAccepted", hit, work)
        self.clock.after(hit.kind.duration_s, partial(self.abandon, work, is_due=True))
        return work

    def _assignment_id(self, person: Person, hit: Hit) -> str:
        """The id of a returned assignment is used again, never for the same worker."""
        before = {work.id for work in hit.work if work.worker == person.id}
        for freed in hit.freed:
            if freed not in before:
                hit.freed.remove(freed)
                return freed
        return self.new_id("3", 30)

    def submit(self, work: Work, fields: Sequence[tuple[str, str]]) -> None:
        if work.status != "Accepted":
            raise Refused(
                "InvalidAssignmentState",
                _wrong_state("Assignment", work.id, "Accepted", work.status),
            )
        work.status, work.submitted, work.ended = "Submitted", self.now, self.now
        work.fields, work.answer = tuple(fields), answers_document(fields)
        if self.now < work.hit.expires:  # after expiry no event may be sent: only polling shows it
            self.tell("AssignmentSubmitted", work.hit, work)
        self.clock.after(work.hit.kind.approval_s, partial(self._approved_by_itself, work))
        self._turned(work.hit)

    def give_back(self, work: Work) -> None:
        self._gone(work, "Returned", "AssignmentReturned")

    def abandon(self, work: Work, is_due: bool = False) -> None:
        """The time of an assignment is over. `is_due` asks whether it really is still held."""
        if not is_due or work.status == "Accepted":
            self._gone(work, "Abandoned", "AssignmentAbandoned")

    def _gone(self, work: Work, status: Any, event: str) -> None:
        if work.status != "Accepted":
            raise Refused(
                "InvalidAssignmentState",
                _wrong_state("Assignment", work.id, "Accepted", work.status),
            )
        work.status, work.ended = status, self.now
        work.hit.freed.append(work.id)
        self.tell(event, work.hit, work)
        self._turned(work.hit)

    # Decisions and money -----------------------------------------------------------------------------------

    def work(self, assignment_id: str) -> Work:
        """What was submitted under this id. Accepted work is not there yet for the requester."""
        for work in self.all_work.get(assignment_id, ()):
            if work.status in LISTED and not work.hit.is_disposed:
                return work
        raise Refused("AssignmentDoesNotExist", f"Assignment {assignment_id} does not exist.")

    def approve(self, work: Work, feedback: str = "", override: bool = False) -> None:
        """Pays reward and fee, once; without the money nothing is decided."""
        if work.status == "Rejected" and override:
            if self.now - (work.submitted or self.now) > OVERRIDE_WITHIN:
                raise Refused(
                    "InvalidAssignmentState",
                    f"Assignment {work.id} was submitted more than 30 days ago: its rejection stands.",
                )
        elif work.status != "Submitted":
            raise Refused(
                "InvalidAssignmentState", _wrong_state("Assignment", work.id, "Submitted", work.status)
            )
        kind = work.hit.kind
        self.purse.pay("reward", work, kind.reward, self.rate(kind, work.hit.places), self.now)
        work.status, work.approved, work.rejected = "Approved", self.now, None
        work.feedback = feedback or work.feedback
        self.person(work.worker).approvals += 1
        self.tell("AssignmentApproved", work.hit, work)

    def reject(self, work: Work, feedback: str) -> None:
        if work.status != "Submitted":
            raise Refused(
                "InvalidAssignmentState", _wrong_state("Assignment", work.id, "Submitted", work.status)
            )
        work.status, work.rejected, work.feedback = "Rejected", self.now, feedback
        self.tell("AssignmentRejected", work.hit, work)

    def _approved_by_itself(self, work: Work) -> None:
        if work.status != "Submitted" or work.hit.is_disposed:
            return
        try:
            self.approve(work)
        except Refused:
            self.clock.after(AGAIN_S, partial(self._approved_by_itself, work))

    def bonus(self, work: Work, dollars: Decimal, reason: str) -> Paid:
        last = max(submitted.submitted for submitted in self.submitted_by(work.worker) if submitted.submitted)
        if self.now - last > BONUS_WITHIN:
            raise Refused(
                "PermissionDeniedException", "The worker has done nothing for this Requester in six months."
            )
        paid = self.purse.pay("bonus", work, dollars, FEE, self.now, reason)
        self.listed_bonuses.append(paid)
        return paid

    def list_otherwise(self, fault: str) -> None:
        """From now on the list shows the last bonus with another cent, or with the earlier ones as a sum."""
        last = self.listed_bonuses.pop()
        if fault == "other_amount":
            self.listed_bonuses.append(replace(last, dollars=last.dollars + CENT))
            return
        earlier = [paid for paid in self.listed_bonuses if paid.work is last.work]
        self.listed_bonuses = [paid for paid in self.listed_bonuses if paid.work is not last.work]
        total = sum((paid.dollars for paid in earlier), last.dollars)
        self.listed_bonuses.append(replace(last, dollars=total))

    def submitted_by(self, worker: str) -> list[Work]:
        return [
            work
            for hit in self.hits.values()
            for work in hit.work
            if work.worker == worker and work.status in LISTED
        ]

    def decided_for(self, worker: str) -> bool:
        return any(work.status in ("Approved", "Rejected") for work in self.submitted_by(worker))

    def tell(self, event: str, hit: Hit, work: Work | None = None) -> None:
        if hit.kind.notice_active:
            happened = Event(event, self.now, hit.kind.id, hit.id, work.id if work else "")
            self.notices.happened(hit.kind.notice, happened)


def _end_preview(hit: Hit) -> None:
    hit.previews = max(0, hit.previews - 1)


def _wrong_state(what: str, name: str, wanted: str, status: str) -> str:
    return f"This operation can be called with a status of: {wanted}. {what} {name} has the status {status}."


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=list)
