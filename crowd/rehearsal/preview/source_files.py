"""The file of a previewed study as it is edited: when it has changed, and what is wrong with it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from experiments.errors import InvalidStudy, StudyError
from experiments.study_files.load import material_folder

READ = ("*.toml", "*.md")


def stamps_of(path: Path) -> dict[Path, int]:
    """When each file that a study is read from has changed, in nanoseconds: the study's, its parent's, and
    all texts beside them. Files that come and go in between are left out."""
    folders = {path.parent}
    with suppress(StudyError, OSError, ValueError):  # What is wrong is told as it is read.
        folders.add(material_folder(path))
    stamps: dict[Path, int] = {}
    for file in (file for folder in folders for pattern in READ for file in folder.glob(pattern)):
        with suppress(FileNotFoundError):
            stamps[file] = file.stat().st_mtime_ns
    return stamps


def faults_of(error: Exception) -> tuple[str, ...]:
    """Each mistake of the file with its line, value, limit and remedy; any other error as it is."""
    return tuple(map(str, error.problems)) if isinstance(error, InvalidStudy) else (str(error),)
