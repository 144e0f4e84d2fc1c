"""An `Offer` as Prolific's study: the request that creates it, and the comparison of the result with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from crowd.platforms.base import Account, Offer, Outcome, Unsupported
from crowd.platforms.prolific.door import PLACEHOLDERS
from crowd.platforms.prolific.options import DAY_MINUTES

PLACES_MAX = 100_000
ADULT = 18
OLDEST = 100
RETURNS: dict[Outcome, tuple[str, str]] = {
    "screened": ("SCREENED_OUT", "You did not meet a requirement of the study."),
    "declined": ("NO_CONSENT", "Withdrew consent."),
    "device": ("INCOMPATIBLE_DEVICE", "Your device does not suit the study."),
    "turned_away": ("OTHER", "All places of the study were taken."),
    "failure": ("OTHER", "Technical problems."),
    "withdrawn": ("OTHER", "Withdrew consent."),
}
"""Outcomes that return the place: code type, and the reason that the participant reads. What is owed is then
paid as a bonus."""
REVIEWED: dict[Outcome, str] = {"complete": "COMPLETED", "failed_checks": "FAILED_ATTENTION_CHECK"}
"""Outcomes that wait for a decision; nothing is approved or rejected by a code."""
FROZEN = ("reward", "external_study_url", "completion_codes")
"""What cannot be changed once people may come."""


def check_offer(offer: Offer, account: Account) -> None:
    """Refuses what Prolific cannot express, before any call."""
    if not account.workspace:
        raise Unsupported("Prolific asks for a workspace. Set PROLIFIC_WORKSPACE.")
    if not project_of(offer, account):
        raise Unsupported(
            "Without a project Prolific takes the first one ever made. Set PROLIFIC_PROJECT, or "
            "project in [platforms.prolific]."
        )
    if offer.reward_cents < 1:
        raise Unsupported("Prolific pays every participant: a reward of 0 cannot be offered. Raise it.")
    if not 1 <= offer.places <= PLACES_MAX:
        raise Unsupported(f"{offer.places} places cannot be offered; give 1 to {PLACES_MAX}.")
    if account.site.mode == "live" and not offer.url.startswith("https://"):
        raise Unsupported("Prolific sends people to https addresses only. Set BASE_URL to one.")
    if not offer.codes.get("complete"):
        raise Unsupported("The offer has no completion code for people who finish.")
    if len(set(offer.codes.values())) < len(offer.codes):
        raise Unsupported("Two outcomes share a completion code; each needs its own.")
    if offer.options.get("fixed_screen_out") and offer.screened_cents >= offer.reward_cents:
        raise Unsupported(
            f"Prolific's screen-out payment must lie below the reward, but {offer.screened_cents} is not "
            f"below {offer.reward_cents}. Lower policy.screened_share, or set fixed_screen_out = false: then "
            "screened people are paid by bonus."
        )
    maximum_minutes(offer)


def project_of(offer: Offer, account: Account) -> str:
    return str(offer.options.get("project") or account.project)


def estimated_minutes(expected_minutes: float) -> int:
    """The minutes that participants read, and by which Prolific judges pay and attention checks."""
    return max(1, math.ceil(expected_minutes))


def least_maximum(estimated: float) -> float:
    """Prolific's floor of the maximum time for an estimate, in minutes."""
    return 2 + 2 * estimated + 2 * math.sqrt(estimated)


def maximum_minutes(offer: Offer) -> int:
    """The maximum time that is sent: the study's, but never under the floor nor over a day."""
    floor = math.ceil(least_maximum(estimated_minutes(offer.expected_minutes)))
    chosen = offer.options.get("maximum_allowed_minutes")
    if chosen is not None and chosen < floor:
        raise Unsupported(
            f"maximum_allowed_minutes = {chosen} is less than Prolific allows for {offer.expected_minutes:g} "
            f"expected minutes: at least {floor}."
        )
    minutes = chosen if chosen is not None else max(floor, math.ceil(offer.maximum_minutes))
    if minutes >= DAY_MINUTES:
        raise Unsupported(f"A maximum time of {minutes} minutes is too long: Prolific allows under 24 hours.")
    return int(minutes)


def screen_out_slots(offer: Offer) -> int:
    """How many screened-out people the study has money for, as a share of its places."""
    share = Decimal(str(offer.options.get("screened_reserve_share", 0.2)))
    return max(1, math.ceil(share * offer.places)) if share > 0 else 0


def pays_screened(offer: Offer) -> bool:
    """Whether Prolific itself pays people who are screened out."""
    return bool(offer.options.get("fixed_screen_out")) and offer.screened_cents > 0


def completion_codes(offer: Offer) -> list[dict[str, Any]]:
    """One code per outcome."""
    return [
        {"code": code, "code_type": kind, "actor": "participant", "actions": [action]}
        for outcome, code in offer.codes.items()
        for kind, action in [_code(offer, outcome)]
    ]


def _code(offer: Offer, outcome: Outcome) -> tuple[str, dict[str, Any]]:
    if outcome in REVIEWED:
        return REVIEWED[outcome], {"action": "MANUALLY_REVIEW"}
    if outcome == "screened" and pays_screened(offer):
        return "FIXED_SCREENOUT", {
            "action": "FIXED_SCREEN_OUT_PAYMENT",
            "fixed_screen_out_reward": offer.screened_cents,
            "slots": max(1, screen_out_slots(offer)),
        }
    kind, reason = RETURNS[outcome]
    return kind, {"action": "REQUEST_RETURN", "return_reason": reason}


def filters(offer: Offer) -> list[dict[str, Any]]:
    """The study's filters, its age limit, and the exclusion of people from earlier postings."""
    rules: list[dict[str, Any]] = [dict(each) for each in offer.options.get("filters", [])]
    names = {each["filter_id"] for each in rules}
    if offer.minimum_age > ADULT and "age" not in names:
        rules.append(
            {"filter_id": "age", "selected_range": {"lower": offer.minimum_age, "upper": OLDEST}}
        )  # fmt: skip
    if offer.excluded:
        rules.append({"filter_id": "previous_studies_blocklist", "selected_values": sorted(offer.excluded)})
    return rules


def study_body(offer: Offer, account: Account) -> dict[str, Any]:
    """The request that makes the draft; absolute values, so that sending it again changes nothing."""
    options = offer.options
    joint = "&" if "?" in offer.url else "?"
    body: dict[str, Any] = {
        "name": offer.title,
        "internal_name": offer.reference,
        "description": offer.description or offer.title,
        "external_study_url": offer.url + joint + "&".join(f"{k}={v}" for k, v in PLACEHOLDERS.items()),
        "prolific_id_option": "url_parameters",
        "completion_codes": completion_codes(offer),
        "total_available_places": offer.places,
        "estimated_completion_time": estimated_minutes(offer.expected_minutes),
        "maximum_allowed_time": maximum_minutes(offer),
        "reward": offer.reward_cents,
        "device_compatibility": list(options.get("device_compatibility") or ["desktop"]),
        "peripheral_requirements": list(options.get("peripheral_requirements") or []),
        "filters": filters(offer),
        "project": project_of(offer, account),
        "metadata": offer.reference,
        "submissions_config": {"max_submissions_per_participant": 1, "max_concurrent_submissions": -1},
    }
    if options.get("study_labels"):
        body["study_labels"] = list(options["study_labels"])
    if options.get("naivety_distribution_rate") is not None:
        body["naivety_distribution_rate"] = options["naivety_distribution_rate"]
    if options.get("signed_entry"):
        body["is_external_study_url_secure"] = True
    if offer.content_warning:
        body["content_warnings"] = ["sensitive"]
        body["content_warning_details"] = offer.content_warning
    return body


def differences(
    body: Mapping[str, Any], study: Mapping[str, Any], names: tuple[str, ...] = ()
) -> Iterator[str]:
    """What Prolific has stored differently. What decides on money and exits must be shown; the rest is
    compared if Prolific shows it."""
    musts = {"total_available_places", *FROZEN}
    others = {
        "internal_name", "prolific_id_option", "estimated_completion_time", "maximum_allowed_time",
        "device_compatibility", "filters", "is_external_study_url_secure",
    }  # fmt: skip
    for name in names or sorted(musts | others):
        if name not in body or (name in others and name not in study):
            continue
        sent, read = _shape(name, body[name]), _shape(name, study.get(name))
        if sent != read:
            yield f"{name}: sent {sent}, has {read}"


def _shape(name: str, value: Any) -> Any:
    """A value in a form that can be compared, although the platform adds and reorders."""
    if value is None:
        return None
    if name == "external_study_url":
        return unquote(str(value))
    if name == "completion_codes":
        return sorted(_code_shape(code) for code in value)
    if name == "filters":
        return sorted(_filter_shape(entry) for entry in value)
    if name == "device_compatibility":
        return sorted(map(str, value))
    return value


def _code_shape(code: Mapping[str, Any]) -> str:
    actions = [
        f"{a.get('action')} {a['fixed_screen_out_reward']}" if "fixed_screen_out_reward" in a else a["action"]
        for a in code.get("actions") or []
    ]
    return f"{code.get('code')} {code.get('code_type')} {'+'.join(sorted(map(str, actions)))}"


def _filter_shape(study_filter: Mapping[str, Any]) -> str:
    values = ",".join(sorted(map(str, study_filter.get("selected_values") or [])))
    limits = study_filter.get("selected_range") or {}
    return f"{study_filter.get('filter_id')} {values} {limits.get('lower', '')}-{limits.get('upper', '')}"
