"""Metrics driven on small networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stimuli.metrics import open_metric
from stimuli.metrics.base import MetricValue
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.spec import Component
from stimuli.types import Attribution, PixelAttribution


def pixel_maps(count: int, side: int, seed: int = 11) -> list[PixelAttribution]:
    """Signed random maps without ties."""
    draws = np.random.default_rng(seed)
    return [
        PixelAttribution(draws.standard_normal((side, side)).astype(np.float32), True) for _ in range(count)
    ]


def measured(
    net: Any,
    work: Sequence[tuple[Subject, Attribution, Component]],
    *,
    rows: int = 4,
    network: Network | None = None,
) -> list[MetricValue]:
    """All of `work` in one drive, in its order; the first error is raised."""
    jobs = []
    for at, (subject, made, component) in enumerate(work):
        metric = open_metric(component)
        jobs.append(Job(at, subject, lambda m=metric, s=subject, a=made: m.measure(net, s, a)))  # type: ignore[misc]
    done = {outcome.name: outcome for outcome in drive(jobs, network or Network(net, rows=rows))}
    for at in range(len(work)):
        error = done[at].error
        if error is not None:
            raise error
    return [done[at].result for at in range(len(work))]


def number_of(net: Any, subject: Subject, made: Attribution, name: str, **params: object) -> MetricValue:
    """One metric on one explanation."""
    return measured(net, [(subject, made, Component(name, params))])[0]
