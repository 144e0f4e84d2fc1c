"""Pictures of every page that a participant can meet: for an ethics board, and to look at."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import OperationalError, ProgrammingError

from crowd.rehearsal import chromium
from crowd.rehearsal.demo import server
from crowd.rehearsal.screens.album import USUAL, WINDOWS, Album, write_index, write_pdf
from crowd.rehearsal.screens.study_copy import Stage, copy_rows, restore
from crowd.rehearsal.screens.walk import walk
from experiments.management.base import StudyCommand
from experiments.management.commands.build_stimuli import build_study
from experiments.models import Study
from experiments.opening.opening import open_study
from experiments.selectors import definition_of
from experiments.study_files.load import find_study
from experiments.terminal import Terminal
from experiments.wording.sentence_tables import LANGUAGES

SHORT = "Left out: refusals, failed tries, other ends, and pages without a connection (--short)."
MANY = 100_000
ROWS = "rows.json"


@dataclass(frozen=True, slots=True)
class Ways:
    """What of a study is pictured: the languages of the interface (none: the study's), all windows or the
    usual one, and whether one session of each condition is all."""

    languages: tuple[str, ...] = ()
    in_all_windows: bool = False
    is_short: bool = False

    @classmethod
    def of(cls, options: dict[str, Any]) -> Ways:
        return cls(tuple(options["language"] or ()), options["all_windows"], options["short"])


class Command(StudyCommand):
    help = "Picture every page that a participant can meet, in every condition, as PNG and one PDF."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument("--to", type=Path, help="the folder to write (var/screens/SLUG)")
        parser.add_argument(
            "--language",
            action="append",
            choices=LANGUAGES,
            help="of the interface; may be repeated (the study's)",
        )
        parser.add_argument(
            "--all-windows",
            action="store_true",
            help="in windows from a phone to 1920x1080, with an index.html",
        )
        parser.add_argument(
            "--short",
            action="store_true",
            help="one session of each condition alone, without the other ways in and out",
        )
        parser.add_argument("--copy", type=Path, help="used by the command itself: the folder of the copy")

    def handle(self, *args: Any, study: str, to: Path | None, copy: Path | None, **options: Any) -> None:
        if copy is None:
            run_on_copy(study, self.folder(study, to))
            return
        assert to is not None
        with Terminal() as terminal:
            missing = picture(prepare_study(study, copy, terminal), to, Ways.of(options), terminal)
        if missing:
            raise CommandError(f"{len(missing)} of the pages were not reached; the album names them.")

    def folder(self, study: str, to: Path | None) -> Path:
        slug = Path(study).parent.name if study.endswith(".toml") else study
        return (to or settings.VAR_DIR / "screens" / slug).resolve()


def run_on_copy(study: str, to: Path) -> None:
    """Runs the command again, in the settings of an empty world that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="legible-screens-") as folder:
        rows = rows_of(study)
        if rows is not None:
            Path(folder, ROWS).write_text(rows, encoding="utf-8")
        world = {
            "LEGIBLE_VAR": folder,
            "DATABASE_URL": f"sqlite:///{Path(folder, 'legible.sqlite3')}",
            # Pictures of a study that is there are read and never written.
            "STORAGE_URL": settings.STORAGE_URL if rows is not None else str(Path(folder, "store")),
            "CELERY_BROKER_URL": "",
            "CACHE_URL": "",
            "BASE_URL": "http://127.0.0.1:8000",
            "DEBUG": "false",
            "ADDRESS_PLACES_MAX": str(MANY),
            "JOINS_PER_MINUTE": str(MANY),
            # Playwright runs a loop in this thread; nothing else does.
            "DJANGO_ALLOW_ASYNC_UNSAFE": "true",
            "OMP_NUM_THREADS": "1",
        }
        unset = [word for name in world for word in ("-u", f"{name}_FILE")]
        given = [f"{name}={value}" for name, value in world.items()]
        words = [*sys.argv, "--copy", folder, "--to", str(to)]
        sys.stdout.flush()
        done = subprocess.run(["env", *unset, *given, sys.executable, *words])
    if done.returncode:
        sys.exit(done.returncode)


def rows_of(name: str) -> str | None:
    """The rows of the study in this database; None if it is not there, or nothing is."""
    try:
        study = Study.objects.filter(slug=name).first()
    except (OperationalError, ProgrammingError):
        return None
    if study is None or study.state == Study.State.DRAFT:
        return None
    return copy_rows(study)


def prepare_study(name: str, copy: Path, terminal: Terminal) -> Study:
    """The study, open in this database: copied, else built from its file."""
    call_command("migrate", verbosity=0)
    rows = copy / ROWS
    if rows.is_file():
        restore(rows.read_text(encoding="utf-8"))
        return Study.objects.get()
    path = find_study(name, tuple(settings.STUDY_DIRS))
    terminal.line(f"{name} is not open in this database, so that it is built for the pictures.")
    slug = build_study(path, terminal)
    return open_study(Study.objects.get(slug=slug), terminal.progress)


def picture(study: Study, to: Path, ways: Ways, terminal: Terminal) -> list[str]:
    """Writes the album of the open study. Returns the screens that were not reached, each as a line."""
    written_in = definition_of(study).tag
    languages = ways.languages or (written_in,)
    shutil.rmtree(to, ignore_errors=True)
    album = Album(to, WINDOWS if ways.in_all_windows else (USUAL,))
    missing: list[str] = []
    title = f"{study.title} ({study.slug})"
    caches = [Path(path) for path in (settings.PLAYWRIGHT_BROWSERS_PATH,) if path]
    with chromium.open_browser(settings.CHROMIUM, caches) as browser:
        for language in languages:
            stage = Stage(study, language)
            port = free_port()
            url = f"http://127.0.0.1:{port}"
            with server.serving(port, url):
                look = album.looker(language)
                lost, said = walk(browser, url, stage, look, terminal.progress, is_short=ways.is_short)
            missing += [
                f"{screen.what}; condition: {screen.condition or 'all'}; language: {language}"
                for screen in lost
            ]
            for line in said:
                terminal.line(line)
        about = [
            f"{len(album.pictures)} pictures of the pages that a participant can meet, made from a copy "
            f"of the study: nothing here counts as an answer. Definition {study.digest[:12]}.",
            *([SHORT] if ways.is_short else []),
            f"The study's own texts are written in the language {written_in!r} and are never translated; the "
            f"interface is shown in: {', '.join(languages)}. Codes are examples.",
        ]
        path = (
            write_index(album, title, missing)
            if ways.in_all_windows
            else write_pdf(album, browser, title, about, missing)
        )
    terminal.line(f"{len(album.pictures)} pictures in {to}; {path.name} shows them together.")
    for line in missing:
        terminal.line(f"Not reached: {line}")
    return missing


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
