"""A gate's page as it is served: its HTML, and the digest that names exactly what is answered."""

from __future__ import annotations

from experiments.gates import get_gate
from experiments.gates.base import Stop
from experiments.models import Session
from experiments.selectors import definition_of
from experiments.wording.markdown import text_digest
from experiments.wording.sentences import text_html
from stimuli.spec import canonical_json


def page_html(session: Session, stop: Stop) -> str:
    return text_html(definition_of(session.study), get_gate(stop.gate).text(session, stop))


def page_digest(session: Session, stop: Stop, attempt: int) -> str:
    """Identifies the page that is answered. Judged gates include the try, so that a lost reply does not count
    as a second one."""
    gate = get_gate(stop.gate)
    counted = str(attempt) if stop.attempts_max is not None else ""
    questions = canonical_json(gate.questions(session.study, stop))
    return text_digest(stop.kind, gate.text(session, stop), questions, counted)
