"""What people told Prolific about themselves, as it exports it for a study."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from crowd.platforms.base import PlatformError, PlatformPosting
from crowd.platforms.prolific.submissions_and_messages import is_id
from crowd.platforms.prolific.wire import ProlificWire, segment
from crowd.platforms.untrusted_text import printable

SUBMISSION = "submission_id"
LEFT_OUT = frozenset(
    {SUBMISSION, "id", "session_id", "participant_id", "prolific_id", "completion_code", "status"}
)
"""Columns that name a person or a submission, or that the list of submissions says better."""
VALUE_MAX = 200


def demographics(wire: ProlificWire, posted: PlatformPosting) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Per submission what Prolific knows of its person, column by column, as it words it: also DATA_EXPIRED
    and CONSENT_REVOKED. The export is a table of separated values, made at the call."""
    reply = wire.send(
        "POST", f"studies/{segment(posted.external_id)}/demographic-export/", {"filters": []}, reads=True
    )
    if not reply.content.strip():
        return
    table = csv.DictReader(io.StringIO(reply.content.decode("utf-8-sig", errors="replace"), newline=""))
    names = {heading: _name(heading) for heading in table.fieldnames or []}
    if SUBMISSION not in names.values():
        raise PlatformError("Prolific's export of demographics has no column of submissions.", permanent=True)
    for row in _rows(table):
        values = {names[heading]: row[heading] or "" for heading in names}
        submission = values[SUBMISSION]
        if is_id(submission):
            yield (
                submission,
                {
                    name: printable(value)[:VALUE_MAX]
                    for name, value in values.items()
                    if name not in LEFT_OUT
                },
            )


def _rows(table: csv.DictReader[str]) -> Iterator[dict[str, str]]:
    try:
        yield from table
    except csv.Error as error:
        raise PlatformError(
            f"Prolific's export of demographics cannot be read: {error}.", permanent=True
        ) from error


def _name(heading: str) -> str:
    """`Country of birth` as country_of_birth."""
    return "_".join(printable(heading).lower().replace("-", " ").split())
