"""A model on the pages of trials: what a page shows becomes a question, and the reply its answer.

It is shown what a browser shows, in the study's own words; a question is one request. Pictures go as they are
stored: the padding by which addresses differ is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn

from experiments.asking.chat import Part
from experiments.asking.choice_dialogue import Asks
from experiments.asking.prompts import choices_of, scale_of, words_of
from experiments.kinds.base import Finding, Reply
from experiments.kinds.rate import SCALE
from stimuli.store.png_padding import unpad_png

Fetch = Callable[[str], bytes]


class ModelObserver:
    """Meets the trials of one session (experiments.kinds.base.Observer). `fetch` brings a picture from its
    address."""

    def __init__(self, asker: Asks, fetch: Fetch) -> None:
        self.asker, self.fetch = asker, fetch
        self._points: dict[str, int] = {}

    def study(self, trial: Mapping[str, Any]) -> Reply:
        self._refuse(trial)

    def decide(self, trial: Mapping[str, Any]) -> Reply:
        self._refuse(trial)

    def obey(self, trial: Mapping[str, Any]) -> Reply:
        content = trial["content"]
        value = self.asker.ask([content["prompt"]], choices_of(content["choices"], with_keys=True))
        return Reply({"choice": value}, self.asker.took_ms, self.asker.took_ms)

    def linger_ms(self, trial: Mapping[str, Any], part: str = "") -> int:
        """How long the question `part` took: it is put here, because its time is asked first."""
        content = trial["content"]
        question = next(row for row in content["questions"] if row["id"] == part)
        parts = [*self.shown(content)]
        for name, side in zip("AB", question["pair"] or (), strict=False):
            parts += [f"To compare, {name}:", *self.shown(side)]
        scale = scale_of(SCALE, question["low"], question["high"])
        self._points[part] = int(self.asker.ask([*parts, question["text"]], scale))
        return self.asker.took_ms

    def rate(self, trial: Mapping[str, Any], question: Mapping[str, Any]) -> int:
        return self._points.pop(question["id"])

    def pick(self, trial: Mapping[str, Any], name: str, options: Sequence[Hashable]) -> Any:
        self._refuse(trial)

    def locate(self, trial: Mapping[str, Any], nothing: str) -> Finding:
        self._refuse(trial)

    def judge(self, trial: Mapping[str, Any]) -> tuple[bool, int]:
        self._refuse(trial)

    def shown(self, content: Mapping[str, Any]) -> list[Part]:
        """What stands on a page or on one side of it: label, text, picture, explanation."""
        parts: list[Part] = []
        if content.get("label") is not None and "questions" in content:
            parts.append(f"The model says: {content['label']}")
        if content.get("text"):
            parts += words_of(content["text"])
        for name, key in (("Picture:", "image"), ("Explanation:", "explanation"), ("Explanation:", "mark")):
            if content.get(key):
                parts += [name, unpad_png(self.fetch(content[key]["url"]))]
        return parts

    def _refuse(self, trial: Mapping[str, Any]) -> NoReturn:
        raise NotImplementedError(f"A model is not asked trials of the kind {trial['kind']!r}.")
