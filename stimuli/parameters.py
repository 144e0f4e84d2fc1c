"""Things that are chosen by name and set by parameters: frozen dataclasses whose fields are the parameters.

A table says where each name's class lies; the class is imported on first use. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, field, fields
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from stimuli.errors import BadSpec
from stimuli.spec import Component


def number(default: float, low: float, high: float) -> Any:
    """Declare a parameter with its default (whose type it has) and its limits, both included."""
    return field(default=default, metadata={"low": low, "high": high})


def choice(default: str, *others: str) -> Any:
    """Declare a parameter with its default and the other words that it may be."""
    return field(default=default, metadata={"choices": (default, *others)})


def limits(parameter: Field[Any]) -> tuple[float, float] | None:
    """The limits that `number` declared, or None."""
    if "low" not in parameter.metadata:
        return None
    return parameter.metadata["low"], parameter.metadata["high"]


def choices(parameter: Field[Any]) -> tuple[str, ...]:
    """The words that `choice` declared, or none."""
    return tuple(parameter.metadata.get("choices", ()))


def named_class(table: Mapping[str, str], name: str, noun: str) -> Any:
    """The class behind `name` in a table of "module:attribute" paths; `noun` says what the table holds.

    BadSpec for an unknown name, with the closest and all known ones.
    """
    path = table.get(name)
    if path is None:
        known = ", ".join(table)
        raise BadSpec(f"there is no {noun} {name!r}{_closest(name, list(table))}: known are {known}")
    return _imported(path)


def open_named(table: Mapping[str, str], component: Component, noun: str) -> Any:
    """What `component` names, set as it says.

    BadSpec lists the known names or the known parameters (with the closest match), and for a value its
    limits.
    """
    kind = named_class(table, component.name, noun)
    known: dict[str, Field[Any]] = {parameter.name: parameter for parameter in fields(kind)}
    for name in component.params:
        if name not in known:
            takes = ", ".join(sorted(known)) or "none"
            raise BadSpec(
                f"{noun} {component.name!r} has no parameter {name!r}{_closest(name, list(known))}: "
                f"it takes {takes}"
            )
    where = f"{noun} {component.name!r}"
    return kind(**{name: _checked(where, known[name], value) for name, value in component.params.items()})


def with_defaults(table: Mapping[str, str], component: Component, noun: str) -> Component:
    """`component` with every parameter written out, so that one setting has one content key. BadSpec as in
    `open_named`.
    """
    return Component(component.name, asdict(open_named(table, component, noun)))


@cache
def _imported(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _closest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _checked(owner: str, parameter: Field[Any], value: object) -> object:
    """`value` in the type of the default: whole numbers may stand for fractions, never the reverse."""
    kind = type(parameter.default)
    where = f"{owner}, parameter {parameter.name!r}"
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise BadSpec(f"{where} is {value!r}, but must be {_KIND_WORDS[kind]} such as {parameter.default!r}")
    words = choices(parameter)
    if words and value not in words:
        raise BadSpec(f"{where} is {value!r}, but must be one of {', '.join(words)}")
    allowed = limits(parameter)
    if allowed and isinstance(value, int | float) and not allowed[0] <= value <= allowed[1]:
        raise BadSpec(f"{where} is {value!r}, but must lie between {allowed[0]} and {allowed[1]}")
    return value


_KIND_WORDS: dict[Callable[..., object], str] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text",
}
