"""What Prolific's own pages leave open about money, each with the fault by which the simulator does it.

A page is named by its title on docs.prolific.com; what it says is told in our words. A fault is one of
faults.py, or a verb of control.py that a rehearsal or a test calls.
"""

from __future__ import annotations

from dataclasses import dataclass

PAY, SET_UP = "API reference, Bonuses, Pay bonuses", "API reference, Bonuses, Set up bonuses"
LOADS, ERRORS = "Core concepts, Managing high loads", "Get started, API fundamentals, Error codes"
APPROVE, READ = "API reference, Submissions, Bulk approve", "API reference, Submissions, Retrieve"
STUDY, HOOKS = "API reference, Studies, Retrieve", "API reference, Webhooks, Verifying"


@dataclass(frozen=True, slots=True)
class Open:
    """One thing that a page leaves open: `page`, what it `says`, and the `fault` that makes it happen."""

    page: str
    says: str
    fault: str


OPEN = (
    Open(PAY, "Bonuses are paid some time after the answer, without a bound.", "late_effect"),
    Open(PAY, "The call is not idempotent; no answer is described but 202 and a 400 without a word.",
         "lost_answer"),
    Open(PAY, "Nowhere: that a call that failed on the platform's side had no effect.", "5xx_after"),
    Open(LOADS, "Paying calls that contend for the wallet may be answered 429; nowhere: without effect.",
         "refused_late"),
    Open(ERRORS, "429 may concern a related resource, and passes.", "429"),
    Open(ERRORS, "5xx are not listed at all.", "5xx_before"),
    Open(SET_UP, "A refusal explains which ids are wrong.", "refuse"),
    Open(SET_UP, "The sum is a double or null.", "null_amount"),
    Open(SET_UP, "The amounts are numbers; clients met text.", "text_amount"),
    Open(APPROVE, "Approval in bulk is asynchronous, and its answer a sentence.", "late_effect"),
    Open(READ, "Bonuses are a list of numbers; nowhere: one for each payment.", "one_sum"),
    Open(READ, "The numbers are doubles; nowhere: how they are rounded.", "other_amount"),
    Open(READ, "Members are nullable, and new ones appear.", "odd_row"),
    Open(READ, "The status may be one that is not in the list.", "call_by"),
    Open(STUDY, "The reward can be raised while people take part.", "raise_reward"),
)  # fmt: skip
