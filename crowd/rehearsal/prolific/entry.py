"""The address that a participant opens: placeholders filled and, if the study asks for it, signed."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from crowd.rehearsal.prolific.records import ProlificSubmission, Study
from crowd.rehearsal.prolific.world import REHEARSAL, ProlificWorld
from crowd.rehearsal.serving import with_query

ISSUER = "https://www.prolific.com"
VALID_S = 120
KEYS_PATH = "/.well-known/study/jwks.json"
PREVIEW = {"PROLIFIC_PID": "preview-participant", "STUDY_ID": "", "SESSION_ID": "preview-session"}


class Signer:
    """An RSA key with a name. `rotate` makes a new one; the old one is then no longer valid."""

    def __init__(self) -> None:
        self._keys: list[rsa.RSAPrivateKey] = []

    def rotate(self) -> None:
        self._keys.append(rsa.generate_private_key(public_exponent=65537, key_size=2048))

    @property
    def key(self) -> rsa.RSAPrivateKey:
        """Made when first needed: most rehearsals sign nothing."""
        if not self._keys:
            self.rotate()
        return self._keys[-1]

    @property
    def kid(self) -> str:
        return f"simulated-{max(1, len(self._keys))}"

    def keys(self) -> dict[str, Any]:
        made = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": made["n"], "e": made["e"]}
        return {"keys": [key]}

    def token(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": self.kid})


def address(world: ProlificWorld, signer: Signer, study: Study, submission: ProlificSubmission) -> str:
    """What the participant's browser opens for this submission."""
    values = {
        "PROLIFIC_PID": submission.person,
        "STUDY_ID": submission.part or study.id,
        "SESSION_ID": submission.id,
    }
    template = _template(world, study)
    url = fill_template(template, values)
    if not study.sent.get("is_external_study_url_secure"):
        return url
    claims = claims_for(template, values, submission.id, world.now())
    return with_query(url, prolific_token=signer.token(claims))


def preview(world: ProlificWorld, study: Study) -> str:
    """What the researcher's preview opens: placeholders filled with values of no person."""
    return fill_template(_template(world, study), {**PREVIEW, "STUDY_ID": study.id})


def _template(world: ProlificWorld, study: Study) -> str:
    """The study's address. With several, people are sent to the one with the fewest people relative to its
    allocation."""
    several = study.sent.get("access_details") or []
    if not several:
        return str(study.sent["external_study_url"])
    taken = len(world.submissions_of(study.id))
    ladder = [share["external_url"] for share in several for _ in range(int(share["total_allocation"]))]
    return str(ladder[(taken - 1) % len(ladder)])


def fill_template(template: str, values: dict[str, str]) -> str:
    """The placeholders may stand in the address as they are or percent-encoded."""
    for name, value in values.items():
        placeholder = "{{%" + name + "%}}"
        for spelt in (placeholder, quote(placeholder, safe=""), quote(placeholder, safe="{}")):
            template = template.replace(spelt, value)
    return template


def claims_for(template: str, values: dict[str, str], session: str, now: datetime) -> dict[str, Any]:
    """Every parameter that holds a placeholder is claimed by its own name."""
    named: dict[str, str] = {}
    for name, value in parse_qsl(urlsplit(template).query, keep_blank_values=True):
        for placeholder, said in values.items():
            if value == "{{%" + placeholder + "%}}":
                named[name] = said
    issued = int(now.timestamp())
    return {
        "iss": ISSUER,
        "iat": issued,
        "exp": issued + VALID_S,
        "aud": template,
        "sub": session,
        "prolific": {**named, "workspace_id": REHEARSAL},
    }
