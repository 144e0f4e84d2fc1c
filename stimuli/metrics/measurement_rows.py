"""The automatic metrics as rows: those wanted, those measured, and those that compare a study's stimuli."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from django.db.models import QuerySet

from stimuli.errors import ShapeMismatch, StimulusError
from stimuli.explainers import kind_of
from stimuli.metrics import SET_METRICS, open_set_metric
from stimuli.metrics.base import Number
from stimuli.metrics.metric_key import MetricIdentity, describe_metric
from stimuli.models import Measurement, Stimulus
from stimuli.render.attribution_field import drawn_field
from stimuli.spec import Component, StimulusSpec, content_key
from stimuli.store import Store
from stimuli.store.files import map_file, read_attribution, read_view
from stimuli.store.media_access import current_store
from stimuli.types import PixelAttribution, Pixels, Plane, Progress, silent
from stimuli.worker_claims import State, chunks, note, of_one_stimulus


def ensure_measurements(keys: Iterable[str], metrics: Sequence[Component]) -> int:
    """Ask for `metrics` of the explained ones among the picture keys; how many measurements are new.

    What was measured before with the same metric, version and parameters stands. Metrics that compare stimuli
    are left to `measure_set`.
    """
    return _ask(keys, [describe_metric(metric) for metric in metrics if metric.name not in SET_METRICS])


def _ask(keys: Iterable[str], described: Sequence[MetricIdentity]) -> int:
    new = 0
    for chunk in chunks(list(dict.fromkeys(keys))):
        rows = Stimulus.objects.filter(key__in=chunk).exclude(spec__explainer=None)
        known = set(Measurement.objects.filter(stimulus__key__in=chunk).values_list("stimulus_id", "key"))
        wanted = [
            Measurement(
                stimulus_id=pk,
                key=description.key,
                metric=description.name,
                parameters=description.parameters,
                version=description.version,
                package=description.package,
                unit=description.unit,
                better=description.better,
                scores=description.scores,
            )
            for pk in rows.values_list("pk", flat=True)
            for description in described
            if (pk, description.key) not in known
        ]
        Measurement.objects.bulk_create(wanted, ignore_conflicts=True)
        new += len(wanted)
    return new


def reopen(keys: Iterable[str]) -> int:
    """Have measurements that ended in an error tried again, as failed stimuli are; how many those are."""
    count = 0
    for chunk in chunks(list(dict.fromkeys(keys))):
        rows = of_one_stimulus(Measurement.objects.filter(stimulus__key__in=chunk, value__isnull=True))
        count += rows.exclude(measured_at=None).update(measured_at=None, error="")
    return count


def unmeasured_keys(keys: Iterable[str]) -> list[str]:
    """Those of the picture keys with a measurement of their own that is wanted and not known, in order."""
    wanted = list(dict.fromkeys(keys))
    open_ = _open_keys(wanted, of_one_stimulus(Measurement.objects.all()))
    return [key for key in wanted if key in open_]


def _open_keys(keys: Sequence[str], rows: QuerySet[Measurement]) -> set[str]:
    """Which stimuli have rows among these that are still to be measured."""
    open_rows = rows.filter(measured_at__isnull=True).values_list("stimulus__key", flat=True)
    return {key for chunk in chunks(keys) for key in open_rows.filter(stimulus__key__in=chunk)}


@dataclass(frozen=True, slots=True)
class SetMember:
    """One stimulus of a study, as metrics that compare stimuli see it."""

    key: str
    item: str
    condition: str
    label: str


def measure_set(metric: Component, members: Sequence[SetMember], progress: Progress = silent) -> int:
    """Compare the members by `metric` unless every number is known; how many numbers are new.

    Metrics of single stimuli are not measured here: 0. A number belongs to the set that it was found in, so
    its key names the members as well: an extended study is compared anew. Members whose explanation is no map
    are left out, and say so in their row.
    """
    if metric.name not in SET_METRICS or not members:
        return 0
    described = describe_metric(metric)
    group = content_key(
        [_file_digest(metric), sorted([m.key, m.item, m.condition, m.label] for m in members)]
    )
    described = replace(described, key=content_key([described.key, group]))
    keys = [member.key for member in members]
    _ask(keys, [described])
    for chunk in chunks(keys):  # measurements that ended in an error are tried again
        errors = Measurement.objects.filter(stimulus__key__in=chunk, key=described.key).exclude(error="")
        errors.update(measured_at=None, error="", value=None)
    open_ = _open_keys(keys, Measurement.objects.filter(key=described.key))
    if not open_:
        return 0
    for key, number in _compare_members(metric, members, progress):
        if key in open_:
            note([key], [number], described, group)
    return len(open_)


def _file_digest(metric: Component) -> str:
    """SHA-256 of the weights that a metric reads from a file; empty if it reads none or the file is
    missing."""
    name = metric.params.get("weights")
    if not isinstance(name, str) or not name or not Path(name).is_file():
        return ""
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


def _compare_members(
    metric: Component, members: Sequence[SetMember], progress: Progress
) -> Iterator[tuple[str, Number]]:
    """What the metric says of each member, by picture key."""
    store = current_store()
    specs: dict[str, StimulusSpec] = {}
    for chunk in chunks([member.key for member in members]):
        stored = Stimulus.objects.filter(key__in=chunk, state=State.DONE).values_list("key", "spec")
        specs |= {key: StimulusSpec.from_json(spec) for key, spec in stored}
    entries: list[StoredEntry] = []
    was_read: set[tuple[str, str]] = set()

    def read(entry: StoredEntry) -> None:
        was_read.add((entry.item, entry.condition))
        progress(f"reading maps for {metric.name}", len(was_read), len(entries))

    for member in members:
        spec = specs.get(member.key)
        if spec is not None and _has_map(spec, store):
            entries.append(
                StoredEntry(member.item, member.condition, member.label, member.key, spec, store, read)
            )
        else:
            yield member.key, Number(metric, None, "there is no map to compare")
    try:
        numbers = open_set_metric(metric).measure(entries)
    except StimulusError as error:
        yield from ((entry.key, Number(metric, None, str(error))) for entry in entries)
        return
    for entry, measured in zip(entries, numbers, strict=True):
        yield entry.key, Number(metric, measured)


def _has_map(spec: StimulusSpec, store: Store) -> bool:
    is_map = spec.explainer is not None and kind_of(spec.explainer) == "image"
    return is_map and store.has(map_file(spec.attribution_key))


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A member as an `Entry` whose files are read whenever they are looked at, and not kept."""

    item: str
    condition: str
    label: str
    key: str
    spec: StimulusSpec
    store: Store
    read: Callable[[StoredEntry], None]
    """Called for every map that is read."""

    @property
    def view(self) -> Pixels:
        return read_view(self.store, self.spec.image_key)

    @property
    def values(self) -> Plane:
        self.read(self)
        made = read_attribution(self.store, self.spec.attribution_key)
        if not isinstance(made, PixelAttribution):
            raise ShapeMismatch(f"stimulus {self.key} has no map: delete its file and build it again")
        return drawn_field(made, self.spec.render)
