"""A metric as what is recorded of it: its name, version and every parameter, under one key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stimuli.metrics import METRICS, SET_METRICS, check_metric
from stimuli.registry import lookup
from stimuli.spec import Component, JsonValue, content_key


@dataclass(frozen=True, slots=True)
class Described:
    """What stands in a row: `parameters` written out, `unit`, which way is `better`, and the `key` of all."""

    name: str
    version: int
    parameters: Mapping[str, JsonValue]
    unit: str
    better: str
    key: str


def describe_metric(component: Component) -> Described:
    """Describe it. Raises BadSpec as `check_metric`. Does not import torch."""
    whole = check_metric(component)
    kind = lookup({**METRICS, **SET_METRICS}, component.name, "metric")
    version = int(kind.version)
    key = content_key({"metric": whole.as_json(), "version": version})
    return Described(component.name, version, dict(whole.params), str(kind.unit), str(kind.better), key)
