"""The participant's calls that speak with a platform, and the page itself."""

from __future__ import annotations

import html
import json
import secrets
from functools import lru_cache
from urllib.parse import urlencode

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from crowd import entry
from crowd.models import Posting
from experiments.api import bodies, serializers
from experiments.api.state import session_state
from experiments.api.views import ERRORS, ParticipantView
from experiments.errors import InvalidRequest
from experiments.sessions import check_comment, claim_if_due, session_of

PLACEHOLDER = '<meta name="legible" content="">'
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action https:; object-src 'none'; frame-ancestors {ancestors}"
)
ANCESTORS = {"local": "'self'", "link": "'self'"}


class JoinView(ParticipantView):
    @extend_schema(
        operation_id="join", request=serializers.Join,
        responses={201: serializers.Joined, 200: serializers.Joined, **ERRORS},
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """A session for whoever the query string names; the same submission comes back to its session."""
        body = bodies.body_of(request, {"study", "platform", "query"})
        values = {}
        for name, limit in (("study", 64), ("platform", 20), ("query", 2000)):
            value = body.get(name)
            if not isinstance(value, str) or len(value) > limit:
                raise InvalidRequest(
                    f"{name} must be text of at most {limit} characters.",
                    fields={name: f"text of at most {limit} characters"},
                )
            values[name] = value
        joined = entry.join(values["study"], values["platform"], values["query"])
        state = session_state(claim_if_due(joined.session))
        return Response({"token": joined.token, "session": state}, status=201 if joined.created else 200)


class FinishView(ParticipantView):
    @extend_schema(
        operation_id="finish", request=serializers.Finish, responses={200: serializers.Ended, **ERRORS}
    )
    def post(self, request: Request) -> Response:
        """The end: everything is stored, the debrief and the way back are given. Repeatable."""
        session = session_of(bodies.bearer_token(request))
        comment = check_comment(bodies.body_of(request, {"comment"}).get("comment"))
        ended = entry.finish(session, comment)
        return Response(ended.as_json())


class WithdrawView(ParticipantView):
    @extend_schema(
        operation_id="withdraw", request=serializers.Withdraw, responses={200: serializers.Ended, **ERRORS}
    )
    def post(self, request: Request) -> Response:
        """Leaves the study, with or without what was answered so far. Repeatable."""
        session = session_of(bodies.bearer_token(request))
        body = bodies.body_of(request, {"reason", "erase"})
        reason, erase = body.get("reason"), body.get("erase")
        if not isinstance(reason, str) or len(reason) > 500:
            raise InvalidRequest(
                "reason must be text of at most 500 characters.", fields={"reason": "text, at most 500"}
            )
        if not isinstance(erase, bool):
            raise InvalidRequest("erase must be true or false.", fields={"erase": "true or false"})
        ended = entry.withdraw(session, reason, erase)
        return Response(ended.as_json())


@lru_cache(maxsize=1)
def _page(changed_ns: int) -> str:
    text = (settings.PARTICIPANT_PAGE_DIR / "index.html").read_text(encoding="utf-8")
    if PLACEHOLDER not in text:
        raise RuntimeError(f"the participant's page lacks {PLACEHOLDER}: build frontend/ again")
    return text


@require_safe
@xframe_options_exempt
def join_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The participant's page. The query string is the platform's and stays untouched."""
    path = settings.PARTICIPANT_PAGE_DIR / "index.html"
    if not path.is_file():
        return HttpResponse("The participant's page is not built. Run: make setup", status=503)
    postings = {p.platform for p in Posting.objects.filter(study__slug=slug, state=Posting.State.OPEN)}
    preview = "preview" in request.GET
    if not postings and not preview:
        raise Http404("no such study")
    platform = "local" if "local" in postings or preview else sorted(postings)[0]
    if platform == "local" and not preview and "person" not in request.GET:
        # A walk-in gets a name in the address, so that a reload finds the same session without any cookie.
        name = f"walk-in-{secrets.token_urlsafe(9)}"
        return HttpResponseRedirect(f"{request.path}?{urlencode({'person': name, 'submission': name})}")
    facts = html.escape(json.dumps({"study": slug, "platform": platform, "api": "/api/"}), quote=True)
    content = _page(path.stat().st_mtime_ns).replace(PLACEHOLDER, f'<meta name="legible" content="{facts}">')
    response = HttpResponse(content)
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.format(
        ancestors=ANCESTORS.get(platform, "'self'")
    )
    return response
