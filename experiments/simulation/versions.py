"""The versions of the observers: what was frozen, when, and what had been seen before.

Every version stays in versions.toml. Its digest is over its source and parameters, so that a change without a
new version is found (test_observers_frozen.py) and a report names what answered it.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Version:
    """`kinds` are the observers, `files` what the digest is over, `commit` the one that froze it, `seen` what
    had been run or looked at before."""

    number: int
    kinds: tuple[str, ...]
    files: tuple[str, ...]
    digest: str
    frozen: str
    commit: str
    seen: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"version {self.number}, {self.digest[:12]}"


@lru_cache(maxsize=1)
def versions() -> tuple[Version, ...]:
    """In the order in which they were made."""
    text = (ROOM / "versions.toml").read_text(encoding="utf-8")
    return tuple(_read(row) for row in tomllib.loads(text)["version"])


def _read(row: dict[str, Any]) -> Version:
    lists = {name: tuple(row[name]) for name in ("kinds", "files", "seen")}
    return Version(**(row | lists))


def version_of(kind: str) -> Version | None:
    """The newest version with that observer; None for a kind of person that is no observer."""
    return next((version for version in reversed(versions()) if kind in version.kinds), None)


def version_with(digest: str) -> Version | None:
    """The newest version with that digest; None if there is none, so that the source was never frozen."""
    return next((version for version in reversed(versions()) if version.digest == digest), None)


@lru_cache
def digest_here(kind: str) -> str:
    """The digest of the files as they stand here, frozen or not; "" for a kind of person that is no
    observer."""
    version = version_of(kind)
    return digest_of(version.files) if version else ""


def digest_of(files: Sequence[str], read: Callable[[str], bytes] | None = None) -> str:
    """SHA-256 over names and contents of files of this folder, line ends as LF. `read` may take them from
    elsewhere, for example from a commit."""
    total = hashlib.sha256()
    for name in sorted(files):
        content = (read or (lambda n: (ROOM / n).read_bytes()))(name).replace(b"\r\n", b"\n")
        total.update(f"{name}\x1f{len(content)}\x1f".encode() + content)
    return total.hexdigest()
