"""Errors of a request for stimuli."""

from collections.abc import Sequence
from dataclasses import dataclass, field

NAMED = 3
"""How many places of a kind a message names."""


class StimulusError(Exception):
    """A stimulus cannot be made; the message names the value, the limit and the remedy."""


FAULTS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NotImplementedError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""Errors that a method or a network may cause. Errors of files and services are not among them: they are
temporary, and do not belong to one stimulus."""


def as_stimulus_error(error: BaseException) -> StimulusError:
    """A fault as a sentence about one stimulus."""
    return error if isinstance(error, StimulusError) else StimulusError(f"{type(error).__name__}: {error}")


def first_line(error: BaseException) -> str:
    """The first line of what an error says, with its kind where the words alone would say too little."""
    said = str(error).strip().partition("\n")[0][:200]
    if said and isinstance(error, StimulusError | RuntimeError | ValueError):
        return said
    return f"{type(error).__name__}: {said}".rstrip(": ")


class BadSpec(StimulusError):
    """A dataset, predictor, explainer or render recipe was asked for with a value that it does not take."""


class UnknownName(BadSpec):
    """A name is in no table, or two packages claim it; the message says which names are known."""


class OtherPackage(BadSpec):
    """What was made with one version of a package meets another version of it here, or none."""


class BadRatings(BadSpec, ValueError):
    """Embeddings, ratings or settings that a scorer cannot take; a ValueError too, as scikit-learn asks."""


class ShapeMismatch(StimulusError):
    """Weights, inputs or maps do not have the shape that the other side expects."""


class NotApplicable(StimulusError):
    """A method cannot explain this predictor."""


class NotRendered(StimulusError):
    """A picture was asked for that has not been made yet."""


class StoreSilent(Exception):
    """The store of files does not answer now. This says nothing about the stimulus."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the memory of the machine or of a device ran out. Torch has a class for devices only."""
    name, said = type(error).__name__, str(error)
    return isinstance(error, MemoryError) or name == "OutOfMemoryError" or "can't allocate memory" in said


def first_of(places: Sequence[str], between: str = ", ") -> str:
    """The first NAMED of many places in words, and how many more there are."""
    more = f" and {len(places) - NAMED:,} more" if len(places) > NAMED else ""
    return f"{between.join(places[:NAMED])}{more}"


@dataclass(frozen=True)
class Faults:
    """What is wrong with the lines or spans (`noun`) of something that was read, by kind: what it is with its
    remedy, and the places. `where` begins the sentence.
    """

    where: str
    noun: str
    kinds: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, what: str, remedy: str, place: str, value: str = "") -> None:
        self.kinds.setdefault((what, remedy), []).append(f"{place} ({value})" if value else place)

    def refuse(self) -> None:
        """BadSpec that names all kinds, if there are any."""
        if self.kinds:
            told = (
                f"{len(places):,} {self.noun}{'s' * (len(places) > 1)} {what}: {first_of(places)}; {remedy}"
                for (what, remedy), places in self.kinds.items()
            )
            raise BadSpec(f"{self.where} {'; and '.join(told)}")
