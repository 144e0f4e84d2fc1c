"""Studies that a process opens once: a later test that opens the same files, beside the same rows as then,
gets the rows and the stored files back that opening them made.

They are what opening would have made again, with their keys and times.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
from collections.abc import Callable
from functools import _lru_cache_wrapper
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.transaction import atomic

from experiments.models import Study
from tests.databases import FOLDER_VARIABLE

ROOMS = ("stimuli", "experiments", "analysis", "crowd")
Rows = dict[str, str]
"""Table -> its rows as PostgreSQL copies them."""
_kept: dict[str, tuple[int, Rows]] = {}
"""What was made -> the study and all rows then."""


def once(path: Path, what: str, make: Callable[[Path], Study]) -> Study:
    """`make(path)`, or what it made before: `path` is a study file, in a folder with all that it names, and
    `what` says how it is made."""
    is_shared = os.environ["STORAGE_URL"] == settings.STORAGE_URL
    store = Path(settings.STORAGE_URL)
    if connection.vendor != "postgresql" or not (is_shared or _is_empty(store)):
        return make(path)
    before = _copied()
    key = _key(path, f"{what} {is_shared}", before)
    files = Path(os.environ[FOLDER_VARIABLE], "snapshots", str(os.getpid()), key)
    if key not in _kept:
        study = make(path)
        _kept[key] = (study.pk, _copied())
        if not is_shared:
            # Copied, not linked: a test may spoil its own files.
            shutil.copytree(store, files)
        return study
    pk, rows = _kept[key]
    _restore(before, rows)
    if not is_shared:
        shutil.copytree(files, store, dirs_exist_ok=True)
    return Study.objects.get(pk=pk)


def _is_empty(store: Path) -> bool:
    """Whether a local store holds no file; a bucket is never asked."""
    return ":" not in str(store) and not any(path.is_file() for path in store.rglob("*"))


def _key(path: Path, what: str, before: Rows) -> str:
    """Names what is made by the content of its files and by the rows that were there."""
    total = hashlib.sha256(f"{what} {path.name} {sorted(before.items())}".encode())
    for file in sorted(path.parent.rglob("*")):
        if file.is_file():
            total.update(f"\n{file.relative_to(path.parent)} ".encode() + file.read_bytes())
    return total.hexdigest()


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
    for name, module in list(sys.modules.items()):
        if name.startswith(("experiments.", "crowd.", "analysis.")) and ".simulation" not in name:
            for value in list(vars(module).values()):
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()
