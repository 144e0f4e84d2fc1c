"""Looks for trouble, and tells people of it: the one process that notices that the others have died."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as AnyDatabaseError
from django.utils import timezone

from crowd.alerts.sending import channels
from crowd.alerts.watching import Watcher, trouble_now
from crowd.ground.process_locks import exclusive

BUSY = "Another process watches already. One is enough: two would tell everything twice."


class Command(BaseCommand):
    help = "Look for trouble every minute, and tell each once, by ALERT_EMAIL or ALERT_WEBHOOK."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=float, default=60.0, help="seconds between two looks (60)")
        parser.add_argument("--once", action="store_true", help="print what is wrong now, and send nothing")

    def handle(self, *args: Any, every: float, once: bool, **options: Any) -> None:
        if every <= 0:
            raise CommandError(f"--every {every:g}: give the seconds between two looks, more than 0.")
        if once:
            self._print_once()
            return
        end = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: end.set())
        ways = " and ".join(channels()) or "pages alone: neither ALERT_EMAIL nor ALERT_WEBHOOK is set"
        self.stdout.write(f"Looking every {every:g} s at {settings.BASE_URL}; trouble is told by {ways}.")
        with ExitStack() as held:
            with suppress(AnyDatabaseError):  # Without a database there is no lock, and all the more to tell.
                held.enter_context(exclusive("watch", BUSY))
            self._watch(every, end)

    def _watch(self, every: float, end: threading.Event) -> None:
        watcher, before = Watcher(), set[str]()
        while not end.is_set():
            troubles = watcher.look(timezone.now())
            for trouble in troubles:
                if trouble.key not in before:
                    self.stdout.write(f"{trouble.about}: {trouble.said}")
            before = {trouble.key for trouble in troubles}
            end.wait(every)

    def _print_once(self) -> None:
        troubles, _ = trouble_now(timezone.now())
        for trouble in troubles:
            self.stdout.write(f"{trouble.about}: {trouble.said} {trouble.remedy}")
        self.stdout.write(f"{len(troubles)} things are wrong." if troubles else "Nothing is wrong.")
