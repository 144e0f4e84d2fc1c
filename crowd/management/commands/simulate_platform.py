"""A simulated platform on this machine, until Ctrl-C. Its money is simulated."""

from __future__ import annotations

import signal
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from crowd.rehearsal import SIMULATORS, RunningSimulator
from crowd.rehearsal.faults import Faults

TICK_S = 0.5


class Command(BaseCommand):
    help = "Serve a simulated recruitment platform, with simulated people and money, until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("platform", choices=list(SIMULATORS))
        parser.add_argument(
            "--port", type=int, default=8100, help="where it listens; 0 takes a free one (8100)"
        )
        parser.add_argument("--seed", type=int, default=1, help="draws ids, people and faults (1)")
        parser.add_argument("--faults", type=float, default=0.0, help="share of calls that fail, 0 to 1 (0)")
        parser.add_argument("--people", type=int, default=300, help="how many people the platform has (300)")

    def handle(
        self, *args: Any, platform: str, port: int, seed: int, faults: float, people: int, **options: Any
    ) -> None:
        if not 0 <= faults <= 1:
            raise CommandError(f"--faults is a share of calls, 0 to 1, not {faults:g}.")
        if people < 0:
            raise CommandError(f"--people is a number of people, 0 or more, not {people}.")
        try:
            simulate = SIMULATORS.load(platform)
            with simulate(seed, timezone.now(), Faults(seed, faults), port=port) as running:
                running.control.people(count=people)
                # A script starts its background programs with Ctrl-C ignored; this one has no other end.
                signal.signal(signal.SIGINT, signal.default_int_handler)
                self.say(platform, running.url, people, faults)
                self.keep_time(running)
        except OSError as error:
            raise CommandError(
                f"Port {port} cannot be used ({error.strerror}). Choose another --port."
            ) from error
        except KeyboardInterrupt:
            self.stdout.write("Stopped. Nothing is kept.")

    def say(self, platform: str, url: str, people: int, faults: float) -> None:
        self.stdout.write(f"A simulated {platform} answers at {url}")
        self.stdout.write("All its money is simulated: nobody is paid and nothing can be bought.")
        self.stdout.write(
            f"{people} people, {faults:.0%} of calls fail. Ctrl-C ends it and forgets everything."
        )
        self.stdout.flush()

    def keep_time(self, running: RunningSimulator) -> None:
        """The platform's clock follows the one on the wall, so that tokens and signatures are fresh."""
        last = time.monotonic()
        while True:
            time.sleep(TICK_S)
            now = time.monotonic()
            running.clock.advance(now - last)
            last = now
