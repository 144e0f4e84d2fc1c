"""How a trouble reaches a person: by email, a webhook, or both, as the environment says."""

from __future__ import annotations

import hashlib
import hmac
import json
import smtplib
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from django.conf import settings
from django.core.mail import send_mail

TIMEOUT_S = 10.0


class Unsent(Exception):
    """A message could not be handed over; it is tried again at the next look."""


@dataclass(frozen=True, slots=True)
class Letter:
    """What a message says: which study, which fact, what to do, and the page about it."""

    kind: str
    about: str
    said: str
    remedy: str
    address: str

    @property
    def subject(self) -> str:
        return f"Legible, {self.about}: {self.said}"[:150]

    @property
    def text(self) -> str:
        return f"{self.about}: {self.said}\n{self.remedy}\n{self.address}"


def channels() -> dict[str, Callable[[Letter], None]]:
    """Name -> what sends; empty if the environment names no one to tell."""
    ways: dict[str, Callable[[Letter], None]] = {}
    if settings.ALERT_EMAIL:
        ways["email"] = _email
    if settings.ALERT_WEBHOOK:
        ways["webhook"] = _webhook
    return ways


def _email(letter: Letter) -> None:
    people = [name.strip() for name in settings.ALERT_EMAIL.split(",") if name.strip()]
    try:
        send_mail(" ".join(letter.subject.split()), letter.text, None, people)
    except (smtplib.SMTPException, OSError) as error:
        raise Unsent(f"The mail server did not take it ({type(error).__name__}).") from error


def _webhook(letter: Letter) -> None:
    """JSON with a `text`, which the usual chats show, and its parts; signed if there is a secret. The address
    is never repeated: it may hold a key."""
    parts = {"kind": letter.kind, "about": letter.about, "said": letter.said, "remedy": letter.remedy}
    body = json.dumps({"text": letter.text, **parts, "page": letter.address}).encode()
    headers = {"Content-Type": "application/json"}
    if settings.ALERT_WEBHOOK_SECRET:
        key = settings.ALERT_WEBHOOK_SECRET.encode()
        headers["X-Legible-Signature"] = hmac.new(key, body, hashlib.sha256).hexdigest()
    try:
        answer = httpx.post(settings.ALERT_WEBHOOK, content=body, headers=headers, timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unsent(f"The webhook did not answer ({type(error).__name__}).") from error
    if not answer.is_success:
        raise Unsent(f"The webhook answered {answer.status_code}.")
