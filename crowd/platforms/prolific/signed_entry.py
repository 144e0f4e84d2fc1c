"""Signed entry: a token from Prolific that vouches for the ids in the address."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import jwt

from crowd.platforms.base import Claims, ForgedEntry
from crowd.platforms.prolific.arrival_and_exit import PLACEHOLDERS, SUBMISSION, TOKEN

ISSUER = "https://www.prolific.com"
REQUIRED = ["exp", "iat", "iss", "sub", "aud"]
LEEWAY = timedelta(seconds=10)
LIFETIME_MAX = timedelta(minutes=5)
OWN_FIELDS = frozenset({TOKEN, "via", "simulated"})
"""Fields of the address that Prolific does not vouch for."""
OF_THE_ACCOUNT = frozenset({"workspace_id", "organisation_id"})


class ProlificSignature:
    """Verifies Prolific's signed entry."""

    def check(
        self, token: str, keys: Mapping[str, Any], host: str, fields: Mapping[str, str], now: datetime
    ) -> Claims:
        claims = _verify_token(token, _key(token, keys))
        issued, expires = _moment(claims, "iat"), _moment(claims, "exp")
        if expires + LEEWAY < now:
            raise ForgedEntry("The link is too old. Open the study again from its page on Prolific.")
        if issued - LEEWAY > now or not issued < expires <= issued + LIFETIME_MAX:
            raise ForgedEntry("The link's times do not fit. Open the study again from its page on Prolific.")
        if not _is_host(claims["aud"], host):
            raise ForgedEntry("The link was made for another address.")
        _check_fields(claims, fields)
        return Claims(session=claims["sub"], issued_at=issued)

    def is_unknown_key(self, token: str, keys: Mapping[str, Any]) -> bool:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError:
            return False
        return isinstance(kid, str) and kid not in _kids(keys)


def _kids(jwks: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    keys = jwks.get("keys", [])
    return {str(key["kid"]): key for key in keys if isinstance(key, Mapping) and "kid" in key}


def _key(token: str, jwks: Mapping[str, Any]) -> jwt.PyJWK:
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise ForgedEntry("The link carries no readable signature.") from error
    if header.get("alg") != "RS256":
        raise ForgedEntry("The link is signed in a way that Prolific does not use.")
    key = _kids(jwks).get(str(header.get("kid")))
    if key is None or key.get("kty") != "RSA":
        raise ForgedEntry("The link is signed with a key that Prolific does not publish.")
    try:
        return jwt.PyJWK(dict(key), algorithm="RS256")
    except jwt.PyJWTError as error:
        raise ForgedEntry("The key that Prolific publishes cannot be read.") from error


def _verify_token(token: str, key: jwt.PyJWK) -> dict[str, Any]:
    try:
        claims = jwt.decode(
            token,
            key=key,
            algorithms=["RS256"],
            issuer=ISSUER,
            # The times are compared with the given one, and the audience by host.
            options={
                "require": REQUIRED,
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
                "verify_aud": False,
            },
        )
    except jwt.PyJWTError as error:
        raise ForgedEntry("The link's signature does not fit.") from error
    if not isinstance(claims.get("sub"), str) or not isinstance(claims.get("aud"), str):
        raise ForgedEntry("The link's signature does not name its session and address.")
    return claims


def _moment(claims: Mapping[str, Any], name: str) -> datetime:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e11:
        raise ForgedEntry("The link's times cannot be read.")
    return datetime.fromtimestamp(value, UTC)


def _is_host(audience: str, host: str) -> bool:
    try:
        parts = urlsplit(audience)
        our_name = urlsplit(f"//{host}").hostname
        return parts.scheme in ("http", "https") and bool(our_name) and parts.hostname == our_name
    except ValueError:
        return False


def _check_fields(claims: Mapping[str, Any], fields: Mapping[str, str]) -> None:
    """Every field of the address equals its claim, and every claim is in the address."""
    vouched = claims.get("prolific")
    if not isinstance(vouched, Mapping) or not PLACEHOLDERS.keys() <= vouched.keys():
        raise ForgedEntry("The link's signature does not vouch for person, study and session.")
    if claims["sub"] != vouched[SUBMISSION]:
        raise ForgedEntry("The link's signature is for another session.")
    given = {name: value for name, value in fields.items() if name not in OWN_FIELDS}
    wanted = {name: value for name, value in vouched.items() if name not in OF_THE_ACCOUNT}
    if given != wanted:
        raise ForgedEntry("The address was changed after Prolific signed it.")
