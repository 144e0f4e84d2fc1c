"""The verbs of the simulated Mechanical Turk (platform_control.py), and its full state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from crowd.rehearsal.faults import Faults
from crowd.rehearsal.mturk.notices import Send, to_queue
from crowd.rehearsal.mturk.purse import in_cents
from crowd.rehearsal.mturk.question_xml import read_question
from crowd.rehearsal.mturk.records import TurkHit, TurkPerson, Work
from crowd.rehearsal.mturk.world import TurkWorld
from crowd.rehearsal.platform_control import CannotBe, Json, PlatformVerbs
from crowd.rehearsal.serving import with_query

PREVIEW_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
RESERVED = {"assignmentId", "hitId", "workerId", "turkSubmitTo"}
COMPLETION = "completion"


@dataclass(slots=True)
class TurkControl(PlatformVerbs):
    """The verbs. `url` is the platform's address for workers' browsers."""

    VERBS = (
        *("advance", "complete", "deliver", "fail_softly", "faults", "fund", "message", "people", "preview"),
        *("return", "state", "take", "time_out"),
    )
    world: TurkWorld
    faulty: Faults
    url: str = ""
    written: list[Json] = field(default_factory=list)

    def people(self, count: int = 1, **known: Any) -> Json:
        """Makes workers with habits from the seed; `known`: country, approvals, percent, is_adult, habit …"""
        with self.world.lock:
            made = [self.world.new_person(**known) for _ in range(count)]
            return {"people": [{"person": person.id, "habit": person.habit} for person in made]}

    def take(self, posting: str = "", person: str = "") -> Json:
        """A worker accepts the oldest HIT they may: of `posting` (a HIT, HIT type or group; empty: any).

        Without `person`, a worker who has not been there takes it, made if needed.
        """
        with self.world.lock:
            who, hit = self._match(self._offered_hits(posting), person)
            return self.arrival(self.world.accept(who, hit)) | {"habit": who.habit}

    def arrival(self, work: Work) -> Json:
        """How the accepted work reaches the requester's page."""
        url = with_query(
            read_question(work.hit.question).url,
            assignmentId=work.id,
            hitId=work.hit.id,
            workerId=work.worker,
            turkSubmitTo=self.url,
        )
        return {
            "url": url,
            "person": work.worker,
            "submission": work.submission,
            "posting": work.hit.id,
            "assignment": work.id,
            "page": f"{self.url}/worker/{work.hit.id}?assignment={work.submission}",
        }

    def preview(self, posting: str = "", person: str = "") -> Json:
        """The address shown before acceptance."""
        with self.world.lock:
            hits = self._offered_hits(posting)
            hit = next((hit for hit in hits if hit.status(self.world.now) == "Assignable"), None) or hits[0]
            self.world.preview(self.known(person) if person else TurkPerson(""), hit)
            return {"url": preview_url(hit), "posting": hit.id, "page": f"{self.url}/worker/{hit.id}"}

    def complete(
        self, submission: str, code: str = "", fields: Sequence[tuple[str, str]] | None = None
    ) -> Json:
        """The worker's browser posts the form: `code` in the field `completion`, or `fields` as they are."""
        with self.world.lock:
            work = self.find(submission)
            self.world.submit(work, fields or [(COMPLETION, code)])
            return self.told(work)

    def give_back(self, submission: str) -> Json:
        """The worker returns the assignment."""
        with self.world.lock:
            work = self.find(submission)
            self.world.give_back(work)
            return self.told(work)

    def time_out(self, submission: str) -> Json:
        """Ends the assignment's time, at any time of the clock."""
        with self.world.lock:
            work = self.find(submission)
            self.world.abandon(work)
            return self.told(work)

    def fund(self, dollars: str) -> Json:
        """Adds money to the account; a negative amount takes it away, never more than there is."""
        with self.world.lock:
            if (held := self.world.purse.balance) + Decimal(dollars) < 0:
                raise CannotBe(f"The account holds {held}: {dollars} cannot be added to it.")
            self.world.purse.fund(Decimal(dollars))
            return {"balance": in_cents(self.world.purse.balance)}

    def message(self, person: str, body: str) -> Json:
        """A worker writes. On this platform that is e-mail: no API returns it, so it is only stored here."""
        with self.world.lock:
            self.written.append({"person": self.known(person).id, "body": body})
            return {"reaches_api": False}

    def fail_softly(self, people: Sequence[str]) -> Json:
        """The next message to each of these workers fails temporarily."""
        with self.world.lock:
            self.world.soft_failing |= set(people)
            return {"people": sorted(self.world.soft_failing)}

    def deliver(
        self,
        endpoint: str = "",
        queue_url: str = "",
        *,
        send: Send | None = None,
        duplicates: bool = False,
        reverse: bool = False,
        late_s: float = 0,
    ) -> Json:
        """Sends the waiting notices, to an SQS server or (in process) to `send`: twice, newest first, or only
        after so much more time."""
        if not (endpoint or send):
            raise CannotBe("Where to? Give the endpoint of an SQS server.")
        way = send or to_queue(endpoint, queue_url)
        if not callable(way):
            raise TypeError("send is for calls in process")
        if late_s:
            self.world.clock.advance(late_s)
        with self.world.lock:
            waiting = self.world.notices.taken_out()
        order = waiting[::-1] if reverse else waiting
        for notice in order * (2 if duplicates else 1):  # without the lock: the receiver may call us at once
            way(notice.specification, notice.text)
        return {"sent": len(order) * (2 if duplicates else 1)}

    def state(self) -> Json:
        """The full state: every submission with every payment that was made for it, and the money."""
        with self.world.lock:
            purse = self.world.purse
            return {
                "simulated": True,
                "now": self.world.now.isoformat(),
                "currency": "USD",
                "balance": in_cents(purse.balance),
                "initial_balance": in_cents(purse.received),
                "paid": {
                    kind: sum(in_cents(paid.dollars) for paid in purse.payments if paid.kind == kind)
                    for kind in ("reward", "bonus")
                },
                "fees": sum(in_cents(paid.fee) for paid in purse.payments),
                "faults": dict(self.faulty.met),
                "postings": {hit.id: self._told_hit(hit) for hit in self.world.hits.values()},
                "submissions": {
                    work.submission: self.told(work) for hit in self.world.hits.values() for work in hit.work
                },
                "letters": {
                    person.id: [list(letter) for letter in person.letters]
                    for person in self.world.people.values()
                    if person.letters
                },
                "written": list(self.written),
            }

    # Parts of the verbs ------------------------------------------------------------------------------------

    def told(self, work: Work) -> Json:
        """The full state of one assignment."""
        rewards = self.world.purse.paid(work, "reward")
        return {
            "submission": work.submission,
            "person": work.worker,
            "posting": work.hit.id,
            "state": work.status,
            "code": dict(work.fields).get(COMPLETION, ""),
            "fields": [list(pair) for pair in work.fields],
            "reward_paid_count": len(rewards),
            "reward_paid_cents": sum(in_cents(paid.dollars) for paid in rewards),
            "bonuses": [in_cents(paid.dollars) for paid in self.world.purse.paid(work, "bonus")],
            "listed_bonuses": [
                in_cents(paid.dollars) for paid in self.world.listed_bonuses if paid.work is work
            ],
        }

    def _told_hit(self, hit: TurkHit) -> Json:
        return {
            "state": hit.status(self.world.now),
            "places": hit.places,
            "held": hit.held,
            "done": hit.done,
            "free": hit.free,
            "annotation": hit.annotation,
        }

    def find(self, submission: str) -> Work:
        """The work of a submission (assignment:worker), or the work that has an assignment id now."""
        assignment, _, worker = submission.partition(":")
        matches = [
            work for work in self.world.all_work.get(assignment, ()) if worker in ("", work.worker)
        ]  # fmt: skip
        if not matches:
            raise CannotBe(f"There is no submission {submission}.")
        return matches[-1]

    def known(self, person: str) -> TurkPerson:
        if person not in self.world.people:
            raise CannotBe(f"There is no worker {person}.")
        return self.world.people[person]

    def _offered_hits(self, posting: str) -> list[TurkHit]:
        hits = [
            hit
            for hit in self.world.hits.values()
            if not hit.is_disposed and posting in ("", hit.id, hit.kind.id, hit.kind.group)
        ]
        if not hits:
            raise CannotBe(f"There is no HIT of {posting or 'any kind'}.")
        return hits

    def _match(self, hits: Sequence[TurkHit], person: str) -> tuple[TurkPerson, TurkHit]:
        """A worker and the HIT they take: the first that is free and allowed."""
        free = [hit for hit in hits if hit.status(self.world.now) == "Assignable"]
        if not free:
            raise CannotBe("No HIT of these is assignable: all places are held, or the HITs are over.")
        who = self.known(person) if person else self._newcomer(hits, free[0])
        may = [
            hit for hit in free if self.world.may(who, hit, "Accept") and not self.world.worked_on(who, hit)
        ]
        return who, (may or free)[0]

    def _newcomer(self, hits: Sequence[TurkHit], wanted: TurkHit) -> TurkPerson:
        been = {work.worker for hit in hits for work in hit.work}
        for person in self.world.people.values():
            if person.id not in been and self.world.may(person, wanted, "Accept"):
                return person
        return self.world.new_person()


def preview_url(hit: TurkHit) -> str:
    """Before acceptance the address names neither an assignment nor a worker."""
    return with_query(read_question(hit.question).url, assignmentId=PREVIEW_ID, hitId=hit.id)
