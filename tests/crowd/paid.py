"""A study on a simulated platform with people at every ending, and the platform's record of every payment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError

from crowd.ground.identity_hashes import person_hash, submission_hash
from crowd.models import Identity, Payout, Posting, Submission
from crowd.recruiting.publishing import publish_posting
from experiments.definition.study import StudyDefinition
from experiments.models import Session, Study, Trial
from tests.analysis import stored

REWARD: dict[str, Any] = {
    "amount_cents": 140,
    "currency": "GBP",
    "expected_minutes": 5,
    "bonus_per_match_cents": 5,
    "bonus_max_cents": 30,
}
POLICY: dict[str, Any] = {"screened_share": 0.5, "turned_away_share": 0.25}


def paying(slots: int = 8, reward: dict[str, Any] | None = None, **changes: Any) -> Study:
    """The stored study with a reward, a bonus and a policy."""
    study = stored.opened(slots)
    definition = {
        **study.definition,
        "reward": REWARD | (reward or {}),
        "policy": POLICY,
        "ethics": {"contact": "lab@example.org"},
        **changes,
    }
    digest = StudyDefinition.model_validate(definition).digest
    Study.objects.filter(pk=study.pk).update(definition=definition, digest=digest)
    return Study.objects.get(pk=study.pk)


def right_until(count: int) -> Callable[[Trial], bool]:
    """Answers the first `count` scored trials with the model; checks always rightly."""
    left = [count]

    def right(trial: Trial) -> bool:
        if trial.check_kind or trial.kind == "learn":
            return True
        left[0] -= 1
        return left[0] >= 0

    return right


@dataclass
class Stage:
    """A posting on a simulator. `sim` is the platform's simulator."""

    sim: Any
    posting: Posting
    count: int = 0

    @property
    def study(self) -> Study:
        return self.posting.study

    def person(
        self,
        *,
        verdict: str = "passed",
        matches: int = 0,
        condition: str | None = "any",
        answers: int | None = None,
        outcome: str = "complete",
        forged: bool = False,
        returns: bool = True,
    ) -> Submission:
        """A person who comes from the platform, takes part and goes back with the outcome's code; with an
        empty `outcome` they never go back. With `returns` they give the place back when the platform asks."""
        self.count += 1
        if condition == "any":
            condition = stored.CONDITIONS[self.count % 3][0]
        taken = self.sim.control.take()
        person = "somebody-else" if forged else taken["person"]
        submission = str(taken["submission"])
        session = stored.sitting(
            self.study,
            f"{self.count}-{self.posting.key}",
            condition=condition,
            verdict=verdict,
            right=right_until(matches),
            answers=answers,
            origin="simulated",
        )
        identity = Identity.objects.create(
            study=self.study,
            platform=self.posting.platform,
            person_hash=person_hash(self.posting, person),
            participant=session.participant,
        )
        row = Submission.objects.create(
            posting=self.posting,
            identity=identity,
            submission_hash=submission_hash(self.posting, submission),
            session=session,
        )
        if outcome:
            self.sim.control.complete(taken["submission"], self.posting.codes[outcome])
            self.sim.clock.advance(10)
            if returns and self.truth()[row.submission_hash].get("return_requested"):
                self.sim.control.give_back(submission)
        return row

    def truth(self) -> dict[str, dict[str, Any]]:
        """The platform's own record: submission hash -> what was paid."""
        works = self.sim.control.state()["submissions"]
        return {submission_hash(self.posting, name): work for name, work in works.items()}

    def paid(self, row: Submission) -> tuple[int, list[int]]:
        """(rewards paid, bonuses) of one submission by the platform's own record."""
        work = self.truth()[row.submission_hash]
        return work["reward_paid_cents"], sorted(work["bonuses"])

    def ledger(self, row: Submission) -> dict[str, tuple[str, int]]:
        """Kind -> (state, cents)."""
        rows = Payout.objects.filter(session=row.session)
        return {payout.kind: (payout.state, payout.cents) for payout in rows}


MTURK: dict[str, Any] = {
    "reward": {"currency": "USD"},
    "policy": {**POLICY, "withdrawn": "full"},
    "platforms": {"mturk": {"base_share": 0.25}},
    "recruitment": {"description": "Look at pictures and say what they show."},
}
"""What Mechanical Turk asks of a study: dollars, a base that is no more than the least share."""


def paying_on(platform: str, **changes: Any) -> Study:
    """The study in a form that the platform takes."""
    return paying(**((MTURK if platform == "mturk" else {}) | changes))


@contextmanager
def offered(study: Study, platform: str = "prolific", **options: Any) -> Iterator[Stage]:
    """The study on a fresh simulator, rehearsed."""
    simulated = import_module(f"crowd.rehearsal.{platform}")
    with simulated.simulator(**options) as sim:
        yield Stage(sim, publish_posting(study, platform, "rehearsal", site=sim.url))


def settle(study: Study, *, yes: bool = True, **options: Any) -> str:
    """Runs the command; the sentence it ended with, empty for success."""
    try:
        call_command("settle", study.slug, yes=yes, by="grace", **options)
    except CommandError as error:
        return str(error)
    return ""


def payout(posting: Posting, session: Session | None, **fields: Any) -> Payout:
    """A row of the ledger for a session that came by this posting; its submission is made if there is
    none."""
    assert session is not None
    submission, _ = Submission.objects.get_or_create(
        session=session, defaults={"posting": posting, "submission_hash": session.pk.hex * 2}
    )
    return Payout.objects.create(posting=posting, session=session, submission=submission, **fields)


def agree(stage: Stage) -> None:
    """Ledger and platform agree to the cent about every submission, also of people who never joined, and no
    person was paid twice."""
    truth = stage.truth()
    for row in Submission.objects.filter(posting=stage.posting):
        work = truth.pop(row.submission_hash)
        sent = Payout.objects.filter(submission=row, state="sent")
        accepted = sum(line.cents * line.accepted for line in row.lines.all())
        assert work["reward_paid_count"] <= 1, "a reward was paid twice"
        paid = work["reward_paid_cents"] + sum(work["bonuses"])
        assert paid == sum(payout.cents for payout in sent) + accepted
    assert all(work["reward_paid_cents"] + sum(work["bonuses"]) == 0 for work in truth.values())


def unfinished(session: Session | None, **changes: Any) -> None:
    """Changes how a stored sitting ended."""
    assert session is not None
    Session.objects.filter(pk=session.pk).update(**changes)
