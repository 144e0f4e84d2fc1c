"""What the last page of a study with a colour check offers: what the check showed, and an invitation.

Every person who agreed to take part is offered both, in the same words for every result of the check and
every end of the session: neither tells anything of a person.
"""

from __future__ import annotations

from django.db import transaction

from experiments.drafting.plates import vision_of
from experiments.errors import OutOfTurn
from experiments.gates.consent import NAME as CONSENT
from experiments.models import Gate, Session
from experiments.selectors import definition_of
from experiments.sessions.lifecycle import ENDED
from experiments.sessions.verdicts import tries_of
from experiments.wording.markdown import html_of
from experiments.wording.sentence_tables import words_for

INVITATION = "invitation"
"""Kind of the row that says whether a person may be invited to another part."""


def has_check(session: Session) -> bool:
    """Whether the person may ask what the colour check showed, and may be asked for an invitation."""
    is_over = session.state in ENDED and bool(session.study.plates)
    return is_over and session.gates.filter(kind=CONSENT, passed=True).exists()


def invites(session: Session) -> bool:
    """Whether the last page asks, because the person has not answered yet."""
    return has_check(session) and not session.gates.filter(kind=INVITATION).exists()


def check_result(session: Session) -> str:
    """What the check showed, in plain words, as HTML. Raises OutOfTurn before the end."""
    _refuse_early(session)
    definition = definition_of(session.study)
    vision = vision_of(session.study, tries_of(session)) or "skipped"
    return html_of(words_for(definition)[f"check_{vision}"])


def answer_invitation(session: Session, agree: bool) -> bool:
    """Stores whether the person may be invited, and returns the answer that stands: the first."""
    _refuse_early(session)
    with transaction.atomic():
        # The first answer stands, also of two at the same moment.
        Session.objects.select_for_update().get(id=session.pk)
        row, _ = Gate.objects.get_or_create(
            session=session, kind=INVITATION, attempt=0, defaults={"value": {"agree": agree}}
        )
    return bool(row.value.get("agree"))


def _refuse_early(session: Session) -> None:
    if not has_check(session):
        raise OutOfTurn("This is offered on the last page of a study with a colour check.")
