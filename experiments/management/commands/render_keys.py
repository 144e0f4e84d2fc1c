"""A further process that renders beside `build_stimuli --processes`, which starts it."""

from __future__ import annotations

import json
import os
import sys
import threading
import uuid
from typing import Any

from django.core.management.base import BaseCommand

from stimuli.worker_claims import SHARED, render_claimed


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Render the picture keys that standard input names, the last ones first; build_stimuli starts it."

    def handle(self, *args: Any, **options: Any) -> None:
        keys = json.loads(sys.stdin.readline())
        threading.Thread(target=_end_with_parent, daemon=True).start()
        token = uuid.uuid4().hex
        for start in reversed(range(0, len(keys), SHARED)):
            render_claimed(keys[start : start + SHARED], token)


def _end_with_parent() -> None:
    """Standard input is closed when the process that asked is gone."""
    sys.stdin.read()
    os._exit(1)
