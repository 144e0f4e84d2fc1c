"""What logins looked at while a study ran, noted by name: reports tell it."""

from __future__ import annotations

from typing import Any

from analysis.models import Viewing
from crowd.ground.audit import record
from crowd.people.result_seals import seal
from experiments.models import Session, Study


def note_limit(study: Study, origin: str, who: str, told: dict[str, Any], words: str) -> None:
    """Another limit of screening was tried; `told` is what it would do, `words` name rule and limit."""
    is_sealed = seal(study, origin).sealed
    Viewing.objects.create(
        study=study, kind=Viewing.Kind.LIMIT, origin=origin, who=who, detail=told, sealed=is_sealed
    )
    record(study, who, f"Tried another limit, which changes nothing: {words}")


def note_record(study: Study, session: Session, who: str, name: str, is_sealed: bool) -> None:
    """The record of the person called `name` was opened; noted once for each login."""
    _, is_new = Viewing.objects.get_or_create(
        study=study,
        kind=Viewing.Kind.RECORD,
        session=session,
        who=who,
        defaults={"origin": session.origin, "sealed": is_sealed},
    )
    if is_new:
        record(study, who, f"Opened the record of {name}{' while results were sealed' if is_sealed else ''}")
