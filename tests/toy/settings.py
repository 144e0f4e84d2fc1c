"""The project's settings with the toy in the tables: for processes of the tests, started as any other."""

import os
from contextlib import ExitStack
from pathlib import Path

from crowd.settings import *  # noqa: F403
from tests.toy.tables import registered

stack = ExitStack()
stack.enter_context(registered())

# The page that was built with the toy's kind and gate; without it the core's own.
if "TOY_PAGE" in os.environ:
    PARTICIPANT_PAGE_DIR = Path(os.environ["TOY_PAGE"])
    STATICFILES_DIRS = [("participant", PARTICIPANT_PAGE_DIR)]
