"""Rows of older databases are migrated."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

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
