"""The participant's API, except the calls that need a platform (join, finish, withdraw: in crowd)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.utils.cache import patch_cache_control
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from experiments.api import bodies, serializers
from experiments.api.state import session_state
from experiments.api.throttling import CallsPerToken
from experiments.errors import InvalidRequest
from experiments.gates import GATES
from experiments.models import Session
from experiments.selectors import cards_of
from experiments.sessions.colour_check_debriefing import answer_invitation, check_result
from experiments.sessions.lifecycle import claim_if_due, keep, pass_gate, session_of, step_of, tell
from experiments.sessions.responses import AnswerReceipt, record_events, record_responses

ERRORS = dict.fromkeys((400, 401, 403, 404, 409, 410, 413, 429), serializers.Error)


STEP = OpenApiParameter("step", str, OpenApiParameter.PATH, enum=list(GATES.names))


class ParticipantView(APIView):
    """No cookies, no caches, no referrer: the token in the header is all there is.

    A platform's sandboxed frame has no origin, so requests of the page inside it are cross-site. Another site
    gains nothing by this: a request carries no credentials except its token.
    """

    throttle_classes = [CallsPerToken]

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """The preflight that a browser sends before a cross-site request."""
        allowed = {
            "Access-Control-Allow-Methods": ", ".join(self.allowed_methods),
            "Access-Control-Allow-Headers": "Authorization, Content-Type",
            "Access-Control-Max-Age": "600",
        }
        return Response(status=204, headers=allowed)

    def check_throttles(self, request: Request) -> None:
        if request.method != "OPTIONS":
            super().check_throttles(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        patch_cache_control(response, no_store=True)
        response["Referrer-Policy"] = "no-referrer"
        response["Access-Control-Allow-Origin"] = "*"
        response["Access-Control-Expose-Headers"] = "Retry-After"
        return response


class SessionView(ParticipantView):
    @extend_schema(operation_id="session", responses={200: serializers.SessionState, **ERRORS})
    def get(self, request: Request) -> Response:
        """The state of the session; correct after any reload."""
        return Response(session_state(claim_if_due(session_of(bodies.bearer_token(request)))))


class GateView(ParticipantView):
    @extend_schema(
        operation_id="pass_gate",
        request=serializers.GateTrySerializer,
        responses={200: serializers.SessionState, **ERRORS},
        parameters=[STEP],
    )
    def post(self, request: Request, step: str) -> Response:
        """One try at the current page."""
        if step not in GATES:
            raise Http404
        session = session_of(bodies.bearer_token(request))
        body = bodies.body_of(request, {"digest", "value"})
        digest, value = body.get("digest"), body.get("value")
        if not isinstance(digest, str) or len(digest) > 64:
            raise InvalidRequest(
                "digest must be the page's digest.", fields={"digest": "text of 64 characters"}
            )
        if not isinstance(value, dict):
            raise InvalidRequest("value must be an object.", fields={"value": "must be an object"})
        return Response(session_state(pass_gate(session, step, digest, value)))


def _single_answer(request: Request, step: str) -> tuple[Session, str, str, str, object]:
    """The session, the step, the page's digest, the question and the choice of a `GateAnswer`."""
    if step not in GATES:
        raise Http404
    session = session_of(bodies.bearer_token(request))
    body = bodies.body_of(request, {"digest", "question", "choice"})
    digest = bodies.text_of(body, "digest", 64)
    return session, step, digest, bodies.text_of(body, "question", 40), body.get("choice")


class ToldView(ParticipantView):
    @extend_schema(
        operation_id="tell",
        request=serializers.GateAnswer,
        responses={200: serializers.ToldSerializer, **ERRORS},
        parameters=[STEP],
    )
    def post(self, request: Request, step: str) -> Response:
        """The answer to one question of the current page, stored and then told right or wrong. The first
        answer stands."""
        return Response(asdict(tell(*_single_answer(request, step))))


class KeptView(ParticipantView):
    @extend_schema(
        operation_id="keep",
        request=serializers.GateAnswer,
        responses={200: serializers.Kept, **ERRORS},
        parameters=[STEP],
    )
    def post(self, request: Request, step: str) -> Response:
        """The answer to one question of a page that is sent as a whole later, so that a page that is loaded
        again goes on after it. The first answer stands."""
        return Response({"choice": keep(*_single_answer(request, step))})


class CheckResultView(ParticipantView):
    @extend_schema(operation_id="check_result", responses={200: serializers.CheckResult, **ERRORS})
    def get(self, request: Request) -> Response:
        """What the colour check showed, after the end and on request alone."""
        return Response({"html": check_result(session_of(bodies.bearer_token(request)))})


class InvitationView(ParticipantView):
    @extend_schema(
        operation_id="invitation",
        request=serializers.Invitation,
        responses={200: serializers.Invitation, **ERRORS},
    )
    def post(self, request: Request) -> Response:
        """Whether the person may be invited to another part, after the end. The first answer stands."""
        session = session_of(bodies.bearer_token(request))
        agree = bodies.body_of(request, {"agree"}).get("agree")
        if not isinstance(agree, bool):
            raise InvalidRequest("agree must be true or false.", fields={"agree": "true or false"})
        return Response({"agree": answer_invitation(session, agree)})


class ResponsesView(ParticipantView):
    @extend_schema(
        operation_id="record_responses",
        request=serializers.Responses,
        responses={200: serializers.RecordedSerializer, **ERRORS},
    )
    def post(self, request: Request) -> Response:
        """Answers, in order, stored before they are acknowledged; sending them twice is harmless."""
        token = bodies.bearer_token(request)
        answers = bodies.responses_of(bodies.body_of(request, {"responses"}))
        recorded = record_responses(token, answers)
        feedback = {
            answer.trial: {"trial": answer.trial, **row.feedback}
            for answer, row in zip(answers, recorded, strict=True)
            if row.feedback is not None
        }
        last = recorded[-1]
        return Response({**_position(token, last), "feedback": feedback})


def _position(token: str, last: AnswerReceipt) -> dict[str, Any]:
    """The next step of the page. The session is read only at the end of the trials."""
    if last.remaining:
        return {"next": last.position + 1, "step": "trials"}
    session = session_of(token)
    return {
        "next": len(cards_of(session.slot, session.study)) if session.slot else 0,
        "step": step_of(session).name,
    }


class EventsView(ParticipantView):
    @extend_schema(operation_id="record_events", request=serializers.Events, responses={200: None, **ERRORS})
    def post(self, request: Request) -> Response:
        """Events other than answers."""
        session: Session = session_of(bodies.bearer_token(request))
        record_events(session, bodies.events_of(bodies.body_of(request, {"events"})))
        return Response({})
