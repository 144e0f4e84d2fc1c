"""Reading a registry (name -> dotted path) and the parameters of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from stimuli.errors import BadSpec
from stimuli.spec import Component, canonical_json


class Params(BaseModel):
    """The parameters of a registry entry; unknown keys and wrong types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


P = TypeVar("P", bound=Params)


def lookup(table: Mapping[str, str], name: str, kind: str) -> Any:
    """The object behind `name` in a table of "module:attribute" paths, imported on first use.

    Raises BadSpec for an unknown name, naming the known ones; `kind` says what was looked for ("dataset").
    """
    if name not in table:
        raise BadSpec(f'unknown {kind} "{name}"; known are {", ".join(sorted(table))}')
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)


def read_params(component: Component, model: type[P], kind: str) -> P:
    """The component's parameters as a checked value.

    Raises BadSpec that names every wrong parameter with its value and limit, in one sentence each.
    """
    try:
        # Read as JSON: an array then fits a tuple field, and yet nothing is coerced ("5" is no number).
        return model.model_validate_json(canonical_json(dict(component.params)))
    except ValidationError as error:
        faults = "; ".join(
            _fault(e["loc"], e["msg"], e.get("input"), e["type"], model) for e in error.errors()
        )
        raise BadSpec(f"{kind} {component.name}: {faults}") from None


def _fault(loc: tuple[int | str, ...], message: str, value: object, code: str, model: type[Params]) -> str:
    path = ".".join(str(part) for part in loc) or "parameters"
    if code == "extra_forbidden":
        return f'unknown parameter "{path}"; it takes {", ".join(model.model_fields)}'
    if code == "missing":
        return f'parameter "{path}" is missing'
    return f"{path} = {value!r}: {message[:1].lower()}{message[1:].removeprefix('Value error, ')}"
