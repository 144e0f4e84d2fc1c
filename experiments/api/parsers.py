"""The one parser of every body: limits size and depth, refuses characters and numbers that no database
stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from experiments.errors import InvalidRequest, TooLarge

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
MAX_INTEGER = 2**63 - 1


class GuardedJSONParser(BaseParser):
    """JSON of at most 256 KiB, nested at most 20 deep, without NUL, lone surrogates, NaN or integers beyond
    64 bits."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise TooLarge(f"The body has more than {MAX_BYTES} bytes.")
        return guarded_json(body)


def guarded_json(body: bytes) -> Any:
    """Parses and checks one body; raises InvalidRequest with a sentence."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not UTF-8 (byte {error.start}).") from error
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise InvalidRequest(f"The body is nested more than {MAX_DEPTH} deep.")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not JSON: {error.msg} at character {error.pos}.") from error
    except ValueError as error:
        # Python refuses integers of more than 4,300 digits before we can.
        raise InvalidRequest("A number in the body is too long.") from error
    _check(value, "")
    return value


def _refuse_constant(name: str) -> float:
    raise InvalidRequest(f"{name} is not a JSON number.")


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside strings, counted without recursion."""
    depth = deepest = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _check(value: Any, path: str) -> None:
    """Refuses what PostgreSQL or SQLite cannot store. Depth is bounded already, so recursion is safe."""
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise InvalidRequest("A number is too large.", fields={path or "body": "must fit into 64 bits"})
    elif isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise InvalidRequest("A number is too large.", fields={path or "body": "must be finite"})
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check(part, f"{path}.{index}" if path else str(index))
    elif isinstance(value, dict):
        for key, part in value.items():
            _check_text(key, path)
            _check(part, f"{path}.{key}"[:200] if path else key[:200])


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise InvalidRequest(
            "A text contains the character NUL.", fields={path or "body": "must not contain NUL"}
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "A text contains half a character.", fields={path or "body": "must not contain a lone surrogate"}
        ) from error
