"""`preview` as a researcher has it: the address opens the participant's page, which follows the file, and
nothing stays when it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.services import ROOT
from tests.world import write_study

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser]


def environment(folder: Path) -> dict[str, str]:
    """A database that cannot be reached and an account: the preview knows neither."""
    return {
        **{"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "TMPDIR": str(folder)},
        **{"LEGIBLE_VAR": str(folder / "var"), "PROLIFIC_TOKEN": "secret"},
        "DATABASE_URL": "postgresql://nobody:nothing@127.0.0.1:1/none",
    }


def test_it_opens_follows_and_leaves_nothing(page: Page, tmp_path: Path) -> None:
    path = write_study(tmp_path / "study", picture_px="picture_px = 320")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "preview", str(path)],
        cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = next(line for line in process.stdout if line.startswith("http")).strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22}/", url)
        page.goto(url)
        people = page.frame_locator("iframe")
        people.locator(".explanation img, .place img").last.wait_for()
        assert "Preview" in people.locator(".mark").inner_text()
        page.locator("select[name=place]").select_option(label="Baseline")
        page.locator("select[name=page]").select_option(label="Consent")
        people.locator("[data-page=consent]").wait_for()
        path.with_name("consent.md").write_text("# Consent\n\nWritten while it is looked at.\n")
        people.get_by_text("Written while it is looked at.").wait_for()
        line = path.read_text().splitlines().index("blocks = 2") + 1
        path.write_text(path.read_text().replace("blocks = 2", "blocks = 21"))
        page.get_by_text(f"line {line}:").wait_for()
        path.write_text(path.read_text().replace("blocks = 21", "blocks = 1"))
        page.locator("[role=alert]").wait_for(state="detached")
        assert list(tmp_path.glob("legible-preview-*"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert not list(tmp_path.glob("legible-preview-*"))
    kept = {file.relative_to(tmp_path / "var").as_posix() for file in (tmp_path / "var").rglob("*.*")}
    assert kept <= {"previewed/small.json"}


def test_a_port_that_is_taken_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "manage.py", "preview", "wolf-or-husky", "--port", str(port)],
            cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True,
        )  # fmt: skip
    assert f"Port {port} is in use; try --port {port + 1}." in done.stderr
    assert not list(tmp_path.glob("legible-preview-*"))
