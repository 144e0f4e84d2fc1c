"""What the server of a preview answers: the participant's page and its calls, nothing of the dashboard."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from crowd.joining import views
from experiments.api.media import media

FIXED: list[URLPattern | URLResolver] = [
    path("join/<slug:slug>/", views.join_page, name="join"),
    path("m/<str:reference>", media, name="media"),
    path("api/sessions/", views.JoinView.as_view()),
    path("api/session/finish/", views.FinishView.as_view()),
    path("api/session/pay/", views.PayView.as_view()),
    path("api/session/withdraw/", views.WithdrawView.as_view()),
    path("api/", include("experiments.api.urls")),
]
urlpatterns = [*FIXED]
"""With the pages of the preview that is served, below its token."""
