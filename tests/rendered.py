"""Pictures that a run renders once: a later test that needs the same stimuli gets copies of rows and files.

A stimulus key names everything that its pictures depend on, so a copy is what rendering would have made.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from experiments.pruning import INSTALLATIONS
from stimuli.build import build, missing
from stimuli.models import Stimulus
from tests.databases import FOLDER_VARIABLE, only_one

COLUMNS = [field.name for field in Stimulus._meta.fields if field.name not in ("id", "key")]


def build_once(keys: Sequence[str]) -> None:
    """Does the same as `build`; the pictures may come from an earlier test of this run."""
    run = os.environ.get(FOLDER_VARIABLE)
    if run is None or settings.STORAGE_URL.startswith("s3:") or len(missing(keys)) < len(keys):
        build(keys)
        return
    name = hashlib.sha256("".join(sorted(keys)).encode()).hexdigest()
    archive, store = Path(run, "rendered", name), Path(settings.STORAGE_URL)
    archive.parent.mkdir(exist_ok=True)
    with only_one(archive.with_suffix(".lock")):
        if not (archive / "rows").exists():
            build(keys)
            keep(keys, store, archive)
            return
    fetch(archive, store)


def keep(keys: Sequence[str], store: Path, archive: Path) -> None:
    rows = list(Stimulus.objects.filter(key__in=keys).values("key", *COLUMNS))
    for path in store.rglob("*.*"):
        # Which database names the files is no part of them.
        if path.is_file() and path.parent.name != INSTALLATIONS:
            copy(path, archive / path.relative_to(store))
    # The rows come last: they say that the files are whole.
    (archive / "rows").write_bytes(pickle.dumps(rows))


def fetch(archive: Path, store: Path) -> None:
    for path in archive.rglob("*.*"):
        if path.is_file():
            copy(path, store / path.relative_to(archive))
    rows = [Stimulus(**row) for row in pickle.loads((archive / "rows").read_bytes())]
    Stimulus.objects.bulk_create(rows, update_conflicts=True, unique_fields=["key"], update_fields=COLUMNS)


def copy(source: Path, target: Path) -> None:
    """Copied, not linked: a test may spoil its own files."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
