"""A posting as Prolific's study: the request that creates it, and the comparison of the result with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from crowd.platforms.base import Account, Outcome, PostingSpec, UnsupportedRequest
from crowd.platforms.prolific.arrival_and_exit import PLACEHOLDERS
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
GROUPS = {"groups_allow": "participant_group_allowlist", "groups_block": "participant_group_blocklist"}
"""Options that name participant groups, and their filters. The second filter is likely, but was not seen in
Prolific's own texts; it refuses a filter that it does not know."""
FROZEN = ("reward", "external_study_url", "completion_codes")
"""What cannot be changed once people may come."""


def check_spec(spec: PostingSpec, account: Account) -> None:
    """Refuses what Prolific cannot express, before any call."""
    if not account.workspace:
        raise UnsupportedRequest("Prolific asks for a workspace. Set PROLIFIC_WORKSPACE.")
    if not project_of(spec, account):
        raise UnsupportedRequest(
            "Without a project Prolific takes the first one ever made. Set PROLIFIC_PROJECT, or "
            "project in [platforms.prolific]."
        )
    if spec.reward_cents < 1:
        raise UnsupportedRequest(
            "Prolific pays every participant: a reward of 0 cannot be offered. Raise it."
        )
    if not 1 <= spec.places <= PLACES_MAX:
        raise UnsupportedRequest(f"{spec.places} places cannot be offered; give 1 to {PLACES_MAX}.")
    if account.site.mode == "live" and not spec.url.startswith("https://"):
        raise UnsupportedRequest("Prolific sends people to https addresses only. Set BASE_URL to one.")
    if not spec.codes.get("complete"):
        raise UnsupportedRequest("The offer has no completion code for people who finish.")
    if len(set(spec.codes.values())) < len(spec.codes):
        raise UnsupportedRequest("Two outcomes share a completion code; each needs its own.")
    if spec.options.get("fixed_screen_out") and spec.screened_cents >= spec.reward_cents:
        raise UnsupportedRequest(
            f"Prolific's screen-out payment must lie below the reward, but {spec.screened_cents} is not "
            f"below {spec.reward_cents}. Lower policy.screened_share, or set fixed_screen_out = false: then "
            "screened people are paid by bonus."
        )
    maximum_minutes(spec)


def project_of(spec: PostingSpec, account: Account) -> str:
    return str(spec.options.get("project") or account.project)


def estimated_minutes(expected_minutes: float) -> int:
    """The minutes that participants read, and by which Prolific judges pay and attention checks."""
    return max(1, math.ceil(expected_minutes))


def least_maximum(estimated: float) -> float:
    """Prolific's floor of the maximum time for an estimate, in minutes."""
    return 2 + 2 * estimated + 2 * math.sqrt(estimated)


def maximum_minutes(spec: PostingSpec) -> int:
    """The maximum time that is sent: the study's, but never under the floor nor over a day."""
    floor = math.ceil(least_maximum(estimated_minutes(spec.expected_minutes)))
    chosen = spec.options.get("maximum_allowed_minutes")
    if chosen is not None and chosen < floor:
        raise UnsupportedRequest(
            f"maximum_allowed_minutes = {chosen} is less than Prolific allows for {spec.expected_minutes:g} "
            f"expected minutes: at least {floor}."
        )
    minutes = chosen if chosen is not None else max(floor, math.ceil(spec.maximum_minutes))
    if minutes >= DAY_MINUTES:
        raise UnsupportedRequest(
            f"A maximum time of {minutes} minutes is too long: Prolific allows under 24 hours."
        )
    return int(minutes)


def screen_out_slots(spec: PostingSpec) -> int:
    """How many screened-out people the study has money for, as a share of its places."""
    share = Decimal(str(spec.options.get("screened_reserve_share", 0.2)))
    return max(1, math.ceil(share * spec.places)) if share > 0 else 0


def pays_screened(spec: PostingSpec) -> bool:
    """Whether Prolific itself pays people who are screened out."""
    return bool(spec.options.get("fixed_screen_out")) and spec.screened_cents > 0


def completion_codes(spec: PostingSpec) -> list[dict[str, Any]]:
    """One code per outcome."""
    return [
        {"code": code, "code_type": kind, "actor": "participant", "actions": actions}
        for outcome, code in spec.codes.items()
        for kind, actions in [_code(spec, outcome)]
    ]


def _code(spec: PostingSpec, outcome: Outcome) -> tuple[str, list[dict[str, Any]]]:
    """The type of an outcome's code, and what entering it does. Only people who finished are put into the
    group, and approved by the platform itself if the study says so."""
    if outcome == "complete":
        automatic = spec.options.get("approve") == "automatic"
        actions = [{"action": "AUTOMATICALLY_APPROVE" if automatic else "MANUALLY_REVIEW"}]
        if group := spec.options.get("add_to_group"):
            actions.append({"action": "ADD_TO_PARTICIPANT_GROUP", "participant_group": str(group)})
        return REVIEWED[outcome], actions
    if outcome in REVIEWED:
        return REVIEWED[outcome], [{"action": "MANUALLY_REVIEW"}]
    if outcome == "screened" and pays_screened(spec):
        payment = {
            "action": "FIXED_SCREEN_OUT_PAYMENT",
            "fixed_screen_out_reward": spec.screened_cents,
            "slots": max(1, screen_out_slots(spec)),
        }
        return "FIXED_SCREENOUT", [payment]
    kind, reason = RETURNS[outcome]
    return kind, [{"action": "REQUEST_RETURN", "return_reason": reason}]


def filters(spec: PostingSpec) -> list[dict[str, Any]]:
    """The study's filters, its age limit, and the exclusion of people from earlier postings."""
    rules: list[dict[str, Any]] = [dict(each) for each in spec.options.get("filters", [])]
    names = {each["filter_id"] for each in rules}
    if spec.minimum_age > ADULT and "age" not in names:
        rules.append(
            {"filter_id": "age", "selected_range": {"lower": spec.minimum_age, "upper": OLDEST}}
        )  # fmt: skip
    if spec.excluded:
        rules.append({"filter_id": "previous_studies_blocklist", "selected_values": sorted(spec.excluded)})
    for option, name in GROUPS.items():
        if groups := spec.options.get(option):
            rules.append({"filter_id": name, "selected_values": sorted(groups)})
    return rules


def cells(rules: Sequence[Mapping[str, Any]]) -> int:
    """Into how many parts weightings divide a study; 0 if no filter is weighted. Each part is a study on
    Prolific, with an id of its own."""
    weighted = [len(rule["weightings"]) for rule in rules if rule.get("weightings")]
    return math.prod(weighted) if weighted else 0


def study_body(spec: PostingSpec, account: Account) -> dict[str, Any]:
    """The request that makes the draft; absolute values, so that sending it again changes nothing."""
    options = spec.options
    joint = "&" if "?" in spec.url else "?"
    body: dict[str, Any] = {
        "name": spec.title,
        "internal_name": spec.reference,
        "description": spec.description or spec.title,
        "external_study_url": spec.url + joint + "&".join(f"{k}={v}" for k, v in PLACEHOLDERS.items()),
        "prolific_id_option": "url_parameters",
        "completion_codes": completion_codes(spec),
        "total_available_places": spec.places,
        "estimated_completion_time": estimated_minutes(spec.expected_minutes),
        "maximum_allowed_time": maximum_minutes(spec),
        "reward": spec.reward_cents,
        "device_compatibility": list(options.get("device_compatibility") or ["desktop"]),
        "peripheral_requirements": list(options.get("peripheral_requirements") or []),
        "filters": filters(spec),
        "project": project_of(spec, account),
        "metadata": spec.reference,
        "submissions_config": {"max_submissions_per_participant": 1, "max_concurrent_submissions": -1},
    }
    if options.get("study_labels"):
        body["study_labels"] = list(options["study_labels"])
    if options.get("naivety_distribution_rate") is not None:
        body["naivety_distribution_rate"] = options["naivety_distribution_rate"]
    if options.get("signed_entry"):
        body["is_external_study_url_secure"] = True
    if spec.content_warning:
        body["content_warnings"] = ["sensitive"]
        body["content_warning_details"] = spec.content_warning
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


SHOWN = ("action", "fixed_screen_out_reward", "participant_group")


def _code_shape(code: Mapping[str, Any]) -> str:
    actions = [
        " ".join(str(action[name]) for name in SHOWN if action.get(name) is not None)
        for action in code.get("actions") or []
    ]
    return f"{code.get('code')} {code.get('code_type')} {'+'.join(sorted(map(str, actions)))}"


def _filter_shape(study_filter: Mapping[str, Any]) -> str:
    values = ",".join(sorted(map(str, study_filter.get("selected_values") or [])))
    limits = study_filter.get("selected_range") or {}
    shape = f"{study_filter.get('filter_id')} {values} {limits.get('lower', '')}-{limits.get('upper', '')}"
    weights = sorted((study_filter.get("weightings") or {}).items())
    parts = sorted(_filter_shape(part) for part in study_filter.get("selected_filters") or [])
    return " ".join([shape, *(f"{name}={float(weight):g}" for name, weight in weights), *parts])
