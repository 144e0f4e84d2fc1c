"""Who renders which stimulus: claims by conditional update, so that a killed worker holds nobody up for good.

A row goes missing -> claimed -> done | failed. A claim may be taken over when its lease is over, or under the
same token: a broker hands the message of a killed worker to another one, who need not wait.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from stimuli.media import current_store
from stimuli.models import Stimulus
from stimuli.pipeline import BATCH_IMAGES, Failed, Rendered, attempt
from stimuli.spec import StimulusSpec
from stimuli.types import Progress, silent

log = logging.getLogger(__name__)
State = Stimulus.State


def free(lease_s: int) -> Q:
    """Rows that anybody may claim now: missing ones, and claims older than the lease."""
    over = timezone.now() - timedelta(seconds=lease_s)
    return Q(state=State.MISSING) | Q(state=State.CLAIMED, claimed_at__lte=over)


def claim(keys: Sequence[str], token: str, lease_s: int) -> list[StimulusSpec]:
    """Take those of `keys` that are free or already this token's, and return their specs."""
    taken = [
        key
        for key in keys
        if Stimulus.objects.filter(free(lease_s) | Q(state=State.CLAIMED, claimed_by=token), key=key).update(
            state=State.CLAIMED, claimed_by=token, claimed_at=timezone.now()
        )
        == 1
    ]
    found = dict(Stimulus.objects.filter(key__in=taken).values_list("key", "spec"))
    return [StimulusSpec.from_json(found[key]) for key in taken if key in found]


def finish(made: Rendered) -> bool:
    """Record the files; False if somebody else finished first, whose record stands."""
    unfinished = Stimulus.objects.filter(key=made.spec.picture_key).exclude(state=State.DONE)
    return (
        unfinished.update(
            state=State.DONE,
            finished_at=timezone.now(),
            error="",
            image_file=made.image_file,
            image_tile_file=made.image_tile_file,
            explanation_file=made.explanation_file or "",
            explanation_tile_file=made.explanation_tile_file or "",
            picture_digest=made.picture_digest,
            width_px=made.width_px,
            height_px=made.height_px,
            tile_width_px=made.tile_width_px,
            tile_height_px=made.tile_height_px,
            provenance=made.provenance,
        )
        == 1
    )


def fail(key: str, token: str, error: str) -> bool:
    """Record why a claimed stimulus cannot be made; False if the claim is no longer this token's."""
    own = Stimulus.objects.filter(key=key, state=State.CLAIMED, claimed_by=token)
    return own.update(state=State.FAILED, finished_at=timezone.now(), error=error[:2000]) == 1


def release(token: str) -> int:
    """Give back whatever this token still holds; how many rows that was."""
    return Stimulus.objects.filter(state=State.CLAIMED, claimed_by=token).update(
        state=State.MISSING, claimed_by="", claimed_at=None
    )


def render_claimed(
    keys: Sequence[str], token: str, *, lease_s: int | None = None, progress: Progress = silent
) -> int:
    """Claim and render those of `keys` that are free, a batch at a time; how many this call finished.

    An interruption gives the claims back. What cannot be made is marked failed, with the reason.
    """
    lease_s = settings.STIMULUS_LEASE_S if lease_s is None else lease_s
    finished = 0
    for start in range(0, len(keys), BATCH_IMAGES):
        specs = claim(keys[start : start + BATCH_IMAGES], token, lease_s)
        try:
            for result in attempt(specs, current_store()):
                if isinstance(result, Failed):
                    fail(result.spec.picture_key, token, result.error)
                else:
                    finished += finish(result)
        except Exception as error:
            log.exception("rendering stopped")
            for spec in specs:
                fail(spec.picture_key, token, f"{type(error).__name__}: {error}")
            raise
        finally:
            release(token)
        progress("rendering stimuli", min(start + BATCH_IMAGES, len(keys)), len(keys))
    return finished
