"""The study's table [platforms.mturk]: allowed values and defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crowd.platforms.base import BadOptions, Mode

MASTERS = {"sandbox": "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"}
MASTERS_LIVE = "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH"
SYSTEM = {
    "hits_approved": "00000000000000000040",
    "percent_approved": "000000000000000000L0",
    "locale": "00000000000000000071",
    "adult": "00000000000000000060",
}
"""Amazon's system qualifications, by our names for them."""
COMPARATORS = (
    "LessThan", "LessThanOrEqualTo", "GreaterThan", "GreaterThanOrEqualTo", "EqualTo", "NotEqualTo", "Exists",
    "DoesNotExist", "In", "NotIn",
)  # fmt: skip
EMPTY = ("Exists", "DoesNotExist")
SEVERAL = ("In", "NotIn")
LOCALE_COMPARATORS = ("EqualTo", "NotEqualTo", *SEVERAL)
GUARDED = ("Accept", "PreviewAndAccept", "DiscoverPreviewAndAccept")
INTEGERS_MAX, LOCALES_MAX, REQUIREMENTS_MAX = 15, 30, 10
KEYWORDS_MAX = 1000
CUSTOM = re.compile(r"[A-Z0-9]{1,64}")
PLACE = re.compile(r"([A-Z]{2})(?:-([A-Z0-9]{1,3}))?")
QUALIFICATION_KEYS = ("type", "comparator", "values", "guards")


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The table with defaults filled, as plain JSON values. Raises BadOptions.

    batch              "nine": HITs of nine people each, under the fee step; "one": a single HIT beyond it
    base_share         0-1: the HIT's reward as a share of the study's; the rest is paid as a bonus
    qualifications     who may come: tables of type, comparator, values, guards
    keywords           words that people search by
    lifetime_days      1-365: how long the posting stays open
    auto_approval_days 1-30: when Amazon approves undecided work by itself
    frame_height       pixels of the frame; 0: as high as the window
    masters, adult     whether only Masters, only people who accept adult material, may come
    fee_share, fee_share_many, fee_share_masters
                       Amazon's rates: of every payment; added from ten people on; added for Masters
    """
    unknown = sorted(set(options) - set(READERS))
    if unknown:
        raise BadOptions(f"platforms.mturk.{unknown[0]}: unknown; choose among {', '.join(READERS)}.")
    checked = {name: read(name, options.get(name, default)) for name, (read, default) in READERS.items()}
    count = len(checked["qualifications"]) + checked["masters"] + checked["adult"]
    if count >= REQUIREMENTS_MAX:
        raise BadOptions(
            f"platforms.mturk.qualifications: {count} requirements; at most {REQUIREMENTS_MAX - 1}, for one "
            "is the study's own: leave some out."
        )
    return checked


def requirements(options: Mapping[str, Any], mode: Mode) -> list[dict[str, Any]]:
    """The requirements of checked options, as Mechanical Turk wants them."""
    qualifications = list(options["qualifications"])
    if options["masters"]:
        qualifications.append({"type": "masters", "comparator": "Exists", "values": [], "guards": "Accept"})
    if options["adult"]:
        qualifications.append({"type": "adult", "comparator": "EqualTo", "values": [1], "guards": "Accept"})
    return [_requirement(qualification, mode) for qualification in qualifications]


def _requirement(qualification: Mapping[str, Any], mode: Mode) -> dict[str, Any]:
    kind, values = qualification["type"], qualification["values"]
    masters = MASTERS.get(mode, MASTERS_LIVE)
    requirement: dict[str, Any] = {
        "QualificationTypeId": masters if kind == "masters" else SYSTEM.get(kind, kind),
        "Comparator": qualification["comparator"],
        "ActionsGuarded": qualification["guards"],
    }
    if kind == "locale":
        requirement["LocaleValues"] = [_locale(value) for value in values]
    elif values:
        requirement["IntegerValues"] = list(values)
    return requirement


def _locale(value: str) -> dict[str, str]:
    country, _, subdivision = value.partition("-")
    return {"Country": country, **({"Subdivision": subdivision} if subdivision else {})}


def _wrong(name: str, value: object, remedy: str) -> BadOptions:
    return BadOptions(f"platforms.mturk.{name} = {str(value)[:60]!r}: {remedy}.")


def _batch(name: str, value: Any) -> str:
    if value not in ("nine", "one"):
        raise _wrong(name, value, 'give "nine" (HITs of nine, lower fee) or "one" (a single HIT)')
    return str(value)


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _wrong(name, value, "give a share between 0 and 1")
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "give true or false")
    return value


def _whole(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _wrong(name, value, f"give a whole number from {low} to {high}")
        return value

    return read


def _keywords(name: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(word, str) and word.strip() for word in value
    ):
        raise _wrong(name, value, 'give a list of words, as ["vision", "study"]')
    words = [word.strip() for word in value]
    if any("," in word for word in words):
        raise _wrong(name, value, "a comma separates two keywords: give them one by one")
    if len(", ".join(words)) > KEYWORDS_MAX:
        raise _wrong(name, value, f"keywords have at most {KEYWORDS_MAX} characters together")
    return words


def _qualifications(name: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list | tuple) or not all(isinstance(entry, Mapping) for entry in value):
        raise _wrong(name, value, "give a list of tables with type, comparator and values")
    return [_qualification(f"{name}[{index}]", entry) for index, entry in enumerate(value)]


def _qualification(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(table) - set(QUALIFICATION_KEYS))
    if unknown:
        raise _wrong(
            f"{name}.{unknown[0]}", table[unknown[0]], f"choose among {', '.join(QUALIFICATION_KEYS)}"
        )
    kind, comparator = table.get("type", ""), table.get("comparator", "")
    guards, values = table.get("guards", "Accept"), table.get("values", [])
    if not isinstance(kind, str) or not (kind in SYSTEM or kind == "masters" or CUSTOM.fullmatch(kind)):
        raise _wrong(
            f"{name}.type", kind, f"give {', '.join(SYSTEM)}, masters, or the id of a type of your own"
        )
    if comparator not in COMPARATORS:
        raise _wrong(f"{name}.comparator", comparator, f"choose one of {', '.join(COMPARATORS)}")
    if guards not in GUARDED:
        raise _wrong(f"{name}.guards", guards, f"choose one of {', '.join(GUARDED)}")
    if not isinstance(values, list | tuple):
        raise _wrong(f"{name}.values", values, "give a list")
    if kind == "masters" and comparator not in EMPTY:
        raise _wrong(f"{name}.comparator", comparator, "masters takes Exists or DoesNotExist")
    read = _places if kind == "locale" else _integers
    read(f"{name}.values", comparator, values)
    return {"type": kind, "comparator": comparator, "values": list(values), "guards": guards}


def _places(name: str, comparator: str, values: Sequence[Any]) -> None:
    if comparator not in LOCALE_COMPARATORS:
        raise _wrong(name, comparator, f"a locale is compared with {', '.join(LOCALE_COMPARATORS)}")
    if not all(isinstance(value, str) and PLACE.fullmatch(value) for value in values):
        raise _wrong(name, values, 'give countries as "US", or with a subdivision as "US-NY"')
    _count(name, comparator, values, LOCALES_MAX)


def _integers(name: str, comparator: str, values: Sequence[Any]) -> None:
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise _wrong(name, values, "give whole numbers")
    _count(name, comparator, values, INTEGERS_MAX)


def _count(name: str, comparator: str, values: Sequence[Any], most: int) -> None:
    if comparator in EMPTY and values:
        raise _wrong(name, values, f"{comparator} takes no values")
    if comparator in SEVERAL and not 1 <= len(values) <= most:
        raise _wrong(name, values, f"{comparator} takes 1 to {most} values")
    if comparator not in (*EMPTY, *SEVERAL) and len(values) != 1:
        raise _wrong(name, values, f"{comparator} takes one value")


READERS: dict[str, tuple[Callable[[str, Any], Any], Any]] = {
    "batch": (_batch, "nine"),
    "base_share": (_share, 1.0),
    "qualifications": (_qualifications, ()),
    "keywords": (_keywords, ()),
    "lifetime_days": (_whole(1, 365), 30),
    "auto_approval_days": (_whole(1, 30), 14),
    "frame_height": (_whole(0, 10_000), 0),
    "masters": (_flag, False),
    "adult": (_flag, False),
    "fee_share": (_share, 0.20),
    "fee_share_many": (_share, 0.20),
    "fee_share_masters": (_share, 0.05),
}
