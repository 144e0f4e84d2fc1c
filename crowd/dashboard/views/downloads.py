"""Data to take away: the export as one archive, the definition, the report; and who did what."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from analysis.models import Release, Report
from crowd.dashboard.access import researcher_of, study_act, study_page
from crowd.dashboard.layout import attachment, page_of, study_response
from crowd.dashboard.rows.places_and_exclusions import COUNTED, ORIGIN_WORDS, origins_of
from crowd.people.decisions import record, study_log
from crowd.people.download_keys import end_key, keys_of, login_of, make_key
from crowd.people.result_seals import seals
from experiments.errors import StudyError
from experiments.models import Response, Study

LOG_PER_PAGE = 100
KEYS = "Keys are made on its page Downloads."
RESPONSES_MAX = 300_000
"""A larger export takes longer than a request may; the command writes it."""


class ExportForm(forms.Form):
    origin = forms.ChoiceField(choices=[(origin, ORIGIN_WORDS[origin]) for origin in COUNTED])
    cleaned = forms.ChoiceField(choices=[("raw", "all sessions"), ("cleaned", "those who passed")])


@dataclass(frozen=True, slots=True)
class LogEntry:
    at: datetime
    who: str
    what: str


@study_page("view")
def downloads(request: HttpRequest, study: Study) -> HttpResponse:
    return _downloads_response(request, study)


@study_act("view")
def export(request: HttpRequest, study: Study) -> HttpResponseBase:
    """The CSV export of one origin as a ZIP archive, made in a temporary file and then streamed."""
    form = ExportForm(request.POST)
    if not form.is_valid():
        return _downloads_response(
            request, study, "Choose an origin, and all sessions or those who passed.", 400
        )
    wanted = form.cleaned_data
    if why := _withheld(study, wanted["origin"]):
        return _downloads_response(request, study, why, 409)
    return _archive(study, wanted, researcher_of(request))


@require_GET
def fetch(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The same archive for a program that sends a key; its refusals are plain sentences."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    entered = login_of(token.strip(), slug) if kind.lower() == "bearer" else None
    if entered is None:
        reply = _plain(f"Send a key of this study: Authorization: Bearer KEY. {KEYS}", 401)
        reply["WWW-Authenticate"] = 'Bearer realm="data"'
        return reply
    study, user = entered
    form = ExportForm({"origin": "human", "cleaned": "raw", **request.GET.dict()})
    if not form.is_valid():
        origins = ", ".join(COUNTED)
        return _plain(f"Ask for ?origin= one of {origins}, and &cleaned= raw or cleaned.", 400)
    if why := _withheld(study, form.cleaned_data["origin"]):
        return _plain(why, 409)
    return _archive(study, form.cleaned_data, user, "by a key")


@study_act("view")
def new_key(request: HttpRequest, study: Study) -> HttpResponse:
    """Makes a key and shows it, this once."""
    name = request.POST.get("name", "")
    try:
        token = make_key(study, researcher_of(request), name)
    except StudyError as error:
        return _downloads_response(request, study, str(error), 400)
    return _downloads_response(request, study, made=token)


@study_act("view")
def key_end(request: HttpRequest, study: Study, key: int) -> HttpResponse:
    try:
        end_key(study, key, researcher_of(request))
    except StudyError as error:
        return _downloads_response(request, study, str(error), 403)
    return redirect("dashboard:downloads", study.slug)


@study_page("view")
def definition(request: HttpRequest, study: Study) -> HttpResponse:
    """The frozen definition: its digest is the SHA-256 of its canonical JSON. How people are recruited may
    change, and is no part of it.
    """
    from analysis.exports.study_export import definition_text

    return attachment(f"{study.slug}-definition.json", "application/json", definition_text(study))


@study_page("view")
def report_json(request: HttpRequest, study: Study, origin: str) -> HttpResponse:
    """The stored report's numbers."""
    stored = Report.objects.filter(study=study, origin=origin).first()
    if stored is None or (not stored.sealed and seals(study, [origin])[origin].sealed):
        return _downloads_response(
            request, study, "There is no report of this origin that may be shown.", 404
        )
    text = json.dumps(stored.json, indent=1, ensure_ascii=False)
    return attachment(f"{study.slug}-{origin}-report.json", "application/json", text + "\n")


@study_page("view")
def log(request: HttpRequest, study: Study) -> HttpResponse:
    """Who did what, newest first."""
    entries = [LogEntry(e.action_time, e.user.get_username(), e.change_message) for e in study_log(study)]
    entries += _milestones(study)
    releases = Release.objects.filter(study=study).order_by("-pk").values_list("created_at", "digest")[:500]
    entries += [LogEntry(at, "", f"Export {digest[:12]} was made.") for at, digest in releases]
    entries.sort(key=lambda entry: entry.at, reverse=True)
    return study_response(request, study, "log", {"page": page_of(request, entries, LOG_PER_PAGE)})


def _withheld(study: Study, origin: str) -> str:
    """Why the data of that origin may not leave; empty if they may."""
    return _offers(study).get(origin, "Nobody of this origin has come.")


def _archive(study: Study, wanted: Mapping[str, str], user: User, way: str = "") -> FileResponse:
    """The export as an attachment, noted in the log."""
    origin, is_cleaned = wanted["origin"], wanted["cleaned"] == "cleaned"
    archive: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, the response closes it
    name = f"{study.slug}-{origin}-{'cleaned' if is_cleaned else 'raw'}"
    digest = _write(study, origin, is_cleaned, name, archive)
    included = "those who passed" if is_cleaned else "all sessions"
    what = " ".join(filter(None, (f"the data of {origin} sessions ({included})", way)))
    record(study, user, f"Downloaded {what}, export {digest[:12]}.")
    archive.seek(0)
    return FileResponse(archive, as_attachment=True, filename=f"{name}.zip", content_type="application/zip")


def _plain(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8", status=status)


def _milestones(study: Study) -> Iterable[LogEntry]:
    yield LogEntry(study.created_at, "", f"Draft made, definition {study.digest[:12]}.")
    if study.opened_at:
        yield LogEntry(study.opened_at, "", f"Opened, plans {study.plan_digest[:12]}.")
    if study.closed_at:
        yield LogEntry(study.closed_at, "", "Closed.")


def _offers(study: Study) -> dict[str, str]:
    """The origins that have come, each with why its data may not leave; empty if they may. The trials table
    names each person's condition, so people's data wait for the stopping rule as well."""
    too_many = Response.objects.filter(session__study=study).count() > RESPONSES_MAX
    beyond = f"More than {RESPONSES_MAX:,} answers: use the command below." if too_many else ""
    named = "The data name each person's condition. Break the seal under Report first."
    by_origin = seals(study, origins_of(study)).items()
    return {origin: f"{seal.sentence} {named}" if seal.sealed else beyond for origin, seal in by_origin}


def _write(study: Study, origin: str, is_cleaned: bool, name: str, archive: IO[bytes]) -> str:
    """Writes the export into `archive`, all files in one folder; returns the manifest's digest."""
    from analysis.exports.study_export import Request, export_study

    with tempfile.TemporaryDirectory(prefix="legible-export-") as part:
        folder = Path(part) / name
        manifest = export_study(study, folder, Request(cleaned=is_cleaned, origin=origin))
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(folder.rglob("*")):
                packed.write(path, path.relative_to(part))
    return str(manifest["digest"])


def _downloads_response(
    request: HttpRequest, study: Study, problem: str = "", status: int = 200, made: str = ""
) -> HttpResponse:
    reports = Report.objects.filter(study=study).values_list("origin", "sealed")
    sealed_now = {origin: seal.sealed for origin, seal in seals(study, list(COUNTED)).items()}
    content = {
        "offers": [(origin, ORIGIN_WORDS[origin], why) for origin, why in _offers(study).items()],
        "reports": [
            {"origin": origin, "word": ORIGIN_WORDS[origin]}
            for origin, sealed in reports
            if sealed or not sealed_now[origin]
        ],
        "problem": problem,
        "keys": keys_of(study),
        "address": f"{settings.BASE_URL}{reverse('data', args=[study.slug])}",
        "made": made,
    }
    return study_response(request, study, "downloads", content, status=status)
