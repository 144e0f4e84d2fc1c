"""The pages between arrival and the trials, and after them: what each shows, asks, and lets pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from experiments.definition import Question, StudyDefinition
from experiments.errors import InvalidRequest
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.texts import html_of, text_digest
from experiments.words import words_of
from stimuli.spec import canonical_json

DEFAULT_QUIZ_ATTEMPTS = 2
DEFAULT_PRACTICE_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class GateKind:
    """A gate: its rows' kind, the wire's step, where it stands, how often it may be tried."""

    kind: str
    step: Literal["device", "consent", "questions", "instructions", "quiz", "practice"]
    place: Literal["start", "arm", "end"]
    attempts_max: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A try as it is stored; `passed` is None where nothing is judged. `device` comes with consent."""

    value: dict[str, Any]
    passed: bool | None
    device: dict[str, Any] | None = None


def _limit(definition: StudyDefinition, rule: str, default: int) -> int:
    found = definition.screening.get(rule)
    return int(found.limit) if found is not None and not isinstance(found.limit, tuple) else default


def gate_plan(definition: StudyDefinition, arm_role: str) -> tuple[GateKind, ...]:
    """All gates of a study in order. `arm_role` (of the claimed slot's condition) decides the arm's own
    page."""
    plan = [GateKind("device", "device", "start"), GateKind("consent", "consent", "start")]
    if any(q.when == "before" for q in definition.questions):
        plan.append(GateKind("questions_before", "questions", "start"))
    plan.append(GateKind("instructions", "instructions", "start"))
    if definition.quiz:
        attempts = _limit(definition, "quiz_attempts_max", DEFAULT_QUIZ_ATTEMPTS)
        plan.append(GateKind("quiz", "quiz", "start", attempts))
    attempts = _limit(definition, "practice_attempts_max", DEFAULT_PRACTICE_ATTEMPTS)
    plan.append(GateKind("practice", "practice", "start", attempts))
    if arm_role and arm_text(definition, arm_role):
        plan.append(GateKind("instructions_arm", "instructions", "arm"))
    if any(q.when == "after" for q in definition.questions):
        plan.append(GateKind("questions_after", "questions", "end"))
    return tuple(plan)


def arm_text(definition: StudyDefinition, arm_role: str) -> str:
    """The page after assignment: one text for the baseline, the same words for control and methods."""
    key = "instructions_baseline" if arm_role == "baseline" else "instructions_explained"
    return definition.texts.get(key, "")


def page_text(session: Session, gate: GateKind) -> str:
    """The Markdown that a gate's page shows."""
    definition = definition_of(session.study)
    if gate.kind == "instructions_arm":
        role = session.slot.condition.role if session.slot and session.slot.condition else ""
        return arm_text(definition, role)
    if gate.kind == "consent" and definition.ethics.content_warning:
        return f"> **{definition.ethics.content_warning}**\n\n{definition.texts['consent']}"
    if gate.kind in {"consent", "instructions"}:
        return definition.texts[gate.kind]
    return words_of(definition.language)[gate.kind]


def page_html(session: Session, gate: GateKind) -> str:
    return html_of(page_text(session, gate), placeholders(definition_of(session.study)))


def placeholders(definition: StudyDefinition) -> dict[str, str]:
    """What a text may name in braces, so that time and pay are written in one place only."""
    reward = definition.reward
    return {
        "title": definition.title,
        "minutes": f"{reward.expected_minutes:g}",
        "reward": f"{reward.amount_cents / 100:.2f} {reward.currency}",
        "contact": definition.ethics.contact,
        "approval": definition.ethics.approval,
        "minimum_age": str(definition.ethics.minimum_age),
        "min_width_px": str(definition.device.min_width_px),
        "min_height_px": str(definition.device.min_height_px),
    }


def page_digest(session: Session, gate: GateKind, attempt: int) -> str:
    """Names exactly the page that is answered; judged gates count the try, so that a lost reply is no
    second try."""
    counted = str(attempt) if gate.attempts_max is not None else ""
    questions = canonical_json(page_questions(session.study, gate))
    return text_digest(gate.kind, page_text(session, gate), questions, counted)


def page_questions(study: Study, gate: GateKind) -> list[dict[str, Any]]:
    """The questions of a page, without any answer; a practice picture is named by its file."""
    definition = definition_of(study)
    if gate.kind == "quiz":
        return [
            _asked(q.id, "choice", q.prompt, choices=[(c, c) for c in q.choices]) for q in definition.quiz
        ]
    if gate.kind in {"questions_before", "questions_after"}:
        when = gate.kind.removeprefix("questions_")
        return [_question(q) for q in definition.questions if q.when == when]
    if gate.kind == "practice":
        return [_practice_question(row, definition.language) for row in study.practice]
    return []


def _asked(
    id: str, kind: str, prompt: str, *, choices: list[tuple[str, str]] | None = None, **more: Any
) -> dict[str, Any]:
    keys = ("f", "j") if choices is not None and len(choices) == 2 else tuple("123456789")
    listed = None
    if choices is not None:
        listed = [
            {"value": value, "text": text, "key": keys[i] if i < len(keys) else ""}
            for i, (value, text) in enumerate(choices)
        ]
    base = {"required": True, "label": None, "image": None, "min": None, "max": None, "max_length": None}
    return {"id": id, "kind": kind, "prompt": prompt, "choices": listed, **base, **more}


def _question(question: Question) -> dict[str, Any]:
    choices = [(c, c) for c in question.choices] if question.kind == "choice" else None
    return _asked(
        question.id,
        question.kind,
        question.prompt,
        choices=choices,
        required=question.required,
        min=question.min,
        max=question.max,
        max_length=question.max_length if question.kind == "text" else None,
    )


def _practice_question(row: Mapping[str, Any], language: str) -> dict[str, Any]:
    words = words_of(language)
    picture = {key: row[key] for key in ("file", "width_px", "height_px")}
    if row["example"]:
        return _asked(
            row["id"],
            "example",
            words["practice_example"],
            image=picture,
            label=row["answer"],
            required=False,
        )
    return _asked(
        row["id"], "predict", words["practice_question"], image=picture, choices=[("A", "A"), ("B", "B")]
    )


def judge(session: Session, gate: GateKind, value: Mapping[str, Any]) -> Judged:
    """Checks the form of a try (InvalidRequest names each field) and decides whether it passes."""
    definition = definition_of(session.study)
    if gate.kind == "device":
        return _judge_device(definition, value)
    if gate.kind == "consent":
        return _judge_consent(value)
    if gate.step == "instructions":
        if _flag(value, "read") is not True:
            raise InvalidRequest('value must be {"read": true}.', fields={"value.read": "must be true"})
        return Judged({"read": True}, True)
    answers = _answers(page_questions(session.study, gate), value)
    if gate.kind == "quiz":
        return Judged(answers, all(answers[q.id] == q.answer for q in definition.quiz))
    if gate.kind == "practice":
        asked = [row for row in session.study.practice if not row["example"]]
        correct = sum(answers[row["id"]] == row["answer"] for row in asked)
        return Judged(answers, correct >= min(definition.practice.correct_min, len(asked)))
    return Judged(answers, None)


def _judge_consent(value: Mapping[str, Any]) -> Judged:
    """Agreement, and with it the description of the device, which is not stored before."""
    agreed = _flag({k: v for k, v in value.items() if k != "device"}, "agree")
    described = agreed and "device" in value
    return Judged({"agree": agreed}, agreed, _device(value["device"], "value.device") if described else None)


def _flag(value: Mapping[str, Any], name: str) -> bool:
    if set(value) != {name} or not isinstance(value[name], bool):
        raise InvalidRequest(
            f'value must be {{"{name}": true or false}}.', fields={f"value.{name}": "true or false"}
        )
    return bool(value[name])


DEVICE_FIELDS: dict[str, tuple[type, ...]] = {
    "width_px": (int,),
    "height_px": (int,),
    "pixel_ratio": (int, float),
    "touch": (bool,),
    "webdriver": (bool,),
    "language": (str,),
}


def _judge_device(definition: StudyDefinition, value: Mapping[str, Any]) -> Judged:
    """Whether the window is large enough. Before consent nothing else about the device is kept."""
    found, needed = _device(value, "value"), definition.device
    fits = found["width_px"] >= needed.min_width_px and found["height_px"] >= needed.min_height_px
    return Judged({"fits": fits}, fits)


def _device(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{path} must be an object.", fields={path: "must be an object"})
    problems = {f"{path}.{name}"[:80]: "is not a field" for name in value if name not in DEVICE_FIELDS}
    for name, types in DEVICE_FIELDS.items():
        found = value.get(name)
        if not isinstance(found, types) or (isinstance(found, bool) and bool not in types):
            problems[f"{path}.{name}"] = f"must be a {types[-1].__name__}"
        elif isinstance(found, str) and len(found) > 40:
            problems[f"{path}.{name}"] = "at most 40 characters"
        elif isinstance(found, int | float) and not isinstance(found, bool) and not 0 <= found <= 100_000:
            problems[f"{path}.{name}"] = "0 to 100,000"
    if problems:
        raise InvalidRequest("The description of the device does not fit.", fields=problems)
    return dict(value)


def _answers(questions: list[dict[str, Any]], value: Mapping[str, Any]) -> dict[str, Any]:
    """The answers to a page's questions; every mistake is named at once."""
    asked = {q["id"]: q for q in questions if q["kind"] != "example"}
    problems = {f"value.{name}"[:80]: "is not asked" for name in value if name not in asked}
    for name, question in asked.items():
        mistake = _mistake(question, value.get(name))
        if mistake:
            problems[f"value.{name}"] = mistake
    if problems:
        raise InvalidRequest("Some answers are missing or do not fit.", fields=problems)
    return {name: value[name] for name in asked if value.get(name) is not None}


def _mistake(question: Mapping[str, Any], answer: Any) -> str:
    if answer is None or answer == "":
        return "is still to be answered" if question["required"] else ""
    if question["kind"] in {"choice", "predict"}:
        allowed = [choice["value"] for choice in question["choices"]]
        return "" if answer in allowed else f"must be one of {', '.join(allowed)}"
    if question["kind"] == "number":
        if not isinstance(answer, int) or isinstance(answer, bool):
            return "must be a whole number"
        low = question["min"] if question["min"] is not None else -(10**9)
        high = question["max"] if question["max"] is not None else 10**9
        return "" if low <= answer <= high else f"must lie between {low} and {high}"
    if not isinstance(answer, str) or len(answer) > question["max_length"]:
        return f"must be text of at most {question['max_length']} characters"
    return ""
