"""An `Offer` in Mechanical Turk's terms. What it cannot express is refused before anything is sent."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowd.platforms.base import PostingSpec, Quote, Site, UnsupportedRequest
from crowd.platforms.mturk.fees import NINE, base_cents, dollars, fee_cents, rates_of
from crowd.platforms.mturk.options import REQUIREMENTS_MAX, check_options, requirements
from crowd.platforms.mturk.question_xml import external_question

CURRENCY = "USD"
REFERENCE = re.compile(r"[A-Za-z0-9-]{1,60}")
TITLE_MAX, DESCRIPTION_MAX = 128, 2000
MINUTES_S, DAYS_S = 60, 86_400
DURATION_MIN_S, DURATION_MAX_S = 30, 31_536_000
CLOSURE = (
    "Amazon has announced the end of Mechanical Turk: no new customers since 30 July 2026, and closed for "
    "good on 30 September 2026. Ask Amazon whether your account still works, or publish on another platform."
)
OLDEST_MINIMUM_AGE = 18
"""The minimum age on Mechanical Turk, which cannot ask for a higher one."""


@dataclass(frozen=True, slots=True)
class TurkTerms:
    """What is created on Mechanical Turk for an `Offer`. `base_cents` is the reward of a HIT."""

    spec: PostingSpec
    options: Mapping[str, Any]
    base_cents: int
    question: str
    requirements: tuple[Mapping[str, Any], ...]

    @property
    def lifetime_s(self) -> int:
        return int(self.options["lifetime_days"]) * DAYS_S

    def cost_cents(self, places: int) -> int:
        """Rewards and their fees for so many new places, in cents."""
        rates, masters = rates_of(self.options), bool(self.options["masters"])
        return sum(
            n * (self.base_cents + fee_cents(self.base_cents, rates, places=n, masters=masters))
            for n in sizes(places, self.options["batch"])
        )

    def hit_type(self, qualification: str) -> dict[str, Any]:
        """The members of CreateHITType. Bars everyone who took part before, here or in excluded studies."""
        exclusions = [
            {"QualificationTypeId": past, "Comparator": "DoesNotExist", "ActionsGuarded": "PreviewAndAccept"}
            for past in (qualification, *self.spec.excluded)
        ]
        return {
            "Title": self.spec.title,
            "Description": _description(self.spec),
            "Keywords": ", ".join(self.options["keywords"]),
            "Reward": dollars(self.base_cents),
            "AssignmentDurationInSeconds": math.ceil(self.spec.maximum_minutes * MINUTES_S),
            "AutoApprovalDelayInSeconds": self.options["auto_approval_days"] * DAYS_S,
            "QualificationRequirements": [*self.requirements, *exclusions],
        }


def terms_of(spec: PostingSpec, site: Site) -> TurkTerms:
    """Raises Unsupported for what Mechanical Turk cannot express, BadOptions for wrong options."""
    options = check_options(spec.options)
    base = base_cents(spec.reward_cents, options["base_share"])
    wanted = tuple(requirements(options, site.mode))
    _check_text(spec)
    _check_numbers(spec)
    _check_shares(spec, base)
    count = len(wanted) + 1 + len(spec.excluded)
    if count > REQUIREMENTS_MAX:
        raise UnsupportedRequest(
            f"{count} qualification requirements; a HIT takes {REQUIREMENTS_MAX}, and every excluded earlier "
            "posting is one. Leave some qualifications out, or exclude fewer studies on the platform itself."
        )
    question = external_question(spec.url, options["frame_height"], rehearsed=bool(site.url))
    return TurkTerms(spec, options, base, question, wanted)


def sizes(places: int, batch: str) -> list[int]:
    """How many people each HIT is for."""
    if batch == "one":
        return [places]
    return [NINE] * (places // NINE) + ([places % NINE] if places % NINE else [])


def quote_terms(terms: TurkTerms, balance_cents: int | None) -> Quote:
    """What a posting costs at most: each place leads to one submission, paid all that it may earn."""
    spec, options, base = terms.spec, terms.options, terms.base_cents
    rates = rates_of(options)
    masters = bool(options["masters"])
    batches = sizes(spec.places, options["batch"])
    rest, bonus = spec.reward_cents - base, spec.bonus_max_cents
    on_rewards = sum(n * fee_cents(base, rates, places=n, masters=masters) for n in batches)
    # One bonus of both or two of each: rounding may favour either.
    together = fee_cents(rest + bonus, rates) if rest + bonus else 0
    apart = sum(fee_cents(cents, rates) for cents in (rest, bonus) if cents)
    lines = (
        (f"reward of {spec.places} people, {dollars(base)} each", spec.places * base),
        ("rest of the reward, paid as a bonus", spec.places * rest),
        ("bonuses at most", spec.places * bonus),
        ("fees of Mechanical Turk on rewards", on_rewards),
        ("fees of Mechanical Turk on bonuses", spec.places * max(together, apart)),
    )
    notes = [
        CLOSURE,
        "A person who is screened out takes up a place here; a replacement costs as much as any other place.",
    ]
    if max(batches) > NINE:
        notes.append('HITs of ten people or more cost a higher fee. batch = "nine" avoids it.')
    return Quote(CURRENCY, tuple(line for line in lines if line[1]), balance_cents, tuple(notes))


def _description(spec: PostingSpec) -> str:
    warning = spec.content_warning.strip()
    return f"Content warning: {warning} {spec.description}" if warning else spec.description


def _check_text(spec: PostingSpec) -> None:
    if not REFERENCE.fullmatch(spec.reference):
        raise UnsupportedRequest("The reference of an offer must be 1 to 60 letters, digits or hyphens.")
    if not 1 <= len(spec.title) <= TITLE_MAX:
        raise UnsupportedRequest(
            f"The title has {len(spec.title)} characters; Mechanical Turk takes 1 to {TITLE_MAX}."
        )
    length = len(_description(spec))
    if not spec.description.strip() or length > DESCRIPTION_MAX:
        raise UnsupportedRequest(
            f"recruitment.description, with the content warning, has {length} characters; Mechanical Turk "
            f"takes 1 to {DESCRIPTION_MAX}."
        )
    if spec.minimum_age > OLDEST_MINIMUM_AGE:
        raise UnsupportedRequest(
            f"ethics.minimum_age = {spec.minimum_age}: Mechanical Turk knows no age above "
            f"{OLDEST_MINIMUM_AGE}. Lower it, and ask for the age in the study."
        )


def _check_numbers(spec: PostingSpec) -> None:
    if spec.currency != CURRENCY:
        raise UnsupportedRequest(
            f"The reward is in {spec.currency}; Mechanical Turk pays in {CURRENCY} "
            "alone. Set reward.currency."
        )
    if spec.places < 1:
        raise UnsupportedRequest("An offer has at least one place.")
    if spec.reward_cents < 1:
        raise UnsupportedRequest("The reward is 0; Mechanical Turk needs one. Set reward.amount_cents.")
    duration_s = math.ceil(spec.maximum_minutes * MINUTES_S)
    if not DURATION_MIN_S <= duration_s <= DURATION_MAX_S:
        raise UnsupportedRequest(
            f"recruitment.maximum_minutes = {spec.maximum_minutes:g}: Mechanical Turk takes half a minute "
            "to a year."
        )


def _check_shares(spec: PostingSpec, base: int) -> None:
    """Every submission is paid the HIT's whole reward, so a person who submits cannot be due less."""
    lower = "Lower platforms.mturk.base_share, so that more of the reward is paid as a bonus"
    for name, cents in (
        ("policy.screened_share", spec.screened_cents),
        ("policy.turned_away_share", spec.turned_away_cents),
    ):
        if 0 < cents < base:
            raise UnsupportedRequest(
                f"{name} comes to {cents} cents, but Mechanical Turk pays {base} cents for every submitted "
                f"piece of work. {lower} (to {cents / spec.reward_cents:.2f} or less), or make it 0 or 1."
            )
    if spec.withdrawn == "pro_rata" and base > 1:
        raise UnsupportedRequest(
            f'policy.withdrawn = "pro_rata" may come to less than the {base} cents that Mechanical Turk pays '
            f'for every submitted piece of work. {lower} (to 0), or give "full" or "none".'
        )
