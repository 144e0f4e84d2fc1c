"""People who are sent by several processes come back in their order, and what fails there is told here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.services import ROOT, free_port

pytestmark = pytest.mark.pure
STARTED = """
import json, multiprocessing, os, sys
from experiments.simulation.browser import connection, process_pool
from experiments.simulation.population import parse_mix, populate
from experiments.simulation.browser.walk import Outcome

connection.TRIES = 1
people = populate(parse_mix("guesser=0.6,careless=0.4"), 5, 7)
names = [person.name for person in people]
"""
ANSWERED = """
def answered(url, study, sent, *, quiz, sittings, concurrency, progress, album):
    '''Of a person who is sent second by a process a second session is told.'''
    made = []
    for place, person in enumerate(sent):
        progress("people", place + 1, len(sent))
        for _ in range(1 + place % 2):
            made.append(Outcome(person.name, str(os.getpid()), "finished", study, url, concurrency, 1))
    return tuple(made)

process_pool.run_people = answered
told = []
with process_pool.senders(2) as processes:
    waves = [
        processes.send("here", "small", people, quiz={}, progress=lambda what, done, total: told.append(done))
        for _ in range(2)
    ]
    processes.end()
print(json.dumps([names, [[o.person for o in wave] for wave in waves],
    sorted({o.kind for wave in waves for o in wave} - {str(os.getpid())}).__len__(),
    sorted({o.answered_count for o in waves[0]}), told, len(multiprocessing.active_children())]))
"""
REFUSED = """
with process_pool.senders(2) as processes:
    try:
        processes.send(sys.argv[1], "small", people, quiz={})
    except process_pool.SendingFailed as error:
        print(json.dumps(str(error)))
"""
ENDED = """
process_pool.run_people = lambda *people, **options: os._exit(3)
with process_pool.senders(1) as processes:
    try:
        processes.send("here", "small", people, quiz={})
    except process_pool.SendingFailed as error:
        print(json.dumps(str(error)))
"""


def printed(program: str, *words: str) -> object:
    """In a process of its own: copies of one that tests run in would have its connections."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED + program, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_they_come_back_in_their_order_whoever_sent_them() -> None:
    told = printed(ANSWERED)
    assert isinstance(told, list)
    names, waves, processes, at_once, progress, left = told
    # By turns: the first process sends persons 1, 3 and 5, the second 2 and 4.
    wanted = [names[0], names[1], names[2], names[2], names[3], names[3], names[4]]
    assert waves == [wanted, wanted] and processes == 2
    assert at_once == [4], "eight at the same time, over both"
    assert progress == [0, 1, 2, 3, 4, 5] * 2
    assert left == 0


def test_a_server_that_does_not_answer_is_told() -> None:
    said = printed(REFUSED, f"http://127.0.0.1:{free_port()}")
    assert "refused" in str(said).lower()


def test_a_process_that_ends_is_told() -> None:
    assert printed(ENDED) == "a process that sends people ended"
