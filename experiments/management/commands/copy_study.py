"""Copies a study's folder under another slug."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from experiments.errors import StudyError
from experiments.management.base import StudyCommand
from experiments.study_files.load import find_study, load_study
from experiments.terminal import Terminal

_SLUG = re.compile(r"^slug\s*=.*$", re.MULTILINE)


class Command(StudyCommand):
    help = "Copy a study's folder, with its texts, under another slug: a new study to change and open."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument("slug", help="of the new study")
        parser.add_argument("--to", type=Path, help="the new folder (one named as the slug, here)")

    def handle(self, *args: Any, study: str, slug: str, to: Path | None, **options: Any) -> None:
        folder = to or Path(slug)
        with Terminal() as terminal:
            path = copy_study_folder(find_study(study, tuple(settings.STUDY_DIRS)), slug, folder)
            terminal.line(f"{path} is a study of its own. Change it, then: legible study_check {path}")


def copy_study_folder(source: Path, slug: str, folder: Path) -> Path:
    """The new study file. Raises StudyError if the folder is there, the slug does not do or is the old one,
    or if what was written would not be the same study under that slug; then nothing stays."""
    before = load_study(source)
    if before.slug == slug:
        raise StudyError(f"{slug!r} is the slug of the study itself: give the copy another one.")
    wanted = load_study(source, changes={"slug": slug})
    if folder.exists():
        raise StudyError(f"{folder} is there already: name another folder with --to.")
    if folder.resolve().is_relative_to(source.parent.resolve()):
        raise StudyError(f"{folder} lies within the study that it would copy: name another one with --to.")
    try:
        shutil.copytree(source.parent, folder)
        path = folder / source.name
        text = path.read_text(encoding="utf-8")
        path.write_text(_SLUG.sub(f'slug = "{slug}"', text, count=1), encoding="utf-8")
        if load_study(path).digest != wanted.digest:
            raise StudyError(f"{source} does not write its slug on a line of its own: copy it by hand.")
    except (OSError, shutil.Error, StudyError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StudyError(f"Nothing was copied: {error}") from error
    return path
