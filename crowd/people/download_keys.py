"""Keys with which a program downloads a study's data: what the login may that made one, and no more."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils import timezone

from crowd.ground.audit import record
from crowd.ground.roles import NotAllowed, demand
from crowd.models import DataKey
from experiments.errors import StudyError
from experiments.models import Study
from experiments.tokens import hash_token, new_token

NAME_MAX = 60


def make_key(study: Study, user: User, name: str) -> str:
    """A new key under a name for the list; only its digest is kept. StudyError if the name does not do."""
    plain = name.strip()
    if not 1 <= len(plain) <= NAME_MAX:
        raise StudyError(f"Name what will use the key, in 1 to {NAME_MAX} characters.")
    token = new_token()
    DataKey.objects.create(study=study, user=user, name=plain, digest=hash_token(token))
    record(study, user.get_username(), f"Made a key for the data: {plain}.")
    return token


def end_key(study: Study, key: int, user: User) -> None:
    """The key opens nothing any more. StudyError if it is another login's, and `user` no administrator."""
    row = DataKey.objects.filter(study=study, pk=key).select_related("user").first()
    if row is None:
        return
    if row.user != user and not user.is_superuser:
        made_by = row.user.get_username()
        raise StudyError(f"The key {row.name} is {made_by}'s: {made_by} or an administrator ends it.")
    row.delete()
    record(study, user.get_username(), f"Ended the key for the data: {row.name}.")


def login_of(token: str, slug: str) -> tuple[Study, User] | None:
    """The study with that slug and the login in whose name the key reads it; None if there is no such key of
    that study, or if its login may not look at the study any more."""
    row = DataKey.objects.filter(digest=hash_token(token), study__slug=slug).select_related("study", "user")
    key = row.first()
    if key is None or not key.user.is_active:
        return None
    try:
        demand(key.user, key.study, "view")
    except NotAllowed:
        return None
    DataKey.objects.filter(pk=key.pk).update(used_at=timezone.now())
    return key.study, key.user


def keys_of(study: Study) -> list[DataKey]:
    return list(DataKey.objects.filter(study=study).select_related("user").order_by("-pk"))
