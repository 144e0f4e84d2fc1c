"""Data to take away: the export as one archive, the definition, the report; and who did what."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from django import forms
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST, require_safe

from analysis.models import Release, Report
from crowd.dashboard.access import researcher_of, study_page
from crowd.dashboard.counts import COUNTED, ORIGIN_WORDS, origins_of
from crowd.dashboard.layout import page_of, study_response
from crowd.people.decisions import record, recorded
from crowd.people.seals import seals
from experiments.models import Response, Study

LOG_PER_PAGE = 100
RESPONSES_MAX = 300_000
"""A larger export takes longer than a request may; the command writes it."""


class ExportForm(forms.Form):
    origin = forms.ChoiceField(choices=[(origin, ORIGIN_WORDS[origin]) for origin in COUNTED])
    cleaned = forms.ChoiceField(choices=[("raw", "all sittings"), ("cleaned", "those who passed")])


@dataclass(frozen=True, slots=True)
class Download:
    """What may be downloaded of one origin; `withheld` says why not."""

    origin: str
    word: str
    withheld: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    at: datetime
    who: str
    what: str


@study_page("view")
@require_safe
def downloads(request: HttpRequest, study: Study) -> HttpResponse:
    return _downloads_response(request, study)


@study_page("view")
@require_POST
def export(request: HttpRequest, study: Study) -> HttpResponseBase:
    """The CSV export of one origin as a ZIP archive, made in a temporary file and then streamed."""
    form = ExportForm(request.POST)
    if not form.is_valid():
        return _downloads_response(
            request, study, "Choose an origin, and all sittings or those who passed.", 400
        )
    origin, is_cleaned = form.cleaned_data["origin"], form.cleaned_data["cleaned"] == "cleaned"
    spec = next((spec for spec in _offers(study) if spec.origin == origin), None)
    if spec is None or spec.withheld:
        why = spec.withheld if spec else "Nobody of this origin has come."
        return _downloads_response(request, study, why, 409)
    archive: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, the response closes it
    name = f"{study.slug}-{origin}-{'cleaned' if is_cleaned else 'raw'}"
    digest = _write(study, origin, is_cleaned, name, archive)
    included = "those who passed" if is_cleaned else "all sittings"
    record(
        study,
        researcher_of(request),
        f"Downloaded the data of {origin} sittings ({included}), export {digest[:12]}.",
    )
    archive.seek(0)
    return FileResponse(archive, as_attachment=True, filename=f"{name}.zip", content_type="application/zip")


@study_page("view")
@require_safe
def definition(request: HttpRequest, study: Study) -> HttpResponse:
    """The frozen definition: its digest is the SHA-256 of its canonical JSON. How people are recruited may
    change, and is no part of it.
    """
    from analysis.exports.release import definition_text

    return _attached(definition_text(study), "application/json", f"{study.slug}-definition.json")


@study_page("view")
@require_safe
def report_json(request: HttpRequest, study: Study, origin: str) -> HttpResponse:
    """The stored report's numbers."""
    stored = Report.objects.filter(study=study, origin=origin).first()
    if stored is None or (not stored.sealed and seals(study, [origin])[origin].sealed):
        return _downloads_response(
            request, study, "There is no report of this origin that may be shown.", 404
        )
    text = json.dumps(stored.json, indent=1, ensure_ascii=False)
    return _attached(text + "\n", "application/json", f"{study.slug}-{origin}-report.json")


@study_page("view")
@require_safe
def log(request: HttpRequest, study: Study) -> HttpResponse:
    """Who did what, newest first."""
    entries = [LogEntry(e.action_time, e.user.get_username(), e.change_message) for e in recorded(study)]
    entries += _milestones(study)
    releases = Release.objects.filter(study=study).order_by("-pk").values_list("created_at", "digest")[:500]
    entries += [LogEntry(at, "", f"Export {digest[:12]} was made.") for at, digest in releases]
    entries.sort(key=lambda entry: entry.at, reverse=True)
    return study_response(request, study, "log", {"page": page_of(request, entries, LOG_PER_PAGE)})


def _milestones(study: Study) -> Iterable[LogEntry]:
    yield LogEntry(study.created_at, "", f"Draft made, definition {study.digest[:12]}.")
    if study.opened_at:
        yield LogEntry(study.opened_at, "", f"Opened, plans {study.plan_digest[:12]}.")
    if study.closed_at:
        yield LogEntry(study.closed_at, "", "Closed.")


def _attached(text: str, content_type: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type=f"{content_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _offers(study: Study) -> list[Download]:
    """The trials table names each person's condition, so people's data wait for the stopping rule as well."""
    present = origins_of(study)
    too_many = Response.objects.filter(session__study=study).count() > RESPONSES_MAX
    offers = []
    for origin, seal in seals(study, present).items():
        withheld = ""
        if seal.sealed:
            withheld = (
                f"{seal.sentence} The data name each person's condition. Break the seal under Report first."
            )
        elif too_many:
            withheld = f"More than {RESPONSES_MAX:,} answers: use the command below."
        offers.append(Download(origin, ORIGIN_WORDS[origin], withheld))
    return offers


def _write(study: Study, origin: str, is_cleaned: bool, name: str, archive: IO[bytes]) -> str:
    """Writes the export into `archive`, all files in one folder; returns the manifest's digest."""
    from analysis.exports.release import Request, export_study

    with tempfile.TemporaryDirectory(prefix="legible-export-") as part:
        folder = Path(part) / name
        manifest = export_study(study, folder, Request(cleaned=is_cleaned, origin=origin))
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(folder.rglob("*")):
                packed.write(path, path.relative_to(part))
    return str(manifest["digest"])


def _downloads_response(
    request: HttpRequest, study: Study, problem: str = "", status: int = 200
) -> HttpResponse:
    reports = Report.objects.filter(study=study).values_list("origin", "sealed")
    sealed_now = {origin: seal.sealed for origin, seal in seals(study, list(COUNTED)).items()}
    content = {
        "offers": _offers(study),
        "reports": [
            {"origin": origin, "word": ORIGIN_WORDS[origin]}
            for origin, sealed in reports
            if sealed or not sealed_now[origin]
        ],
        "problem": problem,
    }
    return study_response(request, study, "downloads", content, status=status)
