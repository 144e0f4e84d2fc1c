"""What may happen to a submission: taken, finished, returned, timed out, decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crowd.rehearsal.prolific import study_states
from crowd.rehearsal.prolific.records import (
    ProlificRefusal,
    ProlificSubmission,
    SubmissionStatus,
    invalid,
    too_poor,
)
from crowd.rehearsal.prolific.world import ProlificWorld

RESERVED_S = 600
AUTO_APPROVAL_S = 21 * 86_400
LEAST_MESSAGE = 100
HAS_LEFT = {"RETURNED", "REJECTED"}


def take(world: ProlificWorld, study_id: str, person_id: str, *, reserve: bool = False) -> ProlificSubmission:
    """A participant takes a place of a study that is open to them."""
    study = world.study(study_id)
    if study.status != "ACTIVE" or study_states.free_places(world, study) <= 0:
        raise ProlificRefusal(409, f"The study is {study.status} or has no free place.", "No place")
    reason = bar_reason(world, study_id, person_id)
    if reason:
        raise ProlificRefusal(409, reason, "Not eligible")
    taken = len(world.submissions_of(study_id))
    part = study.parts[taken % len(study.parts)] if study.parts else ""
    submission = ProlificSubmission(world.new_id(), study_id, person_id, world.now(), "RESERVED", part)
    world.submissions[submission.id] = submission
    _tell(world, submission)
    if reserve:
        world.clock.after(RESERVED_S, lambda: _if(submission, "RESERVED", lambda: back(world, submission)))
    else:
        start(world, submission)
    return submission


def bar_reason(world: ProlificWorld, study_id: str, person_id: str) -> str:
    """Why this participant may not take a place of the study; empty: they may."""
    sent = world.study(study_id).sent
    most = (sent.get("submissions_config") or {}).get("max_submissions_per_participant", 1)
    earlier = [submission for submission in world.submissions_of(study_id) if submission.person == person_id]
    if most != -1 and sum(submission.status not in HAS_LEFT for submission in earlier) >= most:
        return "This participant already took part."
    for rule in sent.get("filters") or []:
        if bars(world, rule, person_id):
            return f"The filter {rule['filter_id']} bars this participant."
    return ""


def bars(world: ProlificWorld, rule: dict[str, Any], person_id: str) -> bool:
    """Only the filters that the simulator can know about: earlier studies and groups."""
    values = set(rule.get("selected_values") or [])
    in_studies = any(each.study in values for each in world.submissions.values() if each.person == person_id)
    in_groups = any(person_id in world.groups[name].members for name in values & world.groups.keys())
    return {
        "previous_studies_blocklist": in_studies,
        "previous_studies": not in_studies,
        "participant_group_blocklist": in_groups,
        "participant_group_allowlist": not in_groups,
    }.get(rule["filter_id"], False)


def start(world: ProlificWorld, submission: ProlificSubmission) -> None:
    if submission.status != "RESERVED":
        raise ProlificRefusal(409, f"A submission that is {submission.status} cannot start.")
    submission.started_at = world.now()
    become(world, submission, "ACTIVE")
    limit = float(world.study(submission.study).sent["maximum_allowed_time"]) * 60
    world.clock.after(limit, lambda: _if(submission, "ACTIVE", lambda: time_out(world, submission)))


def time_out(world: ProlificWorld, submission: ProlificSubmission) -> None:
    """The maximum time is over. A person who entered a code just before is not affected."""
    if submission.completed_at is None and submission.status == "ACTIVE":
        become(world, submission, "TIMED-OUT")


def complete(world: ProlificWorld, submission: ProlificSubmission, code: str) -> None:
    """The participant enters a code. The submission stays ACTIVE for a while; a code that comes too late is
    only stored."""
    if submission.status == "TIMED-OUT":
        submission.entered_code = submission.entered_code or code
        return
    if submission.status != "ACTIVE" or submission.completed_at is not None:
        raise ProlificRefusal(409, f"A submission that is {submission.status} takes no code any more.")
    submission.entered_code, submission.completed_at = code, world.now()
    world.clock.after(
        world.options.review_delay_s,
        lambda: _if(submission, "ACTIVE", lambda: _apply(world, submission, code)),
    )


def _if(submission: ProlificSubmission, status: str, act: Callable[[], object]) -> None:
    """For scheduled calls: the submission may have changed meanwhile."""
    if submission.status == status:
        act()


def _apply(world: ProlificWorld, submission: ProlificSubmission, entered: str) -> None:
    """What the study declared for this code; a code that it never declared waits for review."""
    study = world.study(submission.study)
    code = study.code(entered)
    actions = {action["action"]: action for action in code["actions"]} if code else {}
    if added := actions.get("ADD_TO_PARTICIPANT_GROUP"):
        members = world.groups[added["participant_group"]].members
        members += [submission.person] if submission.person not in members else []
    if "FIXED_SCREEN_OUT_PAYMENT" in actions and study_states.slots_left(study)[entered] > 0:
        _screen_out(
            world, submission, entered, int(actions["FIXED_SCREEN_OUT_PAYMENT"]["fixed_screen_out_reward"])
        )
        return
    if "REQUEST_RETURN" in actions:
        request_return(world, submission, [actions["REQUEST_RETURN"]["return_reason"]])
    become(world, submission, "AWAITING REVIEW")
    if "AUTOMATICALLY_APPROVE" in actions:
        _approve(world, submission)
        return
    world.clock.after(
        AUTO_APPROVAL_S, lambda: _if(submission, "AWAITING REVIEW", lambda: _approve(world, submission))
    )


def _screen_out(world: ProlificWorld, submission: ProlificSubmission, code: str, cents: int) -> None:
    study = world.study(submission.study)
    study.slots_used[code] = study.slots_used.get(code, 0) + 1
    submission.rewards.append(cents)
    world.purse.pay("screen_out", study.id, submission.id, cents, world.now())
    become(world, submission, "SCREENED OUT")
    if study.status == "ACTIVE" and study_states.slots_left(study)[code] <= 0:
        study_states.become(world, study, "PAUSED")


def back(world: ProlificWorld, submission: ProlificSubmission) -> None:
    """The participant gives the place back, which they may until it is decided."""
    if submission.status not in ("RESERVED", "ACTIVE", "AWAITING REVIEW"):
        raise ProlificRefusal(409, f"A submission that is {submission.status} cannot be returned.")
    become(world, submission, "RETURNED")


def become(world: ProlificWorld, submission: ProlificSubmission, status: SubmissionStatus) -> None:
    submission.status = status
    _tell(world, submission)
    study_states.refresh(world, world.study(submission.study))


def _tell(world: ProlificWorld, submission: ProlificSubmission) -> None:
    world.emit(
        "submission.status.change",
        resource_id=submission.id,
        participant_id=submission.person,
        status=submission.status,
    )
    world.emit("study.progress.change", resource_id=submission.study)


def decide(world: ProlificWorld, submission: ProlificSubmission, sent: dict[str, Any]) -> None:
    """A decision of the researcher. It is final: the same one is ignored, a different one refused."""
    action = sent["action"]
    if action == "APPROVE":
        if submission.status != "APPROVED":
            _check_open(submission, action)
            if not _approve(world, submission):
                raise too_poor("for this reward")
    elif action == "REJECT":
        _reject(world, submission, sent)
    else:
        raise invalid(f"The action {action} is not available.")


def _check_open(submission: ProlificSubmission, action: str) -> None:
    if submission.status != "AWAITING REVIEW":
        raise invalid(f"A submission that is {submission.status} cannot {action}.")


def _reject(world: ProlificWorld, submission: ProlificSubmission, sent: dict[str, Any]) -> None:
    message, category = sent.get("message") or "", sent.get("rejection_category") or ""
    wrong: dict[str, list[str]] = {}
    if len(message) < LEAST_MESSAGE:
        wrong["message"] = [f"Ensure this field has at least {LEAST_MESSAGE} characters."]
    if not category:
        wrong["rejection_category"] = ["This field is required."]
    if wrong:
        raise ProlificRefusal(400, wrong, "Validation error")
    if submission.status == "REJECTED":
        return
    _check_open(submission, "REJECT")
    submission.rejection = (category, message)
    become(world, submission, "REJECTED")


def _approve(world: ProlificWorld, submission: ProlificSubmission) -> bool:
    """Pays the reward, once; without enough money nothing is approved."""
    cents = world.study(submission.study).cents
    if world.purse.balance < world.purse.cost(cents):
        return False
    submission.rewards.append(cents)
    world.purse.pay("reward", submission.study, submission.id, cents, world.now())
    become(world, submission, "APPROVED")
    return True


def bulk_approve(world: ProlificWorld, submissions: list[ProlificSubmission]) -> None:
    """Asynchronous: those that await review then are approved, the others are ignored. Only what the purse
    cannot pay is refused at once."""
    ready = {each.id: each for each in submissions if each.status == "AWAITING REVIEW"}.values()
    if world.purse.balance < sum(world.purse.cost(world.study(each.study).cents) for each in ready):
        raise too_poor("for these rewards")

    def act() -> None:
        for submission in submissions:
            if submission.status == "AWAITING REVIEW":
                _approve(world, submission)

    world.clock.after(world.options.approve_delay_s, act)


def request_return(world: ProlificWorld, submission: ProlificSubmission, reasons: list[str]) -> None:
    if submission.status not in ("ACTIVE", "AWAITING REVIEW"):
        raise ProlificRefusal(
            400, f"A return cannot be requested of a submission that is {submission.status}."
        )
    submission.return_requested = submission.return_requested or world.now()
    submission.return_reasons += [reason for reason in reasons if reason not in submission.return_reasons]
