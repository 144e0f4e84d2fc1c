"""A headless Chromium for the browser tests: an installed one, else a new one, else a sentence that names
the remedies."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext

from crowd.rehearsal import chromium as finder
from crowd.rehearsal.chromium import flags
from tests.run.databases import only_one
from tests.run.guard import ServiceFailed
from tests.services import ROOT

__all__ = ["chromium", "flags", "open_browser"]
OWN_CACHE = ROOT / ".venv" / "browsers"
PATIENCE_MS = 90_000
"""For all that a test waits for: a busy machine is no fault."""


def find_chromium() -> str | None:
    setting = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    caches = [*([Path(setting)] if setting else []), OWN_CACHE]
    return finder.find_chromium(os.environ.get("CHROMIUM", ""), caches)


def installers() -> Iterator[list[list[str]]]:
    """Ways to get one: the system's package as root, else Playwright's build in the environment's folder."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        yield [["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]]
    yield [[sys.executable, "-m", "playwright", "install", "chromium-headless-shell"]]


def chromium() -> str:
    """The path of a Chromium that runs; installs one if possible, while other test processes wait."""
    with only_one(ROOT / ".venv" / "chromium.lock"):
        return _found_or_installed()


def _found_or_installed() -> str:
    path = find_chromium()
    failures: list[str] = []
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PLAYWRIGHT_BROWSERS_PATH": str(OWN_CACHE)}
    for commands in [] if path else installers():
        for command in commands:
            result = subprocess.run(command, env=env, capture_output=True, text=True)
            if result.returncode != 0:
                failures.append(f"{' '.join(command)}: {(result.stderr or result.stdout).strip()[-300:]}")
                break
        path = find_chromium()
        if path:
            break
    if path is None:
        raise ServiceFailed(
            "The browser tests need a Chromium, and none was found or could be installed: set CHROMIUM to "
            "one, or apt install chromium, or run .venv/bin/playwright install chromium-headless-shell.\n"
            + "\n".join(failures)
        )
    return path


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A headless browser under Playwright, each of whose pages has the same patience."""
    with finder.open_browser(chromium(), ()) as browser:
        fresh = browser.new_context

        def new_context(**options: Any) -> BrowserContext:
            context = fresh(**options)
            context.set_default_timeout(PATIENCE_MS)
            return context

        browser.new_context = new_context  # type: ignore[method-assign]
        yield browser
