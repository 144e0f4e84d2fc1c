"""What may be seen now: per-condition results stay closed until the stopping rule is met."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.utils import timezone

from analysis.seal import Seal, seal_of
from crowd.ground.audit import record
from experiments.models import Study
from experiments.selectors import definition_of


def seals(study: Study, origins: Iterable[str]) -> dict[str, Seal]:
    """The seal of each origin."""
    # Here and not above: it brings pandas along, which a process that serves only participants can spare.
    from analysis.tables.response_reader import study_facts

    # The stopping rule counts the slots that people keep, for the results of every origin.
    facts = study_facts(study)
    return {origin: seal_of(facts, origin) for origin in origins}


def seal(study: Study, origin: str) -> Seal:
    return seals(study, [origin])[origin]


def concealing(study: Study, by_origin: dict[str, Seal]) -> frozenset[str]:
    """Origins whose single bonuses are not shown: if a bonus is paid per match, its amount is a score."""
    if definition_of(study).reward.bonus_per_match_cents == 0:
        return frozenset()
    return frozenset(origin for origin, seal in by_origin.items() if seal.sealed)


def printed_name(user: User) -> str:
    """The name that every report prints if this login breaks the seal: nothing else can be given."""
    return user.get_full_name().strip() or user.get_username()


def unseal_study(study: Study, user: User, reason: str) -> bool:
    """Breaks the seal in the name of a user; it cannot be restored. False if it was broken before."""
    name = printed_name(user)
    unsealed = Study.objects.filter(id=study.pk, unsealed_at__isnull=True).update(
        unsealed_at=timezone.now(), unsealed_by=name, unsealed_reason=reason
    )
    if unsealed == 1:
        record(study, user.get_username(), f"Unsealed the results per condition as {name}: {reason}")
    return unsealed == 1
