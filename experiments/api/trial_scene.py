"""What a trial's page may show: pictures by addresses of this session alone, texts in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings

from experiments.definition.study import StudyDefinition
from experiments.gates import get_gate
from experiments.kinds import get_kind
from experiments.kinds.base import Button, Media, Text, Token, Value
from experiments.models import Session
from experiments.paradigms import get_paradigm
from experiments.selectors import MAIN, Card, File, ShownStimulus, cards_of
from experiments.tokens import media_reference
from experiments.wording.sentence_tables import words_for
from stimuli.store.media_access import read_media

PRACTICE_TRIAL = "practice"
"""Replaces the trial in the addresses of pictures on a gate's page."""


@lru_cache(maxsize=4096)
def _pieces(url: str, file: str) -> Text:
    """A stored text in pieces; one piece without a shade if nothing is marked. `url` names the store."""
    document = json.loads(read_media(file)[0])
    if "tokens" not in document:
        return Text(tokens=(Token(text=document["text"], shade=None),))
    rows = document["tokens"]
    return Text(tokens=tuple(Token(text=row["text"], shade=row["shade"] or None) for row in rows))


def media(session: Session, file: File, trial: str, role: str, alt: str) -> Media:
    """A picture by an address that only this session has."""
    url = f"/m/{media_reference(session.media_id, trial, role)}"
    return Media(url=url, width_px=file.width_px, height_px=file.height_px, alt=alt, is_said=bool(file.said))


class SessionScene:
    """The stimuli of one trial as one session sees them; no condition, method, source or right answer."""

    def __init__(
        self, session: Session, card: Card, definition: StudyDefinition, reservoir: tuple[str, ...]
    ) -> None:
        self._session, self._card = session, card
        self._words = words_for(definition)
        self._url = settings.STORAGE_URL
        self.buttons = tuple(Button(**choice) for choice in card.choices)
        label = card.view.label
        self.label = None if label is None else dict(definition.choices).get(label, label)
        self.reservoir = reservoir

    def image(self, role: str = MAIN) -> Media | None:
        shown = self._card.shown.get(role)
        return self._media(shown.image, "image", role) if shown else None

    def explanation(self, role: str = MAIN) -> Media | None:
        shown = self._card.shown.get(role)
        return self._media(shown.explanation, "explanation", role) if shown else None

    def text(self, role: str = MAIN) -> Text | None:
        shown = self._card.shown.get(role)
        text = shown.text if shown else None
        return _pieces(self._url, text.name) if text else None

    def words(self, name: str, /, **values: str) -> str:
        return self._words[name].format(**values)

    def answered(self, position: int) -> Value | None:
        given = self._session.responses.filter(position=position).values_list("value", flat=True)
        return given.first()

    def tile(self) -> tuple[Media | None, Media | None, Text | None]:
        """The trial as an example in the reservoir: picture and explanation at tile size, or the text."""
        shown = self._card.shown[MAIN]
        return (
            self._media(shown.tile, "tile", MAIN),
            self._media(shown.tile_explanation, "tile_explanation", MAIN),
            self.text(),
        )

    def _media(self, file: File | None, part: str, role: str) -> Media | None:
        """A file by its address; None for texts, which are sent in pieces."""
        if file is None or file.is_text:
            return None
        kind = "explanation" if part.endswith("explanation") else "image"
        alt = self.words("alt_said", text=file.said) if file.said else self._words[f"alt_{kind}"]
        return media(self._session, file, str(self._card.id), address_role(role, part), alt)


class Picture(NamedTuple):
    """A stored picture and the part of a page that it is: a gate's name, or image, explanation, tile,
    tile_explanation."""

    file: str
    part: str


def address_role(role: str, part: str) -> str:
    """The name of a trial's picture in its address; for the trial's own stimulus the part alone."""
    return part if role == MAIN else f"{role}/{part}"


def _parts(shown: ShownStimulus, is_example: bool) -> Mapping[str, File | None]:
    tiles = {"tile": shown.tile, "tile_explanation": shown.tile_explanation} if is_example else {}
    return {"image": shown.image, "explanation": shown.explanation, **tiles}


def media_files(session: Session) -> Iterator[tuple[str, Picture]]:
    """(reference, picture) of every picture that this session may see."""
    for name in get_paradigm(session.study.paradigm).gates:
        for question, name_in_store in get_gate(name).files(session.study).items():
            yield media_reference(session.media_id, PRACTICE_TRIAL, question), Picture(name_in_store, name)
    for card in cards_of(session.slot, session.study) if session.slot else ():
        is_example = get_kind(card.view.kind).is_example
        for role, shown in card.shown.items():
            for part, file in _parts(shown, is_example and role == MAIN).items():
                if file is not None and not file.is_text:
                    reference = media_reference(session.media_id, str(card.id), address_role(role, part))
                    yield reference, Picture(file.name, part)
