"""A metric as what is recorded of it: its name, version and every parameter, under one key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stimuli.metrics import METRICS, SET_METRICS, scored_by, stored_form
from stimuli.spec import Component, JsonValue, content_key


@dataclass(frozen=True, slots=True)
class MetricIdentity:
    """The columns of a row: `parameters` written out, `unit`, which way is `better`, whether it `scores` the
    method's own values or the drawn field, and the `key` of all. `package` is the one that offers the metric,
    "distribution==version"; empty for the core's.
    """

    name: str
    version: int
    parameters: Mapping[str, JsonValue]
    unit: str
    better: str
    key: str
    package: str = ""
    scores: str = "method"


def describe_metric(component: Component) -> MetricIdentity:
    """Describe it. Raises BadSpec as `open_metric`. Does not import torch."""
    whole = stored_form(component)
    either = METRICS | SET_METRICS
    kind, origin = either.load(whole.name), either.origin(whole.name)
    version, package = int(kind.version), str(origin or "")
    named = {"metric": whole.as_json(), "version": version} | ({"package": package} if package else {})
    return MetricIdentity(
        name=whole.name,
        version=version,
        parameters=dict(whole.params),
        unit=str(kind.unit),
        better=str(kind.better),
        key=content_key(named),
        package=package,
        scores=scored_by(whole),
    )
