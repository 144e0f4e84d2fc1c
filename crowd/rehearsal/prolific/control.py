"""The verbs of the simulated Prolific (platform_control.py), and its full state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crowd.rehearsal.faults import Faults
from crowd.rehearsal.platform_control import Json, PlatformVerbs
from crowd.rehearsal.prolific import entry, study_states, submission_states
from crowd.rehearsal.prolific.notices import Manner, ProlificNotices
from crowd.rehearsal.prolific.records import (
    HOLDING,
    Group,
    ProlificMessage,
    ProlificRefusal,
    ProlificSubmission,
    Study,
)
from crowd.rehearsal.prolific.world import RESEARCHER, ProlificWorld


@dataclass(slots=True)
class ProlificControl(PlatformVerbs):
    """The verbs. An impossible one raises ProlificRefusal."""

    VERBS = (
        *("advance", "call_by", "complete", "deliver", "faults", "fund", "group", "message", "people"),
        *("preview", "raise_reward", "refuse", "return", "start", "state", "take", "time_out", "webhook"),
    )
    world: ProlificWorld
    faulty: Faults
    notices: ProlificNotices
    signer: entry.Signer

    def people(self, count: int = 1) -> Json:
        """So many more participants, with habits drawn from the seed."""
        with self.world.lock:
            made = self.world.make_people(count)
            return {"people": [{"person": person.id, "habit": person.habit} for person in made]}

    def take(self, posting: str = "", person: str = "", reserve: bool = False) -> Json:
        """A participant takes a place: of `posting`, else of the first study with room; `person`, else an
        eligible one who has not been there, made if needed. `reserve` only holds it; `start` begins."""
        with self.world.lock:
            study = self.world.study(posting) if posting else self._open_study()
            who = person or self._newcomer(study)
            if who not in self.world.people:
                raise ProlificRefusal(404, "No such person: make people first.")
            made = submission_states.take(self.world, study.id, who, reserve=reserve)
            return {
                "url": entry.address(self.world, self.signer, study, made),
                "person": who,
                "habit": self.world.people[who].habit,
                "submission": made.id,
                "posting": study.id,
            }

    def start(self, submission: str) -> Json:
        """The participant begins a reserved place."""
        with self.world.lock:
            record = self.world.submission(submission)
            submission_states.start(self.world, record)
            return self._submission_json(record)

    def preview(self, posting: str = "", person: str = "") -> Json:
        """The address that the researcher's preview opens: values of no person in the placeholders."""
        with self.world.lock:
            study = self.world.study(posting) if posting else self._open_study()
            return {"url": entry.preview(self.world, study), "posting": study.id}

    def complete(self, submission: str, code: str = "") -> Json:
        """The participant enters a completion code, or none."""
        with self.world.lock:
            record = self.world.submission(submission)
            submission_states.complete(self.world, record, code)
            return self._submission_json(record)

    def give_back(self, submission: str) -> Json:
        """The participant returns the submission."""
        with self.world.lock:
            record = self.world.submission(submission)
            submission_states.back(self.world, record)
            return self._submission_json(record)

    def time_out(self, submission: str) -> Json:
        """Ends the maximum time, at any time of the clock."""
        with self.world.lock:
            record = self.world.submission(submission)
            submission_states.time_out(self.world, record)
            return self._submission_json(record)

    def fund(self, cents: int) -> Json:
        """Adds money to the workspace; a negative amount takes it away."""
        with self.world.lock:
            self.world.purse.fund(cents)
            return {"balance": self.world.purse.balance}

    def refuse(self, submission: str, names: bool = True) -> Json:
        """From now on no bonus can be set up for this submission; the refusal `names` it, or does not."""
        with self.world.lock:
            self.world.submission(submission)
            self.world.unpayable[submission] = names
            return {"unpayable": len(self.world.unpayable)}

    def raise_reward(self, posting: str, cents: int) -> Json:
        """The researcher raises the reward on the platform's own page."""
        with self.world.lock:
            study = self.world.study(posting)
            if cents < study.cents:
                raise ProlificRefusal(400, "A reward cannot be lowered.")
            study.sent["reward"] = cents
            return self._told_study(study)

    def call_by(self, status: str, submission: str = "", posting: str = "") -> Json:
        """The platform calls a submission or a study by another status than it is documented to have; empty:
        by its own again."""
        with self.world.lock:
            named = self.world.submission(submission).id if submission else self.world.study(posting).id
            self.world.called_by[named] = status
            return {"called_by": status}

    def group(self, name: str, people: Sequence[str] = ()) -> Json:
        """A new participant group of these people."""
        with self.world.lock:
            made = Group(self.world.new_id(), name, "", list(people), self.world.now())
            self.world.groups[made.id] = made
            return {"group": made.id}

    def message(self, person: str, body: str, posting: str = "") -> Json:
        """A participant writes to the researcher."""
        with self.world.lock:
            if person not in self.world.people:
                raise ProlificRefusal(404, "No such person.")
            made = ProlificMessage(self.world.new_id(), person, RESEARCHER, body, posting, self.world.now())
            self.world.messages.append(made)
            return {"message": made.id}

    def webhook(self, url: str, secret: str) -> Json:
        """Sends all notifications to this address from now on, signed with this secret."""
        with self.world.lock:
            self.notices.hook(url, secret)
            return {"subscriptions": len(self.notices.subscriptions)}

    def deliver(
        self,
        *,
        duplicates: bool = False,
        reverse: bool = False,
        late_s: float = 0.0,
        stale_s: float = 0.0,
        forged: bool = False,
    ) -> Json:
        """Sends the notifications that are due: once or twice each, oldest or newest first, after `late_s`
        have passed, stamped `stale_s` ago, or signed with a wrong secret. No lock is held: the receiver may
        call the platform before it answers."""
        if late_s:
            self.world.clock.advance(late_s)
        answers = self.notices.deliver(Manner(duplicates, reverse, stale_s, forged))
        with self.world.lock:
            waiting = sum(event.status == "PENDING" for event in self.notices.events)
        return {"sent": len(answers), "answers": answers, "waiting": waiting}

    def state(self) -> Json:
        """The truth: every submission with every payment that was made for it, and the money."""
        with self.world.lock:
            purse = self.world.purse
            paid = {
                kind: sum(each.cents for each in purse.entries if each.kind == kind)
                for kind in ("reward", "screen_out", "bonus")
            }
            return {
                "simulated": True,
                "now": self.world.now().isoformat(),
                "currency": purse.currency,
                "balance": purse.balance,
                "available": study_states.available(self.world),
                "initial_balance": purse.received,
                "paid": paid,
                "fees": sum(each.fees + each.vat for each in purse.entries),
                "postings": {each.id: self._told_study(each) for each in self.world.studies.values()},
                "submissions": {
                    each.id: self._submission_json(each) for each in self.world.submissions.values()
                },
                "batches": {
                    each.id: {"paid_count": each.paid_count, "cents": each.cents}
                    for each in self.world.batches.values()
                },
                "letters": {each.id: each.letters for each in self.world.people.values() if each.letters},
                "violations": list(self.world.violations),
                "faults": dict(self.faulty.met),
            }

    def _submission_json(self, submission: ProlificSubmission) -> Json:
        return {
            "submission": submission.id,
            "person": submission.person,
            "posting": submission.study,
            "state": submission.status,
            "code": submission.entered_code,
            "return_requested": submission.return_requested is not None,
            "reward_paid_count": len(submission.rewards),
            "reward_paid_cents": sum(submission.rewards),
            "bonuses": list(submission.bonuses),
            "listed_bonuses": submission.shown,
        }

    def _told_study(self, study: Study) -> Json:
        submissions = self.world.submissions_of(study.id)
        return {
            "state": study.status,
            "internal_name": study.sent.get("internal_name"),
            "places": study.places,
            "held": sum(submission.status in HOLDING for submission in submissions),
            "free": study_states.free_places(self.world, study),
            "codes": [code["code"] for code in study.codes],
        }

    def _open_study(self) -> Study:
        for study in self.world.studies.values():
            if study.status == "ACTIVE" and study_states.free_places(self.world, study) > 0:
                return study
        raise ProlificRefusal(409, "No study is open with a free place.")

    def _newcomer(self, study: Study) -> str:
        been = {submission.person for submission in self.world.submissions_of(study.id)}
        for person in self.world.people:
            if person not in been and not submission_states.bar_reason(self.world, study.id, person):
                return person
        return self.world.make_people(1)[0].id
