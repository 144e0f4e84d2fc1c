"""Whether a request is signed with a known key: Signature Version 4, made again by botocore's own signer."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from crowd.rehearsal.mturk.request_shapes import service_model
from crowd.rehearsal.serving import IncomingRequest

REGION = "us-east-1"
_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/\d{8}/[^/,\s]+/[^/,\s]+"
    r"/aws4_request, ?SignedHeaders=(?P<headers>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


class NotSigned(Exception):
    """The sender is not proved. `code` is the name of the error on the wire; there is no TurkErrorCode."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def check_signature(request: IncomingRequest, accounts: Mapping[str, str]) -> None:
    """Raises NotSigned unless one of the accounts, the secrets of keys, has signed the request."""
    header = request.headers.get("authorization", "")
    if not header:
        raise NotSigned("MissingAuthenticationTokenException", "Missing Authentication Token")
    parts = _HEADER.fullmatch(header)
    if not parts:
        raise NotSigned("IncompleteSignatureException", "The Authorization header is not complete.")
    key = parts["key"]
    if key not in accounts:
        raise NotSigned(
            "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    expected = _signature(request, parts["headers"].split(";"), Credentials(key, accounts[key]))
    if not hmac.compare_digest(expected, parts["signature"]):
        raise NotSigned(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided.",
        )


def _signature(request: IncomingRequest, names: list[str], credentials: Credentials) -> str:
    """The correct signature of this request."""
    headers = {name: request.headers[name] for name in names if name in request.headers}
    url = f"http://{request.headers.get('host', '')}{request.path}"
    aws_request = AWSRequest(method=request.method, url=url, headers=headers, data=request.body)
    aws_request.context["timestamp"] = request.headers.get("x-amz-date", "")
    signer = SigV4Auth(credentials, service_model().signing_name, REGION)
    text = signer.string_to_sign(aws_request, signer.canonical_request(aws_request))
    return str(signer.signature(text, aws_request))
