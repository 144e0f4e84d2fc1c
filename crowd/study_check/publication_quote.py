"""Before anything is published: what ethics forbids, what is offered, what it costs at most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings

from crowd.ground.amounts import amount_of, share_of
from crowd.ground.platform_accounts import service_of
from crowd.models import Posting
from crowd.platforms import has_service, traits_of
from crowd.platforms.base import PostingSpec, Quote
from experiments.definition.study import Recruitment, StudyDefinition
from experiments.errors import Problem, StudyError
from experiments.models import Study
from experiments.paradigms import get_paradigm
from experiments.selectors import definition_of

WORD = re.compile(r"\w{5,}")
LIST_PREFIX = "list:"
"""An entry of [recruitment] excludes that names a list of people instead of a study."""


def hourly_cents(definition: StudyDefinition) -> int:
    """The reward per hour of the announced time, rounded down."""
    return int(definition.reward.amount_cents * 60 / definition.reward.expected_minutes)


def check_ethics(definition: StudyDefinition, platform: str) -> list[Problem]:
    """Why a study may not be offered to people; empty: it may."""
    pay, texts = _pay_problems(definition, platform), _text_problems(definition)
    return [*pay, *texts, *health_problems(definition), *_deception_problems(definition)]


def _pay_problems(definition: StudyDefinition, platform: str) -> Iterator[Problem]:
    reward = definition.reward
    if reward.amount_cents == 0:
        if has_service(platform):
            yield Problem(
                "reward.amount_cents", "0", f"{platform} is a platform for paid work", "Set a reward."
            )
        return
    if traits_of(platform).is_ours:
        return  # Paid by hand, if at all: the laboratory knows its own rules.
    floor = settings.HOURLY_FLOOR_CENTS.get(reward.currency)
    if floor is None:
        known = ", ".join(sorted(settings.HOURLY_FLOOR_CENTS))
        yield Problem(
            "reward.currency",
            repr(reward.currency),
            f"no hourly floor is set for it (there is one for {known})",
            "Pay in one of these, or add the currency to HOURLY_FLOOR_CENTS.",
        )
    elif reward.amount_cents * 60 < floor * reward.expected_minutes:
        paid = amount_of(hourly_cents(definition), reward.currency)
        needed = -int(-floor * reward.expected_minutes // 60)
        yield Problem(
            "reward.amount_cents",
            str(reward.amount_cents),
            f"for {reward.expected_minutes:g} minutes is {paid} per hour, below the floor of "
            f"{amount_of(floor, reward.currency)}",
            f"Pay at least {needed}, or shorten the study.",
        )


def _text_problems(definition: StudyDefinition) -> Iterator[Problem]:
    texts, deception = definition.texts, definition.ethics.deception
    for name, purpose in (
        ("consent", "without it there is nothing to agree to"),
        ("debrief", "people are told the end"),
    ):
        if not texts.get(name, "").strip():
            yield Problem(f"texts.{name}", "", f"is empty, and {purpose}", "Write it.")
    debrief = texts.get("debrief", "").strip()
    if not deception or not debrief:
        return
    if debrief in {texts.get("consent", "").strip(), texts.get("instructions", "").strip()}:
        yield Problem(
            "texts.debrief",
            "",
            "is what people read before, so it discloses nothing",
            "Write what was hidden.",
        )
    elif not _mentions(debrief, deception):
        yield Problem(
            "texts.debrief",
            "",
            f"must disclose what [ethics] deception declares ({deception[:120]!r}), and shares no "
            "words with it",
            "Say there what was withheld or misleading, in the words of the declaration.",
        )


def health_problems(definition: StudyDefinition) -> Iterator[Problem]:
    """What a study with a colour check has to state, as its answers are health data."""
    if definition.plates is None:
        return
    ethics = definition.ethics
    if not ethics.special_category:
        what = "what the colour check ([plates]) asks about, and on which ground: it is health data"
        remedy = (
            'Write it as your ethics board has it: "health data: a colour check with a consent of its own".'
        )
        yield _unsaid("special_category", what, remedy)
    if not ethics.deception:
        what = "what people are not told: why a study with a colour check ([plates]) ends for some"
        yield _unsaid("deception", what, "Write it, and disclose it in the debrief.")
    if ethics.retention_days is None:
        what = "when the answers to the colour check ([plates]) are removed: people are promised that"
        yield _unsaid("retention_days", what, "Set the days after closing.")


def _unsaid(key: str, what: str, remedy: str) -> Problem:
    return Problem(f"ethics.{key}", "", f"must say {what}", remedy)


def question_warnings(definition: StudyDefinition) -> Iterator[str]:
    """Questions that speak of colour vision or health and do not say what that means for their answers."""
    for question in definition.questions:
        if not question.speaks_of_health or question.special:
            continue
        if question.special is None:
            yield (
                f"question {question.id!r} speaks of health: its answers are left out of export --cleaned "
                "and --public; write special = true, or special = false if they are no data on health"
            )
        else:
            yield (
                f"question {question.id!r} speaks of health and says special = false: its answers are in "
                "every export, also in one for publication"
            )


def _deception_problems(definition: StudyDefinition) -> Iterator[Problem]:
    """What people are not told, if the study does not declare it: they must learn it, and may then decide
    again whether their answers are used."""
    withheld = get_paradigm(definition.paradigm).withholds(definition)
    if withheld and not definition.ethics.deception:
        what = f"what people are not told: {'; '.join(withheld)}"
        yield _unsaid("deception", what, "Write it in one sentence, and disclose it in the debrief.")


def _mentions(debrief: str, deception: str) -> bool:
    """Whether the debrief can be about the declared deception: it has two of its longer words, or all.

    No program can tell whether a text discloses something; this refuses texts that certainly do not.
    """
    declared = {word.lower() for word in WORD.findall(deception)}
    return len(declared & {word.lower() for word in WORD.findall(debrief)}) >= min(2, len(declared))


def recruiting_of(study: Study) -> tuple[Recruitment, Mapping[str, Mapping[str, Any]]]:
    """[recruitment] and [platforms] as they are now. They may change while a study is open, so they are read
    from the row and never from the parsed definition that is kept per process."""
    stored = Study.objects.values_list("definition", flat=True).get(id=study.pk)
    return Recruitment.model_validate(stored.get("recruitment", {})), stored.get("platforms", {})


def adopt_recruiting(study: Study, definition: StudyDefinition) -> None:
    """Takes [recruitment] and [platforms] of a file whose digest is the study's."""
    if definition.digest != study.digest:
        raise StudyError(
            f"The file is not the study {study.slug!r} that is open (digest {definition.digest[:12]}, not "
            f"{study.digest[:12]}): only [recruitment] and [platforms] may differ. Choose a new slug for "
            "a new study."
        )
    stored = Study.objects.values_list("definition", flat=True).get(id=study.pk)
    now = definition.model_dump(mode="json", include={"recruitment", "platforms"})
    Study.objects.filter(id=study.pk).update(definition={**stored, **now})


def spec_of(posting: Posting, places: int | None = None) -> PostingSpec:
    """The posting as its platform is told; `places` if they are to differ from the row's."""
    study = posting.study
    definition, (recruitment, _) = definition_of(study), recruiting_of(study)
    reward, policy = posting.reward_cents, definition.policy
    return PostingSpec(
        reference=f"legible-{posting.key}",
        title=definition.title,
        description=recruitment.description or definition.title,
        url=address_of(posting),
        places=posting.places if places is None else places,
        reward_cents=reward,
        currency=posting.currency,
        expected_minutes=definition.reward.expected_minutes,
        maximum_minutes=recruitment.maximum_minutes or definition.lease_minutes,
        codes=posting.codes,
        screened_cents=share_of(reward, policy.screened_share),
        turned_away_cents=share_of(reward, policy.turned_away_share),
        withdrawn=policy.withdrawn,
        bonus_max_cents=max(0, min(definition.reward.bonus_max_cents, definition.reward.most_cents - reward)),
        minimum_age=definition.ethics.minimum_age,
        content_warning=definition.ethics.content_warning,
        excluded=_excluded_postings(posting, recruitment),
        options=posting.options,
    )


def address_of(posting: Posting) -> str:
    """The address for participants of this posting; the platform adds their ids."""
    return f"{settings.BASE_URL}/join/{posting.study.slug}/?via={posting.key}"


def _excluded_postings(posting: Posting, recruitment: Recruitment) -> tuple[str, ...]:
    """Earlier postings on this platform whose people may not come: those of the studies that are excluded,
    and the study's own (its pilot, or a posting that was closed)."""
    slugs = {name for name in recruitment.excludes if not name.startswith(LIST_PREFIX)}
    known = set(Study.objects.filter(slug__in=slugs).values_list("slug", flat=True))
    if slugs - known:
        missing = ", ".join(repr(name) for name in sorted(slugs - known))
        raise StudyError(
            f"[recruitment] excludes names {missing}, and there is no such study in this database. Correct "
            f'the name, or put the people on a list and name it as "{LIST_PREFIX}NAME".'
        )
    earlier = Posting.objects.filter(
        study__slug__in={*slugs, posting.study.slug},
        platform=posting.platform,
        mode=posting.mode,
        site=posting.site,
    ).exclude(external_id="")
    others = earlier.exclude(key=posting.key).order_by("id")
    return tuple(others.values_list("external_id", flat=True))


def quote_of(posting: Posting, places: int | None = None) -> Quote:
    """What the posting costs at most, asked of its platform. Raises Unsupported, PlatformError."""
    spec = spec_of(posting, places)
    if has_service(posting.platform):
        return service_of(posting).quote(spec)
    lines = [(f"{spec.places} rewards", spec.places * spec.reward_cents)]
    if spec.bonus_max_cents:
        lines.append((f"Bonuses of at most {spec.places} people", spec.places * spec.bonus_max_cents))
    return Quote(spec.currency, tuple(lines), notes=("Paid by hand: no machine of this platform pays.",))
