"""What the browser is told about a session: built field by field, then passed through the wire's
whitelist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from experiments.api.serializers import SessionState
from experiments.definition import StudyDefinition
from experiments.gates import page_digest, page_html, page_questions, placeholders
from experiments.models import Session
from experiments.responses import last_feedback
from experiments.selectors import Card, Picture, cards_of, definition_of
from experiments.sessions import Step, step_of
from experiments.texts import html_of, text_digest
from experiments.tokens import media_reference
from experiments.words import words_of

ALT = {
    "en": {"image": "Picture", "explanation": "Picture with an explanation"},
    "de": {"image": "Bild", "explanation": "Bild mit einer Erklärung"},
}


def session_state(session: Session) -> dict[str, Any]:
    """S of the wire, as plain JSON values."""
    definition = definition_of(session.study)
    step = step_of(session)
    cards = cards_of(session.slot, session.study) if session.slot else ()
    state = {
        "step": step.name,
        "page": _page(session, step, definition),
        "attempts_left": step.attempts_left,
        "block": _block(session, step, cards, definition) if step.name == "trials" else None,
        "next": step.next,
        "total": len(cards) if cards else None,
        "feedback": last_feedback(session) if step.name == "trials" and step.next else None,
        "study": _facts(session, definition),
        "exit": None,
    }
    return cast(dict[str, Any], SessionState(state).data)


def _facts(session: Session, definition: StudyDefinition) -> dict[str, Any]:
    design = definition.paradigm_design()
    return {
        "title": definition.title,
        "language": definition.language,
        "contact": definition.ethics.contact,
        "instructions": html_of(definition.texts["instructions"], placeholders(definition)),
        "picture_px": getattr(design, "picture_px", 320),
        "tile_px": definition.render.tile_px,
        "min_view_ms": getattr(design, "min_view_ms", 1500),
        "gap_ms": getattr(design, "gap_ms", 300),
        "reservoir": getattr(design, "reservoir", "off"),
        "display": getattr(design, "display", "beside"),
        "origin": session.origin,
    }


def _page(session: Session, step: Step, definition: StudyDefinition) -> dict[str, Any] | None:
    words = words_of(definition.language)
    if step.gate is not None:
        questions = [_question(session, q) for q in page_questions(session.study, step.gate)]
        return {
            "kind": step.name,
            "digest": page_digest(session, step.gate, step.attempt),
            "html": page_html(session, step.gate),
            "questions": questions,
        }
    if step.name == "comment":
        return _plain_page("comment", words["comment"])
    if step.name == "finish":
        kind = ending_of(session)
        text = definition.texts["debrief"] if kind == "debrief" else words[kind]
        return _plain_page(kind, text, placeholders(definition))
    return None


def _plain_page(kind: str, text: str, words: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"kind": kind, "digest": text_digest(kind, text), "html": html_of(text, words), "questions": []}


def ending_of(session: Session) -> str:
    """Which last page a closed session gets. Everybody who agreed to take part and was not sent away before
    the trials gets the debrief."""
    if session.state == Session.State.DECLINED:
        return "declined"
    if session.state == Session.State.TURNED_AWAY:
        return "turned_away"
    if session.state == Session.State.FINISHED and session.slot_id is None:
        return "screened"
    if session.state == Session.State.WITHDRAWN and not _has_consented(session):
        return "withdrawn"
    return "debrief"


def _has_consented(session: Session) -> bool:
    return session.gates.filter(kind="consent", passed=True).exists()


def _media(session: Session, picture: Picture, trial: str, role: str, language: str) -> dict[str, Any]:
    kind = "explanation" if "explanation" in role else "image"
    return {
        "url": f"/m/{media_reference(session.media_id, trial, role)}",
        "width_px": picture.width_px,
        "height_px": picture.height_px,
        "alt": ALT.get(language, ALT["en"])[kind],
    }


def _question(session: Session, question: dict[str, Any]) -> dict[str, Any]:
    image = question["image"]
    if image is None:
        return question
    picture = Picture(image["file"], image["width_px"], image["height_px"])
    language = definition_of(session.study).language
    return {**question, "image": _media(session, picture, "practice", question["id"], language)}


def _block(
    session: Session, step: Step, cards: Sequence[Card], definition: StudyDefinition
) -> dict[str, Any]:
    index = cards[step.next].view.block
    texts = dict(definition.choices)
    return {
        "index": index,
        "count": cards[-1].view.block + 1,
        "trials": [_trial(session, card, cards, definition) for card in cards if card.view.block == index],
        "examples": [
            {
                "trial": str(card.id),
                "label": texts.get(card.label or "", card.label or ""),
                "image": _media(session, card.tile, str(card.id), "tile", definition.language),
                "explanation": _media(
                    session, card.tile_explanation, str(card.id), "tile_explanation", definition.language
                )
                if card.tile_explanation
                else None,
            }
            for card in cards
            if card.view.kind == "learn" and card.view.block <= index and card.tile is not None
        ],
    }


def _trial(
    session: Session, card: Card, cards: Sequence[Card], definition: StudyDefinition
) -> dict[str, Any]:
    trial, language = str(card.id), definition.language
    content: dict[str, Any] = {
        "image": _media(session, card.image, trial, "image", language) if card.image else None,
        "explanation": _media(session, card.explanation, trial, "explanation", language)
        if card.explanation
        else None,
        "choices": list(card.choices),
    }
    if card.view.kind == "learn":
        content["label"] = (
            dict(definition.choices).get(card.label, card.label) if card.label is not None else None
        )
    else:
        content["prompt"] = _prompt(card, language)
        content["reservoir"] = [str(cards[position].id) for position in card.reservoir]
    return {
        "id": trial,
        "position": card.view.position,
        "kind": card.view.kind,
        "phase": card.view.phase,
        "content": content,
    }


def _prompt(card: Card, language: str) -> str | None:
    if card.view.check != "instructed":
        return None
    key = next(choice["key"] for choice in card.choices if choice["value"] == card.view.expected)
    return words_of(language)["predict_instructed"].format(key=key.upper())


def media_files(session: Session) -> Iterator[tuple[str, str]]:
    """(reference, stored file) of every picture that this session may see."""
    for row in session.study.practice:
        yield media_reference(session.media_id, "practice", str(row["id"])), str(row["file"])
    for card in cards_of(session.slot, session.study) if session.slot else ():
        roles = {
            "image": card.image,
            "explanation": card.explanation,
            "tile": card.tile if card.view.kind == "learn" else None,
            "tile_explanation": card.tile_explanation if card.view.kind == "learn" else None,
        }
        for role, picture in roles.items():
            if picture is not None:
                yield media_reference(session.media_id, str(card.id), role), picture.file


__all__ = ["ending_of", "media_files", "session_state"]
