"""A server process that never outlives the test run that started it.

The server is the child of a guard: this file, run as a small process with the standard library only, which
watches a pipe from the run. When the run ends, however it ends (kill -9 included), the pipe closes, and the
guard stops the server's whole process group and removes its folder.
"""

import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

STOP_WITHIN_S = 10.0


class ServiceFailed(Exception):
    """A server did not start, or died; the text names the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a guard runs: `before` to its end, then `command` until it is told to stop."""

    folder: str
    command: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    before: Sequence[str] = ()
    user: str | None = None
    stop_signal: int = signal.SIGTERM


def guard(plan: Plan) -> int:
    """Run the plan; stop the server and remove its folder when standard input has a byte or ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    code = 1
    try:
        if not plan.before or start(plan, plan.before).wait() == 0:
            child = start(plan, plan.command)
            os.write(1, b"%d\n" % child.pid)
            while child.poll() is None and not select.select([0], [], [], 0.05)[0]:
                pass
            code = stop(child, plan.stop_signal)
        os.write(1, b"exit %d\n" % code)
        os.read(0, 1)  # the log may be read until the run closes the pipe
    except BrokenPipeError:
        pass
    finally:
        shutil.rmtree(plan.folder, ignore_errors=True)
    return code


def start(plan: Plan, command: Sequence[str]) -> "subprocess.Popen[bytes]":
    account = pwd.getpwnam(plan.user) if plan.user else None
    with open(Path(plan.folder, "log"), "ab") as log:
        return subprocess.Popen(
            command,
            cwd=plan.cwd,
            env=dict(plan.env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            restore_signals=True,
            preexec_fn=default_signals,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )


def default_signals() -> None:
    """An ignored signal stays ignored over exec; the server needs its own handling back."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def stop(child: "subprocess.Popen[bytes]", first: int) -> int:
    """SIGTERM, then SIGKILL for the whole process group, also for children that outlived their leader."""
    try:
        child.send_signal(first)
        code = child.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        code = child.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    return code


class Service:
    """One running server, by its guard."""

    def __init__(self, plan: Plan) -> None:
        self.name = Path(plan.command[0]).name
        self.folder = Path(plan.folder)
        self.guard = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, json.dumps(asdict(plan))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # so that select() sees every byte
            start_new_session=True,
        )
        assert self.guard.stdin is not None and self.guard.stdout is not None
        self.leash, self.news = self.guard.stdin, self.guard.stdout
        self.is_ended = False
        first = self.news.readline().split()
        if len(first) != 1:
            raise self.failure("could not be prepared")
        self.pid = int(first[0])

    def log(self) -> str:
        """Everything that the server has written so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def is_running(self) -> bool:
        self.is_ended = self.is_ended or bool(select.select([self.news], [], [], 0)[0])
        return not self.is_ended

    def wait_until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Poll the condition until it holds; ServiceFailed if the server ends or the time is over."""
        deadline = time.monotonic() + within_s
        while not condition():
            if not self.is_running():
                raise self.failure("ended by itself")
            if time.monotonic() > deadline:
                raise self.failure(f"was not ready after {within_s:.0f} s")
            time.sleep(0.02)

    def kill(self) -> None:
        """kill -9 for the server and all its children, as a machine that loses power would."""
        os.killpg(self.pid, signal.SIGKILL)
        select.select([self.news], [], [])
        self.is_ended = True

    def stop(self) -> None:
        """End the server and wait until all its processes are gone. May be called twice."""
        self.is_ended = True
        self.leash.close()
        self.guard.wait()
        self.news.close()

    def failure(self, what: str) -> ServiceFailed:
        tail = "\n".join(self.log().splitlines()[-20:])
        self.stop()
        return ServiceFailed(f"{self.name} {what}. It said:\n{tail or '(nothing)'}")


if __name__ == "__main__":
    sys.exit(guard(Plan(**json.loads(sys.argv[1]))))
