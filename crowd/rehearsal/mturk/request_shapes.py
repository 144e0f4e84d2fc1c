"""What a request must look like, from botocore's own description of the service.

The real client checks required members, unknown names, types and minima before it sends. Maxima, patterns and
enumerations leave it unchecked; here everything is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from crowd.rehearsal.mturk.request_rules import refuse

SERVICE, VERSION = "mturk", "2017-01-17"


@cache
def service_model() -> Any:
    """The description of the service from which the client itself is made."""
    return ServiceModel(Loader().load_service_model(SERVICE, "service-2", VERSION), SERVICE)


def read(operation: str, body: bytes) -> dict[str, Any]:
    """The members of a request. Raises TurkRefusal if it violates the description."""
    try:
        sent = json.loads(body)
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        raise refuse("The request body is not JSON.") from error
    if not isinstance(sent, dict):
        raise refuse("The request body is not a JSON object.")
    shape = service_model().operation_model(operation).input_shape
    report = ParamValidator().validate(sent, shape)
    if report.has_errors():
        raise refuse(report.generate_report())
    for fault in _faults(shape, sent, ""):
        raise refuse(fault)
    return sent


def check_reply(operation: str, reply: Mapping[str, Any]) -> None:
    """Raises AssertionError if the simulator itself violates the description."""
    shape = service_model().operation_model(operation).output_shape
    report = ParamValidator().validate(reply, shape)
    assert not report.has_errors(), f"{operation}: {report.generate_report()}"
    assert not (faults := list(_faults(shape, reply, ""))), f"{operation}: {faults}"


def _faults(shape: Any, value: Any, path: str) -> Iterator[str]:
    """What the client does not check: maxima, patterns and enumerations, all the way down."""
    if shape.type_name == "structure":
        for name, inner in shape.members.items():
            if name in value:
                yield from _faults(inner, value[name], f"{path}.{name}".lstrip("."))
    elif shape.type_name == "list":
        yield from _out_of_bounds(shape, len(value), path, "length")
        for index, entry in enumerate(value):
            yield from _faults(shape.member, entry, f"{path}[{index}]")
    elif shape.type_name == "string":
        yield from _out_of_bounds(shape, len(value), path, "length")
        pattern = shape.metadata.get("pattern")
        if pattern and not re.fullmatch(pattern, value):
            yield f"Value at '{path}' must satisfy regular expression pattern: {pattern}"
        if shape.enum and value not in shape.enum:
            yield f"Value at '{path}' must satisfy enum value set: [{', '.join(shape.enum)}]"
    elif shape.type_name in ("integer", "long"):
        yield from _out_of_bounds(shape, value, path, "value")


def _out_of_bounds(shape: Any, number: int, path: str, what: str) -> Iterator[str]:
    most = shape.metadata.get("max")
    if most is not None and number > most:
        yield f"Value at '{path}' must have {what} less than or equal to {most}; it has {number}"
