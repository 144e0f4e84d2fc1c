"""Commands as they have to be typed on this installation, so that a copied one finds the same data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from django.conf import settings

PLAIN = "python manage.py "


def as_typed(command: str) -> str:
    """Each "python manage.py" in a line or a sentence as a shell in the checkout takes it: with its own
    Python, and LEGIBLE_VAR if the data lie in another folder than var. Other text stays as it is."""
    root = Path(settings.BASE_DIR)
    data = "" if root / "var" == settings.VAR_DIR else f"LEGIBLE_VAR={_near(settings.VAR_DIR, root)} "
    return command.replace(PLAIN, f"{data}{_near(Path(sys.prefix) / 'bin' / 'python', root)} manage.py ")


def _near(path: Path, root: Path) -> str:
    """Relative to the checkout if it lies within."""
    return shlex.quote(str(path.relative_to(root)) if path.is_relative_to(root) else str(path))
