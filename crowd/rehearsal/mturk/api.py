"""The service's one address: JSON 1.1 over POST /, signed, with its errors and the faults on demand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from crowd.rehearsal.faults import Fault, Faults
from crowd.rehearsal.mturk import malformed
from crowd.rehearsal.mturk.operations import OPERATIONS
from crowd.rehearsal.mturk.records import TurkRefusal
from crowd.rehearsal.mturk.request_shapes import check_reply, read, service_model
from crowd.rehearsal.mturk.signing import NotSigned, check_signature
from crowd.rehearsal.mturk.world import TurkWorld
from crowd.rehearsal.serving import Answer, Call, CallLog, IncomingRequest

CONTENT = "application/x-amz-json-1.1"


class Api(CallLog):
    """Answers API requests, and keeps a log of them in the order in which they took effect."""

    def __init__(self, world: TurkWorld, faults: Faults, accounts: Mapping[str, str]) -> None:
        super().__init__()
        self.world, self.faults, self.accounts = world, faults, accounts

    def call(self, request: IncomingRequest) -> Answer | None:
        """The reply; None if the answer is to be lost."""
        prefix = f"{service_model().metadata['targetPrefix']}."
        operation = request.headers.get("x-amz-target", "").removeprefix(prefix)
        with self.world.lock:
            fault: Fault = ""
            effect = False
            try:
                if operation not in service_model().operation_names:
                    raise NotSigned("UnknownOperationException", "")
                check_signature(request, self.accounts)
                fault = self.faults.draw(lambda kind: malformed.meets(kind, operation, request.body))
                status, body, effect = self._carry_out(operation, request.body, fault)
            except NotSigned as error:
                status, body = 400, {"__type": error.code, "message": error.message}
            except TurkRefusal as error:
                status, body = 400, _error("RequestError", error.code, error.detail, self.world.now)
            if fault == "5xx_after":
                status, body = 500, self._service_fault()
            call = Call(operation, request.method, request.path, status, fault, effect)
            self.log.append(call)
            number = len(self.log)
        for hook in list(self.before_reply):
            hook(call)
        if fault in ("lost_answer", "late_effect"):
            return None
        headers = {"Content-Type": CONTENT, "x-amzn-RequestId": f"rehearsal-{number:08d}"}
        answer = Answer(status, json.dumps(body).encode(), headers)
        return self.faults.spoilt(fault, answer, self.world.clock)

    def _carry_out(self, operation: str, body: bytes, fault: Fault) -> tuple[int, Mapping[str, Any], bool]:
        if fault == "429":
            return 400, {"__type": "ThrottlingException", "message": "Rate exceeded"}, False
        if fault == "5xx_before":
            return 500, self._service_fault(), False
        if fault == "late_effect":
            self.world.clock.after(self.faults.late_s, lambda: self._late(operation, body))
            return 504, {}, False
        reply = run(self.world, operation, body)
        if fault in ("other_amount", "one_sum"):
            self.world.list_otherwise(fault)
        return 200, malformed.corrupt_reply(self.world, fault, body, reply), True

    def _late(self, operation: str, body: bytes) -> None:
        with suppress(TurkRefusal):
            run(self.world, operation, body)

    def _service_fault(self) -> dict[str, str]:
        message = "The service is temporarily unavailable. Try again."
        return _error("ServiceFault", "AWS.ServiceUnavailable", message, self.world.now)


def run(world: TurkWorld, operation: str, body: bytes) -> dict[str, Any]:
    """Checks a request against the service's description and carries it out. Raises TurkRefusal.

    `operation` is one of the service's own.
    """
    members = read(operation, body)
    if operation not in OPERATIONS:
        raise TurkRefusal("NotSimulated", f"The simulator does not carry out {operation}.")
    reply = OPERATIONS[operation](world, members)
    check_reply(operation, reply)
    return reply


def _error(kind: str, code: str, message: object, now: datetime) -> dict[str, str]:
    """An error as it travels: its kind in the body, milliseconds since 1970 at the end of the message."""
    stamp = int(now.timestamp() * 1000)
    return {"__type": kind, "Message": f"{message} ({stamp})", "TurkErrorCode": code}
