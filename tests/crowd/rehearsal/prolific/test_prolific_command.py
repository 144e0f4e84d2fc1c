"""`simulate_platform` in a process of its own: it serves until Ctrl-C and says that no money is real."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.core.management import CommandError, call_command

from crowd.rehearsal import prolific

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["heard", "ignored"])
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    """How a child inherits Ctrl-C: from a terminal, or from a script that starts it in the background."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("platform", ["prolific", "mturk"])
def test_it_serves_until_interrupted(platform: str) -> None:
    command = [sys.executable, "manage.py", "simulate_platform", platform, "--port", "0", "--people", "4"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        address = re.search(r"http://127\.0\.0\.1:\d+", lines[0])
        assert address, lines
        assert "simulated" in lines[1]
        assert "4 people, 0% of calls fail" in lines[2]
        state = httpx.post(f"{address[0]}/_simulator/state", timeout=30).json()
        assert state["submissions"] == {} and state["balance"] > 0
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")
    assert "Nothing is kept" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"faults": 1.5}, "--faults is a share"),
        ({"people": -1}, "--people is a number"),
    ],
)
def test_it_refuses_impossible_options(options: dict[str, float], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("simulate_platform", "prolific", **options)


def test_it_says_when_the_port_is_taken() -> None:
    with prolific.simulator() as sim:
        port = int(sim.url.rpartition(":")[2])
        with pytest.raises(CommandError, match=f"Port {port} cannot be used"):
            call_command("simulate_platform", "prolific", port=port)
