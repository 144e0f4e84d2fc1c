"""Calls to Mechanical Turk through boto3: one try is one request, and an error says whether it may be
repeated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
)
from botocore.parsers import ResponseParserError

from crowd.platforms.base import Account, PlatformError

REGION = "us-east-1"
ENDPOINTS = {
    "live": "https://mturk-requester.us-east-1.amazonaws.com",
    "sandbox": "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
}
PAGE = 100
PAGES_MAX = 1000
BACKOFF_S = (1.0, 2.0, 4.0, 8.0)
READ_S, CALL_S, LIST_S = 60, 60.0, 600.0
"""The longest silence within an answer; the longest time for one call with its repetitions, pauses aside, and
for all pages of a list."""
IDEMPOTENT = frozenset(
    (
        "CreateHITType",
        "UpdateExpirationForHIT",
        "AssociateQualificationWithWorker",
        "UpdateNotificationSettings",
    )
)
"""Operations that change something and are idempotent."""
ONCE = frozenset(("SendBonus", "NotifyWorkers"))
"""Operations that are sent only once, also after an error."""
BUSY = frozenset(
    ("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled",
     "TooManyRequestsException", "RequestLimitExceeded")
)  # fmt: skip
UNSENT = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError)
"""Failures before a single byte of the request went out."""
NO_KEYS = (NoCredentialsError, PartialCredentialsError)
PEOPLE = frozenset(("WorkerId", "WorkerIds", "AssignmentId"))
WORKER_ID = re.compile(r"\bA[A-Z0-9]{5,63}\b")
LONG_MAX = 300
OF_ACCOUNT = frozenset(("insufficientfunds", "accountsuspended", "accessdenied"))
"""Refusals whose cause is the account."""


class TurkError(PlatformError):
    """A PlatformError with Mechanical Turk's own code, without its prefix and in small letters (empty: none),
    and its message in full. The message may name people: show `str(error)`, which does not. Whether it is
    `uncertain` is said each time: taken for certain, a payment would be sent again."""

    def __init__(
        self, message: str, *, uncertain: bool, permanent: bool = False, code: str = "", full: str = ""
    ) -> None:
        of_account = code in OF_ACCOUNT
        super().__init__(message, permanent=permanent, uncertain=uncertain, of_account=of_account)
        self.code, self.full = code, full


class TurkWire:
    """The operations of one account. `wait(seconds)` passes the time between two tries; `clock()` gives
    seconds of a clock that only runs forward.

    A call ends with its repetitions and a list with its pages. One try ends `READ_S` after the last byte that
    came: boto3 reads an answer as a whole and offers no limit of its time or size, so an answer that drips
    holds its call for as long as it drips.
    """

    def __init__(self, account: Account, wait: Callable[[float], object], clock: Callable[[], float]) -> None:
        self.wait, self.clock = wait, clock
        self.client = _client(account)

    def call(self, operation: str, **members: Any) -> dict[str, Any]:
        """One operation, named as Amazon names it. Raises TurkError.

        A failure that may pass is tried again, even if the first try may have taken effect: what is created
        carries a token or a unique name, and a decision is made once, so a repetition is at worst refused,
        and the caller reads the state. A payment or a message is never repeated.
        """
        self._check(operation, members)
        spent_s = 0.0
        for pause_s in BACKOFF_S:
            started = self.clock()
            try:
                return self._send(operation, members)
            except TurkError as error:
                spent_s += self.clock() - started
                if error.permanent or operation in ONCE or spent_s > CALL_S:
                    raise
            self.wait(pause_s)
        return self._send(operation, members)

    def pages(self, operation: str, key: str, **members: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list over all its pages. The last page may still carry a token, so an empty page
        ends the list as well. A list that does not end is a TurkError."""
        token: dict[str, str] = {}
        started, seen = self.clock(), set[str]()
        for _ in range(PAGES_MAX):
            if self.clock() - started > LIST_S:
                raise _endless(operation, f"took over {LIST_S:.0f} seconds")
            page = self.call(operation, MaxResults=PAGE, **members, **token)
            items = page.get(key) or []
            yield from items
            if not items or not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}
            if token["NextToken"] in seen:
                raise _endless(operation, "names a page twice")
            seen.add(token["NextToken"])
        raise _endless(operation, f"has more than {PAGES_MAX} pages")

    def _send(self, operation: str, members: Mapping[str, Any]) -> dict[str, Any]:
        changes = not is_harmless(operation)
        try:
            reply: dict[str, Any] = getattr(self.client, xform_name(operation))(**members)
        except ClientError as error:
            raise _turk_error(operation, members, error, changes) from error
        except ParamValidationError as error:
            raise TurkError(
                f"{operation} was not sent: {_hide_ids(str(error), members)}", permanent=True, uncertain=False
            ) from error
        except NO_KEYS as error:
            raise TurkError(
                "There are no keys for Mechanical Turk. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
                permanent=True,
                uncertain=False,
            ) from error
        except (BotoCoreError, ResponseParserError) as error:
            unsent = isinstance(error, UNSENT)
            what = "cannot be reached" if unsent else "did not answer"
            raise TurkError(
                f"Mechanical Turk {what} ({operation}: {type(error).__name__}).",
                uncertain=changes and not unsent,
            ) from error
        self._check_reply(operation, reply, changes)
        return reply

    def _check_reply(self, operation: str, reply: Mapping[str, Any], changes: bool) -> None:
        """boto3 takes a body that is no JSON, or half of it, for an answer without members: a list would
        seem to be empty."""
        shape = self.client.meta.service_model.operation_model(operation).output_shape
        wanted = shape.members if shape is not None and operation not in ONCE else {}
        if wanted and not wanted.keys() & reply.keys():
            raise TurkError(
                f"Mechanical Turk's answer cannot be read ({operation}). Try again later.",
                uncertain=changes,
            )

    def _check(self, operation: str, members: Mapping[str, Any]) -> None:
        """Lengths, limits, patterns and choices, which boto3 does not look at."""
        shape = self.client.meta.service_model.operation_model(operation).input_shape
        wrong = list(faults_of(shape, members, "")) if shape is not None else []
        if wrong:
            raise TurkError(f"{operation} was not sent: {wrong[0]}", permanent=True, uncertain=False)


def _endless(operation: str, how: str) -> TurkError:
    return TurkError(f"A list of Mechanical Turk {how} ({operation}). Try again later.", uncertain=False)


def is_harmless(operation: str) -> bool:
    """Whether the operation is idempotent."""
    return operation.startswith(("Get", "List")) or operation in IDEMPOTENT


def faults_of(shape: Any, value: Any, path: str) -> Iterator[str]:
    """What the service model forbids in a value, one sentence each. Values that name people are not shown."""
    kind = shape.type_name
    if kind == "structure" and isinstance(value, Mapping):
        for name, inner in value.items():
            if name in shape.members:
                yield from faults_of(shape.members[name], inner, f"{path}.{name}".lstrip("."))
        return
    most = shape.metadata.get("max")
    if kind == "list" and isinstance(value, list | tuple):
        if most is not None and len(value) > most:
            yield f"{path} has {len(value)} entries; at most {most}."
        for index, inner in enumerate(value):
            yield from faults_of(shape.member, inner, f"{path}[{index}]")
    elif kind == "string" and isinstance(value, str):
        yield from _faults_of_text(shape, value, path, most)
    elif kind in ("integer", "long") and isinstance(value, int) and most is not None and value > most:
        yield f"{path} is {value}; at most {most}."


def _faults_of_text(shape: Any, value: str, path: str, most: int | None) -> Iterator[str]:
    if most is not None and len(value) > most:
        yield f"{path} has {len(value)} characters; at most {most}."
    pattern = shape.metadata.get("pattern")
    # Python's `$` would accept a trailing line break.
    if pattern and not re.fullmatch(pattern.removeprefix("^").removesuffix("$"), value):
        yield f"{path} is written in another way than Mechanical Turk's ({pattern})."
    if shape.enum and value not in shape.enum:
        yield f"{path} is {value[:40]!r}; choose one of {', '.join(shape.enum)}."


def _client(account: Account) -> Any:
    """A client that sends every request once: whether to repeat is decided in `Wire.call`."""
    url = account.site.url
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=10,
        read_timeout=READ_S,
        # A simulator runs on this machine, which no proxy reaches.
        proxies={} if url else None,
    )
    keys = {"aws_access_key_id": account.key_id, "aws_secret_access_key": account.secret}
    return boto3.session.Session().client(
        "mturk",
        region_name=REGION,
        endpoint_url=url.rstrip("/") or ENDPOINTS[account.site.mode],
        config=config,
        **(keys if account.key_id else {}),
    )


def _turk_error(operation: str, members: Mapping[str, Any], error: ClientError, changes: bool) -> TurkError:
    reply = error.response
    status = reply.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = str(reply.get("Error", {}).get("Code", ""))
    # boto3 gives the text of a modelled error under either name.
    text = str(reply.get("Error", {}).get("Message") or reply.get("Message") or "")
    turk = str(reply.get("TurkErrorCode") or "")
    busy = kind in BUSY or status == 429
    broken = status >= 500 or kind == "ServiceFault" or turk == "AWS.ServiceUnavailable"
    said = _hide_ids(text, members).strip()
    sentence = "is busy" if busy else ("failed" if broken else "refused")
    return TurkError(
        f"Mechanical Turk {sentence} ({operation}: {turk or kind}). {said}".strip(),
        permanent=not (busy or broken),
        uncertain=changes and broken and not busy,
        code=turk.removeprefix("AWS.MechanicalTurk.").lower(),
        full=text,
    )


def _hide_ids(text: str, members: Mapping[str, Any]) -> str:
    """A text of Amazon's without the ids of people."""
    for name in PEOPLE & members.keys():
        values = members[name] if isinstance(members[name], list | tuple) else [members[name]]
        for value in values:
            text = text.replace(str(value), "…") if value else text
    return WORKER_ID.sub("…", text)[:LONG_MAX]
