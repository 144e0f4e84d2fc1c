"""What other rooms ask of the stimuli: record them, render them, and say which look alike."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta

from celery import current_app
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from stimuli.errors import StimulusError
from stimuli.metrics.measurement_rows import reopen, unmeasured_keys
from stimuli.models import Stimulus
from stimuli.registry import refuse_other_package
from stimuli.spec import StimulusSpec, canonical_json
from stimuli.types import Progress, silent
from stimuli.worker_claims import BATCH, SHARED, State, chunks, free, render_claimed

RENDER_TASK = "stimuli.tasks.render_stimuli"
HELPER = ("manage.py", "render_keys")
BATCHES_MIN = 4
"""So many batches are worth the seconds that a further process needs to start."""
POLL_S = 0.5
WINDOW = 7 * BATCH
"""So many keys are watched at a time: more than all workers of a large machine hold claimed at once."""
HELP_AFTER_S = 20.0
"""After so long without progress a builder renders a batch itself: perhaps there is no worker."""


def ensure_stimuli(specs: Iterable[StimulusSpec]) -> dict[str, int]:
    """Record each stimulus that is not there yet; primary keys by picture key, in the order of `specs`."""
    wanted = {spec.picture_key: spec for spec in specs}
    known = _primary_keys(wanted)
    for keys in chunks([key for key in wanted if key not in known]):
        Stimulus.objects.bulk_create([_row(wanted[key]) for key in keys], ignore_conflicts=True)
    primary_keys = _primary_keys(wanted)
    return {key: primary_keys[key] for key in wanted}


def missing(keys: Iterable[str]) -> list[str]:
    """Those of the picture keys that are not rendered, in their order."""
    wanted = list(dict.fromkeys(keys))
    done: set[str] = set()
    for chunk in chunks(wanted):
        done.update(_keys_in(chunk, State.DONE))
    return [key for key in wanted if key not in done]


def build(keys: Iterable[str], progress: Progress = silent, processes: int = 1) -> int:
    """Render and measure all that is missing, and return how many stimuli were missing.

    Without a broker the work is done here, by so many `processes` if there is enough of it; with one it is
    sent, and the database is watched. Stimuli that
    failed before are tried again. StimulusError says how many cannot be made, and why; OtherPackage as
    `refuse_other_packages`.
    """
    asked = list(dict.fromkeys(keys))
    wanted = missing(asked)
    for chunk in chunks(wanted):
        Stimulus.objects.filter(key__in=chunk, state=State.FAILED).update(state=State.MISSING)
    reopen(asked)
    refuse_other_packages(asked)
    ordered = _by_item({*wanted, *unmeasured_keys(asked)})
    if settings.CELERY_BROKER_URL:
        send(ordered)
        _watch(ordered, progress)
    else:
        token = uuid.uuid4().hex
        helpers = processes - 1 if len(ordered) >= BATCHES_MIN * BATCH else 0
        with run_helpers(ordered, helpers):
            render_claimed(ordered, token, progress=progress, at_once=SHARED if helpers else BATCH)
        # Rows that another builder holds: it may have been killed. Doing them twice is harmless.
        render_claimed(_pending(ordered), token, lease_s=0)
    _refuse_failures(wanted)
    return len(wanted)


@contextmanager
def run_helpers(keys: Sequence[str], count: int) -> Iterator[None]:
    """`count` processes that render from the end of `keys` while the block renders from the beginning; the
    claims keep them apart. At the end of the block their last batches are waited for. They end with this
    process."""
    helpers = [
        subprocess.Popen([sys.executable, *HELPER], cwd=settings.BASE_DIR, stdin=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for helper in helpers:
            assert helper.stdin is not None
            with suppress(BrokenPipeError):  # It is dead; the work is done without it.
                helper.stdin.write(json.dumps(list(keys)) + "\n")
                helper.stdin.flush()
        yield
        for helper in helpers:
            helper.wait()
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()
            assert helper.stdin is not None
            with suppress(BrokenPipeError):
                helper.stdin.close()


def refuse_other_packages(keys: Iterable[str]) -> None:
    """OtherPackage if one of `keys` is still to be made by a package that is not here in the version that it
    was asked for from. Reads metadata, imports nothing: a web process may ask. A metric's package is compared
    in the process that makes the number; its row then says why there is none.
    """
    asked = list(dict.fromkeys(keys))
    wanted: set[tuple[str, str]] = set()
    for chunk in chunks(asked):
        open_rows = Stimulus.objects.filter(key__in=chunk).exclude(state=State.DONE)
        for spec in open_rows.values_list("spec", flat=True):
            for package in spec.get("packages", ()):
                wanted.add((package, f"explainer {spec['explainer']['name']!r}"))
    for package, what in sorted(wanted):
        refuse_other_package(package, what)


def send(keys: Sequence[str]) -> None:
    """Send render messages, one per batch. Messages are hints: sending twice is harmless."""
    for start in range(0, len(keys), BATCH):
        part = list(keys[start : start + BATCH])
        Stimulus.objects.filter(key__in=part).update(sent_at=timezone.now())
        current_app.send_task(RENDER_TASK, args=[part], queue=settings.STIMULUS_QUEUE)


def identical_pictures(keys: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of two or more picture keys whose pictures are the same to the pixel, in the order of `keys`."""
    digests: dict[str, str] = {}
    wanted = list(dict.fromkeys(keys))
    for chunk in chunks(wanted):
        rows = Stimulus.objects.filter(key__in=chunk, state=State.DONE)
        digests.update(rows.values_list("key", "picture_digest"))
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for key in wanted:
        if key in digests:
            groups[digests[key]].append(key)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _row(spec: StimulusSpec) -> Stimulus:
    return Stimulus(
        key=spec.picture_key,
        spec=spec.as_json(),
        attribution_key=spec.attribution_key,
        image_key=spec.image_key,
    )


def _primary_keys(keys: Iterable[str]) -> dict[str, int]:
    primary_keys: dict[str, int] = {}
    for chunk in chunks(list(keys)):
        primary_keys.update(Stimulus.objects.filter(key__in=chunk).values_list("key", "pk"))
    return primary_keys


def _by_item(keys: Iterable[str]) -> list[str]:
    """The keys, by predictor and within it by item, whose methods share passes."""
    places: dict[str, tuple[str, str, str]] = {}
    for chunk in chunks(list(keys)):
        for key, spec in Stimulus.objects.filter(key__in=chunk).values_list("key", "spec"):
            explainer = canonical_json(spec["explainer"])
            places[key] = (spec["predictor_key"] + spec["precision"], spec["image_key"], explainer)
    return sorted(places, key=places.__getitem__)


def _watch(keys: Sequence[str], progress: Progress) -> None:
    """Wait until none of the keys is pending; render a batch here whenever nothing has moved for a while.

    Workers go through the keys in this order, so one window of them is watched at a time: a poll takes the
    same few queries for a hundred keys and for a million.
    """
    for start in range(0, len(keys), WINDOW):
        window = keys[start : start + WINDOW]
        before, moved_at = -1, time.monotonic()
        while pending := _pending(window):
            progress("rendering stimuli", start + len(window) - len(pending), len(keys))
            if len(pending) != before:
                before, moved_at = len(pending), time.monotonic()
            elif time.monotonic() - moved_at >= HELP_AFTER_S:
                render_claimed(_free(pending)[:BATCH], uuid.uuid4().hex)
                moved_at = time.monotonic()
            else:
                time.sleep(POLL_S)
    progress("rendering stimuli", len(keys), len(keys))


def _pending(keys: Sequence[str]) -> list[str]:
    """Those of the keys that are not rendered, or rendered but not measured."""
    pending = {key for chunk in chunks(keys) for key in _keys_in(chunk, State.MISSING, State.CLAIMED)}
    pending |= set(unmeasured_keys(keys)) - {
        k for chunk in chunks(keys) for k in _keys_in(chunk, State.FAILED)
    }
    return [key for key in keys if key in pending]


def _free(keys: Sequence[str]) -> list[str]:
    """Those of the keys that no other process works on: not claimed, and not sent lately if only to be
    measured."""
    lately = timezone.now() - timedelta(seconds=settings.STIMULUS_LEASE_S)
    held = ~free(settings.STIMULUS_LEASE_S) & Q(state=State.CLAIMED) | Q(state=State.DONE, sent_at__gt=lately)
    taken = {
        key
        for chunk in chunks(keys)
        for key in Stimulus.objects.filter(held, key__in=chunk).values_list("key", flat=True)
    }
    return [key for key in keys if key not in taken]


def _refuse_failures(keys: Sequence[str]) -> None:
    errors = [
        error
        for chunk in chunks(keys)
        for error in Stimulus.objects.filter(key__in=chunk, state=State.FAILED).values_list(
            "error", flat=True
        )
    ]
    if errors:
        raise StimulusError(
            f"{len(errors)} of {len(keys)} stimuli could not be rendered; the first because: {errors[0]}"
        )


def _keys_in(keys: Sequence[str], *states: str) -> list[str]:
    return list(Stimulus.objects.filter(key__in=keys, state__in=states).values_list("key", flat=True))
