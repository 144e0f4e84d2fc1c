"""What can be wrong with a request for stimuli."""


class StimulusError(Exception):
    """A stimulus cannot be made; the message names the value, the limit and the remedy."""


class BadSpec(StimulusError):
    """A dataset, predictor, explainer or render recipe was asked for with a value that it does not take."""


class ShapeMismatch(StimulusError):
    """Weights, inputs or maps do not have the shape that the other side expects."""


class NotApplicable(StimulusError):
    """A method cannot explain this predictor."""


class NotRendered(StimulusError):
    """A picture was asked for that has not been made yet."""
