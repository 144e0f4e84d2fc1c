"""A draft in the participant's page within seconds, following its file."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import CommandParser

from crowd.platforms import settings_of_all
from crowd.rehearsal.demo.folder_and_port import check_port
from experiments.management.base import StudyCommand
from experiments.study_files.load import find_study
from experiments.terminal import Terminal

MANY = 100_000


class Command(StudyCommand):
    help = (
        "Show a draft in the participant's page within seconds, and follow its file. Stores and pays nothing."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument(
            "--port", type=int, default=0, help="where it listens, on this machine (a free one)"
        )
        parser.add_argument("--open", action="store_true", help="open it in the browser")
        parser.add_argument("--within", type=Path, help="used by the command itself: the folder of its world")
        parser.add_argument("--behind", help="used by the command itself: the store that is read")
        parser.add_argument(
            "--notes", type=Path, help="used by the command itself: where seen items are noted"
        )

    def handle(self, *args: Any, study: str, port: int, within: Path | None, **options: Any) -> None:
        path = find_study(study, tuple(settings.STUDY_DIRS)).resolve()
        if within is None:
            if port:
                check_port(port)
            start_in_empty_world()
        try:
            run(path, port, options["behind"], options["notes"], opens=options["open"])
        finally:
            shutil.rmtree(within, ignore_errors=True)


def start_in_empty_world() -> NoReturn:
    """Settings are read once, so the command starts again with those of a world of its own, which knows no
    database, broker or account."""
    from experiments.opening.previewed_items import notes_folder

    within = tempfile.mkdtemp(prefix="legible-preview-")
    world = {
        "LEGIBLE_VAR": within,
        "DATABASE_URL": f"sqlite:///{within}/preview.sqlite3",
        "STORAGE_URL": f"{within}/store",
        "SECRET_KEY": secrets.token_urlsafe(32),
        "CELERY_BROKER_URL": "",
        "CACHE_URL": "",
        "BASE_URL": "http://127.0.0.1",
        "DEBUG": "false",
        "ADDRESS_PLACES_MAX": str(MANY),
        "JOINS_PER_MINUTE": str(MANY),
    }
    unset = [*world, *settings_of_all(), "IDENTITY_KEY", "ALLOWED_HOSTS"]
    left = [word for name in unset for word in ("-u", name, "-u", f"{name}_FILE")]
    given = [f"{name}={value}" for name, value in world.items()]
    more = ["--within", within, "--behind", settings.STORAGE_URL, "--notes", str(notes_folder())]
    sys.stdout.flush()
    os.execvp("env", ["env", *left, *given, sys.executable, *sys.argv, *more])


def run(path: Path, port: int, behind: str, notes: Path, *, opens: bool) -> None:
    # Imported here, as the process that starts it again needs none of it.
    from crowd.ground.child_process_end import end_with_signals
    from crowd.rehearsal.preview.drafts import Preview
    from crowd.rehearsal.preview.serving import make_world, serving

    end_with_signals()
    make_world(behind)
    preview = Preview(path, notes)
    with Terminal() as terminal, serving(preview, secrets.token_urlsafe(16), port) as url:
        terminal.line(f"Preview of {path}: nothing is stored, nobody is paid.")
        terminal.line(url, is_whole=True)
        terminal.line("It follows the file. Ctrl-C ends it.")
        if opens:
            webbrowser.open(url)
        try:
            preview.follow()
        except KeyboardInterrupt:
            print()
