"""How often other seeds find the planted cases, as `make prove PARTS=planted` counted and wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

LINE = re.compile(
    r"^planted (?P<digest>[0-9a-f]{64}): of (?P<runs>\d+) other seeds (?P<marked>\d+) found the marked "
    r"case and (?P<null>\d+) its null; power (?P<power>[01]\.\d+)$",
    re.MULTILINE,
)
COMMIT = re.compile(r"^\| commit \|.*\n\| -.*\n\| (?P<commit>[0-9a-f]{7,40}) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DetectionCounts:
    """`digest` names what was frozen; `marked` and `null` are how many of `runs` found each case; `power`
    (0-1) is that of the shipped number of people for the mean difference of the marked case; `commit` is
    where it was counted."""

    digest: str
    runs: int
    marked: int
    null: int
    power: float
    commit: str = ""


def counted_of(digest: str, page: Path | None = None) -> DetectionCounts | None:
    """What the page of evidence says of the cases with this digest; None if it speaks of others, or is not
    there."""
    file = page or Path(settings.BASE_DIR) / "docs" / "evidence" / "planted.md"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    said, commit = LINE.search(text), COMMIT.search(text)
    if said is None or commit is None or said["digest"] != digest:
        return None
    runs, marked, null = (int(said[name]) for name in ("runs", "marked", "null"))
    return DetectionCounts(digest, runs, marked, null, float(said["power"]), commit["commit"])
