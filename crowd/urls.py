from functools import cache
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from rest_framework.renderers import BaseRenderer

from crowd.dashboard.views.downloads import fetch
from crowd.ground.readiness import ready
from crowd.joining import views
from crowd.recruiting.webhooks import hook
from experiments.api.media import media


def healthy(request: HttpRequest) -> HttpResponse:
    """For load balancers: the process answers."""
    return HttpResponse("ok", content_type="text/plain")


def schema(request: HttpRequest) -> HttpResponse:
    """The interface of the participant's page as YAML, or as JSON if that is asked for."""
    is_json = request.GET.get("format") == "json" or "json" in request.headers.get("Accept", "")
    renderer = OpenApiJsonRenderer if is_json else OpenApiYamlRenderer
    return HttpResponse(_schema(renderer), content_type=renderer.media_type)


@cache
def _schema(renderer: type[BaseRenderer]) -> bytes:
    """Made once for each process: it takes as long as many answers of a person."""
    make: Any = SchemaGenerator
    written = renderer().render(make().get_schema(public=True), renderer_context={})
    return written if isinstance(written, bytes) else written.encode()


handler404 = "crowd.dashboard.views.error_pages.nothing_here"
handler500 = "crowd.dashboard.views.error_pages.failed"
urlpatterns = [
    path("healthz", healthy),
    path("readyz", ready),
    path("join/<slug:slug>/", views.join_page, name="join"),
    path("m/<str:reference>", media, name="media"),
    path("hooks/<slug:platform>/", hook),
    path("data/<slug:slug>.zip", fetch, name="data"),
    path("api/schema/", schema, name="schema"),
    path("api/sessions/", views.JoinView.as_view()),
    path("api/session/finish/", views.FinishView.as_view()),
    path("api/session/pay/", views.PayView.as_view()),
    path("api/session/withdraw/", views.WithdrawView.as_view()),
    path("api/", include("experiments.api.urls")),
    path("admin/", admin.site.urls),
    path("", include("crowd.dashboard.urls")),
]
