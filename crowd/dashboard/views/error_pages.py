"""What stands where there is nothing, and where something failed: a way back; JSON for machines."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from crowd.dashboard.access import add_page_headers
from experiments.api.error_responses import error_body

API = "/api/"


def _nothing_here(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path.startswith(API):
        return JsonResponse(error_body("no_study", "There is nothing at this address."), status=404)
    return render(request, "dashboard/nothing.html", status=404)


def _server_error(request: HttpRequest) -> HttpResponse:
    """Reads no row: the database may be what failed."""
    if request.path.startswith(API):
        remedy = "Wait a moment and send the request again: what is sent twice is stored once."
        body = error_body("unavailable", "Something failed on the server.", remedy)
        return JsonResponse(body, status=500)
    return render(None, "dashboard/failed.html", status=500)


nothing_here, failed = add_page_headers(_nothing_here), add_page_headers(_server_error)
