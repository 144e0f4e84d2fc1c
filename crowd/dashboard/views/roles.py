"""Who may do what in a study; administrators change it."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from crowd.dashboard.access import researcher_of, study_form
from crowd.dashboard.layout import study_response
from crowd.ground.roles import ROLES, change, demand_administrator, people_of
from experiments.models import Study


class RolesForm(forms.Form):
    """All roles of one login: those that are not ticked are taken away."""

    user = forms.ModelChoiceField(
        User.objects.filter(is_active=True),
        to_field_name="username",
        error_messages={
            "required": "Choose the login.",
            "invalid_choice": "There is no active login of that name. Make it on the page /admin/ first.",
        },
    )
    roles = forms.MultipleChoiceField(choices=[(role, role) for role in ROLES], required=False)


@study_form("view")
def roles(request: HttpRequest, study: Study) -> HttpResponse:
    """The table; a POST sets the roles of one login."""
    if request.method != "POST":
        return _page(request, study)
    by = researcher_of(request)
    demand_administrator(by, study)
    form = RolesForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return _page(request, study, status=400)
    user, given = form.cleaned_data["user"], form.cleaned_data["roles"]
    taken = [role for role in ROLES if role not in given]
    done = change(study, user, given, taken, by.get_username())
    messages.success(request, " ".join(done) or "Nothing was changed.")
    return redirect("dashboard:roles", slug=study.slug)


def _page(request: HttpRequest, study: Study, status: int = 200) -> HttpResponse:
    people = people_of(study)
    users = User.objects.filter(is_active=True).order_by("username")
    content = {
        "roles": ROLES,
        "people": people.items(),
        "administrators": [user for user in users if user.is_superuser],
        "others": [user for user in users if not user.is_superuser and user not in people],
        "command": f"python manage.py study_role {study.slug} NAME --add view --by YOU",
    }
    return study_response(request, study, "roles", content, status=status, current="log")
