"""Whether a request is signed with a known key: Signature Version 4, recomputed with botocore's own signer.

A simulator has no wall clock, so a date is stale when it lies too far behind the newest one that was signed
correctly here: a recorded request cannot be sent again later.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from crowd.rehearsal.mturk.model import signing_name
from crowd.rehearsal.serving import Asked

REGION = "us-east-1"
DATE = "%Y%m%dT%H%M%SZ"
WINDOW = timedelta(minutes=15)
MUST_SIGN = {"host", "x-amz-date", "x-amz-target"}
_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/(?P<day>\d{8})/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)"
    r"/aws4_request, ?SignedHeaders=(?P<headers>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


class NotSigned(Exception):
    """The sender is not proved. `code` is the name of the error on the wire; there is no TurkErrorCode."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Signatures:
    """Checks requests against the known keys."""

    def __init__(self, accounts: Mapping[str, str]) -> None:
        self.accounts = dict(accounts)
        self.newest: datetime | None = None

    def check(self, request: Asked) -> str:
        """The key that signed. Raises NotSigned."""
        header = request.headers.get("authorization", "")
        if not header:
            raise NotSigned("MissingAuthenticationTokenException", "Missing Authentication Token")
        parts = _HEADER.fullmatch(header)
        if not parts or "host" not in request.headers:
            raise NotSigned("IncompleteSignatureException", "The Authorization header is not complete.")
        key = parts["key"]
        if key not in self.accounts:
            raise NotSigned(
                "UnrecognizedClientException", "The security token included in the request is invalid."
            )
        if (parts["region"], parts["service"]) != (REGION, signing_name()):
            _refuse(f"Credential should be scoped to {signing_name()} in {REGION}.")
        names = parts["headers"].split(";")
        if request.query:
            _refuse("The request has a query string that was not signed.")
        unsigned = {n for n in request.headers if n.startswith("x-amz-")} | MUST_SIGN
        if unsigned - set(names):
            _refuse(f"Headers that must be signed are not: {', '.join(sorted(unsigned - set(names)))}.")
        date = _date(request, parts["day"])
        expected = _signature(request, names, key, self.accounts[key])
        if not hmac.compare_digest(expected, parts["signature"]):
            _refuse("The request signature we calculated does not match the signature you provided.")
        self._fresh(date)
        return key

    def _fresh(self, date: datetime) -> None:
        if self.newest is not None and date < self.newest - WINDOW:
            _refuse(f"Signature expired: {date:{DATE}} is now earlier than {self.newest - WINDOW:{DATE}}.")
        self.newest = max(date, self.newest or date)


def _date(request: Asked, day: str) -> datetime:
    text = request.headers.get("x-amz-date", "")
    try:
        date = datetime.strptime(text, DATE).replace(tzinfo=UTC)
    except ValueError:
        _refuse("Date must be in ISO-8601 'basic format' in X-Amz-Date.")
    if text[:8] != day:
        _refuse("Date in Credential scope does not match YYYYMMDD from X-Amz-Date.")
    return date


def _signature(request: Asked, names: list[str], key: str, secret: str) -> str:
    """The correct signature of this request."""
    digest = request.headers.get("x-amz-content-sha256")
    if digest is not None and digest != hashlib.sha256(request.body).hexdigest():
        _refuse("The body is not the one that was signed.")
    headers = {name: request.headers[name] for name in names if name in request.headers}
    aws_request = AWSRequest(
        method=request.method, url=f"http://{request.headers['host']}{request.path}", headers=headers,
        data=request.body,
    )  # fmt: skip
    aws_request.context["timestamp"] = request.headers["x-amz-date"]
    signer = SigV4Auth(Credentials(key, secret), signing_name(), REGION)
    text = signer.string_to_sign(aws_request, signer.canonical_request(aws_request))
    return str(signer.signature(text, aws_request))


def _refuse(message: str) -> NoReturn:
    raise NotSigned("InvalidSignatureException", message)
