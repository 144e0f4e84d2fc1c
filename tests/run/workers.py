"""Runs tests in several processes that are forked once everything has been collected: the suite and its
libraries are imported once, and a process that is free takes the next file.

pytest --processes 3

The tests of a file run in one process, because they share fixtures; a test that is marked `apart` runs on its
own. What took longest when last measured (tests/seconds.txt) begins first, so that no process waits at the
end for another's last file.
"""

from __future__ import annotations

import gc
import os
import signal
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest

WORKER_VARIABLE = "LEGIBLE_TEST_WORKER"
"""Names the process; empty in a run of one process."""
Group = tuple[int, ...]
"""Places of tests in the session's list."""


def groups_of(items: Sequence[pytest.Item], seconds: Mapping[str, float]) -> list[Group]:
    """The tests in the order in which processes take them: whole files, and single tests marked `apart`.

    `seconds` are those of a file by its path from the root; a file that was never measured comes first.
    """
    together: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        path = item.nodeid.partition("::")[0]
        is_alone = item.get_closest_marker("apart") is not None
        together.setdefault(item.nodeid if is_alone else path, []).append(place)
    expected = {name: seconds.get(name.partition("::")[0], float("inf")) for name in together}
    return [tuple(together[name]) for name in sorted(together, key=lambda name: -expected[name])]


@dataclass
class Worker:
    """A forked process: its end of the pipe, the group that it has, and the test that runs there."""

    name: str
    pid: int
    pipe: Connection
    waiting: list[int] = field(default_factory=list)
    running: int | None = None


class Run:
    """One run of all groups; `main` gives tests out and passes on what the processes report."""

    def __init__(self, session: pytest.Session, groups: Iterable[Group], spent: dict[str, float]) -> None:
        self.session = session
        self.config = session.config
        self.groups: Iterator[Group] = iter(groups)
        self.again: list[Group] = []
        self.spent = spent
        self.count = 0
        self.workers: dict[Connection, Worker] = {}

    def main(self, processes: int) -> None:
        gc.collect()
        gc.freeze()
        # Objects of a test go when it ends; looking for circles as often as usual was a tenth of a run.
        gc.set_threshold(50_000, 20, 50)
        try:
            for _ in range(processes):
                self.start()
            while self.workers:
                for pipe in wait(list(self.workers)):
                    assert isinstance(pipe, Connection)
                    try:
                        self.take(self.workers[pipe], pipe.recv())
                    except (EOFError, OSError):
                        if self.ended(self.workers.pop(pipe)):
                            self.start()
                if self.session.shouldfail or self.session.shouldstop:
                    return
        finally:
            for worker in self.workers.values():
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)

    def start(self) -> None:
        self.count += 1
        name = f"w{self.count}"
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                # Else a process would not see that the run has ended, as long as another holds its end.
                for pipe in (ours, *self.workers):
                    pipe.close()
                Process(self.session, theirs, name, self.spent).main()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)  # what was registered for the end of the run is the run's own
        theirs.close()
        self.workers[ours] = Worker(name, pid, ours)

    def take(self, worker: Worker, message: tuple[Any, ...]) -> None:
        """One message of a process."""
        hook, what = self.config.hook, message[0]
        if what == "next":
            group = self.again.pop() if self.again else next(self.groups, ())
            worker.waiting = list(group)
            worker.pipe.send(group)
        elif what == "start":
            worker.running = message[1]
            item = self.session.items[message[1]]
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        elif what == "report":
            report = hook.pytest_report_from_serializable(config=self.config, data=message[1])
            hook.pytest_runtest_logreport(report=report)
        elif what == "end":
            item = self.session.items[message[1]]
            self.spent[item.nodeid] = message[2]
            worker.waiting.remove(message[1])
            worker.running = None
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        else:
            text, place = message[1:]
            hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": warnings.WarningMessage(text, UserWarning, *place[:2]),
                    "when": "runtest",
                    "nodeid": place[2],
                    "location": None,
                }
            )

    def ended(self, worker: Worker) -> bool:
        """Whether a process that has ended must be replaced: it died with work left, or at a test."""
        worker.pipe.close()
        _, status = os.waitpid(worker.pid, 0)
        if status == 0:
            return False
        if worker.running is not None:
            item = self.session.items[worker.running]
            worker.waiting.remove(worker.running)
            how = f"process {worker.name} ended at this test, with {os.waitstatus_to_exitcode(status)}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", how, "call")
            self.config.hook.pytest_runtest_logreport(report=report)
        elif not worker.waiting:
            raise pytest.UsageError(f"process {worker.name} ended by itself, at the end of its tests")
        if worker.waiting:
            self.again.append(tuple(worker.waiting))
        return True


class Process:
    """What a forked process does: run the tests of a group, report, ask for the next group."""

    def __init__(
        self, session: pytest.Session, pipe: Connection, name: str, spent: Mapping[str, float]
    ) -> None:
        self.session = session
        self.pipe = pipe
        self.spent = spent
        os.environ[WORKER_VARIABLE] = name
        plugins = session.config.pluginmanager
        # Captured output lies in files, whose places would be shared with the other processes.
        capture = plugins.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
            capture.stop_global_capturing()
            capture.start_global_capturing()
        plugins.unregister(name="terminalreporter")
        plugins.register(self, "worker")

    def main(self) -> None:
        items, state = self.session.items, self.session._setupstate
        while group := self.ask():
            for position, place in enumerate(group):
                following = group[position + 1 : position + 2]
                # After the last test of a file only what belongs to the session stays.
                nextitem: Any = items[following[0]] if following else self.session
                self.pipe.send(("start", place))
                item = items[place]
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
                self.pipe.send(("end", place, self.spent.get(item.nodeid, 0.0)))
        state.teardown_exact(None)

    def ask(self) -> Group:
        self.pipe.send(("next",))
        group: Group = self.pipe.recv()
        return group

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self.session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self.pipe.send(("report", data))

    @pytest.hookimpl
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        place = (warning_message.filename, warning_message.lineno, nodeid)
        self.pipe.send(("warning", f"{warning_message.category.__name__}: {warning_message.message}", place))
