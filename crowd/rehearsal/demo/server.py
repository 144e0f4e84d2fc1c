"""A demo as it is looked at: its server, and what is printed of it. It imports little, so that the server of
a demo that is looked at again starts at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model

from analysis.stored_reports.demo_case_file import read_beside
from crowd.ground.child_process_end import end_with_parent
from crowd.ground.copyable_commands import as_typed
from crowd.rehearsal.demo.folder_and_port import DemoFailed
from experiments.models import Slot, Study
from experiments.terminal import Terminal

START_DEADLINE_S = 60.0
WEB_PROCESSES = 2
"""One leaves a part of two cores idle if many people come at once."""


@contextmanager
def serving(
    port: int, url: str, meanwhile: Callable[[], object] = lambda: None, processes: int = WEB_PROCESSES
) -> Iterator[subprocess.Popen[bytes]]:
    """The production server on this machine, stopped at the end in every case. `meanwhile` is called while it
    starts, which takes seconds."""
    log = settings.VAR_DIR / "server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "-c",
        "crowd/gunicorn.py",
        "-w",
        str(processes),
        "--preload",  # The modules of all processes are read once.
        "-b",
        f"127.0.0.1:{port}",
        "crowd.wsgi",
    ]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_parent,  # also if the demo is killed
        )
        try:
            meanwhile()
            _wait_until_up(server, url, port, log)
            yield server
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()


def _wait_until_up(server: subprocess.Popen[bytes], url: str, port: int, log: Path) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/healthz", timeout=2).status_code == 200 and server.poll() is None:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
    raise DemoFailed(
        f"The server does not start on port {port}; try --port {port + 1}. Its log ends:\n{tail}"
    )


def report_folder(study: Study) -> Path:
    return Path(settings.VAR_DIR) / f"report-{study.slug}"


def wants_controls(study: Study) -> bool:
    """Whether the demo was ended before it had compared the report with controls."""
    kept = read_beside(study.slug, study.digest)
    return bool(kept) and not kept.get("controls") and not kept.get("without")


def print_addresses(
    study: Study, url: str, terminal: Terminal, faults: bool, ended: Sequence[Study] = ()
) -> None:
    """Where to look around; `ended` are the stages that came before, which are closed: the dashboard
    has them. `faults`: they are looked for already."""
    page = report_folder(study) / "report.html"
    port = "" if url.endswith(":8000") else f" --port {url.rpartition(':')[2]}"
    again = f'make demo ARGS="--again{port}"'
    lines = [
        ("Report", str(page) if page.exists() else f"{url}/studies/{study.slug}/report/"),
        ("Dashboard", f"{url}/"),
        ("Log in (once)", f"{url}{login_path()}"),
        ("Another link", as_typed("python manage.py login_link")),
        ("Take part", f"{url}/join/{study.slug}/   ({_free(study)} places are free)"),
        ("Look at trials", f"{url}/studies/{study.slug}/preview/   (those of any condition; log in first)"),
    ]
    judged = f"(its solutions are judged in {study.slug})"
    lines += [("Closed stage", f"{url}/studies/{stage.slug}/   {judged}") for stage in ended]
    lines += [
        ("All of this again", again),
        *([] if faults else [("Look for faults", again[:-1] + ' --faults"')]),
        ("Next", "docs/own-study.md: a study of your own, from an empty folder"),
    ]
    terminal.line("")
    for word, what in lines:
        terminal.line(f"{word:<18} {what}", is_whole=True)
    if wants_controls(study):
        terminal.line("The comparison with controls goes on below; the report has it when it is there.")
    terminal.line("Ctrl-C stops the server.")


def login_path() -> str:
    """A link that logs the demo's only person in, once."""
    from crowd.dashboard.login_links import make_login_path

    users = get_user_model()
    researcher, _ = users.objects.get_or_create(
        username="researcher", defaults={"is_staff": True, "is_superuser": True}
    )
    return make_login_path(researcher)


def print_done(study: Study, terminal: Terminal) -> None:
    """The end of a demo whose server does not stay."""
    free = _free(study)
    terminal.line(f"Done. {free} walk-in slots are free. Start it again without --no-serve to look around.")


def print_end(study: Study, terminal: Terminal) -> None:
    terminal.line("The addresses above work until Ctrl-C stops the server.")


def _free(study: Study) -> int:
    return Slot.objects.filter(study=study, kept=False, holder__isnull=True).count()


@contextmanager
def until_end(server: subprocess.Popen[bytes], stays: bool = True) -> Iterator[None]:
    """What is still to be done, and then, if the server stays, until it ends or is told to by Ctrl-C, which
    also ends what is being done."""
    if not stays:
        yield
        return
    # A script starts its background programs with Ctrl-C ignored; this one has no other end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
        server.wait()
    except KeyboardInterrupt:
        print()
