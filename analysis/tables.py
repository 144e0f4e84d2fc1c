"""The only reader of responses: a study's rows as tidy frames, in a number of queries that does not grow.

Correctness is derived here, by the paradigm's own score, and stored nowhere. People are named by keyed
pseudonyms: an HMAC under a key that is made of SECRET_KEY, the study and the release. The same release names
the same person alike; two releases cannot be joined without the key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from math import ceil
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet

from analysis.columns import Column
from analysis.frames import Frames, frame, streamed
from analysis.kind_columns import KindOf, kind_cells, kind_columns
from analysis.reports.base import AnswerFacts, QuestionFacts, StudyFacts
from analysis.slots import slot_counts
from analysis.stimulus_rows import stimulus_rows
from analysis.timing import degrees_of, timing_of
from experiments.answers import answers_of
from experiments.design.rng import Streams
from experiments.dropping import dropped_rows
from experiments.gates.consent import NAME as CONSENT
from experiments.gates.practice import NAME as PRACTICE
from experiments.gates.questions import KINDS as QUESTIONS
from experiments.gates.quiz import NAME as QUIZ
from experiments.gates.screen import NAME as SCREEN
from experiments.kinds import get_kind
from experiments.kinds.base import TrialView
from experiments.kinds.scoring import agreement, is_as_asked
from experiments.models import Condition, Event, Gate, HandOut, Response, Session, Slot, Study, Trial
from experiments.quality import stimuli_sentences
from experiments.responses import REVEALED, reveals
from experiments.selectors import definition_of, predictions_of, view_of
from experiments.stages import frozen_of
from stimuli.spec import canonical_json

CHUNK = 5000
Progress = Callable[[str, int, int], None]
Row = tuple[object, ...]


def code_version() -> str:
    return version("legible")


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Keyed names for people and sessions; the key never leaves the server."""

    key: bytes

    @classmethod
    def of(cls, study: Study, release: str) -> Pseudonyms:
        text = f"analysis release\x1f{study.slug}\x1f{release}"
        return cls(hmac.digest(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256))

    def __call__(self, prefix: str, identity: object) -> str:
        """64 bits, so that a million people collide with probability of 3 in a hundred million."""
        digest = hmac.digest(self.key, f"{prefix}\x1f{identity}".encode(), hashlib.sha256)
        return f"{prefix}-{digest[:8].hex()}"

    @property
    def fingerprint(self) -> str:
        """Shows whether two exports used the same key, without revealing the key."""
        return hashlib.sha256(b"fingerprint" + self.key).hexdigest()[:16]


REVEALED_MS = Column(
    "revealed_ms",
    "integer",
    "Guesses: how long the revealed answer was looked at, all looks together; empty if never left.",
    "ms",
)
"""A column of studies in which something is revealed after an answer. It is read from events."""
SERVED = (
    Column(
        "server_ms",
        "integer",
        "Trials that are handed out alone: from the first handing out to storing the answer, by the server's "
        "clock; no true response time is longer. Empty if the time of handing out is not known.",
        "ms",
    ),
    Column(
        "rt_over_server",
        "flag",
        "Trials that are handed out alone: whether rt_ms is longer than server_ms, which cannot be. Empty "
        "for simulated people, who answer at once and say how long they would have taken.",
    ),
)
"""Columns of studies whose trials are handed out one at a time."""


@dataclass(frozen=True, slots=True)
class PlannedAs:
    """A trial with all that is the same for everybody who answers it."""

    view: TrialView
    item: str
    explained: bool
    scored_index: int | None
    condition_id: int | None


@dataclass(frozen=True, slots=True)
class SittingAs:
    """The values that every row of a session repeats; `participant` is the person's name in the study, which
    no row has."""

    participant: str
    person: str
    session: str
    origin: str
    arm: str
    slot: int | None
    plan: int | None
    px_per_mm: float | None
    distance_mm: float | None


class Reader:
    """Reads one study. Plans are read once; answers stream through in chunks.

    `kind_of` gives each kind of trial by name, with the columns that it adds.
    """

    def __init__(
        self,
        study: Study,
        release: str = "",
        progress: Progress | None = None,
        kind_of: KindOf = get_kind,
    ) -> None:
        self.study = study
        self.names = Pseudonyms.of(study, release)
        self.progress = progress or (lambda what, done, total: None)
        self.conditions = {c.pk: (c.name, c.role) for c in Condition.objects.filter(study=study)}
        self.slots = _slots(study)
        self.planned = _planned(study)
        self.kinds = {name: kind_of(name) for name in sorted({p.view.kind for p in self.planned.values()})}
        self.of_kinds = kind_columns(self.kinds)
        has_reveals = any(reveals(study, planned.view) for planned in self.planned.values())
        self.revealed_ms = _revealed_ms(study) if has_reveals else None
        self.handed_out = _handed_out(study) if any(get_kind(name).is_alone for name in self.kinds) else None
        self.extra = (
            *self.of_kinds,
            *((REVEALED_MS,) if has_reveals else ()),
            *(SERVED if self.handed_out is not None else ()),
        )
        self.streams = Streams(study.seed)

    def frames(self) -> Frames:
        sittings, people = self._participants()
        trials = streamed("trials", self._trials(sittings), self.extra)
        stimuli = streamed("stimuli", stimulus_rows(self.study, self.conditions))
        return Frames(trials, frame("participants", people), stimuli, self.extra)

    def _condition(self, condition_id: int | None) -> tuple[str, str]:
        return self.conditions.get(condition_id or 0, ("", ""))

    def _participants(self) -> tuple[dict[object, SittingAs], list[dict[str, object]]]:
        gates, events, rates = _gates(self.study), _events(self.study), _refresh_rates(self.study)
        counts = dict(
            Response.objects.filter(session__study=self.study).values_list("session").annotate(n=Count("id"))
        )
        sittings: dict[object, SittingAs] = {}
        rows, order = [], Counter[int]()
        sessions = Session.objects.filter(study=self.study).select_related("participant")
        for session in sessions.order_by("started_at", "id").iterator(CHUNK):
            slot = self.slots.get(session.slot_id or 0)
            sitting = SittingAs(
                str(session.participant.pseudonym),
                self.names("p", session.participant.pseudonym),
                self.names("s", session.pk),
                session.origin,
                slot.arm if slot else "",
                slot.ordinal if slot else None,
                slot.plan if slot else None,
                *_screen(gates[session.pk]),
            )
            sittings[session.pk] = sitting
            condition, role = self._condition(slot.condition_id if slot else None)
            rows.append(
                _sitting_row(session, sitting, order[session.participant_id], gates[session.pk])
                | {"study": self.study.slug, "condition": condition, "role": role}
                | {"responses": counts.get(session.pk, 0)}
                | _event_columns(events[session.pk])
                | {"refresh_hz": rates.get(session.pk)}
            )
            order[session.participant_id] += 1
        return sittings, rows

    def _trials(self, sittings: Mapping[object, SittingAs]) -> Iterator[Row]:
        answers = Response.objects.filter(session__study=self.study)
        total = answers.count()
        fields = ("session_id", "trial_id", "value", "rt_ms", "shown_ms", "received_at", "late", "context")
        stream = answers.order_by("session__started_at", "session_id", "position").values_list(*fields)
        for done, row in enumerate(stream.iterator(CHUNK), start=1):
            yield self._trial_row(sittings[row[0]], self.planned[row[1]], row)
            if done % CHUNK == 0 or done == total:
                self.progress("answers", done, total)

    def _trial_row(self, sitting: SittingAs, trial: PlannedAs, row: tuple[Any, ...]) -> Row:
        session, pk, value, rt_ms, shown_ms, received_at, late, context = row
        condition, role = self._condition(trial.condition_id)
        kind = self.kinds[trial.view.kind]
        view = kind.seen_by(trial.view, sitting.participant, self.streams)
        return (
            self.study.slug,
            sitting.person,
            sitting.session,
            sitting.origin,
            condition,
            role,
            sitting.arm,
            sitting.slot,
            sitting.plan,
            view.block,
            view.phase,
            view.kind,
            view.check,
            view.position,
            trial.scored_index,
            trial.item,
            trial.explained,
            _answer(value),
            view.predicted,
            agreement(view, value, view.predicted),
            agreement(view, value, view.truth),
            is_as_asked(view, value),
            rt_ms,
            shown_ms,
            received_at,
            late,
            *_context(context, sitting),
            *kind_cells(kind, self.of_kinds, view, value, context),
            *(() if self.revealed_ms is None else (self.revealed_ms.get((session, pk)),)),
            *self._served(sitting.origin, (session, pk), received_at, rt_ms),
        )

    def _served(self, origin: str, place: tuple[object, int], received_at: datetime, rt_ms: int) -> Row:
        """The cells of SERVED, if the study has them; a begun millisecond counts as a whole. `place` is the
        session and the trial."""
        if self.handed_out is None:
            return ()
        handed_out_at = self.handed_out.get(place)
        if handed_out_at is None:
            return None, None
        server_ms = ceil((received_at - handed_out_at) / timedelta(milliseconds=1))
        # The times of simulated people are drawn, not waited for: the server's clock says nothing of them.
        return server_ms, None if origin == Session.Origin.SIMULATED else server_ms < rt_ms


def read_frames(
    study: Study, *, release: str = "", progress: Progress | None = None, kind_of: KindOf = get_kind
) -> Frames:
    """All tables of a study, every origin. `release` names the pseudonyms' key; `progress(what, done,
    total)`; `kind_of` gives the kinds of trial by name.
    """
    return Reader(study, release, progress, kind_of).frames()


def study_facts(study: Study, origin: str = "human") -> StudyFacts:
    """The facts that a report needs besides the answers: conditions, wanted and kept slots, questions, the
    seal.

    Slots count as kept by people of that origin alone: origins never mix, and the pilot has slots of its own.
    """
    conditions, groups = slot_counts(study, origin)
    questions = tuple(
        QuestionFacts(q["id"], q["when"], q["kind"], q["prompt"], tuple(q.get("choices", ())))
        for q in study.definition.get("questions", [])
    )
    return StudyFacts(
        slug=study.slug,
        title=study.title,
        paradigm=study.paradigm,
        digest=study.digest,
        seed=study.seed,
        state=study.state,
        conditions=conditions,
        slots=groups,
        questions=questions,
        answers=_answers(study),
        unsealed_at=f"{study.unsealed_at:%Y-%m-%d}" if study.unsealed_at else "",
        unsealed_by=study.unsealed_by,
        unsealed_reason=study.unsealed_reason,
        code_version=code_version(),
        stimuli=tuple(stimuli_sentences(study)),
        dropped=tuple(dropped_rows(study.dropped)) if study.dropped else (),
        design=study.definition.get("design", {}),
        language=study.definition.get("language", "en"),
        frozen=frozen_of(study),
        screening=study.definition.get("screening", {}),
    )


def _answers(study: Study) -> tuple[AnswerFacts, ...]:
    """What people chose from; none if the study's definition holds no material."""
    if "stimuli" not in study.definition:
        return ()
    return tuple(AnswerFacts(a.value, a.text, a.means) for a in answers_of(definition_of(study)))


def tombstones(study: Study) -> dict[str, int]:
    """What was removed on request: the number of sessions and of their answers."""
    erased = Session.objects.filter(study=study).exclude(erased={}).values_list("erased", flat=True)
    counts = [row.get("responses", 0) for row in erased]
    return {"sittings": len(counts), "responses": sum(counts)}


@dataclass(frozen=True, slots=True)
class SlotAs:
    ordinal: int
    arm: str
    condition_id: int | None
    plan: int | None


def _slots(study: Study) -> dict[int, SlotAs]:
    """Slots with the number of their matched plan; None if a plan has no twin."""
    slots = {}
    rows = Slot.objects.filter(study=study).order_by("pilot", "ordinal")
    fields = ("id", "ordinal", "arm", "condition_id", "matched")
    for pk, ordinal, arm, condition_id, matched in rows.values_list(*fields).iterator(CHUNK):
        slots[pk] = SlotAs(ordinal, arm, condition_id, matched)
    return slots


def _planned(study: Study) -> dict[int, PlannedAs]:
    trials = Trial.objects.filter(slot__study=study).select_related("item", "condition")
    rows = trials.defer("item__logits", "accepts", "reservoir").order_by("slot_id", "position")
    said = predictions_of(study)
    planned, scored = {}, Counter[int]()
    for trial in rows.iterator(CHUNK):
        item = trial.item
        is_scored = trial.phase == "test" and not trial.check_kind
        view = view_of(trial, said)
        index = scored[trial.slot_id] if is_scored else None
        planned[trial.pk] = PlannedAs(
            view, item.key if item else "", trial.explained, index, trial.condition_id
        )
        scored[trial.slot_id] += is_scored
    return planned


def _gates(study: Study) -> dict[object, list[tuple[str, bool | None, dict[str, Any]]]]:
    tries: dict[object, list[tuple[str, bool | None, dict[str, Any]]]] = defaultdict(list)
    rows: QuerySet[Gate, Any] = Gate.objects.filter(session__study=study).order_by("id")
    for session, kind, passed, value in rows.values_list("session_id", "kind", "passed", "value").iterator(
        CHUNK
    ):
        tries[session].append((kind, passed, value))
    return tries


def _events(study: Study) -> dict[object, dict[str, int]]:
    counts: dict[object, dict[str, int]] = defaultdict(dict)
    rows = (
        Event.objects.filter(session__study=study).values_list("session_id", "kind").annotate(n=Count("id"))
    )
    for session, kind, count in rows.order_by().iterator(CHUNK):
        counts[session][kind] = count
    return counts


def _refresh_rates(study: Study) -> dict[object, float]:
    """Of each session the rate of its display, by the first page that counted frames."""
    rates: dict[object, float] = {}
    rows = Event.objects.filter(session__study=study, kind="display").order_by("id")
    for session, detail in rows.values_list("session_id", "detail").iterator(CHUNK):
        refresh_ms = detail.get("refresh_ms")
        if isinstance(refresh_ms, int | float) and refresh_ms > 0:
            rates.setdefault(session, round(1000 / refresh_ms, 2))
    return rates


def _revealed_ms(study: Study) -> dict[tuple[object, int], int]:
    """(session, trial) -> for how long what a guess revealed was looked at, over all looks."""
    sums: dict[tuple[object, int], int] = defaultdict(int)
    rows = Event.objects.filter(session__study=study, kind=REVEALED, trial__isnull=False)
    for session, trial, detail in rows.values_list("session_id", "trial_id", "detail").iterator(CHUNK):
        shown_ms = detail.get("shown_ms")
        if isinstance(shown_ms, int) and shown_ms >= 0:
            sums[session, trial] += shown_ms
    return dict(sums)


def _handed_out(study: Study) -> dict[tuple[object, int], datetime]:
    """(session, trial) -> when it first left the server, of the trials that are handed out alone."""
    rows = HandOut.objects.filter(session__study=study)
    fields = rows.values_list("session_id", "trial_id", "handed_out_at")
    return {(session, trial): at for session, trial, at in fields.iterator(CHUNK)}


def _screen(gates: list[tuple[str, bool | None, dict[str, Any]]]) -> tuple[float | None, float | None]:
    """Device pixels per millimetre and distance in millimetres, as the screen gate measured them."""
    value = next((value for kind, _, value in gates if kind == SCREEN), {})
    return value.get("px_per_mm"), value.get("distance_mm")


def _event_columns(counts: Mapping[str, int]) -> dict[str, object]:
    return {
        "focus_losses": counts.get("focus_lost", 0),
        "reloads": counts.get("reload", 0),
        "reservoir_openings": counts.get("reservoir_opened", 0),
        "pastes": counts.get("paste", 0),
        "fullscreen_entries": counts.get("fullscreen_entered", 0),
        "fullscreen_exits": counts.get("fullscreen_left", 0),
    }


def _sitting_row(
    session: Session, sitting: SittingAs, order: int, gates: list[tuple[str, bool | None, dict[str, Any]]]
) -> dict[str, object]:
    tries = Counter(kind for kind, _, _ in gates)
    given = {k: v for kind, _, value in gates if kind in QUESTIONS for k, v in value.items()}
    rules = [reason["rule"] for reason in session.reasons]
    return {
        "participant": sitting.person,
        "session": sitting.session,
        "sitting": order,
        "origin": session.origin,
        "arrival": session.arrival,
        "simulated_kind": session.simulated_kind,
        "simulated_digest": session.simulated_digest,
        "lane": session.lane,
        "arm": sitting.arm,
        "slot": sitting.slot,
        "plan": sitting.plan,
        "status": session.verdict or ("running" if session.state == "assigned" else session.state),
        "reasons": ";".join(rules),
        "reasons_detail": canonical_json(session.reasons),
        "excluded_by_hand": bool(session.excluded),
        "excluded_reason": session.excluded.get("reason", ""),
        "consented": any(kind == CONSENT and passed is not False for kind, passed, _ in gates),
        "admitted": session.claimed_at is not None or session.state == "turned_away",
        "started_at": session.started_at,
        "claimed_at": session.claimed_at,
        "finished_at": session.finished_at,
        "duration_s": _seconds(session.started_at, session.finished_at),
        "task_s": _seconds(session.claimed_at, session.finished_at),
        "verdict_at": session.verdict_at,
        "rules_digest": session.rules_digest,
        "quiz_attempts": tries[QUIZ],
        "practice_attempts": tries[PRACTICE],
        "lease_ends_at": session.lease_ends_at,
        "surplus": "surplus" in rules,
        **{
            key: session.device.get(key)
            for key in ("width_px", "height_px", "pixel_ratio", "touch", "webdriver")
        },
        "px_per_mm": sitting.px_per_mm,
        "distance_mm": sitting.distance_mm,
        "language": session.device.get("language", ""),
        "answers": canonical_json(given) if given else "",
        "comment": session.comment,
    }


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None


def _answer(value: Mapping[str, Any]) -> str:
    """The plain choice if the answer is one, else all of it."""
    if set(value) == {"choice"}:
        return str(value["choice"])
    return canonical_json(value)


def _context(context: Mapping[str, Any], sitting: SittingAs) -> Row:
    size = context.get("image_px"), context.get("pixel_ratio")
    return (
        context.get("input", ""),
        context.get("key", ""),
        context.get("keys", ""),
        context.get("side", ""),
        context.get("onset_ms"),
        *size,
        degrees_of(*size, sitting.px_per_mm, sitting.distance_mm),
        *(context.get(key) for key in ("frames", "dropped_frames", "refresh_ms", "hidden_count")),
        timing_of(context),
        *(context.get(key) for key in ("reservoir_ms", "focus_losses", "reloads")),
    )
