import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from crowd.platforms.base import Claims, ForgedEntry
from crowd.platforms.prolific.signed_entry import ProlificSignature

pytestmark = pytest.mark.pure

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
HOST = "study.example.org"
NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
FIELDS = {"PROLIFIC_PID": "p1", "STUDY_ID": "s1", "SESSION_ID": "x1"}
QUERY = {**FIELDS, "via": "abc", "prolific_token": "whatever"}


def jwks(kid: str = "k1", key: rsa.RSAPrivateKey = KEY) -> dict[str, Any]:
    public: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {"keys": [{**public, "kid": kid, "use": "sig", "alg": "RS256"}]}


def claims(**changes: Any) -> dict[str, Any]:
    members = {
        "iss": "https://www.prolific.com",
        "iat": int(NOW.timestamp()),
        "exp": int(NOW.timestamp()) + 120,
        "aud": f"https://{HOST}/join/x/?via=abc&PROLIFIC_PID=" + "{{%PROLIFIC_PID%}}",
        "sub": "x1",
        "prolific": {**FIELDS, "workspace_id": "w1", "organisation_id": "o1"},
    } | changes
    return {name: value for name, value in members.items() if value is not None}


def token(payload: dict[str, Any] | None = None, key: Any = KEY, alg: str = "RS256", kid: str = "k1") -> str:
    return jwt.encode(payload or claims(), key, algorithm=alg, headers={"kid": kid})


def check(given: str, **changes: Any) -> Claims:
    arguments: dict[str, Any] = {"keys": jwks(), "host": HOST, "fields": QUERY, "now": NOW} | changes
    return ProlificSignature().check(given, **arguments)


def test_it_accepts_what_the_platform_signed() -> None:
    assert check(token()) == Claims("x1", NOW)


@pytest.mark.parametrize("seconds", [0, 119, 125])
def test_it_accepts_it_while_it_lasts(seconds: int) -> None:
    assert check(token(), now=NOW + timedelta(seconds=seconds)).session == "x1"


@pytest.mark.parametrize("seconds", [-3600, -11, 131, 3600])
def test_it_refuses_it_before_and_after(seconds: int) -> None:
    with pytest.raises(ForgedEntry):
        check(token(), now=NOW + timedelta(seconds=seconds))


def unsigned(payload: dict[str, Any], header: dict[str, Any]) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, payload)]
    return b".".join([*parts, b""]).decode()


def confused() -> str:
    """HS256 with the public key as the secret, signed by hand: the library refuses to make it."""
    import hashlib
    import hmac

    pem = KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = unsigned(claims(), {"alg": "HS256", "typ": "JWT", "kid": "k1"}).rstrip(".")
    mac = hmac.new(pem, head.encode(), hashlib.sha256).digest()
    return f"{head}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "forged",
    [
        unsigned(claims(), {"alg": "none", "kid": "k1"}),
        unsigned(claims(), {"alg": "RS256", "kid": "k1"}),
        confused(),
        token(key=STRANGER),
        token(kid="k2"),
        token(alg="RS512"),
        token()[:-8] + "AAAAAAAA",
        "",
        "a.b.c",
        "ä",
    ],
)
def test_it_refuses_what_others_signed(forged: str) -> None:
    with pytest.raises(ForgedEntry):
        check(forged)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": None},
        {"aud": "https://evil.example/join/x/"},
        {"aud": f"https://evil.example/?{HOST}"},
        {"aud": f"https://{HOST}.evil.example/"},
        {"aud": HOST},
        {"aud": [f"https://{HOST}/"]},
        {"aud": "https://[broken"},
        {"sub": "x2"},
        {"sub": None},
        {"exp": None},
        {"iat": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": 1e300},
        {"exp": int(NOW.timestamp()) - 1},
        {"exp": int(NOW.timestamp()) + 86_400},
        {"prolific": None},
        {"prolific": "p1"},
        {"prolific": {"SESSION_ID": "x1"}},
        {"prolific": {**FIELDS, "extra": "1"}},
        {"prolific": {**FIELDS, "PROLIFIC_PID": "p2"}},
    ],
)
def test_it_refuses_claims_that_do_not_fit(changes: dict[str, Any]) -> None:
    with pytest.raises(ForgedEntry):
        check(token(claims(**changes)))


@pytest.mark.parametrize(
    "fields",
    [
        {**QUERY, "PROLIFIC_PID": "p2"},
        {**QUERY, "SESSION_ID": "x2"},
        {**QUERY, "condition": "easy"},
        {name: value for name, value in QUERY.items() if name != "STUDY_ID"},
        {},
    ],
)
def test_it_refuses_an_address_that_was_changed(fields: dict[str, str]) -> None:
    with pytest.raises(ForgedEntry):
        check(token(), fields=fields)


def test_it_knows_our_host_with_or_without_port() -> None:
    assert check(token(), host=f"{HOST.upper()}:443").session == "x1"
    with pytest.raises(ForgedEntry):
        check(token(), host="")


def test_it_tells_when_fresh_keys_may_help() -> None:
    assert ProlificSignature().is_unknown_key(token(kid="k2"), jwks())
    assert not ProlificSignature().is_unknown_key(token(), jwks())
    assert not ProlificSignature().is_unknown_key("rubbish", jwks())
    assert check(token(kid="k2"), keys=jwks("k2")).session == "x1"


@pytest.mark.parametrize(
    "keys", [{}, {"keys": []}, {"keys": ["x"]}, {"keys": [{"kid": "k1", "kty": "RSA"}]},
             {"keys": [{"kid": "k1", "kty": "oct", "k": "c2VjcmV0"}]}]
)  # fmt: skip
def test_it_refuses_everything_without_a_usable_key(keys: dict[str, Any]) -> None:
    with pytest.raises(ForgedEntry):
        check(token(), keys=keys)
