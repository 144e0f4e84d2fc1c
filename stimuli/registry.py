"""Tables of names: what a name stands for is imported when it is first used, never before.

An entry of the core is a line "name": "module:attribute". Tables with a `group` also hold what installed
packages offer by Python entry points. Those are found in the packages' metadata, so that a web process knows
their names and versions without importing them. A study file holds names only, so it can import nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module, metadata
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from stimuli.errors import BadSpec, OtherPackage, UnknownName

if TYPE_CHECKING:  # It imports NumPy, which the settings, and so every command, would wait for.
    from stimuli.spec import Component

T = TypeVar("T")
T2 = TypeVar("T2")
CORE = "legible"
"""What `dist:name` calls the entries of the core, for names that a package claims as well."""


class Origin(NamedTuple):
    """The installed distribution that offers an entry, by its normalised name, and its version."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution}=={self.version}"


class Offer(NamedTuple):
    """An entry point of an installed distribution, read from its metadata."""

    origin: Origin
    name: str
    path: str

    @property
    def full_name(self) -> str:
        return f"{self.origin.distribution}:{self.name}"


class Table(Generic[T]):
    """Names and what they stand for. `noun` says in messages what the table holds ("explainer").

    A full name is what is stored: the plain name of an entry of the core, or `distribution:name` of an
    offered one. People may also write the plain name of an offered entry, unless another package claims it.
    """

    def __init__(self, noun: str, entries: Mapping[str, str | T], group: str | None = None) -> None:
        self.noun = noun
        self._entries: dict[str, str | T] = dict(entries)
        self._group = group
        self._loaded: dict[str, T] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that can be written: those of the core in their order, then the offered ones."""
        return (*self._entries, *(self._shortest(offer) for offer in self._offers()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or (isinstance(name, str) and bool(self._claims(name)))

    def full_name(self, name: str) -> str:
        """The full name of what a person wrote. Imports nothing.

        UnknownName for a name that is not known, and for one that several claim: write `distribution:name`
        then, and "legible:name" for the core's.
        """
        claims = self._claims(name)
        if len(claims) > 1:
            owners = " and ".join(claim.partition(":")[0] if ":" in claim else CORE for claim in claims)
            ways = " or ".join(repr(claim if ":" in claim else f"{CORE}:{claim}") for claim in claims)
            raise UnknownName(f"the {self.noun} {name!r} is offered by {owners}: write {ways}")
        if not claims:
            known = ", ".join(self.names)
            raise UnknownName(f"there is no {self.noun} {name!r}{self._hint(name)}: known are {known}")
        return claims[0]

    def stored_name(self, name: str) -> str:
        """The full name of a stored `name`: one of the core is the core's even if a package claims it as
        well, so that installing a package changes nothing that is there. Else as `full_name`.
        """
        return name if name in self._entries else self.full_name(name)

    def load(self, name: str) -> T:
        """What `name` stands for, imported on first use. UnknownName as in `stored_name`."""
        full = self.stored_name(name)
        if full not in self._loaded:
            self._loaded[full] = self._import_entry(full)
        return self._loaded[full]

    def origin(self, name: str) -> Origin | None:
        """The distribution that offers the entry; None for the core. Imports nothing. UnknownName as in
        `stored_name`.
        """
        full = self.stored_name(name)
        return None if full in self._entries else self._offer_of(full).origin

    def __or__(self, other: Table[T2]) -> Table[T | T2]:
        """Both tables' entries, under this one's noun and group."""
        return Table(self.noun, {**self._entries, **other._entries}, self._group)

    @contextmanager
    def added(self, name: str, target: str | T) -> Iterator[None]:
        """For tests: one more entry until the block ends, as "module:attribute" or as the thing itself."""
        before = dict(self._entries)
        self._entries[name] = target
        self._loaded.pop(name, None)
        try:
            yield
        finally:
            self._entries = before
            self._loaded.pop(name, None)

    def _import_entry(self, full: str) -> T:
        target = self._entries[full] if full in self._entries else self._offer_of(full).path
        if not isinstance(target, str):
            return target
        module, _, attribute = target.partition(":")
        try:
            return cast(T, getattr(import_module(module), attribute))
        except (ImportError, AttributeError) as error:
            if full in self._entries:
                raise
            raise UnknownName(
                f"the {self.noun} {full!r} of {self._offer_of(full).origin} cannot be imported ({error}): "
                "mend or reinstall that package"
            ) from error

    def _offers(self) -> tuple[Offer, ...]:
        return _offers_of(self._group) if self._group else ()

    def _offer_of(self, full: str) -> Offer:
        return next(offer for offer in self._offers() if offer.full_name == full)

    def _claims(self, name: str) -> list[str]:
        """The full names of all that `name` may mean; the core's first."""
        distribution, colon, plain = name.partition(":")
        if colon and distribution == CORE:
            return [plain] if plain in self._entries else []
        if colon:
            name = f"{normalise_name(distribution)}:{plain}"
            return [offer.full_name for offer in self._offers() if offer.full_name == name]
        core = [name] if name in self._entries else []
        return core + [offer.full_name for offer in self._offers() if offer.name == name]

    def _shortest(self, offer: Offer) -> str:
        return offer.name if len(self._claims(offer.name)) == 1 else offer.full_name

    def _hint(self, name: str) -> str:
        if near := closest(name, self.names):
            return near
        distribution, colon, _ = name.partition(":")
        if self._group and colon and not any(o.origin.distribution == distribution for o in self._offers()):
            return f" (no installed package {distribution!r} offers one: install it here)"
        return ""


def closest(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'saliency'?)" if a known name is like it, else nothing."""
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def refuse_other_package(wanted: str, what: str) -> None:
    """OtherPackage unless the distribution of `wanted` ("name==version") is installed here in that version;
    `what` was made with it. Reads metadata, imports nothing.
    """
    distribution, _, version = wanted.partition("==")
    try:
        here = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise OtherPackage(
            f"{what} was made with {wanted}, and no {distribution} is installed here: install {wanted} here"
        ) from None
    if here != version:
        raise OtherPackage(
            f"{what} was made with {wanted}, but {distribution} is {here} here: install {wanted} here, or "
            "build the study again"
        )


def normalise_name(distribution: str) -> str:
    """A distribution's name as package indexes compare it: lower case, words joined by "-"."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _offers_of(group: str) -> tuple[Offer, ...]:
    return _read_offers(group, tuple(sys.path))


@lru_cache(maxsize=32)
def _read_offers(group: str, path: tuple[str, ...]) -> tuple[Offer, ...]:
    """What the distributions on `path` offer, sorted by full name. The path is the key of the cache: packages
    that are installed later are met by the next process.
    """
    offers = {
        offer.full_name: offer
        for point in metadata.entry_points(group=group)
        if point.dist is not None
        for offer in [
            Offer(Origin(normalise_name(point.dist.name), point.dist.version), point.name, point.value)
        ]
    }
    return tuple(offers[name] for name in sorted(offers))


LATER = "later"
"""Marks a parameter that joined a method after maps of it were stored: `Annotated[..., LATER]`. At its
default it is left out of what is stored, so that keys stay.
"""
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""Unknown keys and wrong types are refused; a whole number may stand for a fraction, never the reverse."""


class Params(BaseModel):
    """The parameters of an entry that is a function (datasets, predictors)."""

    model_config = ConfigDict(frozen=True, **STRICT)


@dataclass_transform(frozen_default=True)
def parameters(kind: type[T]) -> type[T]:
    """For an entry that is a class (explainers, metrics): a frozen, slotted value whose fields are its
    parameters, declared as pydantic has them: `steps: Annotated[int, Field(ge=2, le=1000)] = 50`.
    """
    return cast(type[T], pydantic_dataclass(frozen=True, slots=True, config=STRICT)(kind))


def read_params(component: Component, kind: type[T], noun: str) -> T:
    """The parameters of `component` as a checked value of `kind`, a `Params` or a class under `parameters`.

    BadSpec names every wrong parameter with its value and its limits or the closest known one.
    """
    owner = f"{noun} {component.name!r}"
    try:
        # Read as JSON: an array then fits a tuple field, and yet nothing is coerced ("5" is no number).
        return TypeAdapter(kind).validate_json(json.dumps(dict(component.params)))
    except ValidationError as error:
        known = declared_parameters(kind)
        raise BadSpec("; ".join(_fault(owner, fault, known) for fault in faults_of(error))) from None
    except TypeError as error:  # a date of a TOML file, say
        raise BadSpec(f"{owner}: {error}; its parameters are texts, numbers, true, false and lists") from None


def declared_parameters(kind: type) -> Mapping[str, FieldInfo]:
    """The parameters of a `Params` or of a class under `parameters`, by name."""
    fields: Mapping[str, FieldInfo] = vars(kind)["__pydantic_fields__"]
    return fields


def written_out(entry: object) -> dict[str, Any]:
    """The parameters of a value of a class under `parameters`, as they are stored: all but later ones that
    have their defaults.
    """
    fields = declared_parameters(type(entry))
    values = {name: getattr(entry, name) for name in fields}
    return {
        name: value
        for name, value in values.items()
        if LATER not in fields[name].metadata or value != fields[name].default
    }


TOO_FEW = "too_few"


def faults_of(error: ValidationError) -> list[ErrorDetails]:
    """The faults; all parts that a list of a fixed length lacks are one, of type TOO_FEW, of the list."""
    faults: dict[tuple[int | str, ...], ErrorDetails] = {}
    for fault in error.errors():
        loc = fault["loc"]
        if fault["type"] == "missing" and isinstance(loc[-1], int):
            given, needed = fault["input"], loc[-1] + 1
            noun = "number" if all(isinstance(part, int | float) for part in given) else "part"
            said = f"has {len(given)} {noun}{'s' * (len(given) != 1)}, and {needed} are needed"
            faults[(*loc[:-1], TOO_FEW)] = {**fault, "loc": loc[:-1], "type": TOO_FEW, "msg": said}
        else:
            faults[(*loc, fault["type"])] = fault
    return list(faults.values())


def _fault(owner: str, fault: ErrorDetails, known: Mapping[str, FieldInfo]) -> str:
    path = ".".join(str(part) for part in fault["loc"])
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        takes = ", ".join(sorted(known)) or "none"
        return f"{owner} has no parameter {path!r}{closest(path, known)}: it takes {takes}"
    if fault["type"] == TOO_FEW:
        return f"{owner}, parameter {path!r} {fault['msg']}"
    if fault["type"] == "missing":
        return f"{owner} needs parameter {path!r}"
    if not path:
        return f"{owner}: {fault['msg'].removeprefix('Value error, ')}"
    demand = _demand(fault, known[str(fault["loc"][0])] if len(fault["loc"]) == 1 else None)
    return f"{owner}, parameter {path!r} is {fault['input']!r}, but {demand}"


def _demand(fault: ErrorDetails, field: FieldInfo | None) -> str:
    """The requirement that the value does not meet."""
    code = fault["type"]
    limits = {} if field is None else bounds(field)
    if limits and code in _BOUND_WORDS:
        if {"ge", "le"} <= limits.keys():
            return f"must lie between {limits['ge']} and {limits['le']}"
        return "must be " + " and ".join(f"{_SIGN_WORDS[sign]} {limits[sign]}" for sign in limits)
    if code in _KIND_WORDS:
        default = None if field is None else field.default
        example = "" if default in (None, PydanticUndefined) else f" such as {default!r}"
        return f"must be {_KIND_WORDS[code]}{example}"
    if code == "literal_error" and field is not None:
        return f"must be one of {', '.join(map(str, choices(field)))}"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}"


_KIND_WORDS = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text",
    "finite_number": "a finite number",
}
_SIGN_WORDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_BOUND_WORDS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"}


def bounds(field: FieldInfo) -> dict[str, float]:
    """The limits of a number as its declaration has them: "ge" and "le" included, "gt" and "lt" not."""
    return {
        sign: getattr(mark, sign)
        for part in parts_of(field.annotation)
        for mark in (*field.metadata, *getattr(part, "__metadata__", ()))
        for mark in getattr(mark, "metadata", [mark])
        for sign in _SIGN_WORDS
        if getattr(mark, sign, None) is not None
    }


def choices(field: FieldInfo) -> tuple[str, ...]:
    """The words that a parameter may be; none if it may be any."""
    parts = parts_of(field.annotation)
    return tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part))


def parts_of(annotation: object) -> Iterator[object]:
    """The annotation and what it is made of: `int` within `int | None`."""
    yield annotation
    for part in get_args(annotation) if get_origin(annotation) is not Literal else ():
        yield from parts_of(part)
