"""Operations on qualifications."""

from __future__ import annotations

from datetime import timedelta

from crowd.simulators.mturk import limits as ask
from crowd.simulators.mturk.limits import Members
from crowd.simulators.mturk.records import Grant, QualificationType, Refused
from crowd.simulators.mturk.wire import Json, page, qualification_json, qualification_type_json
from crowd.simulators.mturk.world import World

NAME_FREE_AFTER = timedelta(hours=48)
TEST_BYTES = 65_535


def create_qualification_type(world: World, asked: Members) -> Json:
    name = ask.text(asked, "Name", 200, 1)
    ask.text(asked, "Description", ask.DESCRIPTION, 1)
    ask.text(asked, "Keywords", ask.KEYWORDS)
    if any(kind.sent["Name"] == name for kind in world.qualifications.values()):
        raise Refused("QualificationTypeAlreadyExists", f"You have already created a type named {name!r}.")
    if "Test" in asked or "AnswerKey" in asked:
        raise ask.refuse("The simulator knows no qualification tests.")
    kind = QualificationType(world.new_id("3", 30), dict(asked), world.now)
    world.qualifications[kind.id] = kind
    return {"QualificationType": qualification_type_json(kind)}


def _own(world: World, asked: Members) -> QualificationType:
    kind = world.qualifications.get(asked["QualificationTypeId"])
    if kind is None or kind.is_deleted:
        named = asked["QualificationTypeId"]
        raise Refused("QualificationTypeDoesNotExist", f"QualificationType {named} does not exist.")
    return kind


def get_qualification_type(world: World, asked: Members) -> Json:
    return {"QualificationType": qualification_type_json(_own(world, asked))}


def update_qualification_type(world: World, asked: Members) -> Json:
    kind = _own(world, asked)
    ask.text(asked, "Description", ask.DESCRIPTION)
    if "Test" in asked or "AnswerKey" in asked:
        raise ask.refuse("The simulator knows no qualification tests.")
    kind.sent |= {name: value for name, value in asked.items() if name != "QualificationTypeId"}
    return {"QualificationType": qualification_type_json(kind)}


def delete_qualification_type(world: World, asked: Members) -> Json:
    """Grants stay; the name is free again two days later."""
    kind = _own(world, asked)
    kind.is_deleted = True
    world.clock.after(NAME_FREE_AFTER.total_seconds(), lambda: _free_name(kind))
    return {}


def _free_name(kind: QualificationType) -> None:
    kind.sent["Name"] = ""


def list_qualification_types(world: World, asked: Members) -> Json:
    """Types of the caller; none can be requested here, and those of the system have no page."""
    words = str(asked.get("Query", "")).lower()
    found = [
        kind
        for kind in world.qualifications.values()
        if not kind.is_deleted and not asked["MustBeRequestable"] and words in _searchable(kind)
    ]
    return page(world, "ListQualificationTypes", asked, "QualificationTypes", found, qualification_type_json)


def _searchable(kind: QualificationType) -> str:
    return " ".join(str(kind.sent.get(name, "")) for name in ("Name", "Description", "Keywords")).lower()


def associate(world: World, asked: Members) -> Json:
    """Grants or changes a qualification. A notice goes out unless SendNotification is false."""
    kind, person = _own(world, asked), world.person(asked["WorkerId"])
    works_from = world.now + timedelta(seconds=world.options.qualification_delay_s)
    kind.grants[person.id] = Grant(person.id, int(asked.get("IntegerValue", 1)), world.now, works_from)
    if asked.get("SendNotification", True):
        person.letters.append(("Qualification assigned", str(kind.sent["Name"])))
    return {}


def disassociate(world: World, asked: Members) -> Json:
    kind = _own(world, asked)
    grant = kind.grants.get(asked["WorkerId"])
    if grant is None or grant.is_revoked:
        raise Refused("QualificationDoesNotExist", f"Worker {asked['WorkerId']} does not have {kind.id}.")
    grant.is_revoked = True
    if asked.get("Reason"):
        world.person(grant.worker).letters.append(("Qualification revoked", asked["Reason"]))
    return {}


def get_qualification_score(world: World, asked: Members) -> Json:
    kind = _own(world, asked)
    grant = kind.grants.get(asked["WorkerId"])
    if grant is None:
        raise Refused("QualificationDoesNotExist", f"Worker {asked['WorkerId']} does not have {kind.id}.")
    return {"Qualification": qualification_json(kind, grant)}


def list_workers(world: World, asked: Members) -> Json:
    kind = _own(world, asked)
    revoked = asked.get("Status", "Granted") == "Revoked"
    found = [grant for grant in kind.grants.values() if grant.is_revoked == revoked]
    return page(
        world,
        "ListWorkersWithQualificationType",
        asked,
        "Qualifications",
        found,
        lambda grant: qualification_json(kind, grant),
    )
