"""Notes on one person's record, by name. They decide nothing: an exclusion is decided on its own page."""

from __future__ import annotations

from crowd.ground.audit import record
from crowd.models import PersonNote
from experiments.errors import StudyError
from experiments.models import Session

TEXT_MIN, TEXT_MAX = 3, 2_000


def note_on(session: Session, called: str, by: str, text: str) -> PersonNote:
    """Stores the note, and that there is one in the study's log, under the name `called` that exports give
    the person. Raises StudyError if the text is too short or too long."""
    plain = text.strip()
    if not TEXT_MIN <= len(plain) <= TEXT_MAX:
        raise StudyError(
            f"A note has {TEXT_MIN} to {TEXT_MAX:,} characters, this one {len(plain):,}. Nothing was kept."
        )
    note = PersonNote.objects.create(session=session, by=by, text=plain)
    record(session.study, by, f"Noted something on the record of {called}.")
    return note
