"""Bodies of the most frequent requests, checked by hand: a serializer would cost more than the insert behind
it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rest_framework.request import Request

from experiments.api.serializers import CHANGES_MAX, MAX_MS, QUESTION_ID_MAX, QUESTIONS_MAX
from experiments.errors import InvalidRequest, NoSession
from experiments.sessions.responses import SubmittedAnswer, SubmittedEvent

BATCH_MAX = 50
QUERY_MAX = 4000
"""A query string with a signed token in it has some 1,500 characters."""
ATTEMPT_MAX = 64
CONTEXT_FIELDS: Mapping[str, tuple[type, ...]] = {
    "onset_ms": (int, float),
    "input": (str,),
    "key": (str,),
    "keys": (str,),
    "side": (str,),
    "image_px": (int, float),
    "pixel_ratio": (int, float),
    "frames": (int,),
    "dropped_frames": (int,),
    "hidden_count": (int,),
    "refresh_ms": (int, float),
    "reservoir_ms": (int,),
    "focus_losses": (int,),
    "reloads": (int,),
    "questions": (list,),
    "strokes": (int,),
    "undos": (int,),
    "first_stroke_ms": (int,),
    "marked_with": (str,),
}


def bearer_token(request: Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise NoSession("This request carries no session token.")
    return token.strip()


def body_of(request: Request, allowed: set[str]) -> dict[str, Any]:
    """The body as an object with no other keys than the allowed ones."""
    body = request.data
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    unknown = sorted(set(body) - allowed)
    if unknown:
        raise InvalidRequest(
            "The body has unknown fields.", fields={name[:80]: "is not a field" for name in unknown}
        )
    return body


def text_of(body: Mapping[str, Any], name: str, limit: int, default: str | None = None) -> str:
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or len(value) > limit:
        what = f"text of at most {limit} characters"
        raise _misfit(name, f"must be {what}", what)
    return value


def responses_of(body: Mapping[str, Any]) -> list[SubmittedAnswer]:
    rows = _rows(body, "responses")
    return [_response(row, f"responses.{index}") for index, row in enumerate(rows)]


def events_of(body: Mapping[str, Any]) -> list[SubmittedEvent]:
    rows = _rows(body, "events")
    return [_event(row, f"events.{index}") for index, row in enumerate(rows)]


def _misfit(path: str, fault: str, told: str = "") -> InvalidRequest:
    """What is wrong with the field at `path`; `told` is the short form beside its name."""
    return InvalidRequest(f"{path} {fault}.", fields={path: told or fault})


def _rows(body: Mapping[str, Any], name: str) -> list[Any]:
    rows = body.get(name)
    if not isinstance(rows, list) or not 1 <= len(rows) <= BATCH_MAX:
        raise _misfit(name, f"must be a list of 1 to {BATCH_MAX}", f"1 to {BATCH_MAX} entries")
    return rows


def _object(row: Any, path: str, allowed: set[str]) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise _misfit(path, "must be an object")
    unknown = set(row) - allowed
    if unknown:
        raise InvalidRequest(
            f"{path} has unknown fields.",
            fields={f"{path}.{name}"[:120]: "is not a field" for name in sorted(unknown)},
        )
    return row


def _whole(row: Mapping[str, Any], name: str, path: str, what: str, most: int | None = None) -> int:
    value, top = row.get(name), float("inf") if most is None else most
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= top:
        told = "0 or more" if most is None else f"0 to {most}"
        raise _misfit(f"{path}.{name}", f"must be {what}" + (f", {told}" if most is not None else ""), told)
    return value


def _milliseconds(row: Mapping[str, Any], name: str, path: str) -> int:
    return _whole(row, name, path, "whole milliseconds", MAX_MS)


def _text(row: Mapping[str, Any], name: str, path: str, length: int = 40) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= length:
        what = f"text of 1 to {length} characters"
        raise _misfit(f"{path}.{name}", f"must be {what}", what)
    return value


def _response(row: Any, path: str) -> SubmittedAnswer:
    row = _object(row, path, {"trial", "value", "rt_ms", "shown_ms", "context"})
    value = row.get("value")
    if not isinstance(value, dict):
        raise _misfit(f"{path}.value", "must be an object")
    return SubmittedAnswer(
        trial=_text(row, "trial", path),
        value=value,
        rt_ms=_milliseconds(row, "rt_ms", path),
        shown_ms=_milliseconds(row, "shown_ms", path),
        context=_context(row.get("context", {}), f"{path}.context"),
    )


def _context(value: Any, path: str) -> dict[str, Any]:
    context = _object(value, path, set(CONTEXT_FIELDS))
    for name, member in context.items():
        types = CONTEXT_FIELDS[name]
        if not isinstance(member, types) or isinstance(member, bool):
            raise _misfit(f"{path}.{name}", "has the wrong type", types[-1].__name__)
        if isinstance(member, str) and len(member) > 20:
            raise _misfit(f"{path}.{name}", "is too long", "at most 20 characters")
    if "questions" in context:
        context["questions"] = _questions(context["questions"], f"{path}.questions")
    return context


def _questions(rows: list[Any], path: str) -> list[dict[str, Any]]:
    """For each question of a page, in the order shown: when its answer was given and how often it changed."""
    if len(rows) > QUESTIONS_MAX:
        raise _misfit(path, "has too many entries", f"at most {QUESTIONS_MAX} entries")
    return [_question(row, f"{path}.{place}") for place, row in enumerate(rows)]


def _question(row: Any, path: str) -> dict[str, Any]:
    row = _object(row, path, {"id", "ms", "changes"})
    changes = _whole(row, "changes", path, "a whole number", CHANGES_MAX)
    name = _text(row, "id", path, QUESTION_ID_MAX)
    return {"id": name, "ms": _milliseconds(row, "ms", path), "changes": changes}


def _event(row: Any, path: str) -> SubmittedEvent:
    row = _object(row, path, {"id", "kind", "trial", "at_ms", "data"})
    try:
        uuid = UUID(_text(row, "id", path))
    except ValueError as error:
        raise _misfit(f"{path}.id", "must be a UUID") from error
    trial = row.get("trial")
    detail = row.get("data", {})
    if not isinstance(detail, dict) or len(str(detail)) > 2000:
        raise _misfit(f"{path}.data", "must be a small object", "at most 2,000 characters")
    at_ms = _whole(row, "at_ms", path, "whole milliseconds")
    return SubmittedEvent(
        uuid=uuid,
        kind=_text(row, "kind", path),
        trial=None if trial is None else _text(row, "trial", path),
        at_ms=at_ms,
        detail=detail,
    )
