"""Asks a platform to notify this server, so that a change is seen at once and not by the next poll."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.ground.platform_accounts import open_service
from crowd.platforms import PLATFORMS, traits_of
from crowd.platforms.base import NotifyingService, PlatformError, Site
from experiments.management.base import StudyCommand


class Command(StudyCommand):
    help = "Ask a platform to notify this server of changes. Repeating it changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        notifying = [name for name in PLATFORMS if traits_of(name).notice_secret]
        parser.add_argument("--platform", choices=notifying, default=notifying[0])
        parser.add_argument("--simulator", default="", help="address of a running simulate_platform")

    def handle(self, *args: Any, platform: str, simulator: str, **options: Any) -> None:
        traits = traits_of(platform)
        if not settings.SECURE and not simulator:
            raise CommandError(
                f"{traits.title} cannot reach {settings.BASE_URL}. Serve by https, and set BASE_URL to that."
            )
        site = Site("rehearsal" if simulator else "live", simulator.rstrip("/"))
        service = cast(NotifyingService, open_service(platform, site))
        address = f"{settings.BASE_URL}/hooks/{platform}/"
        try:
            done = service.subscribe(address)
        except PlatformError as error:
            raise CommandError(str(error)) from error
        for event in done.made:
            self.stdout.write(f"{event}: subscribed, to {address}")
        for event in done.kept:
            self.stdout.write(f"{event}: was subscribed already")
        if done.secret:
            self.stdout.write(
                f"Set {traits.notice_secret}={done.secret} where the server runs. It is shown only now."
            )
        elif not getattr(settings, traits.notice_secret) and not simulator:
            self.stdout.write(
                f"The workspace has a signing secret already: set {traits.notice_secret} to it, else every "
                "notification is refused."
            )
