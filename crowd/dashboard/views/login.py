"""Logging in, once by a link or always by password, and out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlparse

from django.conf import settings
from django.contrib.auth import login as log_in
from django.contrib.auth import views as auth_views
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from crowd.dashboard.access import add_page_headers
from crowd.dashboard.login_attempts import PatientForm
from crowd.dashboard.login_links import person_of, spend


class LoginPage(auth_views.LoginView):
    """Name and password."""

    template_name = "dashboard/login.html"
    redirect_authenticated_user = True
    authentication_form = PatientForm

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        # Everybody may read this page: paths of the server stand there only on the reader's own machine.
        is_local = urlparse(settings.BASE_URL).hostname in {"127.0.0.1", "localhost", "::1"}
        return {**super().get_context_data(**context), "is_local": is_local}


login = add_page_headers(LoginPage.as_view())
logout = add_page_headers(auth_views.LogoutView.as_view(next_page="dashboard:login"))
BACKEND = "django.contrib.auth.backends.ModelBackend"


def _enter(request: HttpRequest, token: str) -> HttpResponse:
    """Looking at the link asks for one click, so that a robot that previews links does not use it up."""
    if request.method == "POST":
        user = spend(token)
        if user is not None:
            log_in(request, user, backend=BACKEND)
            return redirect("dashboard:studies")
    elif (user := person_of(token)) is not None:
        return render(request, "dashboard/enter.html", {"person": user})
    response = render(request, "dashboard/enter.html", {"person": None}, status=410)
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django's log would repeat the token.
    return response


enter = add_page_headers(require_http_methods(["GET", "HEAD", "POST"])(_enter))
