"""Logins with roles in a study, and a posting that owes people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.test import Client

from crowd.models import Identity, Payout, Posting, StudyRole, Submission
from experiments.models import Study
from tests.analysis import stored

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

STATIC = Path(__file__).parents[2] / "crowd" / "dashboard" / "static"


def login(name: str, *roles: str, study: Study | None = None, **more: Any) -> Client:
    user = User.objects.create_user(name, **more)
    for role in roles:
        StudyRole.objects.create(study=study or Study.objects.get(slug="wolf-or-husky"), user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


def served(page: Page, desk: Client, *paths: str) -> None:
    """From now on the browser gets these pages as this login has them now, with scripts and styles; all else
    cannot be reached. Rows are read before, because Django refuses to while the browser is asked."""
    bodies = {path: desk.get(path).content for path in paths}

    def answer(route: Route) -> None:
        address = urlsplit(route.request.url)
        path = f"{address.path}?{address.query}".rstrip("?")
        if path in bodies:
            route.fulfill(body=bodies[path], content_type="text/html; charset=utf-8")
        elif path.startswith("/static/"):
            stem, _, kind = Path(path.removeprefix("/static/")).as_posix().partition(".")
            route.fulfill(path=STATIC / f"{stem}.{kind.rpartition('.')[2]}")
        else:
            route.abort()

    page.route("**/*", answer)


def posting_of(study: Study) -> Posting:
    return Posting.objects.create(
        **{"study": study, "platform": "prolific", "mode": "live", "state": "open", "places": 9},
        **{"reward_cents": 140, "currency": "GBP", "cap_cents": 9000, "external_id": "64STUDY"},
    )


def owe(posting: Posting, name: str) -> Submission:
    """A person who passed and awaits the reward of 1.40 GBP."""
    session = stored.sitting(posting.study, name, condition="control")
    identity = Identity.objects.create(
        study=posting.study,
        platform="prolific",
        person_hash=f"hash of {name}",
        participant=session.participant,
    )
    row = Submission.objects.create(
        **{"posting": posting, "submission_hash": f"work of {name}", "external_id": name, "session": session},
        **{"identity": identity, "person_hash": identity.person_hash, "state": "awaiting"},
        seen_at=stored.START,
    )
    Payout.objects.create(
        **{"posting": posting, "session": session, "submission": row, "kind": "base", "cents": 140},
        **{"currency": "GBP", "reason": "Passed."},
    )
    return row
