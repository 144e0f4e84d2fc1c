"""Which items were seen with explanations before the study was opened: kept beside the data, for a
preview makes no row."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from django.conf import settings

from experiments.models import Study, Trial


def note_previewed(folder: Path, slug: str, items: Collection[str]) -> None:
    """Adds to the items of a study that were shown with an explanation. Repeatable."""
    known = _noted(folder, slug)
    if set(items) <= known:
        return
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{slug}.part"
    part.write_text(json.dumps(sorted(known | set(items))), encoding="utf-8")
    part.replace(folder / f"{slug}.json")


def notes_folder() -> Path:
    return Path(settings.VAR_DIR) / "previewed"


def previewed_tests(study: Study) -> list[str]:
    """The items of an opened study's tests that a preview on this machine has shown with explanations."""
    tests = Trial.objects.filter(slot__study=study, phase="test", check_kind="", item__isnull=False)
    return sorted(
        _noted(notes_folder(), study.slug) & set(tests.order_by().values_list("item__key", flat=True))
    )


def _noted(folder: Path, slug: str) -> set[str]:
    try:
        return set(json.loads((folder / f"{slug}.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return set()
