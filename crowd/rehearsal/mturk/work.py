"""Operations on assignments and money."""

from __future__ import annotations

from crowd.rehearsal.mturk import limits as ask
from crowd.rehearsal.mturk.limits import Members
from crowd.rehearsal.mturk.purse import CENT
from crowd.rehearsal.mturk.records import Refused, listed
from crowd.rehearsal.mturk.wire import Json, bonus_json, dollars, hit_json, page, work_json
from crowd.rehearsal.mturk.world import World

BONUS = "bonus"
REASON = 10_000


def list_assignments(world: World, members: Members) -> Json:
    hit = world.hit(members["HITId"])
    states = members.get("AssignmentStatuses") or ["Submitted", "Approved", "Rejected"]
    assignments = [work for work in listed([hit]) if work.status in states]
    return page(world, "ListAssignmentsForHIT", members, "Assignments", assignments, work_json)


def get_assignment(world: World, members: Members) -> Json:
    work = world.work(members["AssignmentId"])
    return {"Assignment": work_json(work), "HIT": hit_json(work.hit, world.now)}


def approve_assignment(world: World, members: Members) -> Json:
    feedback = ask.text(members, "RequesterFeedback", ask.FEEDBACK)
    override = bool(members.get("OverrideRejection", False))
    world.approve(world.work(members["AssignmentId"]), feedback, override)
    return {}


def reject_assignment(world: World, members: Members) -> Json:
    feedback = ask.text(members, "RequesterFeedback", ask.FEEDBACK, 1)
    world.reject(world.work(members["AssignmentId"]), feedback)
    return {}


def send_bonus(world: World, members: Members) -> Json:
    """Pays at once. The same token again is an error within a day; later it pays again."""
    token = members.get("UniqueRequestToken")
    before = world.remembered(BONUS, token)
    if before:
        raise Refused(
            "BonusAlreadyExists",
            f"A bonus was already granted with this UniqueRequestToken. The request ID was {before}.",
        )
    work = world.work(members["AssignmentId"])
    if work.worker != members["WorkerId"]:
        raise ask.refuse(f"Worker {members['WorkerId']} did not submit assignment {work.id}.")
    world.bonus(work, ask.money(members, "BonusAmount", CENT), ask.text(members, "Reason", REASON, 1))
    world.remember(BONUS, token, world.new_id("", 32))
    return {}


def list_bonus_payments(world: World, members: Members) -> Json:
    if ask.one_of(members, "HITId", "AssignmentId") == "HITId":
        works = listed([world.hit(members["HITId"])])
    else:
        works = [world.work(members["AssignmentId"])]
    bonuses = [paid for paid in world.listed_bonuses if paid.work in works]
    return page(world, "ListBonusPayments", members, "BonusPayments", bonuses, bonus_json)


def get_account_balance(world: World, members: Members) -> Json:
    return {"AvailableBalance": dollars(world.purse.balance), "OnHoldBalance": "0.00"}
