"""The throwaway copy of a study that is looked at: its rows, its postings, who may take which place, and
answers that are filled in. Only `copy_rows` reads the real database."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import get_args

from django.core import serializers
from django.db.models import Model, Q
from django.utils import timezone

from crowd.models import Posting
from crowd.platforms.base import Outcome
from crowd.rehearsal.screens.catalog import arms_of
from experiments.kinds import get_kind
from experiments.models import (
    Condition,
    Item,
    OtherStimulus,
    Prediction,
    Rendering,
    Response,
    Session,
    Slot,
    Solution,
    Study,
    Trial,
)
from experiments.selectors import cards_of, definition_of
from experiments.sessions.responses import FILLED
from stimuli.models import Stimulus
from stimuli.spec import content_key

EXAMPLE_CODE = "EXAMPLE-CODE"
WAY_BACK = "https://platform.example/return?code={code}"


def copy_rows(study: Study) -> str:
    """The rows that pages are made from, as JSON: no person and no answer, and one slot of each condition."""
    return str(serializers.serialize("json", itertools.chain.from_iterable(_rows(study))))


def _rows(study: Study) -> Iterator[Iterator[Model] | list[Model]]:
    slots = list(arms_of(study).values())
    for slot in slots:
        slot.holder, slot.kept, slot.lease_ends_at, slot.claimed_count = None, False, None, 0
    items = Item.objects.filter(study=study)
    shown = Q(renderings__item__study=study) | Q(trials__slot__in=slots)
    further = OtherStimulus.objects.filter(trial__slot__in=slots)
    used = Q(pk__in=Stimulus.objects.filter(shown).values("pk")) | Q(pk__in=further.values("stimulus"))
    # What is pointed to comes first.
    yield [study]
    yield Condition.objects.filter(study=study).iterator()
    yield Stimulus.objects.filter(used).iterator()
    yield items.iterator()
    yield Prediction.objects.filter(item__in=items).iterator()
    yield Solution.objects.filter(study=study).iterator()
    yield Rendering.objects.filter(item__in=items).iterator()
    yield list(slots)
    yield Trial.objects.filter(slot__in=slots).iterator()
    yield further.iterator()


def restore(rows: str) -> None:
    """Puts copied rows into this database."""
    for row in serializers.deserialize("json", rows):
        row.save()


class Stage:
    """One study in a database that is thrown away. It is offered by a plain address (`local`), by a link with
    codes (`coded`), and by a platform that shows a preview (`previewing`)."""

    def __init__(self, study: Study, language: str) -> None:
        self.study = study
        definition = dict(study.definition)
        if language != definition_of(study).tag:
            definition |= {"language": language, "interface": None}
        digest = content_key([study.digest, language])
        Study.objects.filter(pk=study.pk).update(
            definition=definition, digest=digest, state=Study.State.OPEN, closed_at=None
        )
        study.refresh_from_db()
        self.arms = arms_of(study)
        # Names of their own: the people of another language have sessions already.
        self.people = (f"{language}-{number}" for number in itertools.count(1))
        # As they were made: an earlier language has closed one of them and given another its way back.
        fresh = {
            "codes": dict.fromkeys(get_args(Outcome), EXAMPLE_CODE),
            "state": Posting.State.OPEN,
            "options": {},
        }
        self.local, self.coded, self.previewing = (
            Posting.objects.update_or_create(study=study, platform=platform, defaults=fresh)[0]
            for platform in ("local", "link", "prolific")
        )

    def free(self, arm: str | None = None) -> None:
        """Frees the slot of that arm and no other; all are taken if none is named."""
        slots = Slot.objects.filter(study=self.study)
        slots.update(holder=None, lease_ends_at=None, kept=True)
        if arm is not None:
            slots.filter(pk=self.arms[arm].pk).update(kept=False)

    def close(self, is_closed: bool) -> None:
        """Ends the offer by the plain address, or goes on with it."""
        state = Posting.State.CLOSED if is_closed else Posting.State.OPEN
        Posting.objects.filter(pk=self.local.pk).update(state=state)

    def lead_back(self) -> None:
        """From now on the link has an address to return to, beside its codes."""
        exits = dict.fromkeys(get_args(Outcome), WAY_BACK)
        Posting.objects.filter(pk=self.coded.pk).update(options={"exits": exits})

    def newest(self) -> Session:
        """The session of the person who came last."""
        return Session.objects.filter(study=self.study).select_related("slot", "study").latest("started_at")

    def answer_until(self, session: Session, position: int, *, passes: bool = True) -> None:
        """Fills in the answers before a position; the checks right, unless they are to be failed."""
        assert session.slot is not None
        stored = set(session.responses.values_list("position", flat=True))
        cards = cards_of(session.slot, session.study)
        rows = []
        for card in (card for card in cards[:position] if card.view.position not in stored):
            wanted = card.view.expected
            value = dict(get_kind(card.view.kind).preview(card.view))
            if wanted:
                value = {"choice": next(c for c in card.view.choices if (c == wanted) is passes)}
            remaining = len(cards) - card.view.position - 1
            times = {"rt_ms": 1000, "shown_ms": 2000, "late": False, "received_at": timezone.now()}
            times["context"] = dict(FILLED)
            rows.append(
                Response(
                    session=session, trial_id=card.id, position=card.view.position, remaining=remaining,
                    value=value, **times,
                )
            )  # fmt: skip
        Response.objects.bulk_create(rows)
