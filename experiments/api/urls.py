from django.urls import path

from experiments.api import views

urlpatterns = [
    path("session/", views.SessionView.as_view()),
    path("session/responses/", views.ResponsesView.as_view()),
    path("session/events/", views.EventsView.as_view()),
    path("session/<slug:step>/told/", views.ToldView.as_view()),
    path("session/<slug:step>/", views.GateView.as_view()),
]
