"""The project's settings with the toy platform in the tables: for processes of the tests."""

import os
from contextlib import ExitStack

from tests.toy_platform.tables import registered

stack = ExitStack()
stack.enter_context(registered())

from crowd.settings import *  # noqa: E402, F403

assert "TOY_TOKEN" in globals(), "the settings ask for what the traits name"
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.toy_platform.settings"
