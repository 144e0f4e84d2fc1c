"""Operations on HITs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from crowd.rehearsal.mturk import limits as ask
from crowd.rehearsal.mturk.eligibility import check_requirements
from crowd.rehearsal.mturk.limits import Members
from crowd.rehearsal.mturk.questions import read_question
from crowd.rehearsal.mturk.records import Hit, HitType, Refused
from crowd.rehearsal.mturk.wire import Json, hit_json, page
from crowd.rehearsal.mturk.world import World

CREATION, GROWTH = "hit", "places"
"""What a request token stands for."""


def create_hit_type(world: World, members: Members) -> Json:
    return {"HITTypeId": _kind(world, members).id}


def create_hit_with_hit_type(world: World, members: Members) -> Json:
    _check_token(world, members)
    _check_offer(world, members)
    return _offer(world, known_type(world, members), members)


def _check_token(world: World, members: Members) -> None:
    before = world.remembered(CREATION, members.get("UniqueRequestToken"))
    if before:
        raise Refused(
            "HitAlreadyExists",
            f"A HIT with this UniqueRequestToken already exists. The HITId of the existing HIT is {before}.",
        )


def _check_offer(world: World, members: Members) -> None:
    """The members of the HIT itself."""
    ask.number(members, "MaxAssignments", ask.PLACES, 1)
    ask.number(members, "LifetimeInSeconds", ask.SECONDS)
    ask.text(members, "RequesterAnnotation", ask.ANNOTATION)
    for policy in ("AssignmentReviewPolicy", "HITReviewPolicy"):
        if policy in members:
            raise ask.refuse(f"The simulator knows no {policy}.")
    if ask.one_of(members, "Question", "HITLayoutId") == "HITLayoutId":
        raise Refused("HITLayoutDoesNotExist", f"HITLayout {members['HITLayoutId']} does not exist.")
    read_question(members["Question"], https_only=world.options.https_only)


def _kind(world: World, members: Members) -> HitType:
    requirements = members.get("QualificationRequirements", [])
    check_requirements(requirements, world.qualifications)
    return world.hit_type(
        title=ask.text(members, "Title", ask.TITLE, 1),
        description=ask.text(members, "Description", ask.DESCRIPTION, 1),
        keywords=ask.text(members, "Keywords", ask.KEYWORDS),
        reward=ask.money(members, "Reward"),
        duration_s=ask.number(members, "AssignmentDurationInSeconds", ask.SECONDS),
        approval_s=ask.number(members, "AutoApprovalDelayInSeconds", ask.APPROVAL, ask.APPROVAL[1]),
        requirements=requirements,
    )


def _offer(world: World, kind: HitType, members: Members) -> Json:
    hit = world.create_hit(
        kind,
        int(members.get("MaxAssignments", 1)),
        int(members["LifetimeInSeconds"]),
        members["Question"],
        members.get("RequesterAnnotation"),
    )
    world.remember(CREATION, members.get("UniqueRequestToken"), hit.id)
    return {"HIT": hit_json(hit, world.now)}


def known_type(world: World, members: Members) -> HitType:
    kind = world.types.get(members["HITTypeId"])
    if kind is None:
        raise Refused("HITTypeDoesNotExist", f"HITType {members['HITTypeId']} does not exist.")
    check_requirements(kind.requirements, world.qualifications)
    return kind


def get_hit(world: World, members: Members) -> Json:
    return {"HIT": hit_json(world.hit(members["HITId"]), world.now)}


def list_hits(world: World, members: Members) -> Json:
    return _hits(world, "ListHITs", members, _existing(world))


def _existing(world: World) -> list[Hit]:
    """Newest first."""
    return [hit for hit in reversed(world.hits.values()) if not hit.is_disposed]


def _hits(world: World, operation: str, members: Members, hits: list[Hit]) -> Json:
    return page(world, operation, members, "HITs", hits, lambda hit: hit_json(hit, world.now))


def update_expiration(world: World, members: Members) -> Json:
    hit = world.hit(members["HITId"])
    expires = _time(members["ExpireAt"])
    if expires > world.now + timedelta(seconds=ask.SECONDS[1]):
        raise ask.refuse("ExpireAt must lie within 365 days.")
    world.expire_at(hit, expires)
    return {}


def _time(value: Any) -> datetime:
    """Epoch seconds, as the client writes them."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise ask.refuse("ExpireAt must be seconds since 1970.")
    return datetime.fromtimestamp(value, UTC)


def create_additional_assignments(world: World, members: Members) -> Json:
    hit = world.hit(members["HITId"])
    token = members.get("UniqueRequestToken")
    before = world.remembered(GROWTH, token)
    if before:
        raise Refused(
            "AssignmentAlreadyExists",
            f"Assignments were already added with this UniqueRequestToken. The request ID was {before}.",
        )
    world.add_places(hit, ask.number(members, "NumberOfAdditionalAssignments", ask.PLACES))
    world.remember(GROWTH, token, world.new_id("", 32))
    return {}
