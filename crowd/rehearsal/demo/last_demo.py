"""The last demo again. It imports little before its addresses are printed, so that they come at once."""

from __future__ import annotations

from django.core.management import call_command

from crowd.rehearsal.demo import folder_and_port
from crowd.rehearsal.demo.server import print_addresses, print_end, serving, until_end, wants_controls
from experiments.models import Study
from experiments.terminal import Terminal


def look_again(terminal: Terminal, port: int, faults: bool) -> None:
    """Serves the last demo as it was left, and goes on with what was left of it."""
    url = f"http://127.0.0.1:{port}"
    last: list[Study] = []

    def read() -> None:
        call_command("migrate", verbosity=0)
        last.append(folder_and_port.last_study(terminal))

    # One process: a second would start beside it, and so keep the person waiting.
    with serving(port, url, read, processes=1) as server:
        print_addresses(last[0], url, terminal, faults)
        with until_end(server):
            if faults or wants_controls(last[0]):
                from crowd.rehearsal.demo.steps import go_on

                go_on(last[0], terminal, faults)
                print_end(last[0], terminal)
