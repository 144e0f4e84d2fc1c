"""The automatic metrics by name. A class is imported on first use, and torch only when it is needed."""

from __future__ import annotations

from stimuli.metrics.base import Metric, SetMetric
from stimuli.parameters import named_class, open_named, with_defaults
from stimuli.spec import Component

__all__ = [
    "METRICS",
    "SET_METRICS",
    "check_metric",
    "metric_version",
    "open_metric",
    "open_set_metric",
]

METRICS = {
    "deletion": "stimuli.metrics.deletion:Deletion",
    "insertion": "stimuli.metrics.deletion:Insertion",
    "faithfulness_correlation": "stimuli.metrics.faithfulness:FaithfulnessCorrelation",
    "mu_fidelity": "stimuli.metrics.faithfulness:MuFidelity",
    "sparsity": "stimuli.metrics.complexity:Sparsity",
    "entropy": "stimuli.metrics.complexity:Entropy",
    "jpeg_complexity": "stimuli.metrics.complexity:JpegComplexity",
}
"""Metrics of one stimulus at a time."""

SET_METRICS = {
    "diagnostic_similarity": "stimuli.metrics.perceptual:DiagnosticSimilarity",
    "method_similarity": "stimuli.metrics.similarity:MethodSimilarity",
}
"""Metrics that need all stimuli of a study."""


def open_metric(component: Component) -> Metric:
    """Return the metric of one stimulus that `component` names, set as it says.

    BadSpec lists the known names (with the closest match) or the known parameters, and for a value its
    limits.
    """
    made: Metric = open_named(METRICS, component, "metric")
    return made


def open_set_metric(component: Component) -> SetMetric:
    """As `open_metric`, for the metrics that need all stimuli of a study."""
    made: SetMetric = open_named(SET_METRICS, component, "metric of sets")
    return made


def check_metric(component: Component) -> Component:
    """Return `component`, of either kind of metric, with every parameter written out.

    BadSpec as in `open_metric`. Does not import torch.
    """
    return with_defaults(METRICS | SET_METRICS, component, "metric")


def metric_version(component: Component) -> int:
    """The version of the named metric's numbers, of either kind."""
    return int(named_class(METRICS | SET_METRICS, component.name, "metric").version)
