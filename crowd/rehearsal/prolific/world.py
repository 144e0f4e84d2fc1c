"""The state of the simulated platform: people, studies, submissions, and who is notified of changes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.habits import Habits
from crowd.rehearsal.prolific.purse import FEE_BP, VAT_BP, ProlificPurse
from crowd.rehearsal.prolific.records import (
    Batch,
    Group,
    ProlificMessage,
    ProlificPerson,
    ProlificRefusal,
    ProlificSubmission,
    Study,
    StudyStatus,
)
from experiments.design.rng import Streams

REHEARSAL = "rehearsal"
"""The token, the workspace and the project that rehearsals use. Nothing here is secret."""
FIRST_PROJECT = "first-project"
RESEARCHER = "researcher"


@dataclass(frozen=True, slots=True)
class ProlificWorldOptions:
    """The platform's behaviour, as far as the real one varies. Delays are seconds on the simulator's clock.

    Fees are rounded to `1 / fee_parts` of a minor unit. `stop_leads_to` empty: drawn per study, as both were
    seen. `transient_share` of readings show a passing status that no documentation names.
    `newcomers_count`: so many people count as eligible who are made only when they come.
    """

    currency: str = "GBP"
    balance_cents: int = 10_000_000
    fee_bp: int = FEE_BP
    vat_bp: int = VAT_BP
    fee_parts: int = 1
    review_delay_s: float = 5.0
    approve_delay_s: float = 0.0
    pay_delay_s: float = 0.0
    publish_delay_s: float = 0.0
    transient_share: float = 0.0
    newcomers_count: int = 0
    stop_leads_to: StudyStatus | None = None
    screen_out_enabled: bool = True
    secure_enabled: bool = True


@dataclass(slots=True)
class ProlificWorld:
    """The platform's state. Guarded by the clock's lock, which every reader and writer holds."""

    clock: Clock
    seed: int
    options: ProlificWorldOptions
    purse: ProlificPurse = field(init=False)
    streams: Streams = field(init=False)
    people: dict[str, ProlificPerson] = field(default_factory=dict)
    studies: dict[str, Study] = field(default_factory=dict)
    submissions: dict[str, ProlificSubmission] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    messages: list[ProlificMessage] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    called_by: dict[str, str] = field(default_factory=dict)
    """Submission or study -> a status of no documentation that it is shown with."""
    unpayable: dict[str, bool] = field(default_factory=dict)
    """Submissions of which no bonus can be set up -> whether the refusal names them."""
    notices: Any = None
    """The sender of notifications (notices.py), which is told of every change."""
    projects: tuple[str, ...] = (FIRST_PROJECT, REHEARSAL)
    _draws: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = self.options
        self.purse = ProlificPurse(
            options.balance_cents, options.currency, options.fee_bp, options.vat_bp, options.fee_parts
        )
        self.streams = Streams(self.seed)

    @property
    def lock(self) -> threading.RLock:
        return self.clock.lock

    def now(self) -> datetime:
        return self.clock.now()

    def draw(self, name: str) -> Any:
        """The running generator of that name."""
        if name not in self._draws:
            self._draws[name] = self.streams("prolific", name)
        return self._draws[name]

    def new_id(self) -> str:
        """24 hexadecimal digits, as the platform's."""
        return str(self.draw("ids").bytes(12).hex())

    def emit(self, event_type: str, **members: Any) -> None:
        self.notices.queue(event_type, members)

    def shown(self, status: str, named: str = "") -> str:
        """The status that a request reads: now and then a passing one, if configured."""
        if self.called_by.get(named):
            return self.called_by[named]
        share = self.options.transient_share
        return "PROCESSING" if share and self.draw("transient").random() < share else status

    def make_people(self, count: int) -> list[ProlificPerson]:
        """So many more, with habits drawn from the seed."""
        made = []
        for _ in range(count):
            number = len(self.people)
            habit = Habits(self.seed).of(number)
            age, sex = str(18 + 7 * number % 60), ("Female", "Male", "Prefer not to say")[number % 3]
            person = ProlificPerson(self.new_id(), habit, age, sex)
            self.people[person.id] = person
            made.append(person)
        return made

    def study(self, study_id: str) -> Study:
        if study_id not in self.studies:
            raise ProlificRefusal(404, f"No study with id {study_id}.", "Not found")
        return self.studies[study_id]

    def submission(self, submission_id: str) -> ProlificSubmission:
        if submission_id not in self.submissions:
            raise ProlificRefusal(404, f"No submission with id {submission_id}.", "Not found")
        return self.submissions[submission_id]

    def submissions_of(self, study_id: str) -> list[ProlificSubmission]:
        return [submission for submission in self.submissions.values() if submission.study == study_id]
