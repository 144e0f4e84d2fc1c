"""The automatic metrics of a study: what is asked for, and those that need the whole study at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.definition.study import StudyDefinition
from experiments.models import Rendering, Study
from stimuli.metrics import fill_parameters
from stimuli.metrics.measurement_rows import SetMember, ensure_measurements, measure_set
from stimuli.spec import Component

if TYPE_CHECKING:
    from stimuli.types import Progress


def want_metrics(definition: StudyDefinition, study: Study) -> int:
    """Asks for the metrics that study.toml names; returns how many measurements are new. They are no part of
    what a participant meets, so they may be asked for while a study is open."""
    keys: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    fields = "stimulus__key", "condition__dataset", "condition__predictor"
    for key, *source in Rendering.objects.filter(item__study=study, item__copy_of=None).values_list(*fields):
        keys[_regions_and_labels(study, source)].append(key)
    asked = _metrics(definition)
    return sum(
        ensure_measurements(
            some, [fill_parameters(it, {"regions": regions, "labels": labels}) for it in asked]
        )
        for (regions, labels), some in keys.items()
    )


def measure_study(definition: StudyDefinition, study: Study, progress: Progress) -> int:
    """Computes the metrics that compare the stimuli of a study with one another; returns how many numbers are
    new.

    Everything must be rendered. A comparison is made again as soon as one of its numbers is missing.
    """
    rows = Rendering.objects.filter(item__study=study, item__copy_of=None)
    rows = rows.select_related("condition", "item", "stimulus")
    members = [
        SetMember(row.stimulus.key, row.item.key, row.condition.name, row.item.predicted)
        for row in rows.order_by("condition__ordinal", "item__key")
        if row.condition.explainer is not None
    ]
    return sum(measure_set(metric, members, progress) for metric in _metrics(definition))


def _regions_and_labels(study: Study, source: Sequence[str]) -> tuple[str, int]:
    """What names the regions of the pictures that a dataset and a predictor of the study have, and the number
    of that predictor's labels."""
    several = study.predictor.get("several")
    noted = several.get("/".join(filter(None, source)), {}) if several else study.predictor
    return str(noted.get("regions", "")), len(noted.get("labels", ()))


def _metrics(definition: StudyDefinition) -> Sequence[Component]:
    return [metric.component() for metric in definition.metrics]
