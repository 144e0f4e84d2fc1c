"""One export of a study: frames chosen, files written, manifest chained to the previous export."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.utils import timezone

from analysis.departures import report_facts
from analysis.exports import get_exporter, manifest
from analysis.exports.base import ExportError
from analysis.exports.planned import write_plan
from analysis.frames import Frames
from analysis.models import Release
from analysis.reports.base import seal_of
from analysis.tables import Progress, Pseudonyms, code_version, read_frames, study_facts, tombstones
from experiments.answers import answers_of
from experiments.models import Study
from experiments.quality import acknowledgements, stimuli_sentences
from experiments.selectors import definition_of

DEFINITION = "definition.json"
"""The study as it was met, texts included: its content key is the manifest's `study_digest`."""
LEFT_OUT = (
    {"what": "the plans of all slots", "named_in": ["manifest.plan_digest"]},
    {"what": "the manifest of the export before this one", "named_in": ["manifest.previous"]},
    {"what": "the archive of the model", "named_in": ["stimuli.predictor_key"]},
    {"what": "the pictures or texts of the items", "named_in": ["stimuli.image_key"]},
    {"what": "the raw maps of the explanations", "named_in": ["stimuli.attribution_key"]},
    {
        "what": "the pictures that were shown",
        "named_in": ["stimuli.stimulus_key", "stimuli.picture_digest"],
    },
)
"""Content that the package names by digest and does not contain. The rules behind `rules_digest` are in the
definition.
"""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be exported. `cleaned` keeps the sessions of one origin that passed; else the tables hold
    every origin.
    """

    format: str = "csv"
    cleaned: bool = False
    origin: str = ""
    release: str = ""


def export_study(
    study: Study, folder: Path, request: Request, progress: Progress | None = None
) -> dict[str, Any]:
    """Writes the export and returns its manifest. Raises ExportError if the folder holds anything already.

    Files are made beside the folder and moved in one step, so that a broken export leaves nothing behind.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder}: is not empty; choose a new folder, an export never overwrites.")
    exporter = get_exporter(request.format)
    frames = chosen(read_frames(study, release=request.release, progress=progress), request)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".export-") as part:
        written = Path(part) / "export"
        written.mkdir()
        rows = exporter(frames, written)
        (written / DEFINITION).write_text(definition_text(study), encoding="utf-8")
        plan = write_plan(report_facts(study), written)
        files = manifest.described(written, {**rows, **plan, DEFINITION: 1})
        sealed = manifest.sealed(_content(study, request, frames, files))
        manifest.write(written, sealed)
        if folder.exists():
            folder.rmdir()
        shutil.move(written, folder)
    Release.objects.create(study=study, digest=sealed["digest"], manifest=sealed)
    return sealed


def chosen(frames: Frames, request: Request) -> Frames:
    """All sessions, or those of one origin, or the clean ones."""
    origin = request.origin or ("human" if request.cleaned else "")
    if origin and origin not in frames.origins:
        there = ", ".join(frames.origins) or "none yet"
        raise ExportError(f"No session has the origin '{origin}' (there are: {there}); choose with --origin.")
    of_origin = frames.only(origin) if origin else frames
    return of_origin.kept() if request.cleaned else of_origin


def definition_text(study: Study) -> str:
    """The frozen definition as JSON. How people are recruited may change, and is no part of it."""
    return json.dumps(definition_of(study).as_met(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _content(study: Study, request: Request, frames: Frames, files: list[dict[str, Any]]) -> dict[str, Any]:
    before = Release.objects.filter(study=study).order_by("-id").first()
    return {
        "manifest_version": manifest.VERSION,
        "study": study.slug,
        "title": study.title,
        "study_digest": study.digest,
        "plan_digest": study.plan_digest,
        "paradigm": study.paradigm,
        "answers": [asdict(answer) for answer in answers_of(definition_of(study))],
        "study_state": study.state,
        "code_version": code_version(),
        "created_at": timezone.now().isoformat(timespec="seconds"),
        "format": request.format,
        "cleaned": request.cleaned,
        "origins": frames.origins,
        "release": request.release,
        "pseudonym_key": Pseudonyms.of(study, request.release).fingerprint,
        "seals": {origin: seal_of(study_facts(study, origin), origin).sentence for origin in frames.origins},
        "stimulus_quality": {
            "digest": study.quality.get("digest", ""),
            "said": stimuli_sentences(study),
            "acknowledged": acknowledgements(study),
            "dropped": study.dropped,
        },
        "removed": tombstones(study),
        "previous": before.digest if before else None,
        "left_out": list(LEFT_OUT),
        "files": files,
    }
