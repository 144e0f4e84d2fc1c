"""The report with its seal."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.clickjacking import xframe_options_sameorigin

from analysis.models import Report
from crowd.dashboard.access import researcher_of, study_act, study_page
from crowd.dashboard.layout import choices, study_response
from crowd.dashboard.rows.places_and_exclusions import ORIGIN_WORDS, origins_of
from crowd.ground.broker_silence import asking_workers
from crowd.ground.roles import demand
from crowd.people.decisions import record
from crowd.people.result_seals import printed_name, seal, unseal_study
from experiments.models import Study

# The report carries its own styles and figures, and no script.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)


class UnsealForm(forms.Form):
    reason = forms.CharField(
        max_length=1000,
        min_length=10,
        error_messages={"min_length": "Give the reason in a sentence: every report and export prints it."},
    )


@study_page("view")
def report(request: HttpRequest, study: Study) -> HttpResponse:
    return _report_response(request, study, UnsealForm())


@study_act("unseal")
def unseal(request: HttpRequest, study: Study) -> HttpResponse:
    form = UnsealForm(request.POST)
    if not form.is_valid():
        return _report_response(request, study, form, status=400)
    if study.state != Study.State.OPEN or not (seal(study, "human").sealed or study.unsealed_at):
        messages.error(request, "Nothing is sealed here, so nothing was changed.")
        return redirect("dashboard:report", slug=study.slug)
    if unseal_study(study, researcher_of(request), form.cleaned_data["reason"]):
        messages.success(
            request, "The seal is broken. Name and reason stand in every report and export from now on."
        )
    else:
        messages.error(request, "The seal was broken before; the first name and reason stand.")
    return redirect("dashboard:report", slug=study.slug)


@study_act("view")
def refresh(request: HttpRequest, study: Study) -> HttpResponse:
    """Asks a worker for new reports; without a broker nothing is done."""
    if settings.CELERY_BROKER_URL:
        from analysis.tasks import refresh_reports

        with asking_workers():
            refresh_reports.delay()
        record(study, researcher_of(request), "Asked for a new report.")
        messages.success(request, "A worker makes the report anew. Look again in a minute.")
    else:
        messages.error(request, f"No message broker is configured. {_remedy(study, 'human')}")
    return redirect("dashboard:report", slug=study.slug)


@study_page("view")
@xframe_options_sameorigin
def report_page(request: HttpRequest, study: Study, origin: str) -> HttpResponse:
    """The stored report as it is. An open report of a study that is sealed now is withheld."""
    stored = Report.objects.filter(study=study, origin=origin).only("html", "sealed").first()
    if stored is None or (not stored.sealed and seal(study, origin).sealed):
        raise Http404("There is no report of this study that may be shown.")
    response = HttpResponse(stored.html)
    response["Content-Security-Policy"] = REPORT_POLICY
    return response


@study_page("view")
def methods(request: HttpRequest, study: Study) -> HttpResponse:
    """The methods of a study and its extensions in order, under the heading that they were recruited
    apart. Who asks may see each of these studies."""
    from analysis.reports.output.html import document
    from analysis.reports.utility.study_extensions import APART
    from analysis.stored_reports.extension_families import family_of, methods_of

    for each in family_of(study):
        demand(researcher_of(request), each, "view")
    origin = request.GET.get("origin", "human")
    told = methods_of(study, origin if origin in origins_of(study) else "human")
    sentences = (f"Results are sealed. {told.sealed}",) if told.sealed else told.sentences
    tables = [told.table] if told.table else []
    title = f"Methods of {study.definition.get('extends') or study.slug} and its extensions"
    response = HttpResponse(document(title, APART, sentences, tables))
    response["Content-Security-Policy"] = REPORT_POLICY
    return response


def _report_response(request: HttpRequest, study: Study, form: UnsealForm, status: int = 200) -> HttpResponse:
    from analysis.stored_reports.extension_families import has_family
    from analysis.stored_reports.refresh import facts_digest, newest_session_at

    present = origins_of(study)
    origin = request.GET.get("origin", "")
    origin = origin if origin in present else _first_reported(study, present)
    stored = Report.objects.filter(study=study, origin=origin).defer("html", "json").first()
    sealed = seal(study, origin)
    if stored is not None and sealed.sealed and not stored.sealed:
        stored = None
    is_behind = stored is not None and (
        stored.newest_session_at != newest_session_at(study, origin)
        or stored.facts_digest != facts_digest(study, origin)
    )
    content = {
        "origin": origin,
        "origins": choices(request, "origin", {o: ORIGIN_WORDS[o] for o in present}, origin),
        "stored": stored,
        "seal": sealed,
        "can_unseal": sealed.sealed and study.state == Study.State.OPEN,
        "is_behind": is_behind,
        "has_sittings": bool(present),
        "has_family": has_family(study),
        "command": _remedy(study, origin),
        "form": form,
        "printed_name": printed_name(researcher_of(request)),
    }
    return study_response(request, study, "report", content, status=status)


def _first_reported(study: Study, present: list[str]) -> str:
    """What the tab opens on: the first origin with a report, people before all others."""
    reported = set(Report.objects.filter(study=study).values_list("origin", flat=True))
    return next((origin for origin in present if origin in reported), present[0] if present else "human")


def _remedy(study: Study, origin: str) -> str:
    return f"python manage.py report {study.slug} --origin {origin} --out report-{study.slug}"
