"""The only reader of responses: a study's rows as tidy tables, in batches of sessions with a fixed number of
queries each.

People are named by keyed pseudonyms (`Pseudonyms`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any
from uuid import UUID

import pandas as pd

from analysis.columns import TABLES, CodebookQuestion
from analysis.facts import AnswerFacts, QuestionFacts, StudyFacts
from analysis.frames import Frames, Pieces, frame, parts, whole_table
from analysis.slot_counts import slot_counts
from analysis.tables.gates_and_events import asked_of, event_rows, gate_rows, opening_rows, question_rows
from analysis.tables.participants import participant_rows
from analysis.tables.plans import plan_rows
from analysis.tables.session_batches import Batch, SessionIndex
from analysis.tables.stimuli import stimulus_rows
from analysis.tables.trial_kind_columns import KindOf
from analysis.tables.trials import Answers
from experiments.drafting.dropped_items import dropped_rows
from experiments.drafting.stimulus_warnings import stimuli_sentences
from experiments.kinds import get_kind
from experiments.models import Condition, Session, Study
from experiments.selectors import definition_of
from experiments.sessions.pseudonyms import Pseudonyms
from experiments.stages.solution_freeze import frozen_of
from experiments.wording.answer_meanings import answers_of
from stimuli.types import Progress

Row = tuple[object, ...]
LONG: Mapping[str, Callable[[Study, Batch], Iterator[Row]]] = {
    "questions": question_rows,
    "gates": gate_rows,
    "events": event_rows,
    "openings": opening_rows,
}
"""Tables with several rows per session, besides the answers."""


def code_version() -> str:
    return version("legible")


class Reader:
    """Reads one study: plans and answers stream through in batches of sessions.

    `kind_of` gives each kind of trial by name, with the columns that it adds. `keys` are the sessions that
    are read, all of them at first; `keep` chooses among them.
    """

    def __init__(
        self,
        study: Study,
        release: str = "",
        progress: Progress | None = None,
        kind_of: KindOf = get_kind,
    ) -> None:
        self.study = study
        self.progress = progress or (lambda what, done, total: None)
        self.conditions = {c.pk: (c.name, c.role) for c in Condition.objects.filter(study=study)}
        self.index = SessionIndex(study, Pseudonyms.of(study, release))
        self.answers = Answers(study, self._condition, kind_of)
        self.extra = self.answers.extra
        self.keys: Sequence[UUID] = self.index.keys

    def keep(self, chosen: Callable[[pd.DataFrame], pd.Series]) -> Counter[str]:
        """Keeps the sessions that are chosen from rows of `participants`; returns how many there are left of
        each origin."""
        kept: list[UUID] = []
        origins = Counter[str]()
        for batch in self.index.batches(self.keys):
            people = frame("participants", participant_rows(self.study, batch, self._condition))
            mask = chosen(people)
            kept += [session.pk for session, is_kept in zip(batch.sessions, mask, strict=True) if is_kept]
            origins.update(str(origin) for origin in people["origin"][mask])
        self.keys = kept
        return origins

    @property
    def listed(self) -> tuple[str, ...]:
        return tuple(TABLES)

    @property
    def is_public(self) -> bool:
        return False

    @property
    def asked(self) -> tuple[CodebookQuestion, ...]:
        return asked_of(self.study)

    def parts(self, table: str) -> Iterator[pd.DataFrame]:
        """A table in parts, of the chosen sessions."""
        if table == "stimuli":
            rows: Iterator[Any] = stimulus_rows(self.study, self.conditions)
        elif table == "plans":
            rows = plan_rows(self.study, self._condition)
        else:
            rows = self._of_sessions(table)
        return parts(table, rows, self.extra)

    def frames(self, held: Collection[str] = ()) -> Frames:
        """The tables that are analysed, as a whole; of the columns of `trials` only those in `held` and those
        of the kinds of trial, if it names any."""
        people = Pieces()
        people.add(frame("participants", []))

        def answers() -> Iterator[Row]:
            for batch in self._batches():
                people.add(frame("participants", participant_rows(self.study, batch, self._condition)))
                yield from self.answers.rows(batch)

        trials = whole_table("trials", answers(), self.extra, held=held)
        stimuli = whole_table("stimuli", stimulus_rows(self.study, self.conditions))
        return Frames(trials, people.whole(), stimuli, self.extra)

    def _of_sessions(self, table: str) -> Iterator[Any]:
        for batch in self._batches() if table == "trials" else self.index.batches(self.keys):
            if table == "trials":
                yield from self.answers.rows(batch)
            elif table == "participants":
                yield from participant_rows(self.study, batch, self._condition)
            else:
                yield from LONG[table](self.study, batch)

    def _batches(self) -> Iterator[Batch]:
        """Batches with the progress of reading them."""
        done, total = 0, len(self.keys)
        for batch in self.index.batches(self.keys):
            yield batch
            done += len(batch.keys)
            self.progress("answers of sessions", done, total)

    def _condition(self, condition_id: int | None) -> tuple[str, str]:
        return self.conditions.get(condition_id or 0, ("", ""))


def read_frames(
    study: Study,
    *,
    release: str = "",
    progress: Progress | None = None,
    kind_of: KindOf = get_kind,
    held: Collection[str] = (),
) -> Frames:
    """All tables of a study, every origin. `release` names the pseudonyms' key; `progress(what, done,
    total)`; `kind_of` gives the kinds of trial by name; `held` as for `Reader.frames`.
    """
    return Reader(study, release, progress, kind_of).frames(held)


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
        wording=_wording(study),
        frozen=frozen_of(study),
        screening=study.definition.get("screening", {}),
    )


def _wording(study: Study) -> Mapping[str, str]:
    file = definition_of(study).interface if study.definition.get("interface") else None
    return {} if file is None else file.tables["pages"]


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
