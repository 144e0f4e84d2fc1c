"""Asks Prolific to notify this server, so that a change is seen at once and not by the next poll."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.accounts import open_market
from crowd.platforms.base import PlatformError, Site
from crowd.platforms.prolific.market import Prolific
from crowd.platforms.prolific.subscriptions import subscribe
from experiments.management.base import StudyCommand


class Command(StudyCommand):
    help = "Ask Prolific to notify this server of changes. Repeating it changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--simulator", default="", help="address of a running simulate_platform")

    def handle(self, *args: Any, simulator: str, **options: Any) -> None:
        if not settings.SECURE and not simulator:
            raise CommandError(
                f"Prolific cannot reach {settings.BASE_URL}. Serve by https, and set BASE_URL to that."
            )
        site = Site("rehearsal" if simulator else "live", simulator.rstrip("/"))
        market = cast(Prolific, open_market("prolific", site))
        address = f"{settings.BASE_URL}/hooks/prolific/"
        try:
            done = subscribe(market.wire, market.account.workspace, address)
        except PlatformError as error:
            raise CommandError(str(error)) from error
        for event in done.made:
            self.stdout.write(f"{event}: subscribed, to {address}")
        for event in done.kept:
            self.stdout.write(f"{event}: was subscribed already")
        if done.secret:
            self.stdout.write(
                f"Set PROLIFIC_WEBHOOK_SECRET={done.secret} where the server runs. It is shown only now."
            )
        elif not settings.PROLIFIC_WEBHOOK_SECRET and not simulator:
            self.stdout.write(
                "The workspace has a signing secret already: set PROLIFIC_WEBHOOK_SECRET to it, else every "
                "notification is refused."
            )
