"""Studies that can be offered on simulated platforms, and the platforms' own records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crowd.ground.identity_hashes import person_hash, submission_hash
from crowd.ground.platform_accounts import open_service
from crowd.models import Identity, Posting, Submission
from crowd.rehearsal import mturk, prolific
from experiments.definition.study import StudyDefinition
from experiments.models import Study
from tests.analysis import stored
from tests.crowd.arrivals import Visitor

PLATFORMS = ("prolific", "mturk")
POLICY = {"turned_away_share": 0, "withdrawn": "none"}
"""Options that both platforms accept."""
SAID = {"prolific": {"signed_entry": False}}
"""What a live posting must say of signed entry."""
REWARD = {"amount_cents": 100, "currency": "USD", "expected_minutes": 5}


def study_of(slots: int = 4, **changes: Any) -> Study:
    """Three conditions of `slots` places each, as records, at 12 dollars per hour."""
    study = stored.opened(slots)
    return changed(study, **{"reward": REWARD, "policy": POLICY, "platforms": SAID, **changes})


def changed(study: Study, **changes: Any) -> Study:
    definition = {**study.definition, **changes}
    digest = StudyDefinition.model_validate(definition).digest
    Study.objects.filter(pk=study.pk).update(definition=definition, digest=digest)
    return Study.objects.get(pk=study.pk)


@pytest.fixture(autouse=True)
def public(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study has an address that platforms accept; between two tries no time passes."""
    settings.BASE_URL, settings.SECURE = "https://study.example.org", True
    monkeypatch.setattr(open_service, "__defaults__", (lambda seconds: None,))


@contextmanager
def simulated(platform: str, **options: Any) -> Iterator[Any]:
    """A simulator of the platform, in dollars."""
    if platform == "mturk":
        with mturk.simulator(**options) as sim:
            yield sim
    else:
        settings = prolific.ProlificWorldOptions(**{"currency": "USD", **options.pop("options", {})})
        with prolific.simulator(options=settings, **options) as sim:
            yield sim


def offers(platform: str, sim: Any) -> list[dict[str, Any]]:
    """The platform's own record of its offers: each study; all HITs of one reference as one."""
    groups: dict[str, dict[str, Any]] = {}
    for name, posting in sim.control("state")["postings"].items():
        key = posting["annotation"].split("#")[0].split(" ")[0] if platform == "mturk" else name
        group = groups.setdefault(key, {"places": 0, "states": set()})
        group["places"] += posting["places"]
        group["states"].add(posting["state"])
    return list(groups.values())


def held(
    posting: Posting, sim: Any, verdict: str = "passed", code: str = "complete", *, as_person: str = ""
) -> Submission:
    """A person who took a place there, has a session here with that verdict, and submitted with that
    outcome's code (empty: not yet). `as_person`: the name that they gave here."""
    taken = sim.control("take")
    session = stored.sitting(
        posting.study,
        str(taken["submission"]),
        condition=None if code == "screened" else "control",
        verdict=verdict,
        origin="pilot" if posting.pilot else "simulated",
    )
    identity = Identity.objects.create(
        study=posting.study,
        platform=posting.platform,
        person_hash=person_hash(posting, as_person or taken["person"]),
        participant=session.participant,
    )
    row = Submission.objects.create(
        posting=posting,
        identity=identity,
        person_hash=identity.person_hash,
        submission_hash=submission_hash(posting, taken["submission"]),
        session=session,
    )
    if code:
        sim.control("complete", submission=taken["submission"], code=posting.codes[code])
        sim.control("advance", seconds=60)
    return row


def known_there(row: Submission, sim: Any) -> dict[str, Any]:
    """The platform's own record of a submission of ours."""
    works = sim.control("state")["submissions"].values()
    matches = [
        work for work in works if submission_hash(row.posting, work["submission"]) == row.submission_hash
    ]
    return dict(matches[0])


def arrive(posting: Posting, sim: Any, name: str = "ada", **more: Any) -> Visitor:
    """A person takes a place on the platform and is sent here."""
    taken = sim.control("take", **more)
    visitor = Visitor(
        name, posting.study.slug, platform=posting.platform, query=taken["url"].partition("?")[2]
    )
    visitor.submission, visitor.simulated = taken["submission"], taken["person"]
    return visitor


def hand_in(sim: Any, visitor: Visitor, code: str) -> None:
    """The person enters a code on the platform, and its delay passes."""
    sim.control("complete", submission=visitor.submission, code=code)
    sim.control("advance", seconds=60)
