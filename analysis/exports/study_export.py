"""One export of a study: sessions chosen, files written, manifest chained to the previous export."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from django.utils import timezone

from analysis.exports import get_exporter, manifest
from analysis.exports.base import ExportError
from analysis.exports.companion_files import Shape, accompany
from analysis.exports.health_answers import WithoutSpecial, special_questions
from analysis.exports.pictures import write_pictures
from analysis.exports.preregistration_file import write_plan
from analysis.exports.public import Public
from analysis.frames import is_kept
from analysis.models import Release
from analysis.seal import seal_of
from analysis.stored_reports.departures import report_facts
from analysis.tables.response_reader import Reader, code_version, study_facts, tombstones
from experiments.drafting.stimulus_warnings import acknowledgements, stimuli_sentences
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.sessions.pseudonyms import Pseudonyms
from experiments.wording.answer_meanings import answers_of
from stimuli.types import Progress

DEFINITION = "definition.json"
"""The study as it was met, texts included: its content key is the manifest's `study_digest`."""
LEFT_OUT = (
    {"what": "the manifest of the export before this one", "named_in": ["manifest.previous"]},
    {"what": "the archive of the model", "named_in": ["stimuli.predictor_key"]},
    {"what": "the pictures or texts of the items", "named_in": ["stimuli.image_key"]},
    {"what": "the raw maps of the explanations", "named_in": ["stimuli.attribution_key"]},
)
PICTURES = {
    "what": "the pictures that were shown",
    "named_in": ["stimuli.stimulus_key", "stimuli.picture_digest"],
}
"""Content that the package names by digest and does not contain. The rules behind `rules_digest` are in the
definition, the plans behind `plan_digest` in their table.
"""


NOT_PUBLIC = {
    "what": "the stored plan, the facts for a report, and reports: they name people who work on the study",
    "named_in": ["manifest.study_digest"],
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be exported. `cleaned` keeps the sessions of one origin that passed; else the tables hold
    every origin. `public` applies the profile for publication; `pictures` adds the pictures that
    were shown.
    """

    format: str = "csv"
    cleaned: bool = False
    origin: str = ""
    release: str = ""
    public: bool = False
    pictures: bool = False


def export_study(
    study: Study, folder: Path, request: Request, progress: Progress | None = None
) -> dict[str, Any]:
    """Writes the export and returns its manifest. Raises ExportError if the folder holds anything already.

    Files are made beside the folder and moved in one step, so that a broken export leaves nothing behind.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder}: is not empty; choose a new folder, an export never overwrites.")
    exporter = get_exporter(request.format)
    reader, origins = choose_sessions(study, request, progress)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".export-") as part:
        written = Path(part) / "export"
        written.mkdir()
        special = special_questions(study) if request.cleaned or request.public else frozenset()
        tables = WithoutSpecial(reader, special) if special else reader
        rows = exporter(Public(tables) if request.public else tables, written)
        (written / DEFINITION).write_text(definition_text(study), encoding="utf-8")
        rows = dict(rows) | (write_pictures(study, written) if request.pictures else {})
        # The stored plan names people who acknowledged warnings.
        plan = {} if request.public else write_plan(report_facts(study), written)
        rows |= {**plan, DEFINITION: 1}
        shape = Shape(reader.extra, request.cleaned, request.public, request.release, origins, special)
        rows |= accompany(study, written, rows, shape)
        files = manifest.file_entries(written, rows)
        sealed = manifest.add_digest(_content(study, request, origins, files, special))
        manifest.write(written, sealed)
        if folder.exists():
            folder.rmdir()
        shutil.move(written, folder)
    Release.objects.create(study=study, digest=sealed["digest"], manifest=sealed)
    return sealed


def choose_sessions(
    study: Study, request: Request, progress: Progress | None = None
) -> tuple[Reader, list[str]]:
    """A reader of the sessions that the request wants, and their origins: all, or those of one origin, or the
    clean ones. Raises ExportError if no session has the origin that is asked for."""
    origin = request.origin or ("human" if request.cleaned else "")
    rows = Session.objects.filter(study=study).order_by().values_list("origin", flat=True)
    present = sorted(set(rows.distinct()))
    if origin and origin not in present:
        there = ", ".join(present) or "none yet"
        raise ExportError(f"No session has the origin '{origin}' (there are: {there}); choose with --origin.")

    def is_chosen(people: pd.DataFrame) -> pd.Series:
        mask = is_kept(people) if request.cleaned else pd.Series(True, index=people.index)
        return mask & (people["origin"] == origin) if origin else mask

    reader = Reader(study, request.release, progress)
    return reader, sorted(reader.keep(is_chosen))


def definition_text(study: Study) -> str:
    """The frozen definition as JSON. How people are recruited may change, and is no part of it."""
    return json.dumps(definition_of(study).as_met(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _content(
    study: Study,
    request: Request,
    origins: list[str],
    files: list[dict[str, Any]],
    special: frozenset[str],
) -> dict[str, Any]:
    before = Release.objects.filter(study=study).order_by("-id").first()
    now = timezone.now()
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
        "created_at": now.date().isoformat() if request.public else now.isoformat(timespec="seconds"),
        "format": request.format,
        "cleaned": request.cleaned,
        "public": request.public,
        "origins": origins,
        "release": request.release,
        "pseudonym_key": Pseudonyms.of(study, request.release).fingerprint,
        "seals": {origin: _seal(study, origin, request) for origin in origins},
        "stimulus_quality": _quality(study, request),
        "removed": tombstones(study),
        "previous": before.digest if before else None,
        "left_out": [
            *LEFT_OUT,
            *(() if request.pictures else (PICTURES,)),
            *((NOT_PUBLIC,) if request.public else ()),
            *(
                ({"what": f"answers on health: {', '.join(sorted(special))}", "named_in": []},)
                if special
                else ()
            ),
        ],
        "files": files,
    }


def _seal(study: Study, origin: str, request: Request) -> str:
    """The seal's sentence, which may name a person and quote a reason; in public its state alone."""
    seal = seal_of(study_facts(study, origin), origin)
    if request.public:
        return "sealed" if seal.sealed else "open"
    return seal.sentence


def _quality(study: Study, request: Request) -> dict[str, Any]:
    """What is known of the stimuli. In public the warnings that were acknowledged, without name, reason and
    time."""
    acknowledged = acknowledgements(study)
    return {
        "digest": study.quality.get("digest", ""),
        "said": [] if request.public else stimuli_sentences(study),
        "acknowledged": [{"warnings": e["warnings"]} for e in acknowledged]
        if request.public
        else acknowledged,
        "dropped": study.dropped,
    }
