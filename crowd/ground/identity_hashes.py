"""People and submissions of a platform as keyed hashes: the same on arrival and in the platform's list."""

from __future__ import annotations

from crowd.models import Posting, Submission
from crowd.platforms import has_service
from experiments.tokens import keyed_hash


def realm_of(posting: Posting, realm: str = "") -> str:
    """The register that a person's id belongs to; `realm` is what the arrival says of it.

    Rehearsals and sandboxes have people of their own. A platform without an interface for machines has the
    same people whether its posting is live or not.
    """
    name = realm or posting.platform
    if posting.live or not has_service(posting.platform):
        return name
    return f"{name}-{posting.mode}"


def person_hash(posting: Posting, person: str, realm: str = "") -> str:
    return keyed_hash("person", realm_of(posting, realm), person)


def submission_hash(posting: Posting, submission: str) -> str:
    return keyed_hash("submission", posting.platform, submission)


def is_same_person(row: Submission) -> bool:
    """Whether the platform names the person who arrived. An address can name another person's submission,
    which must neither end nor confirm that person's session."""
    return row.identity is not None and row.identity.person_hash == row.person_hash
