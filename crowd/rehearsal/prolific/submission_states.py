"""What may happen to a submission: taken, finished, returned, timed out, decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crowd.rehearsal.prolific import study_states
from crowd.rehearsal.prolific.records import Refused, Submission, SubmissionStatus
from crowd.rehearsal.prolific.world import World

RESERVED_S = 600
AUTO_APPROVAL_S = 21 * 86_400
LEAST_MESSAGE = 100
HAS_LEFT = {"RETURNED", "REJECTED"}


def take(world: World, study_id: str, person_id: str, *, reserve: bool = False) -> Submission:
    """A participant takes a place of a study that is open to them."""
    study = world.study(study_id)
    if study.status != "ACTIVE" or study_states.free_places(world, study) <= 0:
        raise Refused(409, f"The study is {study.status} or has no free place.", "No place")
    reason = barred(world, study_id, person_id)
    if reason:
        raise Refused(409, reason, "Not eligible")
    taken = len(world.submissions_of(study_id))
    part = study.parts[taken % len(study.parts)] if study.parts else ""
    submission = Submission(world.new_id(), study_id, person_id, world.now(), "RESERVED", part)
    world.submissions[submission.id] = submission
    _tell(world, submission)
    if reserve:
        world.clock.after(RESERVED_S, lambda: _if(submission, "RESERVED", lambda: back(world, submission)))
    else:
        start(world, submission)
    return submission


def barred(world: World, study_id: str, person_id: str) -> str:
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


def bars(world: World, rule: dict[str, Any], person_id: str) -> bool:
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


def start(world: World, submission: Submission) -> None:
    if submission.status != "RESERVED":
        raise Refused(409, f"A submission that is {submission.status} cannot start.")
    submission.started_at = world.now()
    become(world, submission, "ACTIVE")
    limit = float(world.study(submission.study).sent["maximum_allowed_time"]) * 60
    world.clock.after(limit, lambda: _if(submission, "ACTIVE", lambda: time_out(world, submission)))


def time_out(world: World, submission: Submission) -> None:
    """The maximum time is over. A person who entered a code just before is not affected."""
    if submission.completed_at is None and submission.status == "ACTIVE":
        become(world, submission, "TIMED-OUT")


def complete(world: World, submission: Submission, code: str) -> None:
    """The participant enters a code. The submission stays ACTIVE for a while; a code that comes too late is
    only stored."""
    if submission.status == "TIMED-OUT":
        submission.entered_code = submission.entered_code or code
        return
    if submission.status != "ACTIVE" or submission.completed_at is not None:
        raise Refused(409, f"A submission that is {submission.status} takes no code any more.")
    submission.entered_code, submission.completed_at = code, world.now()
    world.clock.after(
        world.options.review_delay_s,
        lambda: _if(submission, "ACTIVE", lambda: _apply(world, submission, code, "participant")),
    )


def _if(submission: Submission, status: str, act: Callable[[], object]) -> None:
    """For scheduled calls: the submission may have changed meanwhile."""
    if submission.status == status:
        act()


def _apply(world: World, submission: Submission, entered: str, actor: str) -> None:
    """What the study declared for this code; a code that it never declared waits for review."""
    study = world.study(submission.study)
    code = study.code(entered, actor)
    actions = {action["action"]: action for action in code["actions"]} if code else {}
    _regroup(world, submission, actions)
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


def _regroup(world: World, submission: Submission, actions: dict[str, dict[str, Any]]) -> None:
    added, removed = actions.get("ADD_TO_PARTICIPANT_GROUP"), actions.get("REMOVE_FROM_PARTICIPANT_GROUP")
    if added:
        members = world.groups[added["participant_group"]].members
        if submission.person not in members:
            members.append(submission.person)
    if removed:
        members = world.groups[removed["participant_group"]].members
        members[:] = [member for member in members if member != submission.person]


def _screen_out(world: World, submission: Submission, code: str, cents: int) -> None:
    study = world.study(submission.study)
    study.slots_used[code] = study.slots_used.get(code, 0) + 1
    submission.rewards.append(cents)
    world.purse.pay("screen_out", study.id, submission.id, cents, world.now())
    become(world, submission, "SCREENED OUT")
    if study.status == "ACTIVE" and study_states.slots_left(study)[code] <= 0:
        study_states.become(world, study, "PAUSED")


def back(world: World, submission: Submission) -> None:
    """The participant gives the place back, which they may until it is decided."""
    if submission.status not in ("RESERVED", "ACTIVE", "AWAITING REVIEW"):
        raise Refused(409, f"A submission that is {submission.status} cannot be returned.")
    become(world, submission, "RETURNED")


def become(world: World, submission: Submission, status: SubmissionStatus) -> None:
    submission.status = status
    _tell(world, submission)
    study_states.refresh(world, world.study(submission.study))


def _tell(world: World, submission: Submission) -> None:
    world.emit(
        "submission.status.change",
        resource_id=submission.id,
        participant_id=submission.person,
        status=submission.status,
    )
    world.emit("study.progress.change", resource_id=submission.study)


def decide(world: World, submission: Submission, sent: dict[str, Any]) -> None:
    """A decision of the researcher. It is final: the same one is ignored, a different one refused."""
    action = sent["action"]
    if action == "COMPLETE":
        _complete_for(world, submission, sent)
    elif action == "APPROVE":
        if submission.status != "APPROVED":
            _check_open(submission, action)
            if not _approve(world, submission):
                raise Refused(400, "Your balance is not sufficient for this reward.", "Insufficient funds")
    elif action == "REJECT":
        _reject(world, submission, sent)
    else:
        raise Refused(400, f"The action {action} is not available.", "Invalid transition")


def _check_open(submission: Submission, action: str) -> None:
    if submission.status != "AWAITING REVIEW":
        raise Refused(400, f"A submission that is {submission.status} cannot {action}.", "Invalid transition")


def _reject(world: World, submission: Submission, sent: dict[str, Any]) -> None:
    message, category = sent.get("message") or "", sent.get("rejection_category") or ""
    wrong: dict[str, list[str]] = {}
    if len(message) < LEAST_MESSAGE:
        wrong["message"] = [f"Ensure this field has at least {LEAST_MESSAGE} characters."]
    if not category:
        wrong["rejection_category"] = ["This field is required."]
    if wrong:
        raise Refused(400, wrong, "Validation error")
    if submission.status == "REJECTED":
        return
    _check_open(submission, "REJECT")
    submission.rejection = (category, message)
    become(world, submission, "REJECTED")


def _complete_for(world: World, submission: Submission, sent: dict[str, Any]) -> None:
    """The researcher finishes it with a code of their own, for dynamic payment with a share of the reward."""
    study = world.study(submission.study)
    name = sent.get("completion_code") or ""
    code = study.code(name, "researcher")
    if code is None:
        raise Refused(400, {"completion_code": ["No such code for the actor researcher."]})
    if submission.status == "PARTIALLY APPROVED" and submission.entered_code == name:
        return
    if submission.status not in ("ACTIVE", "AWAITING REVIEW"):
        raise Refused(400, f"A submission that is {submission.status} cannot COMPLETE.", "Invalid transition")
    dynamic = any(action["action"] == "DYNAMIC_PAYMENT" for action in code["actions"])
    extra = sent.get("completion_code_data")
    if dynamic and not extra:
        raise Refused(400, {"completion_code_data": ["This field is required."]})
    submission.entered_code = name
    submission.completed_at = submission.completed_at or world.now()
    if not dynamic:
        _apply(world, submission, name, "researcher")
        return
    cents = round(study.cents * float((extra or {})["percentage_of_reward"]) / 100)
    submission.rewards.append(cents)
    world.purse.pay("partial", study.id, submission.id, cents, world.now())
    become(world, submission, "PARTIALLY APPROVED")


def _approve(world: World, submission: Submission) -> bool:
    """Pays the reward, once; without enough money nothing is approved."""
    cents = world.study(submission.study).cents
    if world.purse.balance < world.purse.cost(cents):
        return False
    submission.rewards.append(cents)
    world.purse.pay("reward", submission.study, submission.id, cents, world.now())
    become(world, submission, "APPROVED")
    return True


def bulk_approve(world: World, submissions: list[Submission]) -> None:
    """Asynchronous: those that await review then are approved, the others are ignored. Only what the purse
    cannot pay is refused at once."""
    ready = {each.id: each for each in submissions if each.status == "AWAITING REVIEW"}.values()
    if world.purse.balance < sum(world.purse.cost(world.study(each.study).cents) for each in ready):
        raise Refused(400, "Your balance is not sufficient for these rewards.", "Insufficient funds")

    def act() -> None:
        for submission in submissions:
            if submission.status == "AWAITING REVIEW":
                _approve(world, submission)

    world.clock.after(world.options.approve_delay_s, act)


def request_return(world: World, submission: Submission, reasons: list[str]) -> None:
    if submission.status not in ("ACTIVE", "AWAITING REVIEW"):
        raise Refused(400, f"A return cannot be requested of a submission that is {submission.status}.")
    submission.return_requested = submission.return_requested or world.now()
    submission.return_reasons += [reason for reason in reasons if reason not in submission.return_reasons]
