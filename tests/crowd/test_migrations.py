"""Rows of older databases are migrated."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

FIRST = [("crowd", "0002_initial"), ("experiments", "0001_initial")]


@pytest.mark.both_databases("migrations")
@pytest.mark.django_db(transaction=True)
def test_postings_keep_whether_they_are_live_and_get_keys_of_their_own() -> None:
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes()
    try:
        executor.migrate(FIRST)
        old = executor.loader.project_state(FIRST).apps
        study = old.get_model("experiments", "Study").objects.create(
            slug="old", title="Old", paradigm="meta_predictor", definition={}, digest="d", seed=1
        )
        postings = old.get_model("crowd", "Posting").objects
        postings.create(study=study, platform="local", state="closed", live=False)
        postings.create(study=study, platform="local", state="open", live=True)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(latest)
    from crowd.models import Posting

    migrated = list(Posting.objects.order_by("id"))
    assert [posting.mode for posting in migrated] == ["rehearsal", "live"]
    assert len({posting.key for posting in migrated}) == 2 and all(
        len(posting.key) == 22 for posting in migrated
    )


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
def test_earlier_sessions_are_marked_by_what_their_platform_said() -> None:
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes()
    wanted = {}
    try:
        executor.migrate(BEFORE_ARRIVALS)
        old = executor.loader.project_state(BEFORE_ARRIVALS).apps
        tables = {name: old.get_model("crowd", name) for name in ("Posting", "Identity", "Submission")}
        tables |= {name: old.get_model("experiments", name) for name in ("Study", "Participant", "Session")}
        study = tables["Study"].objects.create(
            slug="old", title="Old", paradigm="meta_predictor", definition={}, digest="d", seed=1
        )
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
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(latest)
    from experiments.models import Session

    assert dict(Session.objects.values_list("pk", "arrival")) == wanted


def _session(tables: dict[str, Any], study: Any, number: int) -> Any:
    participant = tables["Participant"].objects.create(study=study)
    return tables["Session"].objects.create(
        study=study, participant=participant, origin="human", token_hash=str(number), media_id=str(number)
    )
