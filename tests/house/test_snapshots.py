"""What a test gets back in place of a study that is opened anew is what opening makes, and only for the same
files beside the same rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from django.apps import apps
from django.core import serializers
from django.db import connection, transaction

from crowd.models import Posting
from experiments.drafting.draft import build_draft
from experiments.drafting.store_cleanup import INSTALLATIONS
from experiments.models import Study
from experiments.study_files.load import load_study, material_folder
from tests import world
from tests.snapshots import once

pytestmark = pytest.mark.django_db


class _Undone(Exception):
    """Takes back what was written."""


@contextmanager
def undone(store: Path) -> Iterator[None]:
    """As between two tests: no row and no stored file of the block stays."""
    try:
        with transaction.atomic():
            yield
            raise _Undone
    except _Undone:
        shutil.rmtree(store)


def files(store: Path) -> dict[Path, bytes]:
    files = [path for path in store.rglob("*") if path.is_file()]
    return {path.relative_to(store): path.read_bytes() for path in files if path.parent.name != INSTALLATIONS}


def rows() -> list[str]:
    """Every row, by another way than the copies."""
    rooms = ("stimuli", "experiments", "crowd")
    models = [model for room in rooms for model in apps.get_app_config(room).get_models()]
    return [serializers.serialize("json", model._default_manager.order_by("pk")) for model in models]


def made_anew(path: Path, what: str) -> bool:
    made = []

    def make(path: Path) -> Study:
        study = build_draft(load_study(path), material_folder(path), world.silent)
        made.append(Posting.objects.create(study=study, platform="local", state="open"))
        return study

    assert once(path, what, make) == Study.objects.get(slug="small")
    return bool(made)


def test_it_gives_back_what_opening_made(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a process that a test starts.
    monkeypatch.setenv("STORAGE_URL", str(store_folder))
    path, way = world.write_study(tmp_path / "study"), f"drafted by {uuid4()}"
    with undone(store_folder):
        assert made_anew(path, way)
        before, stored = rows(), files(store_folder)
        assert Posting.objects.count() == 1 and stored
    assert not Study.objects.exists()
    with undone(store_folder):
        assert not made_anew(path, way) or connection.vendor == "sqlite", "only PostgreSQL copies rows"
        if connection.vendor == "postgresql":
            assert rows() == before and files(store_folder) == stored
        first = Posting.objects.get()
        later = Posting.objects.create(study=first.study, platform="local", state="closed")
        assert later.pk > first.pk, "a new row takes no key that is taken"
    with undone(store_folder):
        assert made_anew(path, f"{way} in another way")
    with undone(store_folder):
        path.write_text(path.read_text().replace("amount_cents = 100", "amount_cents = 90"))
        assert made_anew(path, way), "another file is another study"
    with undone(store_folder):
        other = world.write_study(tmp_path / "other", slug="other")
        build_draft(load_study(other), material_folder(other), world.silent)
        assert made_anew(path, way), "beside other rows it may have become something else"
