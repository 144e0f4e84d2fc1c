"""The automatic metrics by name. A class is imported on first use, and torch only when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from stimuli.metrics.base import Metric, Scored, SetMetric
from stimuli.registry import Table, declared_parameters, read_params
from stimuli.spec import Component, JsonValue

__all__ = [
    "METRICS",
    "SET_METRICS",
    "check_metric",
    "fill_parameters",
    "open_metric",
    "open_set_metric",
    "scored_by",
]

METRICS: Table[type[Metric]] = Table(
    "metric",
    {
        "deletion": "stimuli.metrics.fidelity.deletion:Deletion",
        "insertion": "stimuli.metrics.fidelity.deletion:Insertion",
        "deletion_drawn": "stimuli.metrics.fidelity.deletion:DeletionDrawn",
        "insertion_drawn": "stimuli.metrics.fidelity.deletion:InsertionDrawn",
        "road": "stimuli.metrics.fidelity.road:Road",
        "road_drawn": "stimuli.metrics.fidelity.road:RoadDrawn",
        "faithfulness_correlation": "stimuli.metrics.fidelity.faithfulness:FaithfulnessCorrelation",
        "mu_fidelity": "stimuli.metrics.fidelity.faithfulness:MuFidelity",
        "infidelity": "stimuli.metrics.fidelity.infidelity:Infidelity",
        "sensitivity_n": "stimuli.metrics.fidelity.infidelity:SensitivityN",
        "completeness": "stimuli.metrics.fidelity.completeness:Completeness",
        "parameter_randomisation": "stimuli.metrics.sanity_and_stability:ParameterRandomisation",
        "parameter_randomisation_drawn": "stimuli.metrics.sanity_and_stability:ParameterRandomisationDrawn",
        "logit_randomisation": "stimuli.metrics.sanity_and_stability:LogitRandomisation",
        "stability": "stimuli.metrics.sanity_and_stability:Stability",
        "stability_drawn": "stimuli.metrics.sanity_and_stability:StabilityDrawn",
        "max_sensitivity": "stimuli.metrics.sanity_and_stability:MaxSensitivity",
        "localisation": "stimuli.metrics.localisation:Localisation",
        "sparsity": "stimuli.metrics.complexity:Sparsity",
        "entropy": "stimuli.metrics.complexity:Entropy",
        "jpeg_complexity": "stimuli.metrics.complexity:JpegComplexity",
    },
    group="legible.metrics",
)
"""Metrics of one stimulus at a time."""

SET_METRICS: Table[type[SetMetric]] = Table(
    "metric of sets",
    {
        "diagnostic_similarity": "stimuli.metrics.cross_class_similarity:DiagnosticSimilarity",
        "method_similarity": "stimuli.metrics.method_similarity:MethodSimilarity",
    },
)
"""Metrics that need all stimuli of a study."""


def open_metric(component: Component) -> Metric:
    """Return the metric of one stimulus that `component` names, set as it says.

    BadSpec lists the known names (with the closest match) or the known parameters, and for a value its
    limits.
    """
    return read_params(component, METRICS.load(component.name), "metric")


def open_set_metric(component: Component) -> SetMetric:
    """As `open_metric`, for the metrics that need all stimuli of a study."""
    return read_params(component, SET_METRICS.load(component.name), "metric of sets")


def scored_by(component: Component) -> Scored:
    """Whether the named metric scores the method's own values or the drawn field; a package's metric that
    does not say scores the method."""
    kind = (METRICS | SET_METRICS).load(component.name)
    return cast("Scored", getattr(kind, "scores", "method"))


def fill_parameters(component: Component, known: Mapping[str, JsonValue]) -> Component:
    """The metric, told what is `known` of the study if it asks for it by a parameter of that name: which
    `regions` the pictures have, how many `labels` the model has. What is empty is not known.
    """
    asked = declared_parameters((METRICS | SET_METRICS).load(component.name))
    told = {name: value for name, value in known.items() if value and name in asked}
    return Component(component.name, {**component.params, **told}) if told else component


def check_metric(component: Component) -> Component:
    """Return `component`, of either kind of metric, as it is stored: its full name, and every parameter
    written out.

    BadSpec as in `open_metric`, and if the name is claimed twice. Does not import torch.
    """
    (METRICS | SET_METRICS).full_name(component.name)
    return stored_form(component)


def stored_form(component: Component) -> Component:
    """As `check_metric`, but a name that a package claims as well stays the core's."""
    either = METRICS | SET_METRICS
    opened = read_params(component, either.load(component.name), "metric")
    return Component(either.stored_name(component.name), asdict(cast(Any, opened)))
