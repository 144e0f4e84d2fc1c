"""The project's settings with the toy in the tables: for processes of the tests, started as any other."""

from contextlib import ExitStack

from crowd.settings import *  # noqa: F403
from tests.toy.tables import registered

stack = ExitStack()
stack.enter_context(registered())
