"""Answers of a try that were told right or wrong before the whole try is judged.

Each is stored before it is told, and then stands. Without that, a script could ask for every right answer
first and give them afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.errors import InvalidRequest
from experiments.gates.base import Stop
from experiments.models import Gate, Session


def kind_of(stop: Stop) -> str:
    """The kind of the row that holds a try's answers told so far."""
    return f"{stop.kind}_told"


def store(session: Session, stop: Stop, attempt: int, question: str, choice: str) -> str:
    """Stores the answer to one question and returns the answer that stands: the first. The caller holds the
    session's lock."""
    row, _ = Gate.objects.get_or_create(
        session=session, kind=kind_of(stop), attempt=attempt, defaults={"value": {}}
    )
    first = str(row.value.setdefault(question, choice))
    row.save(update_fields=["value"])
    return first


def check(session: Session, stop: Stop, attempt: int, answers: Mapping[str, Any]) -> None:
    """Raises InvalidRequest if a try says otherwise than what was told."""
    row = Gate.objects.filter(session=session, kind=kind_of(stop), attempt=attempt).first()
    told = row.value if row is not None else {}
    changed = {name: choice for name, choice in told.items() if answers.get(name) != choice}
    if changed:
        raise InvalidRequest(
            "Some answers differ from those that were told right or wrong.",
            fields={f"value.{name}": f"was answered with {choice}" for name, choice in changed.items()},
        )
