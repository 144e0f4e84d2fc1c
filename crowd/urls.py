from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

from crowd.dashboard.views.downloads import fetch
from crowd.ground.readiness import ready
from crowd.joining import views
from crowd.recruiting.webhooks import hook
from experiments.api.media import media


def healthy(request: HttpRequest) -> HttpResponse:
    """For load balancers: the process answers."""
    return HttpResponse("ok", content_type="text/plain")


handler404 = "crowd.dashboard.views.lost.nothing_here"
handler500 = "crowd.dashboard.views.lost.failed"
urlpatterns = [
    path("healthz", healthy),
    path("readyz", ready),
    path("join/<slug:slug>/", views.join_page, name="join"),
    path("m/<str:reference>", media, name="media"),
    path("hooks/<slug:platform>/", hook),
    path("data/<slug:slug>.zip", fetch, name="data"),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/sessions/", views.JoinView.as_view()),
    path("api/session/finish/", views.FinishView.as_view()),
    path("api/session/pay/", views.PayView.as_view()),
    path("api/session/withdraw/", views.WithdrawView.as_view()),
    path("api/", include("experiments.api.urls")),
    path("admin/", admin.site.urls),
    path("", include("crowd.dashboard.urls")),
]
