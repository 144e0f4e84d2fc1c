from django.urls import path, re_path

from experiments.api import views

urlpatterns = [
    path("session/", views.SessionView.as_view()),
    path("session/responses/", views.ResponsesView.as_view()),
    path("session/events/", views.EventsView.as_view()),
    re_path(rf"^session/(?P<step>{'|'.join(views.GATE_STEPS)})/$", views.GateView.as_view()),
]
