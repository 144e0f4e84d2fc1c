"""The manifest of an export: digests of all files, the origin of the data, a link to the previous export."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.exports.base import ExportError
from stimuli.spec import content_key

NAME = "manifest.json"
VERSION = 1
PLAIN = re.compile(r"([A-Za-z0-9_\-]+/)?[A-Za-z0-9_\-]+(\.[A-Za-z0-9_\-]+)*")
"""Names of files: no path leaves the folder by one, on any system."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification: every problem; none means that the folder is as it was written."""

    manifest: Mapping[str, Any]
    problems: tuple[str, ...]


def file_entries(folder: Path, rows: Mapping[str, int]) -> list[dict[str, Any]]:
    """One entry per file: name, bytes, SHA-256, rows."""
    return [
        {
            "name": name,
            "bytes": (folder / name).stat().st_size,
            "sha256": sha256(folder / name),
            "rows": count,
        }
        for name, count in sorted(rows.items())
    ]


def add_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with its own digest: SHA-256 of its canonical JSON without the digest."""
    return {**content, "digest": content_key(dict(content))}


def write(folder: Path, manifest: Mapping[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False, sort_keys=True)
    (folder / NAME).write_text(text + "\n", encoding="utf-8")


def check(folder: Path) -> Verification:
    """Compares a folder with its manifest. Raises ExportError if there is no manifest that can be read."""
    manifest = _read(folder / NAME)
    content = {key: value for key, value in manifest.items() if key != "digest"}
    problems = []
    if content_key(content) != manifest.get("digest"):
        problems.append(f"{NAME}: its digest does not fit its content; it was changed after the export.")
    listed = {entry["name"]: entry for entry in manifest.get("files", [])}
    for entry in listed.values():
        problems += _file_problems(folder, entry)
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(present - set(listed) - {NAME}):
        problems.append(f"{name}: stands in the folder and not in the manifest; it is no part of the export.")
    return Verification(manifest, tuple(problems))


def sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExportError(f"{path}: there is no manifest; give the folder that export wrote.") from None
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: the manifest cannot be read ({error}); export again.") from None
    if not isinstance(manifest, dict) or not _well_formed(manifest.get("files")):
        raise ExportError(f"{path}: this is not a manifest of Legible; give the folder that export wrote.")
    return manifest


def _well_formed(files: object) -> bool:
    """A list of entries with plain file names, at most one plain folder deep: a manifest from elsewhere must
    not make us read other folders.
    """
    return isinstance(files, list) and all(
        isinstance(entry, dict)
        and {"name", "bytes", "sha256", "rows"} <= set(entry)
        and isinstance(entry["name"], str)
        and PLAIN.fullmatch(entry["name"])
        for entry in files
    )


def _file_problems(folder: Path, entry: Mapping[str, Any]) -> list[str]:
    name, path = entry["name"], folder / entry["name"]
    if not path.is_file():
        return [f"{name}: the manifest lists it, and it is missing."]
    if not path.resolve().is_relative_to(folder.resolve()):
        return [f"{name}: is a link that leads out of the folder; it is no part of the export."]
    if sha256(path) == entry["sha256"]:
        return []
    size = path.stat().st_size
    if size != entry["bytes"]:
        return [f"{name}: has {size} bytes instead of {entry['bytes']}; it was changed after the export."]
    return [f"{name}: its content was changed after the export (same size, another SHA-256)."]
