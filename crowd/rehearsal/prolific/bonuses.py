"""Bonuses in two steps: set up (pays nothing), then pay, which pays again each time it is asked."""

from __future__ import annotations

import re
from decimal import Decimal

from crowd.rehearsal.prolific import study_states
from crowd.rehearsal.prolific.records import Batch, ProlificRefusal, ProlificSubmission, too_poor, wrong_field
from crowd.rehearsal.prolific.world import ProlificWorld

AMOUNT = re.compile(r"\d{1,7}(\.\d{1,2})?")
MOST_LINES = 200


def set_up(world: ProlificWorld, study_id: str, csv: str) -> Batch:
    """Reads the lines `id,amount in major units`; no header."""
    world.study(study_id)
    lines = [line.strip() for line in csv.strip().splitlines() if line.strip()]
    if not lines or len(lines) > MOST_LINES:
        raise wrong_field("csv_bonuses", f"Give 1 to {MOST_LINES} lines, not {len(lines)}.")
    wrong: list[str] = []
    strangers: list[str] = []
    read: list[tuple[str, int]] = []
    for line in lines:
        who, comma, amount = (part.strip() for part in line.partition(","))
        submission = _of(world, study_id, who)
        if not comma or not AMOUNT.fullmatch(amount) or minor(amount) == 0:
            wrong.append(f"The line {line!r} is not an id and an amount.")
        elif submission is None:
            strangers.append(who)
        else:
            read.append((submission.id, minor(amount)))
    if wrong:
        raise ProlificRefusal(400, {"csv_bonuses": wrong})
    refused = {each for each, _ in read if each in world.unpayable}
    if refused and not all(world.unpayable[each] for each in refused):
        raise ProlificRefusal(400, "Some of these bonuses cannot be paid.")
    strangers += sorted(refused)
    if strangers:
        raise ProlificRefusal(400, f"These ids have not taken part in the study: {', '.join(strangers)}")
    fees = [world.purse.fees_on(cents) for _, cents in read]
    fee, vat = (sum(column, Decimal(0)) for column in zip(*fees, strict=True))
    batch = Batch(world.new_id(), study_id, tuple(read), fee, vat)
    world.batches[batch.id] = batch
    return batch


def minor(amount: str) -> int:
    """`4.25` is 425, `30` is 3000."""
    whole, _, rest = amount.partition(".")
    return int(whole) * 100 + int((rest + "00")[:2])


def _of(world: ProlificWorld, study_id: str, who: str) -> ProlificSubmission | None:
    """By submission, or by participant: then their latest submission of the study."""
    submission = world.submissions.get(who)
    if submission is not None:
        return submission if submission.study == study_id else None
    submissions = [each for each in world.submissions_of(study_id) if each.person == who]
    return submissions[-1] if submissions else None


def mark(world: ProlificWorld, batch_id: str, fault: str) -> None:
    """From now on the list shows the payments of this batch as the fault says."""
    if batch_id in world.batches:
        world.batches[batch_id].fault = fault


def pay(world: ProlificWorld, batch_id: str) -> None:
    """Starts a payment. It is carried out later on the clock, and no second one may start meanwhile."""
    batch = world.batches.get(batch_id)
    if batch is None:
        raise ProlificRefusal(404, f"No bulk bonus payment with id {batch_id}.", "Not found")
    if any(other.in_progress for other in world.batches.values()):
        raise ProlificRefusal(409, "Another bonus payment is in progress.", "Conflict")
    if study_states.available(world) < batch.cents + batch.fees + batch.vat:
        raise too_poor("for these bonuses")
    batch.in_progress = True

    def carry_out() -> None:
        batch.in_progress = False
        batch.paid_count += 1
        for submission_id, cents in batch.lines:
            submission = world.submissions[submission_id]
            submission.shown_as[len(submission.bonuses)] = batch.fault
            submission.bonuses.append(cents)
            world.purse.pay("bonus", batch.study, submission_id, cents, world.now())

    world.clock.after(world.options.pay_delay_s, carry_out)
