"""What a command needs is looked at before Django starts, so that a refusal comes within a second."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

READERS = frozenset({"study_check", "study_open", "build_stimuli"})
"""Commands that read a study's file, and not what the database holds."""
BROWSERS = frozenset({"screenshots", "showcase"})
"""Commands that picture pages in a browser."""


def refuse_early(words: Sequence[str]) -> None:
    """Ends the process with a sentence if the study's file has mistakes or the browser is missing. What the
    words alone do not tell is left to the command."""
    command, rest = (words[0], [word for word in words[1:] if word]) if words else ("", [])
    if command not in READERS | BROWSERS or {"-h", "--help"} & set(rest):
        return
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    from experiments.errors import StudyError
    from stimuli.errors import StimulusError

    try:
        dirs = tuple(settings.STUDY_DIRS)
    except ImproperlyConfigured:
        return
    try:
        if command in BROWSERS:
            from crowd.rehearsal.chromium import browser_program

            browser_program(settings.CHROMIUM, [Path(p) for p in (settings.PLAYWRIGHT_BROWSERS_PATH,) if p])
        else:
            _read_study(rest, dirs)
    except (StudyError, StimulusError, ValueError) as error:
        sys.exit(f"CommandError: {error}")


def _read_study(words: Sequence[str], dirs: tuple[Path, ...]) -> None:
    """Reads the first study among the words. Raises StudyError, StimulusError or ValueError, as the command
    would."""
    from experiments.errors import StudyError
    from experiments.study_files.load import find_study, load_study

    for word in words:
        try:
            path = find_study(word, dirs)
        except StudyError:
            # With options it may be the value of one: the command knows.
            if len(words) == 1 and not word.startswith("-"):
                raise
            continue
        load_study(path)
        return
