"""What people told the platform about themselves, joined with an export by pseudonym. It is read from the
platform and goes into a file: nothing of it is stored here."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from analysis.spreadsheet_cells import escape_cell
from crowd.ground.identity_hashes import submission_hash
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.models import Posting, Submission
from experiments.models import Session
from experiments.sessions.pseudonyms import Pseudonyms

WITHOUT = (Session.State.WITHDRAWN, Session.State.DECLINED)
"""People who took their consent back or never gave it."""


def demographics_of(posting: Posting, release: str = "") -> dict[str, Mapping[str, str]]:
    """The name of a participant in an export of this `release` -> column -> value, in the platform's words.
    Only people who took part here and did not withdraw. Raises PlatformError, Unsupported."""
    rows = Submission.objects.filter(posting=posting, session__isnull=False, session__erased={})
    rows = rows.exclude(session__state__in=WITHOUT).select_related("session__participant")
    here = {row.submission_hash: row.session for row in rows}
    names = Pseudonyms.of(posting.study, release)
    told = {}
    for submission, values in service_of(posting).demographics(posted_of(posting)):
        session = here.get(submission_hash(posting, submission))
        if session is not None:
            told[names("p", session.participant.pseudonym)] = values
    return told


def write_demographics(told: Mapping[str, Mapping[str, str]], path: Path) -> None:
    """As CSV, to be joined with participants.csv by its column `participant`."""
    columns = list(dict.fromkeys(column for values in told.values() for column in values))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["participant", *columns])
        for name in sorted(told):
            writer.writerow([name, *(escape_cell(told[name].get(column, "")) for column in columns)])
