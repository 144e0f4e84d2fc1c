"""Errors of a request for stimuli."""


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
