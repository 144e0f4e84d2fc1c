"""Who may do what in a study.

`view`: look at all that the seal leaves open, take a preview, download. `run`: recruit, pause, close, build,
write to people, leave sessions out. `pay`: settle, withhold, release, grant, raise a cap, decide about a
submission. `unseal`: break the seal. Each of the last three may view as well; none includes another. A
superuser, the administrator of the installation, may do all, and alone gives roles.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from crowd.ground.audit import record
from crowd.models import StudyRole
from experiments.errors import StudyError
from experiments.models import Study

ROLES: tuple[str, ...] = tuple(StudyRole.Role.values)
VIEW = StudyRole.Role.VIEW.value


class NotAllowed(StudyError):
    """A login lacks a role; the sentence names the role and who can give it."""


def roles_of(user: User, study: Study) -> frozenset[str]:
    """What the login may do in this study; empty if it may not know of it."""
    if user.is_superuser:
        return frozenset(ROLES)
    roles = frozenset(StudyRole.objects.filter(study=study, user=user).values_list("role", flat=True))
    return roles | {VIEW} if roles else roles


def studies_of(user: User) -> QuerySet[Study, Study]:
    """The studies that the login may look at."""
    if user.is_superuser:
        return Study.objects.all()
    return Study.objects.filter(Exists(StudyRole.objects.filter(study=OuterRef("slug"), user=user)))


def demand(user: User, study: Study, *roles: str) -> None:
    """Raises NotAllowed unless the login has one of these roles."""
    if not roles_of(user, study).intersection(roles):
        words = " or ".join(f"“{role}”" for role in roles)
        name = user.get_username()
        line = f"python manage.py study_role {study.slug} {name} --add {roles[0]} --by NAME"
        raise NotAllowed(
            f"{name} has no role {words} in the study {study.slug}, so nothing was done. It is given by "
            f"{_administrators()}, on the page Roles or on the server: {line}"
        )


def demand_administrator(user: User, study: Study) -> None:
    """Raises NotAllowed unless the login may give roles."""
    if not user.is_superuser:
        raise NotAllowed(
            f"{user.get_username()} is no administrator, so the roles in the study {study.slug} stay as they "
            f"are. They are changed by {_administrators()}."
        )


def _administrators() -> str:
    users = User.objects.filter(is_superuser=True, is_active=True).order_by("username")
    names = [user.get_username() for user in users[:5]]
    return f"an administrator ({', '.join(names)})" if names else "an administrator"


def change(study: Study, user: User, give: Iterable[str], take: Iterable[str], by: str) -> list[str]:
    """Gives and takes roles in the name `by`; returns what changed, as sentences that are in the log too."""
    given, taken = [], []
    with transaction.atomic():
        for role in give:
            if StudyRole.objects.get_or_create(study=study, user=user, role=role)[1]:
                given.append(role)
        for role in take:
            if StudyRole.objects.filter(study=study, user=user, role=role).delete()[0]:
                taken.append(role)
        done = [
            f"{verb} {user.get_username()} the role{'s' if len(roles) > 1 else ''} {', '.join(roles)}."
            for verb, roles in (("Gave", given), ("Took from", taken))
            if roles
        ]
        for sentence in done:
            record(study, by, sentence)
    return done


def people_of(study: Study) -> dict[User, list[str]]:
    """The logins with a role in this study, by name; superusers without a role of their own are left out."""
    people: dict[User, list[str]] = {}
    rows = StudyRole.objects.filter(study=study).select_related("user")
    for row in sorted(rows, key=lambda row: (row.user.get_username(), ROLES.index(row.role))):
        people.setdefault(row.user, []).append(row.role)
    return people
