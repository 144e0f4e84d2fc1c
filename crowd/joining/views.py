"""The participant's calls that speak with a platform."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from crowd.joining import entry_and_exit
from crowd.joining.participant_page import join_page
from crowd.joining.rate_limits import Sender
from experiments.api import bodies, serializers
from experiments.api.client_address import client_address, is_told
from experiments.api.state import session_state
from experiments.api.views import ERRORS, ParticipantView
from experiments.errors import InvalidRequest
from experiments.sessions.lifecycle import check_comment, session_of

__all__ = ["FinishView", "JoinView", "PayView", "WithdrawView", "join_page"]


class JoinView(ParticipantView):
    throttle_classes = []

    @extend_schema(
        operation_id="join", request=serializers.Join,
        responses={201: serializers.Joined, 200: serializers.Joined, **ERRORS},
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """A session for the person in the query string; the same submission returns to its session."""
        address = client_address(request)
        sender = Sender(address, is_told(request)) if address else None
        body = bodies.body_of(request, {"study", "platform", "query", "attempt"})
        joined = entry_and_exit.join(
            bodies.text_of(body, "study", 64),
            bodies.text_of(body, "platform", 20),
            bodies.text_of(body, "query", bodies.QUERY_MAX),
            bodies.text_of(body, "attempt", bodies.ATTEMPT_MAX, default=""),
            sender,
        )
        reply = {
            "token": joined.token,
            "session": session_state(entry_and_exit.claim_or_end(joined)),
            "query": joined.query or None,
            "sitting": joined.sitting,
        }
        return Response(reply, status=201 if joined.created else 200)


class FinishView(ParticipantView):
    @extend_schema(
        operation_id="finish", request=serializers.Finish, responses={200: serializers.Ended, **ERRORS}
    )
    def post(self, request: Request) -> Response:
        """The end: everything is stored, the debrief and the way back are given. Repeatable."""
        session = session_of(bodies.bearer_token(request))
        body = bodies.body_of(request, {"comment", "query"})
        query = bodies.text_of(body, "query", bodies.QUERY_MAX, default="")
        ended = entry_and_exit.finish(session, check_comment(body.get("comment")), query)
        return Response(ended.as_json())


class PayView(ParticipantView):
    @extend_schema(
        operation_id="pay_if_left",
        parameters=[OpenApiParameter("reason", str, required=False)],
        responses={200: serializers.Pay, **ERRORS},
    )
    def get(self, request: Request) -> Response:
        """What leaving the study at this moment would pay, for the reason that would be given."""
        session = session_of(bodies.bearer_token(request))
        return Response(
            {"pay": list(entry_and_exit.leaving(session, request.query_params.get("reason", "")))}
        )


class WithdrawView(ParticipantView):
    @extend_schema(
        operation_id="withdraw", request=serializers.Withdraw, responses={200: serializers.Ended, **ERRORS}
    )
    def post(self, request: Request) -> Response:
        """Leaves the study, with or without what was answered so far. Repeatable."""
        session = session_of(bodies.bearer_token(request))
        body = bodies.body_of(request, {"reason", "erase", "query"})
        reason = bodies.text_of(body, "reason", 500)
        query = bodies.text_of(body, "query", bodies.QUERY_MAX, default="")
        erase = body.get("erase")
        if not isinstance(erase, bool):
            raise InvalidRequest("erase must be true or false.", fields={"erase": "true or false"})
        ended = entry_and_exit.withdraw(session, reason, erase, query)
        return Response(ended.as_json())
