"""Studies that a run opens once: a later test that opens the same files, beside the same rows as then, gets
the rows and the stored files back that opening them made."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import sys
from collections.abc import Callable
from functools import _lru_cache_wrapper, cache
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.transaction import atomic

from experiments.drafting.store_cleanup import INSTALLATIONS, note_installation
from experiments.models import Study
from stimuli.store import open_store
from tests import worlds

ROOMS = ("stimuli", "experiments", "analysis", "crowd")
Rows = dict[str, str]
"""Table -> its rows as PostgreSQL copies them."""


def once(path: Path, what: str, make: Callable[[Path], Study]) -> Study:
    """`make(path)`, or what it made before: `path` is a study file, in a folder with all that it names, and
    `what` says how it is made."""
    total = hashlib.sha256(f"{what} {path.name} {inspect.getsource(make)}".encode())
    for file in sorted(path.parent.rglob("*")):
        if file.is_file():
            total.update(f"\n{file.relative_to(path.parent)} ".encode() + file.read_bytes())
    return made_once(total.hexdigest(), lambda: make(path))


def made_once(name: str, make: Callable[[], Study]) -> Study:
    """`make()`, or what it made before under the same name, beside the same rows."""
    store, kept_worlds = Path(settings.STORAGE_URL), worlds.folder()
    # Not by the environment: that of a test's own process names the test's own store.
    is_shared = kept_worlds is not None and store == kept_worlds / "store"
    is_possible = connection.vendor == "postgresql" and (is_shared or _is_empty(store))
    if kept_worlds is None or not is_possible:
        return make()
    before = _copied()
    key = hashlib.sha256(f"{name} {is_shared} {sorted(before.items())}".encode()).hexdigest()
    with worlds.world("studies", key) as (kept, is_whole):
        if not is_whole:
            study = make()
            if not is_shared:
                worlds.keep(_files(store), store, kept)
            (kept / "rows.json").write_text(json.dumps({"study": study.pk, "rows": _copied()}))
            return study
    made = json.loads((kept / "rows.json").read_text())
    _restore(before, made["rows"])
    if not is_shared:
        worlds.fetch(kept, store)
        note_installation(open_store(settings.STORAGE_URL))
    return Study.objects.get(pk=made["study"])


def _files(store: Path) -> list[Path]:
    """What is stored, but for the mark of the database that names it."""
    return [path for path in store.rglob("*") if path.is_file() and path.parent.name != INSTALLATIONS]


def _is_empty(store: Path) -> bool:
    """Whether a local store holds no file; a bucket is never asked."""
    return ":" not in str(store) and not any(path.is_file() for path in store.rglob("*"))


def _copied() -> Rows:
    """The rows of every table that has some."""
    models = [model for room in ROOMS for model in apps.get_app_config(room).get_models()]
    tables = [model._meta.db_table for model in models]
    asked = [f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables]
    rows = {}
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked))
        for (name,) in cursor.fetchall():
            text = io.StringIO()
            cursor.copy_expert(f"COPY {name} TO STDOUT", text)
            rows[name] = text.getvalue()
    return rows


def _restore(before: Rows, rows: Rows) -> None:
    """Foreign keys are deferred, so the order of the tables is free. New rows are counted on from these."""
    with atomic(), connection.cursor() as cursor:
        for name in before:
            cursor.execute(f"DELETE FROM {name}")
        for name, text in rows.items():
            cursor.copy_expert(f"COPY {name} FROM STDIN", io.StringIO(text))
            cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [name])
            (sequence,) = cursor.fetchone()
            if sequence:
                last = f"GREATEST(MAX(id), nextval('{sequence}'))"
                cursor.execute(f"SELECT setval('{sequence}', {last}) FROM {name}")
    _forget()


def _forget() -> None:
    """What an earlier test changed in these rows may have been read by their keys."""
    for name in list(sys.modules):
        if name.startswith(("experiments.", "crowd.", "analysis.")) and ".simulation" not in name:
            for value in _remembering(name):
                value.cache_clear()


@cache
def _remembering(module: str) -> list[_lru_cache_wrapper[object]]:
    """The functions of a module that remember what they read: looking for them takes as long as a request."""
    return [value for value in vars(sys.modules[module]).values() if isinstance(value, _lru_cache_wrapper)]
