"""What people answer in the colour check, and what it says of them, stands nowhere but in their own rows.

Every page, export, posting, message and log is made for one person with each result in turn: nothing may
differ. Answers that are words of no language are searched for as well.
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from analysis.exports import EXPORTERS
from analysis.exports.study_export import Request, export_study
from analysis.tables import participants, response_reader
from crowd.dashboard.views import participants as participant_views
from crowd.models import Identity, Message, Posting
from crowd.people.privacy import forget, forget_due
from crowd.study_check.publication_quote import check_ethics, spec_of
from experiments.models import Gate, Session, Study
from tests.crowd.dashboard.test_dashboard_access import OPEN_TO_ALL, POSTED, ROUTES, VALUES
from tests.experiments.checked import checked_study
from tests.experiments.definitions import definition
from tests.experiments.protocols import answer
from tests.world import Person, seen_plates

pytestmark = pytest.mark.django_db

MARK = "quokka"
"""Is in no answer, text or name."""
TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?|\b\d\d:\d\d(:\d\d)?\b")
TOKENS = re.compile(r'(csrfmiddlewaretoken" value|nonce|name="csrf-token" content)="[^"]*"|preview=[\w.:-]+')
Outputs = dict[str, str]


@pytest.fixture
def study(store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Ada fills a slot, Bo and Cy leave after the check: Cy is the one whose result changes."""
    study = checked_study(tmp_path / "checked", monkeypatch)
    ada = Person("ada", slug="tasks")
    ada.arrive()
    answer(ada)
    ada.finish()
    for name in ("bo", "cy"):
        each = Person(name, slug="tasks", vision="reduced")
        each.arrive("finish")
        each.finish()
        each.call("POST", "/api/session/invitation/", {"agree": True})
    posting = Posting.objects.get()
    for identity in Identity.objects.all():
        Identity.objects.filter(pk=identity.pk).update(external_id=f"outside-{identity.pk}")
    Message.objects.create(posting=posting, state="received", body="When am I paid?")
    return study


@pytest.fixture
def cy(study: Study) -> Session:
    return Session.objects.filter(slot=None).order_by("-started_at")[0]


def become(session: Session, vision: str) -> None:
    """Gives the session the rows that a person with this result leaves."""
    values = seen_plates(session.study, vision) if vision != "skipped" else {}
    if vision == MARK:
        values = {name: f"{MARK}-{name}" for name in seen_plates(session.study, "reduced")}
    session.gates.filter(kind="plates").update(value=values)
    session.gates.filter(kind="plates_kept").delete()
    if values:
        Gate.objects.create(session=session, kind="plates_kept", attempt=0, value=values)
    consent = session.gates.get(kind="consent")
    consent.value["plates"] = vision != "skipped"
    consent.save()


def addresses(study: Study) -> Iterator[str]:
    """Every page of the dashboard and the admin that shows this study, and of each session its own."""
    for name, route in ROUTES.items():
        if name in OPEN_TO_ALL | POSTED:
            continue
        sessions = [str(pk) for pk in Session.objects.filter(study=study).values_list("pk", flat=True)]
        for session in sessions if "<uuid:session>" in route else [""]:
            path = "/" + route
            posting = Posting.objects.get().pk
            for key, value in {**VALUES, "slug": study.slug, "session": session, "posting": posting}.items():
                for kind in ("slug", "int", "uuid", "str"):
                    path = path.replace(f"<{kind}:{key}>", str(value))
            yield path
    yield f"/studies/{study.slug}/participants/?status=invited"
    yield from ("/admin/", "/admin/experiments/study/", "/admin/experiments/session/")
    yield f"/admin/experiments/study/{study.pk}/change/"
    for pk in Session.objects.values_list("pk", flat=True):
        yield f"/admin/experiments/session/{pk}/change/"


RELEASES = [*((name, False) for name in EXPORTERS), ("csv", True)]
"""(format, whether cleaned): every format writes the same tables, so one says what cleaning leaves."""


def files(study: Study, folder: Path, formats: Collection[str]) -> Iterator[tuple[str, str]]:
    for name, cleaned in RELEASES:
        where = folder / f"{name}-{cleaned}"
        if name not in formats:
            continue
        try:
            export_study(study, where, Request(format=name, cleaned=cleaned))
        except Exception as refusal:  # what an exporter cannot export tells nothing of a person either
            yield f"export {where.name}", str(refusal).replace(str(folder), "")
            continue
        for path in sorted(where.rglob("*")):
            if path.is_file():
                yield f"export {where.name} {path.name}", path.read_bytes().decode("utf-8", "replace")


def outputs(
    study: Study, desk: Client, folder: Path, caplog: pytest.LogCaptureFixture, part: str, *formats: str
) -> Outputs:
    """All that leaves the server, with times and tokens taken out; nothing of it stays in the database. Only
    the pages with this part in their addresses, and only releases of these formats."""
    caplog.clear()
    made: Outputs = {}
    with transaction.atomic():
        for address in addresses(study):
            if part in address:
                made[address] = desk.get(address).content.decode()
        made |= dict(files(study, folder, formats))
        made["frames"] = response_reader.read_frames(study).participants.to_csv()
        made["facts"] = repr(asdict(response_reader.study_facts(study)))
        made["posting"] = repr(spec_of(Posting.objects.get()))
        printed = io.StringIO()
        call_command("forget", "--due", stdout=printed)
        made["forget"] = printed.getvalue()
        transaction.set_rollback(True)
    made["log"] = "\n".join(r.getMessage() for r in caplog.records if not r.name.startswith("django.db"))
    return {name: TOKENS.sub("", TIMES.sub("", text)) for name, text in made.items()}


@pytest.fixture
def look(
    study: Study, desk: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> Callable[..., Outputs]:
    caplog.set_level(logging.DEBUG)
    times = iter(range(100))
    return lambda *parts: outputs(study, desk, tmp_path / f"out-{next(times)}", caplog, *parts)


def differing(first: Outputs, second: Outputs) -> list[str]:
    assert first.keys() == second.keys()
    # Digests of a release go over its time, too.
    return [n for n in first if first[n] != second[n] and not n.endswith("manifest.json")]


def test_all_that_leaves_the_server_is_the_same_for_every_result(
    cy: Session, look: Callable[..., Outputs]
) -> None:
    """Each format is written of two results, and the first of all: they write the same tables."""
    before = look("", *EXPORTERS)
    assert len(before) > 40 and any(name.startswith("export csv") for name in before)
    for vision in ("unclear", "skipped", "ordinary", MARK):
        become(cy, vision)
        after = look("", *(EXPORTERS if vision == MARK else ["csv"]))
        assert after.keys() <= before.keys() and (vision != MARK or after.keys() == before.keys())
        assert differing({name: before[name] for name in after}, after) == [], vision
        assert [name for name, text in after.items() if MARK in text] == [], vision


PLANTED: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a page": lambda patch: patch.setattr(participant_views, "ANSWERS", frozenset()),
    "an export": lambda patch: patch.setattr(participants, "QUESTIONS", frozenset({"plates"})),
}


LEAKS = {
    "a page": (["/participants/"], "/participants/"),
    "an export": (["/log/", "csv"], "participants.csv"),
}
"""What is looked at, and what of it tells."""


@pytest.mark.parametrize(
    "place",
    ["a page", pytest.param("an export", marks=pytest.mark.long(stays="test_it_finds_what_is_planted_in"))],
)
def test_it_finds_what_is_planted_in(
    place: str, cy: Session, look: Callable[..., Outputs], monkeypatch: pytest.MonkeyPatch
) -> None:
    PLANTED[place](monkeypatch)
    parts, telling = LEAKS[place]
    before = look(*parts)
    for vision in ("unclear", "skipped", MARK):
        become(cy, vision)
        after = look(*parts)
        assert [name for name in differing(before, after) if telling in name], vision
    assert [name for name, text in after.items() if MARK in text and telling in name]


def test_no_other_row_holds_an_answer(cy: Session) -> None:
    become(cy, MARK)
    holding = [
        model._meta.label
        for model in apps.get_models()
        if any(MARK in json.dumps(row, default=str) for row in model._default_manager.values())
    ]
    assert holding == ["experiments.Gate"]


def test_the_page_of_a_person_shows_the_other_gates(cy: Session, desk: Client) -> None:
    page = desk.get(f"/studies/tasks/participants/{cy.pk}/").content.decode()
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>', page)
    assert {"device", "consent", "invitation"} <= set(rows) and not {"plates", "plates_kept"} & set(rows)


def test_those_who_may_be_invited_are_listed(study: Study, cy: Session, desk: Client) -> None:
    cy.gates.filter(kind="invitation").update(value={"agree": False})
    listed = {}
    for status in ("", "invited"):
        page = desk.get(f"/studies/tasks/participants/?status={status}").content.decode()
        listed[status] = set(re.findall(r"/participants/([0-9a-f-]{36})/", page))
    bo = Session.objects.filter(slot=None).order_by("started_at")[0]
    assert listed["invited"] == {str(bo.pk)} and len(listed[""]) == 3
    Study.objects.filter(pk=study.pk).update(plates=[])
    assert "May be invited" not in desk.get("/studies/tasks/participants/").content.decode()


def test_the_admin_shows_no_answer_of_a_plate(study: Study, desk: Client) -> None:
    page = desk.get(f"/admin/experiments/study/{study.pk}/change/").content.decode()
    assert "definition" in page.lower() and "plate-1" not in page and study.plates[0]["file"] not in page


# How it goes


def answers_left() -> int:
    return Gate.objects.filter(kind__startswith="plates").exclude(value={}).count()


def test_forgetting_a_person_removes_them_and_leaves_the_lane(study: Study) -> None:
    assert answers_left() == 3
    for identity in Identity.objects.all():
        forget(identity, responses=False, reason="asked")
    assert answers_left() == 0
    lanes = Session.objects.filter(study=study, verdict="passed").values_list("lane", flat=True)
    assert list(lanes) == ["expert"]
    assert Session.objects.get(verdict="passed").responses.count() == 2


def test_they_go_at_the_retention_date_those_of_strangers_too(study: Study) -> None:
    Identity.objects.all()[0].delete()
    closed = timezone.now() - timedelta(days=89)
    Study.objects.filter(pk=study.pk).update(state="closed", closed_at=closed)
    forget_due()
    assert answers_left() > 0
    Study.objects.filter(pk=study.pk).update(closed_at=closed - timedelta(days=2))
    forget_due()
    assert answers_left() == 0
    forget_due()


def test_they_go_with_the_other_answers_of_a_person_who_wants_it(study: Study) -> None:
    dee = Person("dee", slug="tasks")
    dee.arrive("instructions")
    dee.call("POST", "/api/session/withdraw/", {"reason": "time", "erase": True})
    assert dee.session().gates.get(kind="plates").value == {}
    eve = Person("eve", slug="tasks")
    eve.arrive("plates")
    body = {"digest": eve.state["page"]["digest"], "question": "plate-1", "choice": "7"}
    eve.call("POST", "/api/session/plates/kept/", body)
    eve.call("POST", "/api/session/withdraw/", {"reason": "time", "erase": True})
    assert eve.session().gates.get(kind="plates_kept").value == {}


# What a study has to state


@pytest.mark.parametrize("key", ["special_category", "deception", "retention_days"])
def test_a_study_with_a_check_is_not_published_without(key: str) -> None:
    stated: dict[str, Any] = {
        "contact": "lab@example.org",
        "special_category": "health data",
        "deception": "why the study ends for some",
        "retention_days": 90,
    }
    texts = {"consent": "c", "instructions": "i", "debrief": "We say why the study ends for some people."}
    whole = definition(plates={}, ethics=stated, texts=texts)
    assert check_ethics(whole, "local") == []
    lacking = definition(plates={}, ethics={k: v for k, v in stated.items() if k != key}, texts=texts)
    [problem] = check_ethics(lacking, "local")
    assert problem.key == f"ethics.{key}" and "[plates]" in str(problem) and problem.remedy
    plain = definition(ethics={"contact": "lab@example.org"}, texts=texts)
    assert check_ethics(plain, "local") == []
