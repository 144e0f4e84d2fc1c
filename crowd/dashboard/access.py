"""Who may see a page and act on it, and what every page says to the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_cookie

from crowd.dashboard.layout import study_response
from crowd.ground.broker_silence import BrokerSilent
from crowd.ground.roles import NotAllowed, demand, studies_of
from experiments.errors import StudyError
from experiments.models import Study

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE = ("GET", "HEAD")
View = Callable[..., HttpResponseBase]
StudyView = Callable[Concatenate[HttpRequest, Study, ...], HttpResponseBase]


def add_page_headers(view: View) -> View:
    """The page's headers: no caching, no scripts of other hosts, no framing."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response.headers.setdefault("Cache-Control", "private, no-store")
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Referrer-Policy", "same-origin")
        return response

    return vary_on_cookie(answer)


def researcher(view: View) -> View:
    """Only for users who have logged in; others are redirected to the login page."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return view(request, *args, **kwargs)

    return add_page_headers(answer)


def study_page(look: str) -> Callable[[StudyView], View]:
    """A page of one study, for logins with the role `look`: it is read, and changes nothing."""
    return _study_view(SAFE, look)


def study_act(role: str) -> Callable[[StudyView], View]:
    """What a button of a page sends, from logins with this role."""
    return _study_view(("POST",), role)


def study_form(look: str, *act: str) -> Callable[[StudyView], View]:
    """A page with a form that is sent to its own address."""
    return _study_view((*SAFE, "POST"), look, *act)


def _study_view(methods: Sequence[str], look: str, *act: str) -> Callable[[StudyView], View]:
    """A view of one study that answers to these methods: the slug in the address becomes the study.

    GET and HEAD need the role `look`; other methods need one of `act`, or `look` if there is none. A login
    without any role in the study is told that there is no such study. A view may demand more by itself. If
    the broker does not take a message, the page before says so, and nothing was done.
    """

    def decorate(view: StudyView) -> View:
        allowed = require_http_methods([*methods])(view)

        @researcher
        @wraps(view)
        def answer(request: HttpRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            user = researcher_of(request)
            study = get_object_or_404(studies_of(user), slug=slug)
            needed = act if act and request.method not in SAFE else (look,)
            try:
                demand(user, study, *needed)
                return allowed(request, study, *args, **kwargs)
            except NotAllowed as error:
                return study_response(request, study, "forbidden", {"problem": str(error)}, status=403)
            except BrokerSilent as error:
                messages.error(request, str(error))
                return redirect(_page_before(request, study))

        return answer

    return decorate


def reason_field(tail: str) -> forms.CharField:
    """A reason; `tail` is the end of the sentence that asks for one, or for a longer one."""
    return forms.CharField(
        min_length=20,
        max_length=1000,
        error_messages={
            "required": f"Give the reason{tail}",
            "min_length": f"Give the reason in at least 20 characters{tail}",
        },
    )


@contextmanager
def refusals(tell: Callable[[str], object]) -> Iterator[None]:
    """Around what may be refused: the reason is told, and what follows in the block does not happen."""
    try:
        yield
    except StudyError as error:
        tell(str(error))


def _page_before(request: HttpRequest, study: Study) -> str:
    """The page that the form stood on, if it is one of ours; else the overview."""
    before = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(before, {request.get_host()}, request.is_secure())
    return before if is_ours else reverse("dashboard:overview", args=[study.slug])


def researcher_of(request: HttpRequest) -> User:
    """The person behind a request that `researcher` let through."""
    return cast(User, request.user)
