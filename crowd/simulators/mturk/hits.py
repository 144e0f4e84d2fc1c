"""Operations on HITs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from crowd.simulators.mturk import limits as ask
from crowd.simulators.mturk.eligibility import check_requirements
from crowd.simulators.mturk.limits import Members
from crowd.simulators.mturk.questions import read_question
from crowd.simulators.mturk.records import Hit, HitType, Refused
from crowd.simulators.mturk.wire import Json, hit_json, page
from crowd.simulators.mturk.world import World

CREATION, GROWTH = "hit", "places"
"""What a request token stands for: both ways of creating a HIT share theirs."""


def create_hit_type(world: World, asked: Members) -> Json:
    return {"HITTypeId": _kind(world, asked).id}


def create_hit(world: World, asked: Members) -> Json:
    _check_token(world, asked)
    _check_offer(world, asked)
    return _offer(world, _kind(world, asked), asked)


def create_hit_with_hit_type(world: World, asked: Members) -> Json:
    _check_token(world, asked)
    _check_offer(world, asked)
    return _offer(world, known_type(world, asked), asked)


def _check_token(world: World, asked: Members) -> None:
    before = world.remembered(CREATION, asked.get("UniqueRequestToken"))
    if before:
        raise Refused(
            "HitAlreadyExists",
            f"A HIT with this UniqueRequestToken already exists. The HITId of the existing HIT is {before}.",
        )


def _check_offer(world: World, asked: Members) -> None:
    """What belongs to the HIT itself; checked before a HIT type is made in passing."""
    ask.number(asked, "MaxAssignments", ask.PLACES, 1)
    ask.number(asked, "LifetimeInSeconds", ask.SECONDS)
    ask.text(asked, "RequesterAnnotation", ask.ANNOTATION)
    for policy in ("AssignmentReviewPolicy", "HITReviewPolicy"):
        if policy in asked:
            raise ask.refuse(f"The simulator knows no {policy}.")
    if ask.one_of(asked, "Question", "HITLayoutId") == "HITLayoutId":
        raise Refused("HITLayoutDoesNotExist", f"HITLayout {asked['HITLayoutId']} does not exist.")
    read_question(asked["Question"], https_only=world.options.https_only)


def _kind(world: World, asked: Members) -> HitType:
    requirements = asked.get("QualificationRequirements", [])
    check_requirements(requirements, world.qualifications)
    return world.hit_type(
        title=ask.text(asked, "Title", ask.TITLE, 1),
        description=ask.text(asked, "Description", ask.DESCRIPTION, 1),
        keywords=ask.text(asked, "Keywords", ask.KEYWORDS),
        reward=ask.money(asked, "Reward"),
        duration_s=ask.number(asked, "AssignmentDurationInSeconds", ask.SECONDS),
        approval_s=ask.number(asked, "AutoApprovalDelayInSeconds", ask.APPROVAL, ask.APPROVAL[1]),
        requirements=requirements,
    )


def _offer(world: World, kind: HitType, asked: Members) -> Json:
    hit = world.create_hit(
        kind,
        int(asked.get("MaxAssignments", 1)),
        int(asked["LifetimeInSeconds"]),
        asked["Question"],
        asked.get("RequesterAnnotation"),
    )
    world.remember(CREATION, asked.get("UniqueRequestToken"), hit.id)
    return {"HIT": hit_json(hit, world.now)}


def known_type(world: World, asked: Members) -> HitType:
    kind = world.types.get(asked["HITTypeId"])
    if kind is None:
        raise Refused("HITTypeDoesNotExist", f"HITType {asked['HITTypeId']} does not exist.")
    check_requirements(kind.requirements, world.qualifications)
    return kind


def get_hit(world: World, asked: Members) -> Json:
    return {"HIT": hit_json(world.hit(asked["HITId"]), world.now)}


def list_hits(world: World, asked: Members) -> Json:
    return _hits(world, "ListHITs", asked, _existing(world))


def list_reviewable_hits(world: World, asked: Members) -> Json:
    wanted, kind = asked.get("Status", "Reviewable"), asked.get("HITTypeId")
    hits = [
        hit
        for hit in _existing(world)
        if hit.status(world.now) == wanted and kind in (None, hit.kind.id)
    ]  # fmt: skip
    return _hits(world, "ListReviewableHITs", asked, hits)


def list_hits_for_qualification_type(world: World, asked: Members) -> Json:
    named = asked["QualificationTypeId"]
    hits = [
        hit
        for hit in _existing(world)
        if any(one["QualificationTypeId"] == named for one in hit.kind.requirements)
    ]
    return _hits(world, "ListHITsForQualificationType", asked, hits)


def _existing(world: World) -> list[Hit]:
    """Newest first."""
    return [hit for hit in reversed(world.hits.values()) if not hit.is_disposed]


def _hits(world: World, operation: str, asked: Members, hits: list[Hit]) -> Json:
    return page(world, operation, asked, "HITs", hits, lambda hit: hit_json(hit, world.now))


def update_expiration(world: World, asked: Members) -> Json:
    hit = world.hit(asked["HITId"])
    expires = _time(asked["ExpireAt"])
    if expires > world.now + timedelta(seconds=ask.SECONDS[1]):
        raise ask.refuse("ExpireAt must lie within 365 days.")
    world.expire_at(hit, expires)
    return {}


def _time(value: Any) -> datetime:
    """Epoch seconds, as the client writes them."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise ask.refuse("ExpireAt must be seconds since 1970.")
    return datetime.fromtimestamp(value, UTC)


def create_additional_assignments(world: World, asked: Members) -> Json:
    hit = world.hit(asked["HITId"])
    token = asked.get("UniqueRequestToken")
    before = world.remembered(GROWTH, token)
    if before:
        raise Refused(
            "AssignmentAlreadyExists",
            f"Assignments were already added with this UniqueRequestToken. The request ID was {before}.",
        )
    world.add_places(hit, ask.number(asked, "NumberOfAdditionalAssignments", ask.PLACES))
    world.remember(GROWTH, token, world.new_id("", 32))
    return {}


def update_review_status(world: World, asked: Members) -> Json:
    world.review(world.hit(asked["HITId"]), bool(asked.get("Revert", False)))
    return {}


def update_hit_type(world: World, asked: Members) -> Json:
    world.change_type(world.hit(asked["HITId"]), known_type(world, asked))
    return {}


def delete_hit(world: World, asked: Members) -> Json:
    world.dispose(world.hit(asked["HITId"]))
    return {}
