"""Words and names for decisions about submissions, and the command for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from crowd.models import Submission
from crowd.platforms import PLATFORMS, traits_of
from experiments.models import Study
from experiments.sessions.pseudonyms import namer

ACTIONS = {"approve": "Approve", "request_return": "Ask to return", "reject": "Reject"}
CATEGORIES = {name: words for platform in PLATFORMS for name, words in traits_of(platform).grounds.items()}
"""Grounds of a rejection, in the terms of the platforms that ask for one."""


def named_people(study: Study, submissions: Sequence[int]) -> dict[int, tuple[Any, str, bool]]:
    """Submission -> its session, the name that the dashboard gives, and whether they were asked to return, in
    one query.
    """
    name = namer(study)
    rows = Submission.objects.filter(pk__in=submissions, posting__study=study, session__isnull=False)
    values = rows.values_list("pk", "session_id", "session__participant__pseudonym", "return_requested")
    return {pk: (session, name(pseudonym), is_asked) for pk, session, pseudonym, is_asked in values}


def command_of(study: Study, act: str, names: Sequence[str], message: str, category: str, by: str) -> str:
    """The same decision at the terminal."""
    words = ["python", "manage.py", "decide", study.slug, act.replace("_", "-"), *names, "--by", by]
    if act == "reject":
        words += ["--category", category]
    if act != "approve":
        words += ["--message", message]
    return shlex.join(words)
