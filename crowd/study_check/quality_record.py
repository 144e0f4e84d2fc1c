"""The quality of an opened study's stimuli: measured once, and stored with the study."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone
from pydantic import TypeAdapter

from crowd.ground.audit import record
from crowd.study_check.quality_warnings import faults_in
from crowd.study_check.stimulus_quality import (
    CONTENT,
    CONTENT_LEGEND,
    FORM,
    FORM_LEGEND,
    Quality,
    look_at,
    stimulus_quality,
)
from experiments.definition.study import StudyDefinition
from experiments.drafting.draft import gather
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.stimulus_specs import specs_of
from experiments.drafting.stimulus_warnings import (
    acknowledge,
    is_measured,
    is_seen_with_answer,
    refusing,
    unknown_sentence,
    warnings_of,
)
from experiments.errors import StudyError
from experiments.models import Rendering, Study
from experiments.selectors import definition_of
from experiments.terminal import Terminal
from stimuli.errors import StimulusError
from stimuli.spec import StimulusSpec, content_key
from stimuli.store import LocalStore, open_store
from stimuli.store.read_through import ReadThrough
from stimuli.types import Progress

STORED = TypeAdapter(Quality)
MEASURED_MAX = 120
"""Items that are measured when a study is opened: all of a study of the usual size."""


def measure(study: Study, folder: Path, progress: Progress, items_max: int = MEASURED_MAX) -> None:
    """Measures the stimuli of an opened study and stores what it found, or in one sentence why nothing was
    found. Explanations of the answer that is not shown are made for this and are not kept."""
    quality: dict[str, Any]
    try:
        quality = _measure_quality(study, folder, progress, items_max)
    except (StudyError, StimulusError, OSError, RuntimeError, ValueError) as error:
        quality = {"error": str(error).rstrip(".")}
    study.quality = quality | {"measured_at": timezone.now().isoformat(timespec="seconds")}
    Study.objects.filter(pk=study.pk).update(quality=study.quality)


def _measure_quality(study: Study, folder: Path, progress: Progress, items_max: int) -> dict[str, Any]:
    definition = definition_of(study)
    with tempfile.TemporaryDirectory(prefix="legible-quality-") as scratch:
        store = ReadThrough(open_store(settings.STORAGE_URL), LocalStore(Path(scratch)))
        gathered = gather(definition, folder, store, progress)
        _refuse_others(study, definition, gathered)
        looked = look_at(definition, gathered, store, items_max, progress, _copies(study))
        measured = stimulus_quality(definition, gathered, store, looked)
    beside = is_seen_with_answer(study)
    known = {quality.condition for quality in measured}
    faults = faults_in(measured, seen_with_answer=beside)
    content: dict[str, Any] = {
        "seen_with_answer": beside,
        "conditions": [quality_json(quality) for quality in measured],
        "unmeasured": [c.name for c in definition.conditions if c.explainer and c.name not in known],
        "warnings": [asdict(fault) for fault in faults],
    }
    return content | {"digest": content_key([study.digest, content])}


def _copies(study: Study) -> dict[tuple[str, str, str], StimulusSpec]:
    """The changed copies that people see."""
    rows = Rendering.objects.filter(
        item__study=study, item__copy_of__isnull=False, condition__explainer__isnull=False
    )
    columns = ("item__copy_of__key", "condition__name", "item__perturbation__aim", "stimulus__spec")
    cells = rows.values_list(*columns).iterator(5000)
    return {(item, name, aim): StimulusSpec.from_json(spec) for item, name, aim, spec in cells}


def _refuse_others(study: Study, definition: StudyDefinition, gathered: MaterialSet) -> None:
    """StudyError if today's methods or items are not those whose pictures people see."""
    rows = Rendering.objects.filter(item__study=study, condition__explainer__isnull=False)
    rows = rows.filter(item__copy_of=None)
    cells = rows.values_list("item__key", "condition__name", "stimulus__attribution_key")
    shown = {(item, condition): key for item, condition, key in cells.iterator(5000)}
    now = {cell: s.attribution_key for cell, s in specs_of(definition, gathered).items() if s.explainer}
    if now != shown:
        raise StudyError(
            "its pictures were made from other items, or by other versions of the methods or of the model, "
            "than are here now; what would be measured is not what people see"
        )


def quality_json(quality: Quality) -> dict[str, Any]:
    """As JSON: NaN becomes null."""
    return {name: None if value != value else value for name, value in asdict(quality).items()}


def quality_of(row: Mapping[str, Any]) -> Quality:
    """What `quality_json` made; a number that is null becomes NaN. Keys of other versions are left out."""
    return STORED.validate_python(row)


def qualities_of(study: Study) -> list[Quality]:
    """What is stored of each condition."""
    return [quality_of(row) for row in study.quality.get("conditions", ())]


def measure_and_print(study: Study, folder: Path, terminal: Terminal, items_max: int | None = None) -> None:
    """For the commands that open a study: measured unless it was measured already; 0 leaves it out."""
    if items_max == 0 or (items_max is None and is_measured(study)):
        return
    measure(study, folder, terminal.progress, items_max or MEASURED_MAX)
    measured = qualities_of(study)
    if measured:
        print_quality(measured, terminal)
    for warned in warnings_of(study):
        terminal.line(f"Warning: {': '.join(filter(None, (warned['what'], warned['remedy'])))}.")
    if refusing(study):
        terminal.line("It is published --live only after this is acknowledged by name (--acknowledge).")


def print_quality(measured: Sequence[Quality], terminal: Terminal) -> None:
    terminal.table("The form of explanations", FORM, [quality.form_row() for quality in measured])
    terminal.line(FORM_LEGEND)
    if unknown := unknown_sentence([quality.condition for quality in measured if quality.leak is None]):
        terminal.line(unknown)
    terminal.table("What they show", CONTENT, [quality.content_row() for quality in measured])
    terminal.line(CONTENT_LEGEND)
    for words in filter(None, (w for q in measured for w in (q.told_words, q.copies_words))):
        terminal.line(words)
    if any(q.copies for q in measured) and not any(q.copies_words for q in measured):
        terminal.line("No explanation of a changed copy is empty, or the same as that of its picture.")


def check_acknowledged(study: Study) -> None:
    """Raises StudyError if people would look at stimuli with a warning that is not acknowledged."""
    warned = refusing(study)
    if not warned:
        return
    raise StudyError(
        f"{study.slug} is not offered to people: "
        + "; ".join(": ".join(filter(None, (w["what"], w["remedy"]))) for w in warned)
        + '. To go on all the same, acknowledge it: publish --acknowledge "NAME" --reason "WHY", or on the '
        "dashboard's page of stimuli. Reports print name, reason and warnings."
    )


def acknowledge_as(study: Study, who: str, by: str, reason: str) -> int:
    """Acknowledges all warnings of now in the name `by`, and notes it in the log of the study under the login
    `who`; returns how many they are."""
    warned = acknowledge(study, by, reason)
    listed = "; ".join(str(w["what"]) for w in warned)
    record(study, who, f"Acknowledged as {by.strip()}: {listed}. Reason: {reason.strip()}")
    return len(warned)
