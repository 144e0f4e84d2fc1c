"""Which sessions a model takes, and what would leave the machine for them, counted before any request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

from experiments.api.state import question_wire, trial_wire
from experiments.api.trial_scene import media_files
from experiments.asking.chat import RequestTotals
from experiments.asking.choice_dialogue import CountingAsker
from experiments.asking.model_observer import ModelObserver
from experiments.asking.prompts import Order, prompt_digest, system_text
from experiments.asking.walk import ModelWalk
from experiments.errors import StudyError
from experiments.gates import get_gate
from experiments.gates.instructions import help_text
from experiments.gates.pages import page_html
from experiments.gates.plan import gate_plan
from experiments.kinds import get_kind
from experiments.models import Participant, Session, Slot, Study
from experiments.paradigms import get_paradigm
from experiments.selectors import arm_of, cards_of, definition_of
from experiments.sessions.slot_assignment import peek_slot
from experiments.simulation.browser.api_messages import PageWire
from experiments.simulation.browser.connection import Line
from experiments.tokens import new_media_id
from experiments.wording.sentence_tables import words_for
from experiments.wording.sentences import text_html
from stimuli.datasets import DRAWN
from stimuli.spec import content_key
from stimuli.store.media_access import read_media

Trained = Literal["unknown", "no", "yes"]
TRAINED: tuple[Trained, ...] = get_args(Trained)
"""Whether the model may have been trained on the study's pictures or ratings, as far as is known."""

Answering = Literal["written", "likeliest", "predicted"]
"""Where an answer comes from: a written reply, the most probable of the listed, or a scorer's prediction."""


@dataclass(frozen=True, slots=True)
class Manner:
    """A model as it is asked; each is one rater. `host` is of its address, whose rest is not kept."""

    model: str
    host: str
    prompt: str
    order: Order
    trained_on_data: Trained = "unknown"
    answering: Answering = "written"

    @property
    def rater(self) -> str:
        return content_key([self.model, self.host, self.prompt, prompt_digest(self.prompt), self.order])[:16]


@dataclass(frozen=True, slots=True)
class Seat:
    """One session that a model takes: the plan of a slot, which stays free for a person."""

    manner: Manner
    ordinal: int

    @property
    def name(self) -> str:
        return f"{self.manner.rater}-{self.ordinal}"

    def as_asked(self) -> dict[str, Any]:
        """What is stored of it with the session; never a key."""
        told = asdict(self.manner) | {"prompt_digest": prompt_digest(self.manner.prompt)}
        return told | {"rater": self.manner.rater, "name": self.name, "faults": {}}


def seats_of(study: Study, manners: Sequence[Manner], count: int | None, first: int) -> list[Seat]:
    """`count` plans from the ordinal `first` on, for each manner; without a count all of that plan's lane,
    which in a study of ratings hold every explanation once. Raises StudyError if there is none."""
    rows = Slot.objects.filter(study=study, pilot=False, ordinal__gte=first).order_by("ordinal")
    slots = list(rows.values_list("ordinal", "lane"))
    if not slots:
        raise StudyError(f"{study.slug!r} has no plan {first}. Open the study, or choose a smaller number.")
    lane = [ordinal for ordinal, of in slots if of == slots[0][1]]
    ordinals = lane if count is None else [ordinal for ordinal, _ in slots[:count]]
    return [Seat(manner, ordinal) for manner in manners for ordinal in ordinals]


def open_seats(study: Study, seats: Sequence[Seat]) -> list[Seat]:
    """Those whose session has not ended yet; one that was cut off goes on."""
    rows = Session.objects.filter(study=study, origin=Session.Origin.MODEL, finished_at__isnull=False)
    ended = {asked["name"] for asked in rows.values_list("asked", flat=True)}
    return [seat for seat in seats if seat.name not in ended]


def check_may_be_asked(study: Study, may_see: bool) -> None:
    """Raises StudyError if no model may take this study. `may_see` is `[ethics] models_may_see`."""
    unsuited = sorted(k for k in get_paradigm(study.paradigm).kinds if not get_kind(k).asks_models)
    if unsuited:
        raise StudyError(
            f"{study.slug!r} has trials that models are not asked ({', '.join(unsuited)}): "
            "choose a study of ratings."
        )
    definition = definition_of(study)
    stimuli = definition.stimuli
    given = [*stimuli.datasets.values(), *([stimuli.dataset] if stimuli.dataset is not None else [])]
    others = sorted({row.name for row in given} - DRAWN)
    if others and not may_see:
        raise StudyError(
            f"The pictures and texts of {study.slug!r} ({', '.join(others)}) are not drawn by Legible, so "
            "they may show people or be protected, and they would go to the model's address. If your ethics "
            "approval covers that, set [ethics] models_may_see = true in the study's file."
        )


def tally_requests(study: Study, seats: Sequence[Seat]) -> RequestTotals:
    """What leaves if every page is passed at once and every reply can be read; further tries add to it."""
    sent = RequestTotals()
    for seat in seats:
        _count(study, seat, sent)
    return sent


def _count(study: Study, seat: Seat, sent: RequestTotals) -> None:
    definition, slot = definition_of(study), peek_slot(study, seat.ordinal)
    session = Session(study=study, slot=slot, participant=Participant(study=study), media_id=new_media_id())
    tally = CountingAsker(seat.manner.order, sent)
    fetch = _from_store({f"/m/{name}": picture.file for name, picture in media_files(session)})
    told = text_html(definition, help_text(session, definition))
    for step, page in _pages(session):
        walk = ModelWalk(seat.name, seat.manner.prompt, tally, cast(Line, _Files(fetch)))
        walk.instructions = told
        walk.filled(step, page)
    tally.system = system_text(seat.manner.prompt, told)
    cards = cards_of(slot, study)
    observer = ModelObserver(tally, fetch)
    for card in cards:
        get_kind(card.view.kind).answer(observer, trial_wire(session, card, cards, definition))


def _pages(session: Session) -> Iterator[tuple[str, PageWire]]:
    """The pages around the trials, each as at its first try."""
    assert session.slot is not None
    words = words_for(definition_of(session.study))
    for stop in gate_plan(session.study, arm_of(session.slot, session.study)):
        questions = get_gate(stop.gate).questions(session.study, stop)
        rows = [question_wire(session, row, words) for row in questions]
        page = {"kind": stop.gate, "digest": "", "html": page_html(session, stop), "questions": rows}
        yield stop.gate, cast("PageWire", page)


def _from_store(files: Mapping[str, str]) -> Callable[[str], bytes]:
    return lambda url: read_media(files[url])[0]


@dataclass(frozen=True, slots=True)
class _Files:
    """In place of a line to the server: pictures from the store, and nothing that is told of an answer."""

    fetch: Callable[[str], bytes]

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, str]:
        return {"choice": body["choice"], "label": ""}
