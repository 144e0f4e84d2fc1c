"""Rows of older databases are migrated."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

FIRST = [("crowd", "0002_initial"), ("experiments", "0001_initial")]


BEFORE_ARRIVALS = [("crowd", "0009_roles"), ("experiments", "0004_fill_right_stimulus_matched")]
CAME = (
    ("local", "a", "", False, "unconfirmable"),
    ("prolific", "b", "b", True, "verified"),
    ("prolific", "c", "d", True, "unverified"),
    ("mturk", "e", "", False, "unverified"),
)
"""Platform, the person who came, the person whom the platform names, whether it lists the submission; and
what follows."""


@pytest.mark.both_databases("migrations")
@pytest.mark.django_db(transaction=True)
def test_old_rows_are_told_what_they_are() -> None:
    """One way back to the first version and forward again: with postings that said whether they are live and
    logins that could do everything, and later with sessions that came before arrivals were told apart."""
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes()
    try:
        executor.migrate(FIRST)
        old = executor.loader.project_state(FIRST).apps
        postings = old.get_model("crowd", "Posting").objects
        study = _study(old.get_model("experiments", "Study"), "first")
        postings.create(study=study, platform="local", state="closed", live=False)
        postings.create(study=study, platform="local", state="open", live=True)
        _study(old.get_model("experiments", "Study"), "second")
        User.objects.create_user("ada")
        User.objects.create_user("gone", is_active=False)
        executor = MigrationExecutor(connection)
        executor.migrate(BEFORE_ARRIVALS)
        wanted = _came(executor.loader.project_state(BEFORE_ARRIVALS).apps)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(latest)
    from crowd.ground.roles import roles_of
    from crowd.models import Posting, StudyRole
    from experiments.models import Session, Study

    migrated = list(Posting.objects.filter(study__slug="first").order_by("id"))
    assert [posting.mode for posting in migrated] == ["rehearsal", "live"]
    assert len({posting.key for posting in migrated}) == 2
    assert all(len(posting.key) == 22 for posting in migrated)
    assert dict(Session.objects.values_list("pk", "arrival")) == wanted
    kept = set(StudyRole.objects.values_list("study__slug", "user__username", "role"))
    assert kept == {
        (slug, "ada", role) for slug in ("first", "second") for role in ("view", "run", "pay", "unseal")
    }
    assert roles_of(User.objects.create_user("new"), Study.objects.get(slug="second")) == frozenset()


def _study(model: Any, slug: str) -> Any:
    return model.objects.create(
        slug=slug, title="Old", paradigm="meta_predictor", definition={}, digest="d", seed=1
    )


def _came(old: Any) -> dict[Any, str]:
    """Rows of people who came before arrivals were told apart: session -> what it should be."""
    wanted = {}
    tables = {name: old.get_model("crowd", name) for name in ("Posting", "Identity", "Submission")}
    tables |= {name: old.get_model("experiments", name) for name in ("Study", "Participant", "Session")}
    study = _study(tables["Study"], "later")
    for number, (platform, came, named, is_listed, arrival) in enumerate(CAME):
        posting = tables["Posting"].objects.create(study=study, platform=platform, state="closed")
        session = _session(tables, study, number)
        identity = tables["Identity"].objects.create(
            study=study, platform=platform, person_hash=came, participant=session.participant
        )
        tables["Submission"].objects.create(
            posting=posting,
            identity=identity,
            session=session,
            person_hash=named or came,
            submission_hash=str(number),
            seen_at=timezone.now() if is_listed else None,
        )
        wanted[session.pk] = arrival
    wanted[_session(tables, study, len(CAME)).pk] = ""
    return wanted


def _session(tables: dict[str, Any], study: Any, number: int) -> Any:
    participant = tables["Participant"].objects.create(study=study)
    return tables["Session"].objects.create(
        study=study, participant=participant, origin="human", token_hash=str(number), media_id=str(number)
    )
