"""Models through a study: each session over the participant API, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event

from experiments.asking.chat import Chat, Message, Unreachable
from experiments.asking.choice_dialogue import AGAIN_MAX, Asker, UnansweredQuestion
from experiments.asking.local_likelihood_rater import LikeliestAsker
from experiments.asking.preference_scorer_session import ScorerRater, ScorerWalk
from experiments.asking.request_plan import Seat
from experiments.asking.walk import ModelWalk
from experiments.models import Session, Study
from experiments.paradigms.base import Reason
from experiments.sessions.lifecycle import mark_left
from experiments.simulation.browser.connection import Line, open_pool
from stimuli.predictors.vision_language import VisionLanguage


@dataclass(frozen=True, slots=True)
class ModelOutcome:
    """One session of a model: `status` is its verdict; "open" if it was cut off and goes on when it is run
    again; else how it ended for it (`walk.Outcome`). `faults` counts replies by what was wrong."""

    seat: Seat
    status: str
    message: str = ""
    faults: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Way:
    """Where the sessions run: the server's `url`, the query that lets a seat in, the rater (a model at an
    address, one of a local folder, or a scorer with the quiz that is answered beside it), and who hears of
    replies that could not be read: (session, fault, reply)."""

    url: str
    query: Callable[[Seat], str]
    rater: Chat | VisionLanguage | ScorerRater
    told: Callable[[str, str, str], None] = lambda name, fault, reply: None
    quiz: Mapping[str, str] = field(default_factory=dict)


def ask_models(
    study: Study,
    seats: Sequence[Seat],
    way: Way,
    *,
    concurrency: int = 1,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[ModelOutcome]:
    """Takes all seats, so many at once. If the model's address fails for good, or the run is interrupted, no
    further question is put, and the sessions that had begun stay open."""
    taken: list[ModelOutcome] = []
    stop = Event()
    with open_pool(way.url, concurrency) as pool, _workers(concurrency) as workers:
        waiting = [workers.submit(_take, study.slug, seat, way, Line(pool), stop) for seat in seats]
        try:
            for done in as_completed(waiting):
                taken.append(_store_outcome(study, done))
                progress("sessions", len(taken), len(seats))
        except BaseException:
            stop.set()
            raise
    return taken


@contextmanager
def _workers(count: int) -> Iterator[ThreadPoolExecutor]:
    workers = ThreadPoolExecutor(count)
    try:
        yield workers
    finally:
        workers.shutdown(wait=True, cancel_futures=True)


def _take(slug: str, seat: Seat, way: Way, line: Line, stop: Event) -> ModelOutcome:
    if stop.is_set():
        return ModelOutcome(seat, "open", "not begun")

    walk, faults = _walk(seat, way, line, stop)
    try:
        outcome = walk.enter(slug, "local", way.query(seat))
    except UnansweredQuestion as error:
        return ModelOutcome(seat, "incomplete", str(error), dict(faults))
    except Unreachable as error:
        stop.set()
        return ModelOutcome(seat, "open", str(error), dict(faults))
    return ModelOutcome(seat, outcome.status, outcome.message, dict(faults))


def _walk(seat: Seat, way: Way, line: Line, stop: Event) -> tuple[ModelWalk, Counter[str]]:
    """The session's walk, and the count of its unreadable replies, which grows with it."""
    rater, manner = way.rater, seat.manner
    if isinstance(rater, ScorerRater):
        return ScorerWalk(seat.name, rater, way.quiz, line), Counter()
    if not isinstance(rater, Chat):
        return ModelWalk(seat.name, manner.prompt, LikeliestAsker(rater, manner.order), line), Counter()

    def say(messages: Sequence[Message]) -> str:
        if stop.is_set():
            raise Unreachable("stopped")
        return rater.say(messages)

    asker = Asker(say, manner.order, lambda fault, reply: way.told(seat.name, fault, reply))
    return ModelWalk(seat.name, manner.prompt, asker, line), asker.faults


def _store_outcome(study: Study, done: Future[ModelOutcome]) -> ModelOutcome:
    """What became of it is kept with the session: the faults, and why it was given up."""
    taken = done.result()
    rows = Session.objects.filter(study=study, origin=Session.Origin.MODEL, asked__name=taken.seat.name)
    session = rows.select_related("study").first()
    if session is None:
        return taken
    if taken.faults:
        # Those of an earlier run that was cut off count too.
        earlier = session.asked["faults"]
        names = sorted({*earlier, *taken.faults})
        session.asked["faults"] = {n: earlier.get(n, 0) + taken.faults.get(n, 0) for n in names}
        rows.update(asked=session.asked)
    if taken.status == "incomplete":
        mark_left(session, Reason("unanswered", "after", AGAIN_MAX + 1.0, 1.0, taken.message))
    elif session.verdict:
        return replace(taken, status=session.verdict)
    return taken
