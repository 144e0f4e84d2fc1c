"""The demo as it is left: what it prints works, none removes another's folder, and no server stays."""

from __future__ import annotations

import html
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from PIL import Image

from crowd.rehearsal.demo.folder_and_port import ROWS, DemoFailed, check_port, hold, put_aside
from tests import services
from tests.services import ROOT
from tests.world import write_study

LONG = ("manage.py watch", "--rehearse", "--live --pilot")
"""They run until they are stopped, or for minutes, so they are left out."""


def plain(data: Path) -> dict[str, str]:
    """What a person's shell has, and no setting of ours but the folder of this test."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LEGIBLE_VAR": str(data)}


@contextmanager
def demo(data: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A demo that has printed its last line, and all that it printed."""
    with subprocess.Popen(
        [sys.executable, "manage.py", "demo", *words],
        cwd=ROOT, env=plain(data), stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        lines = []
        try:
            for line in process.stdout:
                lines.append(line)
                if line.startswith("Ctrl-C stops the server."):
                    break
            yield process, "".join(lines)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def ended(process: subprocess.Popen[str], number: int, port: int) -> bool:
    """Whether the port is free within 10 s after the process alone got that signal."""
    process.send_signal(number)
    process.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return True
    return False


def printed_commands(pages: list[str]) -> set[str]:
    """Every line for a shell that the pages offer."""
    codes = {html.unescape(code) for page in pages for code in re.findall(r"<code>(.*?)</code>", page)}
    return {code for code in codes if "manage.py " in code and not any(word in code for word in LONG)}


def logged_in(link: str) -> httpx.Client:
    client = httpx.Client(follow_redirects=True, timeout=60)
    assert client.get(link).status_code == 200
    (token,) = (value for name, value in client.cookies.items() if name.startswith("csrf_"))
    done = client.post(link, data={"csrfmiddlewaretoken": token}, headers={"Referer": link})
    assert done.status_code == 200 and any(name.startswith("session_") for name in client.cookies)
    return client


def run_as_printed(command: str, data: Path) -> subprocess.CompletedProcess[str]:
    """In a shell in the checkout; the environment has no folder of the demo but what the line itself says."""
    env = {name: value for name, value in plain(data).items() if name != "LEGIBLE_VAR"}
    return subprocess.run(command, shell=True, cwd=ROOT, env=env, capture_output=True, text=True)


def run_all(commands: set[str], study: str, file: Path, data: Path, to: Path) -> None:
    """As printed, but for what a person has to fill in."""
    assert any(" export " in command for command in commands), commands
    for command in sorted(commands):
        filled = command.replace("--platform NAME", "--platform local").replace(" NAME", " researcher")
        filled = filled.replace(" SLUG ", f" {study} ").replace("FOLDER", f"{to}/backup")
        # A file outside of the shipped studies and STUDY_DIRS is named by its path.
        filled = filled.replace(f"study_check {study}", f"study_check {file}")
        copy = f"{file} my-{study} --to {shlex.quote(str(to))}/copy"
        filled = filled.replace(f"copy_study {study} my-{study}", f"copy_study {copy}")
        filled = re.sub(r"(--out )(\S+)", rf"\1{shlex.quote(str(to))}/\2", filled)
        done = run_as_printed(filled, data)
        assert done.returncode == 0, (filled, done.stderr[-600:])


def look_at_pictures(data: Path, to: Path) -> None:
    """Those that README shows, of this demo."""
    done = subprocess.run(
        [sys.executable, "manage.py", "showcase", "--to", str(to)],
        cwd=ROOT, env=plain(data / "demo"), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    drawn = {path.stem: Image.open(path) for path in sorted(to.glob("*.png"))}
    assert list(drawn) == ["learning", "quality", "report", "trial"]
    for picture in drawn.values():
        assert picture.width == 1280 and len(picture.convert("RGB").getcolors(2**24) or []) > 50


@pytest.mark.long(stays="test_it_looks_again_only_at_what_is_there")
@pytest.mark.sqlite_only("the demo keeps its rows there")
def test_what_a_demo_shows_works_as_printed_and_stays(tmp_path: Path) -> None:
    data, port = tmp_path / "var", services.free_port()
    study = write_study(tmp_path / "study")
    earlier = data / "demo" / "marker"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("of an earlier demo")
    before = set(ROOT.glob("*.sqlite3")) | set((ROOT / "var").glob("*.sqlite3"))
    words = ("--study", str(study), "--participants", "3", "--port", str(port))
    with demo(data, *words) as (first, log):
        assert (data / "demo-1" / "marker").read_text() == "of an earlier demo"
        assert f"is kept in {data / 'demo-1'};" in log
        # The comparison with controls goes on behind the addresses.
        assert re.findall(r"^Step (\d) of 5\. ", log, re.MULTILINE) == list("1234")
        words_again = f'make demo ARGS="--again --port {port}'
        assert re.search(rf'^All of this again +{words_again}"$', log, re.MULTILINE)
        assert re.search(rf'^Look for faults +{words_again} --faults"$', log, re.MULTILINE)
        page = re.search(r"^Report +(\S+)$", log, re.MULTILINE)
        assert page and Path(page[1]).read_text().lstrip().startswith("<!doctype html>")
        second = subprocess.run(
            [sys.executable, "manage.py", "demo", "--port", str(services.free_port())],
            cwd=ROOT, env={**os.environ, **plain(data)}, capture_output=True, text=True,
        )  # fmt: skip
        assert second.returncode == 1 and "A demo of this checkout runs already (process" in second.stderr
        assert (data / "demo" / "legible.sqlite3").exists() and not (data / "demo-2").exists()
        link = re.search(r"^Log in \(once\) +(\S+)$", log, re.MULTILINE)
        another = re.search(r"^Another link +(.+)$", log, re.MULTILINE)
        assert link and another
        logged_in(link[1]).close()
        # E5: after the one-time link is used, in another browser, the printed line gives a new one.
        made = run_as_printed(another[1], data)
        assert made.returncode == 0, made.stderr
        client = logged_in(made.stdout.strip())
        root = f"http://127.0.0.1:{port}"
        (name,) = set(re.findall(r'href="/studies/([\w-]+)/"', client.get(f"{root}/").text))
        tabs = set(
            re.findall(rf'href="(/studies/{name}/[\w-]*/?)"', client.get(f"{root}/studies/{name}/").text)
        )
        assert len(tabs) >= 12
        shown = [client.get(f"{root}{path}") for path in ("/", "/service/", *sorted(tabs))]
        assert {reply.status_code for reply in shown} == {200}
        report = next(reply.text for reply in shown if reply.url.path.endswith("/report/"))
        assert "simulated" in report and "<iframe" in report, "it opens on the people that there are"
        run_all(printed_commands([reply.text for reply in shown]), name, study, data, tmp_path)
        look_at_pictures(data, tmp_path / "pictures")
        assert set(ROOT.glob("*.sqlite3")) | set((ROOT / "var").glob("*.sqlite3")) == before
        assert [path.name for path in data.glob("**/*.sqlite3")] == ["legible.sqlite3"]
        assert ended(first, signal.SIGTERM, port)
    with demo(data, "--again", "--port", str(port)) as (again, log):
        link = re.search(r"^Log in \(once\) +(\S+)$", log, re.MULTILINE)
        assert link and "Step " not in log
        logged_in(link[1]).close()
        assert ended(again, signal.SIGKILL, port)


def refused(data: Path, port: int) -> str:
    """What `--again` says on standard error when it refuses."""
    done = subprocess.run(
        [sys.executable, "manage.py", "demo", "--again", "--port", str(port)],
        cwd=ROOT, env={**os.environ, **plain(data)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr.strip()


def test_it_looks_again_only_at_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    port = services.free_port()
    assert refused(tmp_path, port) == (
        f"CommandError: {folder} holds no demo to look at again. Make one: make demo"
    )
    folder.mkdir()
    (folder / ROWS).touch()
    assert refused(tmp_path, port) == (
        "CommandError: The last demo ended before its report. Make a new one: make demo"
    )
    check_port(port)  # The server that had begun to start is gone.


@pytest.mark.pure
def test_it_moves_earlier_demos_to_the_first_free_name(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert put_aside(folder) is None
    for number in (1, 2):
        folder.mkdir()
        assert put_aside(folder) is None, "an empty folder is nothing"
        (folder / "marker").write_text(str(number))
        assert put_aside(folder) == tmp_path / f"demo-{number}"
    assert [(tmp_path / f"demo-{n}" / "marker").read_text() for n in (1, 2)] == ["1", "2"]


ASK = """
import pathlib, sys, django
django.setup()
from crowd.rehearsal.demo import folder_and_port
print(folder_and_port.wants_last(pathlib.Path(sys.argv[1])))
"""


@pytest.mark.pure
@pytest.mark.parametrize(
    ("typed", "last_line"),
    [
        ("\n", "True"),
        ("n\n", "False"),
        ("\x04", "crowd.rehearsal.demo.folder_and_port.DemoFailed: No demo was chosen, so nothing was done."),
    ],
)
def test_a_terminal_is_asked_which_demo_is_wanted(tmp_path: Path, typed: str, last_line: str) -> None:
    (tmp_path / ROWS).touch()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", ASK, str(tmp_path)]
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "crowd.settings"}
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        said = b""
        while b"a new one (this one is kept)." not in said:
            said += os.read(ours, 1024)
        os.write(ours, typed.encode())
        with suppress(OSError):  # The other end is closed when the process has ended.
            while more := os.read(ours, 1024):
                said += more
    os.close(ours)
    assert said.decode().splitlines()[-1].strip() == last_line
    without = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, env=env, capture_output=True, text=True
    )
    assert without.stdout == "False\n", "a script is never asked"


@pytest.mark.pure
def test_one_demo_holds_the_folder(tmp_path: Path) -> None:
    hold(tmp_path / "demo")
    with pytest.raises(DemoFailed, match=rf"runs already \(process {os.getpid()}\)"):
        hold(tmp_path / "demo")
    hold(tmp_path / "other")
