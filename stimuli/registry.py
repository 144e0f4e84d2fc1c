"""Tables of names: what a name stands for is imported when it is first used, never before.

An entry of the core is a line "name": "module:attribute". Tables with a `group` also hold what installed
packages offer by Python entry points. Those are found in the packages' metadata, so that a web process knows
their names and versions without importing them. A study file holds names only, so it can import nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any, Generic, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from stimuli.errors import BadSpec, OtherPackage, UnknownName
from stimuli.spec import Component, canonical_json

T = TypeVar("T")
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
    offered one. People may also write the plain name of an offered entry, as long as nobody else claims it.
    """

    def __init__(self, noun: str, entries: Mapping[str, str], group: str | None = None) -> None:
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

    def load(self, name: str) -> T:
        """What `name` stands for, imported on first use. An entry of the core is found even if a package
        claims its name, so that what is stored stays readable. UnknownName as in `full_name`.
        """
        full = name if name in self._entries else self.full_name(name)
        if full not in self._loaded:
            self._loaded[full] = self._imported(full)
        return self._loaded[full]

    def origin(self, name: str) -> Origin | None:
        """The distribution that offers the entry; None for the core. Imports nothing. UnknownName as in
        `load`.
        """
        full = name if name in self._entries else self.full_name(name)
        return None if full in self._entries else self._offered(full).origin

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

    def _imported(self, full: str) -> T:
        target = self._entries[full] if full in self._entries else self._offered(full).path
        if not isinstance(target, str):
            return target
        module, _, attribute = target.partition(":")
        try:
            return cast(T, getattr(import_module(module), attribute))
        except (ImportError, AttributeError) as error:
            if full in self._entries:
                raise
            raise UnknownName(
                f"the {self.noun} {full!r} of {self._offered(full).origin} cannot be imported ({error}): "
                "mend or reinstall that package"
            ) from error

    def _offers(self) -> tuple[Offer, ...]:
        return _offers_of(self._group) if self._group else ()

    def _offered(self, full: str) -> Offer:
        return next(offer for offer in self._offers() if offer.full_name == full)

    def _claims(self, name: str) -> list[str]:
        """The full names of all that `name` may mean; the core's first."""
        distribution, colon, plain = name.partition(":")
        if colon and distribution == CORE:
            return [plain] if plain in self._entries else []
        if colon:
            name = f"{normalised(distribution)}:{plain}"
            return [offer.full_name for offer in self._offers() if offer.full_name == name]
        core = [name] if name in self._entries else []
        return core + [offer.full_name for offer in self._offers() if offer.name == name]

    def _shortest(self, offer: Offer) -> str:
        return offer.name if len(self._claims(offer.name)) == 1 else offer.full_name

    def _hint(self, name: str) -> str:
        near = get_close_matches(name, self.names, n=1)
        if near:
            return f" (did you mean {near[0]!r}?)"
        distribution, colon, _ = name.partition(":")
        if self._group and colon and not any(o.origin.distribution == distribution for o in self._offers()):
            return f" (no installed package {distribution!r} offers one: install it here)"
        return ""


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


def normalised(distribution: str) -> str:
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
        for offer in [Offer(Origin(normalised(point.dist.name), point.dist.version), point.name, point.value)]
    }
    return tuple(offers[name] for name in sorted(offers))


class Params(BaseModel):
    """The parameters of a registry entry; unknown keys and wrong types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


P = TypeVar("P", bound=Params)


def lookup(table: Mapping[str, str], name: str, kind: str) -> Any:
    """The object behind `name` in a table of "module:attribute" paths, imported on first use.

    For tables that are not a `Table` yet. UnknownName as in `Table.load`.
    """
    return Table[Any](kind, table).load(name)


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
