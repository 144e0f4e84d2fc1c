"""Messages to workers: if the broker does not take one, nothing was asked, and the page says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kombu.exceptions import OperationalError

from experiments.errors import StudyError


class BrokerSilent(StudyError):
    """The broker of messages did not take one."""


@contextmanager
def asking_workers() -> Iterator[None]:
    """Around a message to a worker, before anything notes that it was asked. Raises BrokerSilent."""
    try:
        yield
    except OperationalError as error:
        raise BrokerSilent(
            "The broker of messages does not answer, so no worker was asked and nothing was done. The page "
            "Service says what is missing; then send this again."
        ) from error
