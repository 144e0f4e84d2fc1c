"""Qualification requirements: their form, and who meets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crowd.rehearsal.mturk.records import QualificationType, TurkPerson, TurkRefusal
from crowd.rehearsal.mturk.request_rules import refuse

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
    """Raises TurkRefusal for a list of requirements that the platform would not take."""
    if len(wanted) > REQUIREMENTS_MAX:
        raise refuse(
            f"A HIT can have at most {REQUIREMENTS_MAX} qualification requirements, not {len(wanted)}."
        )
    for requirement in wanted:
        named = requirement["QualificationTypeId"]
        if named not in SYSTEM and named not in known:
            raise TurkRefusal("QualificationTypeDoesNotExist", f"QualificationType {named} does not exist.")
        fault = _fault(requirement)
        if fault:
            raise refuse(f"Requirement {named}: {fault}")


def _fault(requirement: Requirement) -> str:
    comparator = requirement["Comparator"]
    integers, locales = requirement.get("IntegerValues", []), requirement.get("LocaleValues", [])
    by_place = requirement["QualificationTypeId"] == LOCALE
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
    person: TurkPerson,
    wanted: Sequence[Requirement],
    known: Mapping[str, QualificationType],
    action: str,
) -> bool:
    """Whether every requirement that guards `action` (Accept, Preview, Discover) is met."""
    return all(
        _is_eligible(person, requirement, known)
        for requirement in wanted
        if action in GUARDS[requirement.get("ActionsGuarded", "Accept")]
    )


def _is_eligible(
    person: TurkPerson, requirement: Requirement, known: Mapping[str, QualificationType]
) -> bool:
    comparator, named = str(requirement["Comparator"]), str(requirement["QualificationTypeId"])
    if named == LOCALE and comparator not in ("Exists", "DoesNotExist"):
        lives_there = any(_lives_in(person, place) for place in requirement["LocaleValues"])
        return lives_there == (comparator in {"EqualTo", "In"})
    have = _value(person, named, known)
    if comparator in ("Exists", "DoesNotExist"):
        return (have is not None) == (comparator == "Exists")
    values: list[int] = requirement["IntegerValues"]
    if comparator == "NotIn":
        return have not in values
    if have is None:
        return comparator == "NotEqualTo"
    return have in values if comparator == "In" else _ORDER[comparator](have, values[0])


def _lives_in(person: TurkPerson, place: Mapping[str, str]) -> bool:
    inside = "Subdivision" not in place or place["Subdivision"] == person.subdivision
    return place["Country"] == person.country and inside


def _value(person: TurkPerson, named: str, known: Mapping[str, QualificationType]) -> int | None:
    if named in MASTERS:
        return 1 if person.is_master else None
    system = {APPROVED: person.approvals, ADULT: int(person.is_adult), PERCENT: person.percent, LOCALE: 1}
    if named in system:
        return system[named]
    grant = known[named].grants.get(person.id)
    return grant.value if grant else None
