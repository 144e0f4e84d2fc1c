"""Operations on qualifications."""

from __future__ import annotations

from datetime import timedelta

from crowd.rehearsal.mturk import limits as ask
from crowd.rehearsal.mturk.limits import Members
from crowd.rehearsal.mturk.records import Grant, QualificationType, Refused
from crowd.rehearsal.mturk.wire import Json, page, qualification_json, qualification_type_json
from crowd.rehearsal.mturk.world import World


def create_qualification_type(world: World, members: Members) -> Json:
    name = ask.text(members, "Name", 200, 1)
    ask.text(members, "Description", ask.DESCRIPTION, 1)
    ask.text(members, "Keywords", ask.KEYWORDS)
    if any(kind.sent["Name"] == name for kind in world.qualifications.values()):
        raise Refused("QualificationTypeAlreadyExists", f"You have already created a type named {name!r}.")
    if "Test" in members or "AnswerKey" in members:
        raise ask.refuse("The simulator knows no qualification tests.")
    kind = QualificationType(world.new_id("3", 30), dict(members), world.now)
    world.qualifications[kind.id] = kind
    return {"QualificationType": qualification_type_json(kind)}


def _own(world: World, members: Members) -> QualificationType:
    kind = world.qualifications.get(members["QualificationTypeId"])
    if kind is None:
        named = members["QualificationTypeId"]
        raise Refused("QualificationTypeDoesNotExist", f"QualificationType {named} does not exist.")
    return kind


def list_qualification_types(world: World, members: Members) -> Json:
    """Types of the caller; none can be requested here, and those of the system have no page."""
    words = str(members.get("Query", "")).lower()
    ours = [
        kind
        for kind in world.qualifications.values()
        if not members["MustBeRequestable"] and words in _searchable(kind)
    ]
    return page(world, "ListQualificationTypes", members, "QualificationTypes", ours, qualification_type_json)


def _searchable(kind: QualificationType) -> str:
    return " ".join(str(kind.sent.get(name, "")) for name in ("Name", "Description", "Keywords")).lower()


def associate(world: World, members: Members) -> Json:
    """Grants or changes a qualification. A notice goes out unless SendNotification is false."""
    kind, person = _own(world, members), world.person(members["WorkerId"])
    works_from = world.now + timedelta(seconds=world.options.qualification_delay_s)
    kind.grants[person.id] = Grant(person.id, int(members.get("IntegerValue", 1)), world.now, works_from)
    if members.get("SendNotification", True):
        person.letters.append(("Qualification assigned", str(kind.sent["Name"])))
    return {}


def list_workers(world: World, members: Members) -> Json:
    kind = _own(world, members)
    grants = list(kind.grants.values()) if members.get("Status", "Granted") == "Granted" else []
    return page(
        world,
        "ListWorkersWithQualificationType",
        members,
        "Qualifications",
        grants,
        lambda grant: qualification_json(kind, grant),
    )
