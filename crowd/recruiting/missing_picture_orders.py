"""The pictures of a study, asked of the workers in a person's name."""

from __future__ import annotations

from crowd.ground.audit import record
from experiments.drafting.draft_rows import picture_keys
from experiments.models import Study
from stimuli.build import missing, refuse_other_packages, send
from stimuli.models import Stimulus


def send_missing(study: Study, who: str) -> int:
    """Asks the workers for every picture that is missing; failed ones are tried again. Returns how many.

    Raises OtherPackage if they were asked for from a package that is not here in the same version."""
    keys = missing(picture_keys(study))
    refuse_other_packages(keys)
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        Stimulus.objects.filter(key__in=part, state="failed").update(state="missing")
    send(keys)
    record(study, who, f"Asked the workers for {len(keys)} stimuli.")
    return len(keys)
