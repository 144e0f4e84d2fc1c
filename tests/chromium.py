"""A headless Chromium for the browser tests: an installed one, else a new one, else a sentence that names
the remedies."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.databases import only_one
from tests.guard import ServiceFailed
from tests.services import ROOT

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "chromium-headless-shell",
)
PLACES = ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/usr/lib/chromium/chromium")
OWN_CACHE = ROOT / ".venv" / "browsers"
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


def flags() -> list[str]:
    """Chromium's sandbox does not run as root; for every other user it stays on."""
    return [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def candidates() -> Iterator[str]:
    """Programs that may be a Chromium, best first."""
    setting = os.environ.get("CHROMIUM")
    if setting:
        yield setting
    for name in NAMES:
        path = shutil.which(name)
        if path:
            yield path
    yield from PLACES
    for cache in playwright_caches():
        for pattern in CACHED:
            yield from map(str, sorted(cache.glob(pattern), reverse=True))


def playwright_caches() -> list[Path]:
    setting = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    home = Path(os.environ.get("HOME", "/nonexistent"))
    usual = [home / ".cache" / "ms-playwright", home / "Library" / "Caches" / "ms-playwright"]
    return [*([Path(setting)] if setting else []), OWN_CACHE, *usual]


def is_chromium(program: str) -> bool:
    """The program is executed, because a name may be a stub that only asks for another package."""
    try:
        result = subprocess.run([program, "--version", *flags()], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0 and any(word in result.stdout for word in ("Chromium", "Chrome"))


def find_chromium() -> str | None:
    setting = os.environ.get("CHROMIUM")
    if setting and not is_chromium(setting):
        raise ServiceFailed(f"CHROMIUM={setting!r} does not run as a Chromium: name another, or unset it.")
    return next((program for program in candidates() if is_chromium(program)), None)


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
    """A headless browser under Playwright."""
    program = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags(), headless=True)
        try:
            yield browser
        finally:
            browser.close()
