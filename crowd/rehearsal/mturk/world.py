"""The state of the simulated Mechanical Turk: HITs, the work on them, and what happens with time.

Everything here runs under `lock`, which is the clock's: a scheduled call never sees a half-made change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.habits import Habits
from crowd.rehearsal.mturk.eligibility import MASTERS, meets
from crowd.rehearsal.mturk.notices import TurkNotices
from crowd.rehearsal.mturk.purse import CENT, FEE, STEP, TurkPurse, fee_on, reward_rate
from crowd.rehearsal.mturk.question_xml import answers_document
from crowd.rehearsal.mturk.records import (
    GONE,
    LISTED,
    HitType,
    QualificationType,
    Transfer,
    TurkEvent,
    TurkHit,
    TurkPerson,
    TurkRefusal,
    Work,
    wrong_state,
)
from experiments.design.rng import Streams

TOKENS_LAST = timedelta(hours=24)
BONUS_WITHIN = timedelta(days=180)
DISPOSED_AFTER_S = 120 * 86_400
PREVIEW_S = 300
AGAIN_S = 86_400
"""An automatic approval without enough money is tried again a day later."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True, slots=True)
class TurkOptions:
    """What accounts differ in."""

    balance_cents: int = 1_000_000


class TurkWorld:
    """The whole state. Its methods change it or raise Refused; none of them does input or output."""

    def __init__(self, clock: Clock, seed: int, options: TurkOptions) -> None:
        self.clock, self.lock, self.options = clock, clock.lock, options
        self.purse = TurkPurse(Decimal(options.balance_cents) / 100)
        self._habits = Habits(seed)
        self._ids = Streams(seed)("mturk", "ids")
        self.paging, self.odd = Streams(seed)("mturk", "paging"), Streams(seed)("mturk", "odd")
        self.types: dict[str, HitType] = {}
        self.hits: dict[str, TurkHit] = {}
        self.people: dict[str, TurkPerson] = {}
        self.all_work: dict[str, list[Work]] = {}
        self.qualifications: dict[str, QualificationType] = {}
        self.listed_bonuses: list[Transfer] = []
        self.soft_failing: set[str] = set()
        self.tokens: dict[tuple[str, str], tuple[datetime, str]] = {}
        self.notices = TurkNotices(self.new_id("A", 14), partial(self.new_id, "", 32))

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def new_id(self, start: str, length: int) -> str:
        drawn = self._ids.integers(len(LETTERS), size=length - len(start))
        return start + "".join(LETTERS[int(number)] for number in drawn)

    # Requests that may be repeated -------------------------------------------------------------------------

    def refuse_again(self, scope: str, token: str | None, code: str, said: str) -> None:
        """Refuses what an earlier request with this token did, unless the token has expired."""
        at, made = self.tokens.get((scope, token or ""), (self.now, ""))
        if made and self.now - at < TOKENS_LAST:
            raise TurkRefusal(code, f"{said} {made}.")

    def remember(self, scope: str, token: str | None, what: str) -> None:
        if token:
            self.tokens[scope, token] = (self.now, what)

    # HITs --------------------------------------------------------------------------------------------------

    def hit_type(self, **properties: Any) -> HitType:
        """The HIT type with these properties: identical ones are the same type."""
        for kind in self.types.values():
            if all(getattr(kind, name) == value for name, value in properties.items()):
                return kind
        kind = HitType(self.new_id("3", 30), self.new_id("3", 30), **properties)
        self.types[kind.id] = kind
        return kind

    def create_hit(
        self, kind: HitType, places: int, lifetime_s: int, question: str, annotation: str | None
    ) -> TurkHit:
        """Offers a HIT. The account must be able to pay for all of it; nothing is taken yet."""
        self.purse.require(places * self.cost_of_place(kind, places))
        expires = self.now + timedelta(seconds=lifetime_s)
        hit = TurkHit(self.new_id("3", 30), kind, self.now, expires, places, question, annotation)
        self.hits[hit.id] = hit
        self.tell("HITCreated", hit)
        self.clock.after(lifetime_s, partial(self._expire_hit, hit))
        return hit

    def cost_of_place(self, kind: HitType, places: int) -> Decimal:
        return kind.reward + fee_on(kind.reward, self.rate(kind, places))

    def rate(self, kind: HitType, places: int) -> Decimal:
        masters = any(
            requirement["QualificationTypeId"] in MASTERS and requirement["Comparator"] != "DoesNotExist"
            for requirement in kind.requirements
        )
        return reward_rate(places, masters)

    def hit(self, hit_id: str) -> TurkHit:
        hit = self.hits.get(hit_id)
        if hit is None or hit.is_disposed:
            raise TurkRefusal("HITDoesNotExist", f"Hit {hit_id} does not exist.")
        return hit

    def add_places(self, hit: TurkHit, added: int) -> None:
        if hit.places < STEP <= hit.places + added:
            raise TurkRefusal(
                "InvalidMaximumAssignmentsIncrease",
                f"HIT {hit.id} has fewer than {STEP} assignments and cannot grow to it or beyond.",
            )
        self.purse.require(added * self.cost_of_place(hit.kind, hit.places))
        hit.places += added
        self.tell("HITExtended", hit)
        self._follow_review(hit)

    def expire_at(self, hit: TurkHit, expires: datetime) -> None:
        """A time in the past ends the offer now; those who hold an assignment may still submit."""
        later = expires > hit.expires and expires > self.now
        hit.expires = expires if expires > self.now else min(hit.expires, self.now)
        if later:
            hit.expiry_told = False
            self.tell("HITExtended", hit)
        self.clock.after(max(0.0, (hit.expires - self.now).total_seconds()), partial(self._expire_hit, hit))
        self._follow_review(hit)

    def _expire_hit(self, hit: TurkHit) -> None:
        if hit.expires <= self.now and not hit.expiry_told and not hit.is_disposed:
            hit.expiry_told = True
            self.tell("HITExpired", hit)
            self._follow_review(hit)

    def _follow_review(self, hit: TurkHit) -> None:
        """Follows a HIT into and out of review."""
        if hit.status(self.now) != "Reviewable":
            hit.reviewable_since = None
        elif hit.reviewable_since is None:
            hit.reviewable_since = self.now
            self.tell("HITReviewable", hit)
            self.clock.after(DISPOSED_AFTER_S, partial(self._dispose_hit, hit, self.now))

    def _dispose_hit(self, hit: TurkHit, since: datetime) -> None:
        if hit.reviewable_since != since or hit.is_disposed:
            return
        if hit.counted("Submitted"):
            self.clock.after(AGAIN_S, partial(self._dispose_hit, hit, since))
            return
        hit.is_disposed = True
        self.tell("HITDisposed", hit)

    # Workers' side -----------------------------------------------------------------------------------------

    def person(self, worker: str) -> TurkPerson:
        """The worker of this id; an unknown one is created with ordinary properties."""
        return self.people.setdefault(worker, TurkPerson(worker))

    def new_person(self, **known: Any) -> TurkPerson:
        """A worker with a habit of their own from the seed, and ordinary properties."""
        known.setdefault("habit", self._habits.of(len(self.people)))
        person = TurkPerson(self.new_id("A", 14), **known)
        self.people[person.id] = person
        return person

    def may(self, person: TurkPerson, hit: TurkHit, action: str) -> bool:
        """Whether the worker may Accept, Preview or Discover this HIT, as far as rights go."""
        return meets(person, hit.kind.requirements, self.qualifications, action)

    def worked_on(self, person: TurkPerson, hit: TurkHit) -> bool:
        return any(work.worker == person.id and work.status not in GONE for work in hit.work)

    def preview(self, person: TurkPerson, hit: TurkHit) -> None:
        """A preview. For a while it counts as pending, as on the platform."""
        if not self.may(person, hit, "Preview"):
            raise TurkRefusal("DoesNotMeetRequirements", "The worker may not preview this HIT.")
        hit.previews += 1
        self.clock.after(PREVIEW_S, partial(_end_preview, hit))

    def accept(self, person: TurkPerson, hit: TurkHit) -> Work:
        status = hit.status(self.now)
        if status != "Assignable":
            raise TurkRefusal("InvalidHITState", wrong_state("HIT", hit.id, "Assignable", status))
        if self.worked_on(person, hit):
            raise TurkRefusal(
                "ExceedsMaxAssignmentsPerWorker", "A worker takes one assignment of a HIT, no more."
            )
        if not self.may(person, hit, "Accept"):
            raise TurkRefusal("DoesNotMeetRequirements", "The worker lacks a qualification.")
        deadline = self.now + timedelta(seconds=hit.kind.duration_s)
        work = Work(self._assignment_id(person, hit), person.id, hit, self.now, deadline)
        hit.work.append(work)
        self.all_work.setdefault(work.id, []).append(work)
        self.tell("AssignmentAccepted", hit, work)
        self.clock.after(hit.kind.duration_s, partial(self.abandon, work, is_due=True))
        return work

    def _assignment_id(self, person: TurkPerson, hit: TurkHit) -> str:
        """The id of a returned assignment is used again, never for the same worker."""
        before = {work.id for work in hit.work if work.worker == person.id}
        for freed in hit.freed:
            if freed not in before:
                hit.freed.remove(freed)
                return freed
        return self.new_id("3", 30)

    def submit(self, work: Work, fields: Sequence[tuple[str, str]]) -> None:
        work.require("Accepted")
        work.status, work.submitted, work.ended = "Submitted", self.now, self.now
        work.fields, work.answer = tuple(fields), answers_document(fields)
        if self.now < work.hit.expires:  # after expiry no event may be sent: only polling shows it
            self.tell("AssignmentSubmitted", work.hit, work)
        self.clock.after(work.hit.kind.approval_s, partial(self._approved_by_itself, work))
        self._follow_review(work.hit)

    def give_back(self, work: Work) -> None:
        self._end_work(work, "Returned", "AssignmentReturned")

    def abandon(self, work: Work, is_due: bool = False) -> None:
        """The time of an assignment is over. `is_due` asks whether it really is still held."""
        if not is_due or work.status == "Accepted":
            self._end_work(work, "Abandoned", "AssignmentAbandoned")

    def _end_work(self, work: Work, status: Any, event: str) -> None:
        work.require("Accepted")
        work.status, work.ended = status, self.now
        work.hit.freed.append(work.id)
        self.tell(event, work.hit, work)
        self._follow_review(work.hit)

    # Decisions and money -----------------------------------------------------------------------------------

    def work(self, assignment_id: str) -> Work:
        """What was submitted under this id. Accepted work is not there yet for the requester."""
        for work in self.all_work.get(assignment_id, ()):
            if work.status in LISTED and not work.hit.is_disposed:
                return work
        raise TurkRefusal("AssignmentDoesNotExist", f"Assignment {assignment_id} does not exist.")

    def approve(self, work: Work) -> None:
        """Pays reward and fee, once; without the money nothing is decided."""
        work.require("Submitted")
        kind = work.hit.kind
        self.purse.pay("reward", work, kind.reward, self.rate(kind, work.hit.places), self.now)
        work.status, work.approved = "Approved", self.now
        self.person(work.worker).approvals += 1
        self.tell("AssignmentApproved", work.hit, work)

    def reject(self, work: Work, feedback: str) -> None:
        work.require("Submitted")
        work.status, work.rejected, work.feedback = "Rejected", self.now, feedback
        self.tell("AssignmentRejected", work.hit, work)

    def _approved_by_itself(self, work: Work) -> None:
        if work.status != "Submitted" or work.hit.is_disposed:
            return
        try:
            self.approve(work)
        except TurkRefusal:
            self.clock.after(AGAIN_S, partial(self._approved_by_itself, work))

    def bonus(self, work: Work, dollars: Decimal, reason: str) -> Transfer:
        last = max(submitted.submitted for submitted in self.submitted_by(work.worker) if submitted.submitted)
        if self.now - last > BONUS_WITHIN:
            raise TurkRefusal(
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

    def tell(self, event: str, hit: TurkHit, work: Work | None = None) -> None:
        if hit.kind.notice_active:
            happened = TurkEvent(event, self.now, hit.kind.id, hit.id, work.id if work else "")
            self.notices.happened(hit.kind.notice, happened)


def _end_preview(hit: TurkHit) -> None:
    hit.previews = max(0, hit.previews - 1)
