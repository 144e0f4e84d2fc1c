"""Single answers that are stored before the whole try is judged: some are told right or wrong at once, others
are only kept, so that a page that is loaded again goes on after them.

What is told is stored before it is told, and then stands. Without that, a script could ask for every right
answer first and give them afterwards.
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


def kept_kind(name: str) -> str:
    """The kind of the row that holds a page's answers kept so far."""
    return f"{name}_kept"


def kept_answers(session: Session, stop: Stop, attempt: int) -> dict[str, str]:
    """The answers of a try that were kept so far, by their questions."""
    rows = Gate.objects.filter(session=session, kind=kept_kind(stop.kind), attempt=attempt)
    return dict(rows.values_list("value", flat=True).first() or {})


def drop_kept(session: Session, stop: Stop) -> None:
    """Removes the answers of a page that was left out; when it was begun stays."""
    Gate.objects.filter(session=session, kind=kept_kind(stop.kind)).update(value={})


def store(session: Session, kind: str, attempt: int, question: str, choice: str) -> str:
    """Stores the answer to one question in the try's row of this kind and returns the answer that stands: the
    first. The caller holds the session's lock."""
    row, _ = Gate.objects.get_or_create(session=session, kind=kind, attempt=attempt, defaults={"value": {}})
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
