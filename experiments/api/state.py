"""What the browser is told about a session: built field by field, then passed through the wire's
whitelist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, cast

from django.utils import timezone

from experiments.api.serializers import SessionState
from experiments.api.trial_scene import PRACTICE_TRIAL, SessionScene, media
from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.gates import get_gate, told
from experiments.gates.instructions import help_text
from experiments.gates.pages import page_digest, page_html
from experiments.kinds import get_kind
from experiments.models import HandOut, Session
from experiments.paradigms import design_of
from experiments.paradigms.answer_keys import keys_to_choose
from experiments.selectors import MAIN, Card, File, cards_of, definition_of
from experiments.sessions.last_page import last_page_of
from experiments.sessions.lifecycle import Step, step_of
from experiments.sessions.progress import progress_of
from experiments.sessions.responses import last_feedback
from experiments.wording.markdown import html_of, text_digest
from experiments.wording.sentence_tables import words_for
from experiments.wording.sentences import page_words, sight_words, text_html
from experiments.wording.smallest_window import answers_of, answers_px_of, board_of
from stimuli.render.heatmap import scale_of


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
        "progress": _progress(session, step),
        "feedback": last_feedback(session) if step.name == "trials" and step.next else None,
        "study": _facts(session, cards, definition, has_maps=_shows_map(session, step)),
        "exit": None,
    }
    return cast(dict[str, Any], SessionState(state).data)


def _progress(session: Session, step: Step) -> dict[str, Any] | None:
    progress = progress_of(session, step)
    return None if progress is None else asdict(progress)


def _shows_map(session: Session, step: Step) -> bool:
    """Whether the page of a gate shows a map."""
    if step.stop is None:
        return False
    questions = get_gate(step.stop.gate).questions(session.study, step.stop)
    explanations = [question["explanation"] for question in questions]
    return any(row is not None and not row.get("said") for row in explanations)


def _facts(
    session: Session, cards: Sequence[Card], definition: StudyDefinition, *, has_maps: bool
) -> dict[str, Any]:
    design, board = design_of(definition), board_of(definition)
    return {
        "title": definition.title,
        "language": definition.tag,
        "contact": definition.ethics.contact,
        "instructions": text_html(definition, help_text(session, definition)),
        "picture_px": board.picture_px,
        "answers_px": answers_px_of(definition),
        "tile_px": definition.render.tile_px,
        "min_view_ms": getattr(design, "min_view_ms", 1500),
        "gap_ms": getattr(design, "gap_ms", 300),
        "reservoir": getattr(design, "reservoir", "off"),
        "display": getattr(design, "display", "beside"),
        "words": page_words(definition),
        "legend": _legend(cards, definition, has_maps),
        "presentation": definition.presentation.model_dump(),
        "sight": sight_words(definition),
        "keys": list(keys_to_choose(answers_of(definition))),
        "origin": session.origin,
    }


def _legend(cards: Sequence[Card], definition: StudyDefinition, has_maps: bool) -> dict[str, Any] | None:
    """What the colours of this person's maps mean, in the trials or on the page (`has_maps`). None if no map
    is shown, or if the recipe has no colours: it tells nothing of what others see."""
    recipe = definition.render.spec()
    mapped = (card for card in cards if get_kind(card.view.kind).has_maps)
    shown = (stimulus.explanation for card in mapped for stimulus in card.shown.values())
    # What bars, sentences and other pictures say stands with them in words; a map says nothing.
    is_marked = any(file is not None and not file.is_text and not file.said for file in shown)
    if not (has_maps or is_marked) or recipe.style not in ("heat", "contour"):
        return None
    ends = "sides" if recipe.sign == "diverging" else "importance"
    return {"colours": scale_of(recipe.colormap), "ends": ends}


def _page(session: Session, step: Step, definition: StudyDefinition) -> dict[str, Any] | None:
    words = words_for(definition)
    if step.stop is not None:
        gate = get_gate(step.stop.gate)
        questions = gate.questions(session.study, step.stop)
        return {
            "kind": step.name,
            "digest": page_digest(session, step.stop, step.attempt),
            "html": page_html(session, step.stop),
            "questions": [question_wire(session, question, words) for question in questions],
            "kept": told.kept_answers(session, step.stop, step.attempt) if gate.keeps else {},
        }
    if step.name == "comment":
        return _plain_page("comment", words["comment"], html_of(words["comment"]))
    if step.name == "finish":
        kind = last_page_of(session)
        text = definition.texts["debrief"] if kind == "debrief" else words[kind]
        return _plain_page(kind, text, text_html(definition, text))
    return None


def _plain_page(kind: str, text: str, html: str) -> dict[str, Any]:
    return {"kind": kind, "digest": text_digest(kind, text), "html": html, "questions": [], "kept": {}}


def question_wire(session: Session, question: dict[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """A question of a gate's page as this session receives it."""
    shown: dict[str, Any] = {}
    for part in ("image", "explanation"):
        if (row := question[part]) is not None:
            file = File(row["file"], row["width_px"], row["height_px"], row.get("said", ""))
            # The picture has the address of its question, as it had before there were explanations.
            role = question["id"] if part == "image" else f"{question['id']}/{part}"
            alt = words["alt_said"].format(text=file.said) if file.said else words[f"alt_{part}"]
            shown[part] = media(session, file, PRACTICE_TRIAL, role, alt).model_dump()
    # Not even the name of a part that is missing leaves the server: in some studies it would tell something.
    missing = {"explanation"} - {name for name, value in question.items() if value is not None}
    return {name: value for name, value in {**question, **shown}.items() if name not in missing}


def _block(
    session: Session, step: Step, cards: Sequence[Card], definition: StudyDefinition
) -> dict[str, Any]:
    """The next block with its trials; trials of a kind that is handed out alone come one at a time."""
    index = cards[step.next].view.block
    block = [card for card in cards if card.view.block == index]
    served = _cards_to_serve(block, cards[step.next])
    if get_kind(served[0].view.kind).is_alone:
        _hand_out(session, served[0])
    last = served[-1].view.position
    later = Counter((card.view.kind, card.view.phase) for card in block if card.view.position > last)
    return {
        "index": index,
        "count": cards[-1].view.block + 1,
        "first": block[0].view.position,
        "trials": [trial_wire(session, card, cards, definition) for card in served],
        "later": [{"kind": kind, "phase": phase, "count": count} for (kind, phase), count in later.items()],
        "examples": [
            _example(session, card, definition)
            for card in cards
            if get_kind(card.view.kind).is_example and card.view.block <= index and MAIN in card.shown
        ],
    }


def _cards_to_serve(block: Sequence[Card], following: Card) -> list[Card]:
    """The trials of a block that are handed out with the one that follows: all of them; if some are handed
    out alone, that one, or those without such a one between them."""
    if get_kind(following.view.kind).is_alone:
        return [following]
    groups = groupby(block, key=lambda card: get_kind(card.view.kind).is_alone)
    return next(run for run in (list(cards) for _, cards in groups) if following in run)


def _hand_out(session: Session, card: Card) -> None:
    """Stores when the trial first left the server; a reload does not change that time."""
    row = HandOut(session=session, trial_id=card.id, handed_out_at=timezone.now())
    HandOut.objects.bulk_create([row], ignore_conflicts=True)


def _example(session: Session, card: Card, definition: StudyDefinition) -> dict[str, Any]:
    scene = SessionScene(session, card, definition, ())
    image, explanation, text = scene.tile()
    return {
        "trial": str(card.id),
        "label": scene.label or "",
        "image": image.model_dump() if image else None,
        "explanation": explanation.model_dump() if explanation else None,
        "text": text.model_dump() if text else None,
    }


def trial_wire(
    session: Session, card: Card, cards: Sequence[Card], definition: StudyDefinition
) -> dict[str, Any]:
    """A trial as this session receives it."""
    reservoir = tuple(str(cards[position].id) for position in card.reservoir)
    scene = SessionScene(session, card, definition, reservoir)
    kind, person = get_kind(card.view.kind), str(session.participant.pseudonym)
    view = kind.seen_by(card.view, person, Streams(definition.seed))
    return {
        "id": str(card.id),
        "position": card.view.position,
        "kind": card.view.kind,
        "phase": card.view.phase,
        "content": kind.content(view, scene).model_dump(),
    }


__all__ = ["question_wire", "session_state", "trial_wire"]
