from django.urls import path

from experiments.api import views

urlpatterns = [
    path("session/", views.SessionView.as_view()),
    path("session/responses/", views.ResponsesView.as_view()),
    path("session/events/", views.EventsView.as_view()),
    path("session/check/", views.CheckResultView.as_view()),
    path("session/invitation/", views.InvitationView.as_view()),
    path("session/<slug:step>/kept/", views.KeptView.as_view()),
    path("session/<slug:step>/told/", views.ToldView.as_view()),
    path("session/<slug:step>/", views.GateView.as_view()),
]
