"""Claims of workers on stimuli: a row is claimed by one conditional update, so that a killed worker blocks it
only until its lease ends.

A row goes missing -> claimed -> done | failed. A claim may be taken over when its lease is over, or under the
same token: a broker hands the message of a killed worker to another one, which need not wait. A worker
refreshes its claims, because a large network may need longer than a lease. Measurements are not claimed: they
are cheap compared with their attributions, and a second one changes nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from math import isfinite
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from stimuli.errors import BadSpec
from stimuli.metrics import SET_METRICS
from stimuli.metrics.base import Number
from stimuli.metrics.metric_key import MetricIdentity, describe_metric
from stimuli.models import Measurement, Stimulus
from stimuli.pipeline import Bench, Order, RenderedStimulus, StimulusFailure, attempt, explain, scorings
from stimuli.registry import refuse_other_package
from stimuli.spec import Component, StimulusSpec
from stimuli.store.media_access import current_store
from stimuli.types import Progress, silent

State = Stimulus.State
BATCH = 64
"""How many stimuli are claimed together, and sent in one message."""
SHARED = 32
"""The same where processes of one machine share the work: none is left alone with a large last part."""


_KEYS_PER_QUERY = 500


def chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Short enough for every database's limit on parameters."""
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        yield keys[start : start + _KEYS_PER_QUERY]


def free(lease_s: int) -> Q:
    """Rows that any worker may claim now: missing ones, and claims older than the lease."""
    over = timezone.now() - timedelta(seconds=lease_s)
    return Q(state=State.MISSING) | Q(state=State.CLAIMED, claimed_at__lte=over)


def claim(keys: Sequence[str], token: str, lease_s: int) -> list[StimulusSpec]:
    """Take those of `keys` that are free or already this token's, and return their specs in that order."""
    mine = Q(state=State.CLAIMED, claimed_by=token)
    Stimulus.objects.filter(free(lease_s) | mine, key__in=keys).update(
        state=State.CLAIMED, claimed_by=token, claimed_at=timezone.now()
    )
    specs = dict(Stimulus.objects.filter(mine, key__in=keys).values_list("key", "spec"))
    return [StimulusSpec.from_json(specs[key]) for key in dict.fromkeys(keys) if key in specs]


def refresh(token: str) -> int:
    """Renew the lease of all rows that this token still holds; how many rows that was."""
    return Stimulus.objects.filter(state=State.CLAIMED, claimed_by=token).update(claimed_at=timezone.now())


def finish(made: RenderedStimulus) -> bool:
    """Record files and measurements; False if another worker finished first, whose record stays."""
    drawn = made.drawn
    with transaction.atomic():
        unfinished = Stimulus.objects.filter(key=made.spec.picture_key).exclude(state=State.DONE)
        changed = unfinished.update(
            state=State.DONE,
            finished_at=timezone.now(),
            error="",
            image_file=drawn.image_file,
            image_tile_file=drawn.image_tile_file,
            explanation_file=drawn.explanation_file or "",
            explanation_tile_file=drawn.explanation_tile_file or "",
            explanation_text=drawn.said,
            picture_digest=drawn.picture_digest,
            width_px=drawn.width_px,
            height_px=drawn.height_px,
            tile_width_px=drawn.tile_width_px,
            tile_height_px=drawn.tile_height_px,
            provenance=made.provenance,
        )
        note([made.spec.picture_key], made.numbers)
    return changed == 1


def note(
    keys: Sequence[str], numbers: Iterable[Number], described: MetricIdentity | None = None, group: str = ""
) -> None:
    """Record what metrics said of stimuli that share an attribution; a second record changes nothing.

    `described` is the metric as its rows name it, if that is more than its parameters; `group` names the set
    that a number belongs to. A value that is not finite is no value: its reason stands in `error`.
    """
    for number in numbers:
        description = described or describe_metric(number.metric)
        unknown = Measurement.objects.filter(
            stimulus__key__in=keys, key=description.key, measured_at__isnull=True
        )
        measured = number.measured
        error, value = number.error, None
        details: dict[str, Any] = {}
        if measured is not None:
            details = _plain(dict(measured.details)) | ({"set": group} if group else {})
            value = measured.value if isfinite(measured.value) else None
            if value is None:
                error = str(details.get("undefined", "the metric is not defined for this explanation"))
        unknown.update(
            value=value,
            details=details,
            error=error[:2000],
            unit=description.unit,
            better=description.better,
            scores=description.scores,
            measured_at=timezone.now(),
        )


def _plain(value: Any) -> Any:
    """As JSON has it: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def fail(key: str, token: str, error: str) -> bool:
    """Record why a claimed stimulus cannot be made; False if the claim is no longer this token's."""
    claimed = Stimulus.objects.filter(key=key, state=State.CLAIMED, claimed_by=token)
    return claimed.update(state=State.FAILED, finished_at=timezone.now(), error=error[:2000]) == 1


def release(token: str, reason: str = "") -> int:
    """Release all rows that this token still holds; how many rows that was. `reason` says what stopped it."""
    return Stimulus.objects.filter(state=State.CLAIMED, claimed_by=token).update(
        state=State.MISSING, claimed_by="", claimed_at=None, error=reason[:2000]
    )


def render_claimed(
    keys: Sequence[str],
    token: str,
    *,
    lease_s: int | None = None,
    progress: Progress = silent,
    at_once: int = BATCH,
) -> int:
    """Claim and render those of `keys` that are free, `at_once` at a time; how many this call finished.

    A stimulus that cannot be made is marked failed, with the reason. An interruption, or a fault of files or
    services, releases the claims and is raised. Stimuli that are done but not measured yet are measured.
    """
    lease_s = settings.STIMULUS_LEASE_S if lease_s is None else lease_s
    finished = 0
    for start in range(0, len(keys), at_once):
        part = keys[start : start + at_once]
        specs = claim(part, token, lease_s)
        bench = Bench(current_store(), device(), keeper(token, lease_s))
        try:
            for result in attempt(specs, bench, _wanted_metrics(spec.picture_key for spec in specs)):
                if isinstance(result, StimulusFailure):
                    fail(result.spec.picture_key, token, result.error)
                else:
                    finished += finish(result)
        except Exception as error:
            release(token, f"{type(error).__name__}: {error}")
            raise
        finally:
            release(token)
        measure_done(part, bench)
        progress("rendering stimuli", min(start + at_once, len(keys)), len(keys))
    return finished


def measure_done(keys: Sequence[str], bench: Bench) -> None:
    """Measure those of `keys` whose pictures are there and whose measurements are not."""
    asked = _wanted_metrics(keys)
    rows = Stimulus.objects.filter(key__in=list(asked), state=State.DONE).values_list("key", "spec")
    specs = {key: StimulusSpec.from_json(stored) for key, stored in rows}
    orders = [Order((spec,), scorings(asked[key], spec)) for key, spec in specs.items()]
    for explained in explain(orders, bench):
        numbers = explained.numbers
        if explained.error:
            numbers = tuple(Number(w.metric, None, explained.error) for w in explained.order.metrics)
        note([explained.order.spec.picture_key], numbers)


def device() -> str:
    """The device of this process: that of the settings, else the first CUDA device, else the processor."""
    chosen = str(settings.STIMULUS_DEVICE)
    if chosen != "auto":
        return chosen
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def keeper(token: str, lease_s: int) -> Callable[[], None]:
    """What a worker calls after every batch: its claims are refreshed when a third of the lease is over."""
    last = time.monotonic()

    def alive() -> None:
        nonlocal last
        if time.monotonic() - last >= lease_s / 3:
            refresh(token)
            last = time.monotonic()

    return alive


def _wanted_metrics(keys: Iterable[str]) -> dict[str, tuple[Component, ...]]:
    """The metrics that are wanted and not known, by picture key."""
    rows = of_one_stimulus(Measurement.objects.filter(stimulus__key__in=list(keys), measured_at__isnull=True))
    wanted: defaultdict[str, list[Component]] = defaultdict(list)
    for row in rows.order_by("pk").select_related("stimulus"):
        component = Component(row.metric, row.parameters)
        if reason := _unanswerable(component, row):
            Measurement.objects.filter(pk=row.pk).update(error=reason[:2000], measured_at=timezone.now())
        else:
            wanted[row.stimulus.key].append(component)
    return {key: tuple(metrics) for key, metrics in wanted.items()}


def of_one_stimulus(rows: QuerySet[Measurement]) -> QuerySet[Measurement]:
    """Those of metrics that look at one stimulus at a time, the core's or a package's."""
    return rows.exclude(metric__in=list(SET_METRICS))


def _unanswerable(component: Component, row: Measurement) -> str:
    """Why this process cannot measure what the row asks for; empty if it can."""
    try:
        if row.package:
            refuse_other_package(row.package, f"metric {row.metric!r}")
        is_current = describe_metric(component).key == row.key
    except BadSpec as error:
        return str(error)
    return "" if is_current else "asked for from another version of the metric: build the study again"
