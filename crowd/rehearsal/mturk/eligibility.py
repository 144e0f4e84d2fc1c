"""Qualification requirements: their form, and who meets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from crowd.rehearsal.mturk.records import Person, QualificationType, Refused

MASTERS = {"2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"}
APPROVED, LOCALE = "00000000000000000040", "00000000000000000071"
ADULT, PERCENT = "00000000000000000060", "000000000000000000L0"
SYSTEM = MASTERS | {APPROVED, LOCALE, ADULT, PERCENT}
REQUIREMENTS_MAX, INTEGERS_MAX, LOCALES_MAX = 10, 15, 30
GUARDS = {
    "Accept": {"Accept"},
    "PreviewAndAccept": {"Accept", "Preview"},
    "DiscoverPreviewAndAccept": {"Accept", "Preview", "Discover"},
}
Requirement = Mapping[str, Any]
_ORDER: dict[str, Callable[[int, int], bool]] = {
    "LessThan": lambda have, want: have < want,
    "LessThanOrEqualTo": lambda have, want: have <= want,
    "GreaterThan": lambda have, want: have > want,
    "GreaterThanOrEqualTo": lambda have, want: have >= want,
    "EqualTo": lambda have, want: have == want,
    "NotEqualTo": lambda have, want: have != want,
}


def check_requirements(wanted: Sequence[Requirement], known: Mapping[str, QualificationType]) -> None:
    """Raises Refused for a list of requirements that the platform would not take."""
    if len(wanted) > REQUIREMENTS_MAX:
        raise Refused(
            "InvalidParameterValue",
            f"A HIT can have at most {REQUIREMENTS_MAX} qualification requirements, not {len(wanted)}.",
        )
    for requirement in wanted:
        named = requirement["QualificationTypeId"]
        if named not in SYSTEM and named not in known:
            raise Refused("QualificationTypeDoesNotExist", f"QualificationType {named} does not exist.")
        fault = _fault(requirement)
        if fault:
            raise Refused("InvalidParameterValue", f"Requirement {named}: {fault}")


def _fault(requirement: Requirement) -> str:
    comparator = requirement["Comparator"]
    integers, locales = requirement.get("IntegerValues", []), requirement.get("LocaleValues", [])
    by_place = requirement["QualificationTypeId"] == LOCALE
    if "RequiredToPreview" in requirement and "ActionsGuarded" in requirement:
        return "RequiredToPreview and ActionsGuarded exclude each other."
    if comparator in ("Exists", "DoesNotExist"):
        return "Exists and DoesNotExist take no values." if integers or locales else ""
    if by_place and (integers or comparator not in ("EqualTo", "NotEqualTo", "In", "NotIn")):
        return "the locale takes LocaleValues with EqualTo, NotEqualTo, In or NotIn."
    if not by_place and locales:
        return "LocaleValues belong to the locale alone."
    values, most = (locales, LOCALES_MAX) if by_place else (integers, INTEGERS_MAX)
    if comparator in ("In", "NotIn"):
        return "" if 1 <= len(values) <= most else f"{comparator} takes 1 to {most} values."
    return "" if len(values) == 1 else f"{comparator} takes exactly one value."


def meets(
    person: Person,
    wanted: Sequence[Requirement],
    known: Mapping[str, QualificationType],
    action: str,
    now: datetime,
) -> bool:
    """Whether every requirement that guards `action` (Accept, Preview, Discover) is met."""
    return all(
        _met(person, requirement, known, now) for requirement in wanted if action in _guarded(requirement)
    )


def _guarded(requirement: Requirement) -> set[str]:
    if requirement.get("RequiredToPreview"):
        return GUARDS["PreviewAndAccept"]
    return GUARDS[requirement.get("ActionsGuarded", "Accept")]


def _met(
    person: Person, requirement: Requirement, known: Mapping[str, QualificationType], now: datetime
) -> bool:
    comparator, named = str(requirement["Comparator"]), str(requirement["QualificationTypeId"])
    if named == LOCALE and comparator not in ("Exists", "DoesNotExist"):
        lives_there = any(_lives_in(person, place) for place in requirement["LocaleValues"])
        return lives_there == (comparator in {"EqualTo", "In"})
    have = _value(person, named, known, now)
    if comparator in ("Exists", "DoesNotExist"):
        return (have is not None) == (comparator == "Exists")
    values: list[int] = requirement["IntegerValues"]
    if comparator == "NotIn":
        return have not in values
    if have is None:
        return comparator == "NotEqualTo"
    return have in values if comparator == "In" else _ORDER[comparator](have, values[0])


def _lives_in(person: Person, place: Mapping[str, str]) -> bool:
    inside = "Subdivision" not in place or place["Subdivision"] == person.subdivision
    return place["Country"] == person.country and inside


def _value(person: Person, named: str, known: Mapping[str, QualificationType], now: datetime) -> int | None:
    if named in MASTERS:
        return 1 if person.is_master else None
    system = {APPROVED: person.approvals, ADULT: int(person.is_adult), PERCENT: person.percent, LOCALE: 1}
    if named in system:
        return system[named]
    grant = known[named].grants.get(person.id)
    return grant.value if grant and grant.works_from <= now else None
