"""Bodies of the most frequent requests, checked by hand: a serializer would cost more than the insert behind
it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rest_framework.request import Request

from experiments.api.serializers import CHANGES_MAX, MAX_MS, QUESTION_ID_MAX, QUESTIONS_MAX
from experiments.errors import InvalidRequest, NoSession
from experiments.responses import Noticed, Submitted

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
    """A text of the body. A member that may be missing has a default, which also replaces null."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or len(value) > limit:
        raise InvalidRequest(
            f"{name} must be text of at most {limit} characters.",
            fields={name: f"text of at most {limit} characters"},
        )
    return value


def responses_of(body: Mapping[str, Any]) -> list[Submitted]:
    rows = _rows(body, "responses")
    return [_response(row, f"responses.{index}") for index, row in enumerate(rows)]


def events_of(body: Mapping[str, Any]) -> list[Noticed]:
    rows = _rows(body, "events")
    return [_event(row, f"events.{index}") for index, row in enumerate(rows)]


def _rows(body: Mapping[str, Any], name: str) -> list[Any]:
    rows = body.get(name)
    if not isinstance(rows, list) or not 1 <= len(rows) <= BATCH_MAX:
        raise InvalidRequest(
            f"{name} must be a list of 1 to {BATCH_MAX}.", fields={name: f"1 to {BATCH_MAX} entries"}
        )
    return rows


def _object(row: Any, path: str, allowed: set[str]) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InvalidRequest(f"{path} must be an object.", fields={path: "must be an object"})
    unknown = set(row) - allowed
    if unknown:
        raise InvalidRequest(
            f"{path} has unknown fields.",
            fields={f"{path}.{name}"[:120]: "is not a field" for name in sorted(unknown)},
        )
    return row


def _milliseconds(row: Mapping[str, Any], name: str, path: str) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_MS:
        raise InvalidRequest(
            f"{path}.{name} must be whole milliseconds, 0 to {MAX_MS}.",
            fields={f"{path}.{name}": f"0 to {MAX_MS}"},
        )
    return value


def _text(row: Mapping[str, Any], name: str, path: str, length: int = 40) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= length:
        raise InvalidRequest(
            f"{path}.{name} must be text of 1 to {length} characters.",
            fields={f"{path}.{name}": f"text of 1 to {length} characters"},
        )
    return value


def _response(row: Any, path: str) -> Submitted:
    row = _object(row, path, {"trial", "value", "rt_ms", "shown_ms", "context"})
    value = row.get("value")
    if not isinstance(value, dict):
        raise InvalidRequest(
            f"{path}.value must be an object.", fields={f"{path}.value": "must be an object"}
        )
    return Submitted(
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
            raise InvalidRequest(
                f"{path}.{name} has the wrong type.", fields={f"{path}.{name}": f"{types[-1].__name__}"}
            )
        if isinstance(member, str) and len(member) > 20:
            raise InvalidRequest(
                f"{path}.{name} is too long.", fields={f"{path}.{name}": "at most 20 characters"}
            )
    if "questions" in context:
        context["questions"] = _questions(context["questions"], f"{path}.questions")
    return context


def _questions(rows: list[Any], path: str) -> list[dict[str, Any]]:
    """For each question of a page, in the order shown: when its answer was given and how often it changed."""
    if len(rows) > QUESTIONS_MAX:
        raise InvalidRequest(
            f"{path} has too many entries.", fields={path: f"at most {QUESTIONS_MAX} entries"}
        )
    out = []
    for place, given in enumerate(rows):
        here = f"{path}.{place}"
        row = _object(given, here, {"id", "ms", "changes"})
        changes = row.get("changes")
        if not isinstance(changes, int) or isinstance(changes, bool) or not 0 <= changes <= CHANGES_MAX:
            raise InvalidRequest(
                f"{here}.changes must be a whole number, 0 to {CHANGES_MAX}.",
                fields={f"{here}.changes": f"0 to {CHANGES_MAX}"},
            )
        out.append(
            {
                "id": _text(row, "id", here, QUESTION_ID_MAX),
                "ms": _milliseconds(row, "ms", here),
                "changes": changes,
            }
        )
    return out


def _event(row: Any, path: str) -> Noticed:
    row = _object(row, path, {"id", "kind", "trial", "at_ms", "data"})
    try:
        uuid = UUID(_text(row, "id", path))
    except ValueError as error:
        raise InvalidRequest(f"{path}.id must be a UUID.", fields={f"{path}.id": "must be a UUID"}) from error
    trial = row.get("trial")
    detail = row.get("data", {})
    if not isinstance(detail, dict) or len(str(detail)) > 2000:
        raise InvalidRequest(
            f"{path}.data must be a small object.", fields={f"{path}.data": "at most 2,000 characters"}
        )
    at_ms = row.get("at_ms")
    if not isinstance(at_ms, int) or isinstance(at_ms, bool) or at_ms < 0:
        raise InvalidRequest(
            f"{path}.at_ms must be whole milliseconds.", fields={f"{path}.at_ms": "0 or more"}
        )
    return Noticed(
        uuid=uuid,
        kind=_text(row, "kind", path),
        trial=None if trial is None else _text(row, "trial", path),
        at_ms=at_ms,
        detail=detail,
    )
