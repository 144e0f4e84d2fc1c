"""What a demo keeps beside the reports of its simulated people, in a file of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.conf import settings


def beside_file(slug: str, digest: str) -> Path:
    """The demo's file for a study and its definition."""
    return Path(settings.VAR_DIR) / "beside" / f"{slug}-{digest[:16]}.json"


def keep_beside(slug: str, digest: str, **members: Any) -> None:
    """Adds to what is kept beside the study's report: `file` (the study's), `controls` (None: not yet run),
    `without` (why there are none) and `planted`."""
    path = beside_file(slug, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_suffix(".part")
    partial_file.write_text(json.dumps(read_beside(slug, digest) | members), encoding="utf-8")
    partial_file.replace(path)


def read_beside(slug: str, digest: str) -> dict[str, Any]:
    """What is kept; empty if no demo kept anything."""
    path = beside_file(slug, digest)
    if not path.exists():
        return {}
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept
