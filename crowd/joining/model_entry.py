"""The entry of models: signed by this server's taken command, never by an address that anyone can write."""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.db import transaction
from django.utils import timezone

from crowd.models import Posting
from experiments.asking.request_plan import Seat
from experiments.errors import NotAdmitted, StudyError
from experiments.models import Participant, Session, Study
from experiments.sessions import lifecycle
from experiments.sessions.slot_assignment import peek_slot

FIELD = "legible_model"
SALT = "legible.model"
MAX_AGE_S = 24 * 3600


def model_query(study: Study, seat: Seat) -> str:
    """What the command sends in place of a platform's query."""
    fields = {"study": study.pk, "slot": seat.ordinal, "asked": seat.as_asked()}
    return f"{FIELD}={signing.dumps(fields, salt=SALT)}"


def check_offered_to_no_one(study: Study) -> None:
    """Raises NotAdmitted while a posting of real people is not closed: no model may sit among them."""
    live = Posting.objects.filter(study=study, mode=Posting.Mode.LIVE)
    if live.exclude(state=Posting.State.CLOSED).exists():
        raise NotAdmitted(
            f"{study.slug!r} has a live posting, and models never join a study that is offered to people: "
            "close it first, or ask them about a copy of the study."
        )


@transaction.atomic
def join_model(study: Study, signed: str) -> tuple[Session, str, bool]:
    """The session of a seat with its token, and whether it is new: one that was cut off goes on. It is shown
    a slot's plan and holds no slot. Raises NotAdmitted."""
    try:
        ticket: dict[str, Any] = signing.loads(signed, salt=SALT, max_age=MAX_AGE_S)
        if ticket["study"] != study.pk:
            raise signing.BadSignature
        slot = peek_slot(study, int(ticket["slot"]))
    except (signing.BadSignature, StudyError) as error:
        raise NotAdmitted("This address lets in no model. Run ask_model again.") from error
    check_offered_to_no_one(study)
    # Two runs of one command would else make two sessions of one seat.
    Study.objects.select_for_update().get(pk=study.pk)
    asked = ticket["asked"]
    taken = Session.objects.filter(study=study, origin=Session.Origin.MODEL)
    session = taken.filter(asked__name=asked["name"]).select_related("study", "slot", "participant").first()
    if session is not None:
        return session, lifecycle.renew_token(session), False
    earlier = taken.filter(asked__rater=asked["rater"]).select_related("participant").first()
    participant = earlier.participant if earlier is not None else Participant.objects.create(study=study)
    session, token = lifecycle.start_session(study, participant, origin=Session.Origin.MODEL)
    rows = Session.objects.filter(pk=session.pk)
    rows.update(
        slot=slot, lane=slot.lane, state=Session.State.RUNNING, claimed_at=timezone.now(), asked=asked
    )
    session.refresh_from_db()
    return session, token, True
