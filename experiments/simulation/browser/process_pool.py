"""Simulated people in several processes: one process answers with one core, however many people it sends."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

import httpx

from experiments.simulation.browser.connection import ServerRefusal
from experiments.simulation.browser.participant_run import run_people
from experiments.simulation.browser.picture_cache import Album
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.people import Person
from stimuli.types import Progress

AT_ONCE = 8
"""People who take part at the same time, over all processes."""


class SendingFailed(Exception):
    """The server failed its people, or a process that sends them ended; the message says which."""


class Senders:
    """Processes that wait for people to send. What one of them has looked at it need not look at again."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def end(self) -> None:
        """No more people are sent: the processes go."""
        for pipe in self._pipes:
            pipe.close()

    def send(
        self,
        url: str,
        study: str,
        people: Sequence[Person],
        *,
        quiz: Mapping[str, str],
        sittings: int = 1,
        progress: Progress = lambda what, done, total: None,
    ) -> tuple[Outcome, ...]:
        """As `run_people`, by turns through all processes. Raises SendingFailed."""
        count = len(self._pipes)
        shares = [list(range(first, len(people), count)) for first in range(count)]
        for pipe, places in zip(self._pipes, shares, strict=True):
            named = [(place, people[place]) for place in places]
            pipe.send((url, study, named, dict(quiz), sittings, max(1, AT_ONCE // count)))
        progress("people", 0, len(people))
        made: dict[int, list[Outcome]] = {}
        came, open_pipes = 0, list(self._pipes)
        while open_pipes:
            for ready in wait(open_pipes):
                assert isinstance(ready, Connection)
                kind, value = _receive_message(ready)
                if kind == "failed":
                    raise SendingFailed(value)
                if kind == "came":
                    came += 1
                    progress("people", came, len(people))
                    continue
                open_pipes.remove(ready)
                made.update(value)
        return tuple(outcome for place in range(len(people)) for outcome in made[place])


@contextmanager
def senders(processes: int) -> Iterator[Senders]:
    """So many processes until the block ends. They are copies of this one, so that nothing is imported twice:
    begin them before this process has threads or has read rows."""
    context = multiprocessing.get_context("fork")
    started = []
    pipes: list[Connection] = []
    try:
        for _ in range(processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, [ours, *pipes]), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            started.append(process)
        yield Senders(pipes)
    finally:
        for process in started:
            process.terminate()
            process.join()


def _receive_message(pipe: Connection) -> tuple[str, Any]:
    try:
        said: tuple[str, Any] = pipe.recv()
    except EOFError:
        raise SendingFailed("a process that sends people ended") from None
    return said


def _serve(pipe: Connection, others: Sequence[Connection]) -> None:
    """Sends the people that it is told of, until the pipe is closed."""
    for other in others:
        other.close()
    # Ctrl-C is for the process that asked, which then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    album = Album()
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            pipe.send(("made", _send_people(pipe, album, *asked)))
        except (httpx.HTTPError, ServerRefusal, RuntimeError) as error:
            pipe.send(("failed", str(error)))


def _send_people(
    pipe: Connection,
    album: Album,
    url: str,
    study: str,
    named: Sequence[tuple[int, Person]],
    quiz: Mapping[str, str],
    sittings: int,
    at_once: int,
) -> dict[int, list[Outcome]]:
    """The outcomes of these people by their places."""
    if not named:
        return {}
    by_name: dict[str, list[Outcome]] = {person.name: [] for _, person in named}
    before = 0

    def told(what: str, done: int, total: int) -> None:
        nonlocal before
        if done > before:
            before = done
            pipe.send(("came", None))

    outcomes = run_people(
        url,
        study,
        [person for _, person in named],
        quiz=quiz,
        sittings=sittings,
        concurrency=at_once,
        progress=told,
        album=album,
    )
    for outcome in outcomes:
        by_name[outcome.person].append(outcome)
    return {place: by_name[person.name] for place, person in named}
