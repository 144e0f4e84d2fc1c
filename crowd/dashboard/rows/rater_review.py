"""Raters of a study while it runs, by pseudonym: what to look at, without a condition and without other
raters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from analysis.any_table.formats import NONE, number
from analysis.rater_review import RatedTrial, Rater, rater_of
from crowd.dashboard.rows.places_and_exclusions import UNPLACED
from crowd.dashboard.rows.sessions import ONE_OF
from experiments.kinds.base import INSTRUCTED
from experiments.kinds.rate import Rate
from experiments.kinds.scoring import follows
from experiments.models import Response, Study
from experiments.paradigms import get_paradigm
from experiments.sessions.pseudonyms import namer

CHUNK = 2000
FIELDS = (
    "session__participant__pseudonym",
    "session",
    "session__origin",
    "session__simulated_kind",
    "session__finished_at",
    "position",
    "value",
    "rt_ms",
    "trial__kind",
    "trial__check_kind",
    "trial__expected",
    "trial__item",
    "trial__condition",
    "trial__extra__anchor",
)


@dataclass(frozen=True, slots=True)
class RaterRow:
    """`session`: the person's latest session; `finished` of their sessions have ended."""

    session: UUID
    name: str
    origin: str
    finished: int
    rater: Rater

    @property
    def alike(self) -> str:
        share = self.rater.straight_share
        return NONE if share is None else f"{share:.0%}"

    @property
    def seconds(self) -> str:
        return NONE if self.rater.rating_ms is None else f"{self.rater.rating_ms / 1000:.1f} s"

    @property
    def drift(self) -> str:
        return NONE if self.rater.drift is None else f"{self.rater.drift:+.2f}"

    @property
    def apart(self) -> str:
        return number(self.rater.again_distance)


def has_raters(study: Study) -> bool:
    return Rate.name in get_paradigm(study.paradigm).kinds


def raters_of(study: Study, origin: str = "") -> list[RaterRow]:
    """Everybody who rated, those with most flags first; of one origin, or of all but previews and
    models. The ratings of one person at a time are held."""
    rows = Response.objects.filter(session__study=study, trial__phase="test")
    rows = rows.filter(session__origin=origin) if origin else rows.exclude(session__origin__in=UNPLACED)
    rows = rows.order_by("session__participant", "session__started_at", "session", "position")
    name = namer(study)
    answers = rows.values_list(*FIELDS).iterator(CHUNK)
    made = [_row(name(person), list(given)) for person, given in groupby(answers, key=itemgetter(0))]
    return sorted(
        (row for row in made if row.rater.trials), key=lambda row: (-len(row.rater.flags), row.name)
    )


def _row(name: str, answers: list[tuple[Any, ...]]) -> RaterRow:
    sessions = list(dict.fromkeys(row[1] for row in answers))
    ended = {row[1] for row in answers if row[4] is not None}
    checks = [follows(row[8], row[10], row[6]) for row in answers if row[9] == INSTRUCTED]
    _, session, origin, simulated, *_ = answers[-1]
    rater = rater_of(list(_trials(answers, sessions)), checks)
    return RaterRow(session, name, simulated or ONE_OF[origin], len(ended), rater)


def _trials(answers: list[tuple[Any, ...]], sessions: list[UUID]) -> Iterator[RatedTrial]:
    for _, session, *_, position, value, rt_ms, kind, _, _, item, condition, anchor in answers:
        if kind == Rate.name:
            explanation = str(item), str(condition)
            yield RatedTrial(sessions.index(session), position, value, rt_ms, explanation, bool(anchor))
