"""A Chromium of this machine under Playwright, for commands and tests that look at pages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.errors import StudyError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "chromium-headless-shell",
)
PLACES = ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/usr/lib/chromium/chromium")
CACHES = (Path(".cache", "ms-playwright"), Path("Library", "Caches", "ms-playwright"))
CACHED = (
    "chromium-*/chrome-*/chrome",
    "chromium-*/chrome-*/Chromium.app/Contents/MacOS/Chromium",
    "chromium_headless_shell-*/chrome-*/headless_shell",
    "chromium_headless_shell-*/chrome-*/chrome-headless-shell",
)
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoChromium(StudyError):
    """No browser can be used; the message names the remedies."""


def flags() -> list[str]:
    """Chromium's sandbox does not run as root; for every other user it stays on."""
    return [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def candidates(caches: Sequence[Path]) -> Iterator[str]:
    """Programs that may be a Chromium, best first; `caches` are further folders of Playwright's browsers."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            yield path
    yield from PLACES
    for cache in (*caches, *(Path.home() / folder for folder in CACHES)):
        for pattern in CACHED:
            yield from map(str, sorted(cache.glob(pattern), reverse=True))


def is_chromium(program: str) -> bool:
    """The program is executed, because a name may be a stub that only asks for another package."""
    try:
        result = subprocess.run([program, "--version", *flags()], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0 and any(word in result.stdout for word in ("Chromium", "Chrome"))


def find_chromium(setting: str, caches: Sequence[Path]) -> str | None:
    """The path of a Chromium that runs: the one that `setting` names, else the first candidate. None if there
    is none. Raises NoChromium if the named one does not run."""
    if setting:
        if not is_chromium(setting):
            raise NoChromium(f"CHROMIUM={setting!r} does not run as a Chromium: name another, or unset it.")
        return setting
    return next((program for program in candidates(caches) if is_chromium(program)), None)


def browser_program(setting: str, caches: Sequence[Path]) -> str:
    """The path of the Chromium that pictures are taken with. Raises NoChromium, without starting anything
    that would have to be stopped, so that a command may ask before its long work."""
    if find_spec("playwright") is None:
        raise NoChromium(
            "Pictures of pages need the package playwright, which is not installed: run make setup, or "
            "install it with pip."
        )
    program = find_chromium(setting, caches)
    if program is None:
        raise NoChromium(
            "Pictures of pages need a Chromium, and none was found: set CHROMIUM to one, or apt install "
            "chromium, or run .venv/bin/playwright install chromium-headless-shell."
        )
    return program


@contextmanager
def open_browser(setting: str, caches: Sequence[Path]) -> Iterator[Browser]:
    """A headless browser under Playwright. Raises NoChromium."""
    program = browser_program(setting, caches)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags(), headless=True)
        try:
            yield browser
        finally:
            browser.close()
