"""The whole life of a study in one command, on this machine, with simulated people."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from crowd.rehearsal.demo.defaults import PARTICIPANTS, UNSEEN, USUAL, USUAL_PARTICIPANTS
from crowd.rehearsal.demo.folder_and_port import ROWS, DemoFailed, check_port, hold, put_aside, wants_last
from experiments.errors import StudyError
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Build, open, simulate and report a study in var/demo; leaves its server up."
    requires_system_checks = ()  # They are run beside the first step, in the process that makes the tables

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--study", default=USUAL, help="a slug or the path of a study.toml")
        parser.add_argument(
            "--participants",
            type=int,
            help=f"who pass, over all conditions ({PARTICIPANTS}, {USUAL_PARTICIPANTS} of {USUAL}; as many "
            "as the file has places for, less those for visitors, if trials are handed out one at a time)",
        )
        parser.add_argument("--seed", type=int, default=1, help="draws the simulated people (1)")
        parser.add_argument("--port", type=int, default=8000, help="where the server listens (8000)")
        parser.add_argument(
            "--all-scenarios",
            nargs="*",
            metavar="STUDY",
            help="the scenarios of the paper one after another, and their table (or the studies named)",
        )
        parser.add_argument(
            "--unseen",
            type=int,
            metavar="N",
            help=f"pictures that teach the ceiling ({UNSEEN} with --all-scenarios, else 0: none)",
        )
        parser.add_argument(
            "--faults", action="store_true", help="look for faults of the explanations at the end"
        )
        parser.add_argument(
            "--train", action="store_true", help="train the network here, not read the one that is shipped"
        )
        parser.add_argument("--no-serve", action="store_true", help="stop the server at the end")
        parser.add_argument("--again", action="store_true", help="look at the last demo again, in seconds")
        parser.add_argument(
            "--here", action="store_true", help="use the current settings instead of var/demo"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["participants"] is not None and options["participants"] < 1:
            raise StudyError(f"--participants {options['participants']}: at least 1 is needed.")
        check_port(options["port"])
        if not options["here"]:
            start_in_folder(settings.VAR_DIR / "demo", options["port"], options["again"])
        # Imported here, as the process that has just ended itself needs none of it.
        from crowd.ground.child_process_end import end_with_signals
        from crowd.rehearsal.demo.last_demo import look_again

        end_with_signals()
        with Terminal() as terminal:
            if options["again"]:
                look_again(terminal, options["port"], options["faults"])
                return
            # And this as a demo that is looked at again needs none of it: it takes seconds.
            from crowd.rehearsal.demo.study_rounds import run

            run(terminal, options)


def start_in_folder(folder: Path, port: int, again: bool) -> None:
    """Settings are read once, so the command starts again with those of a world of its own: the last demo's,
    or an empty one."""
    hold(folder)
    again = again or wants_last(folder)
    if again and not (folder / ROWS).exists():
        raise DemoFailed(f"{folder} holds no demo to look at again. Make one: make demo")
    aside = None if again else put_aside(folder)
    if aside is not None:
        print(f"The demo before this one is kept in {aside}; remove that folder if you need it no more.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / settings.SERVED_AT.name).write_text(f"http://127.0.0.1:{port}\n")
    world = {
        "LEGIBLE_VAR": folder,
        "DATABASE_URL": f"sqlite:///{folder / ROWS}",
        "STORAGE_URL": folder / "store",
        "CELERY_BROKER_URL": "",
        "BASE_URL": f"http://127.0.0.1:{port}",
        # Small networks on few cores: several threads per process only wait for each other.
        "OMP_NUM_THREADS": 1,
    }
    words = [word for word in sys.argv if word != "--again"]
    command = [sys.executable, *words, "--here", *(["--again"] if again else [])]
    sys.stdout.flush()
    os.execvp("env", ["env", *(f"{name}={value}" for name, value in world.items()), *command])
