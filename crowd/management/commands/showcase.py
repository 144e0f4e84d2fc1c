"""Pictures of the last demo, for README and documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from crowd.management.commands.screenshots import free_port
from crowd.rehearsal import chromium
from crowd.rehearsal.demo import folder_and_port, server
from crowd.rehearsal.readme_pictures import Exhibit, show
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Picture a trial, the page Quality and the report of the last demo, for README and documentation."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", type=Path, default=Path("docs/pictures"), help="folder (docs/pictures)")

    def handle(self, *args: Any, to: Path, **options: Any) -> None:
        with Terminal() as terminal:
            exhibit = Exhibit.of(folder_and_port.last_study(terminal))
            url = f"http://127.0.0.1:{(port := free_port())}"
            caches = [Path(path) for path in (settings.PLAYWRIGHT_BROWSERS_PATH,) if path]
            with server.serving(port, url), chromium.open_browser(settings.CHROMIUM, caches) as browser:
                for path in show(exhibit, url, browser, to):
                    terminal.line(str(path))
