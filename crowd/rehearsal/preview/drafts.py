"""What a preview shows now: the draft as last read, its rows, and pictures that are made as they are asked
for. One thread works; those of the server read, ask and wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from crowd.rehearsal.preview.source_files import faults_of, stamps_of
from experiments.api.media import pictures_of
from experiments.errors import StudyError
from experiments.models import Study
from experiments.opening.preview_draft import (
    PreviewDraft,
    PreviewModels,
    draft_preview,
    shown_in,
    store_preview,
)
from experiments.opening.previewed_items import note_previewed
from experiments.paradigms.base import Plan
from experiments.study_files.load import load_study, material_folder
from stimuli.build import build
from stimuli.errors import StimulusError
from stimuli.store.media_access import current_store

LOOK_S = 0.5
"""How often the file is looked at."""
AT_ONCE = 16
"""So many pictures are made before the file is looked at again."""
WRONG = (StudyError, StimulusError, OSError, ValueError)
"""What a file, its material or its models may be refused with."""


class View(NamedTuple):
    """What is looked at: the parts of a place up to `block` (-1: its first pages alone), in a language, in
    the draft of one reading of the file."""

    reading: int
    language: str
    ordinal: int
    block: int


@dataclass
class Preview:
    """A study's file, followed. `reading` counts how often it was read; `draft` with its `rows` is the last
    that could be made, in reading `drafted`. `doing` is what is being done, in words, else empty."""

    path: Path
    notes_folder: Path
    reading: int = 0
    drafted: int = 0
    draft: PreviewDraft | None = None
    rows: Study | None = None
    faults: tuple[str, ...] = ()
    doing: str = "reading the file"
    _studies: dict[str, Study] = field(default_factory=dict)
    _asked: list[View] = field(default_factory=list)
    _ready: set[View] = field(default_factory=set)
    _failed: dict[View, str] = field(default_factory=dict)
    _stamps: dict[Path, int] = field(default_factory=dict)
    _models: PreviewModels | None = None
    _news: threading.Condition = field(default_factory=threading.Condition)

    def view(self, language: str, ordinal: int, block: int) -> View:
        return View(self.drafted, language, ordinal, block)

    def study(self, view: View) -> Study | None:
        """The study whose page shows the view, once all of its pictures are made; until then they are asked
        for. StudyError if one of them cannot be made."""
        with self._news:
            if view in self._failed:
                raise StudyError(self._failed[view])
            if view in self._ready:
                self._ask_ahead(view)
                return self._studies[view.language]
            if view not in self._asked:
                self._asked.append(view)
                self._news.notify_all()
        return None

    def _ask_ahead(self, view: View) -> None:
        """Who takes the preview as a participant comes to the later parts."""
        last = max(trial.block for trial in self.plan(view).trials)
        whole = view._replace(block=last)
        if whole not in (*self._ready, *self._failed, *self._asked):
            self._asked.insert(0, whole)

    def plan(self, view: View) -> Plan:
        """The plan of its place. StudyError if there is none any more."""
        for plan in self.draft.plans if self.draft is not None else ():
            if plan.ordinal == view.ordinal:
                return plan
        raise StudyError("This place is no longer in the draft. Choose another above.")

    def follow(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Reads the file whenever it has changed, and makes what is asked for in between."""
        while not is_over():
            self.work()
            with self._news:
                if not self._asked:
                    self._news.wait(LOOK_S)

    def work(self) -> None:
        """One look at the file, and one view that was asked for, the last first."""
        stamps = stamps_of(self.path)
        if stamps != self._stamps:
            self._stamps = stamps
            self._read()
        with self._news:
            view = self._asked.pop() if self._asked else None
        if view is not None:
            self._make(view)
        self.doing = ""

    def _read(self) -> None:
        self.doing = "reading the file"
        try:
            definition = load_study(self.path)
            if self._models is None:
                self._models = PreviewModels(material_folder(self.path), current_store())
            draft = draft_preview(definition, self._models, self._say)
            rows = store_preview(draft, _name(self.reading + 1, definition.tag), current_store())
        except WRONG as error:
            self.faults = faults_of(error)
        else:
            with self._news:
                for memory in (self._studies, self._asked, self._ready, self._failed):
                    memory.clear()
                self.drafted, self.draft, self.rows, self.faults = self.reading + 1, draft, rows, ()
                self._studies[definition.tag] = rows
        self.reading += 1

    def _make(self, view: View) -> None:
        draft = self.draft
        if draft is None or view.reading != self.drafted:
            return
        try:
            plan = self.plan(view)
            study = self._stored(view)
            keys = list(dict.fromkeys(_keys(draft, plan, view.block)))
            for start in range(0, len(keys), AT_ONCE):
                if start and stamps_of(self.path) != self._stamps:
                    return
                self._say("drawing pictures", start, len(keys))
                build(keys[start : start + AT_ONCE])
        except WRONG as error:
            with self._news:
                self._failed[view] = str(error)
            return
        _forget_cards(study, view)
        note_previewed(self.notes_folder, draft.definition.slug, set(_explained(plan, view.block)))
        with self._news:
            self._ready.add(view)

    def _stored(self, view: View) -> Study:
        """The rows of the study in that language, made once for each reading."""
        assert self.draft is not None
        if view.language not in self._studies:
            said = {"language": view.language, "interface": None}
            draft = replace(self.draft, definition=self.draft.definition.model_copy(update=said))
            name = _name(view.reading, view.language)
            self._studies[view.language] = store_preview(draft, name, current_store())
        return self._studies[view.language]

    def _say(self, what: str, done: int, total: int) -> None:
        self.doing = f"{what}: {done:,} of {total:,}"


def _name(reading: int, language: str) -> str:
    return f"preview-{reading}-{language.lower()}"


def _keys(draft: PreviewDraft, plan: Plan, block: int) -> Iterator[str]:
    for trial in plan.trials:
        if trial.block <= block:
            yield from (draft.specs[place].picture_key for place in sorted(shown_in(trial)))


def _explained(plan: Plan, block: int) -> Iterator[str]:
    """The items that are seen with an explanation."""
    for trial in plan.trials:
        if trial.explained and trial.block <= block:
            yield from (item for item, _, _ in shown_in(trial))


def _forget_cards(study: Study, view: View) -> None:
    """Of an open study nothing changes, so cards and addresses are kept for ever; here pictures come."""
    digest = f"{study.plan_digest[:40]}-{view.ordinal}-{view.block}"
    Study.objects.filter(pk=study.pk).update(plan_digest=digest)
    pictures_of.cache_clear()
