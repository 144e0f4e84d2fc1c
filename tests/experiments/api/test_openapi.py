"""The published schema: complete, without warnings, and true of every reply."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from jsonschema import Draft202012Validator

from experiments.models import Study
from experiments.sessions.responses import EVENT_KINDS
from tests import canned
from tests.experiments.definitions import definition
from tests.journeys.studies import staged
from tests.world import Person

FORBIDDEN = {"condition", "conditions", "arm", "lane", "role", "method", "explainer", "truth", "predicted"}
FORBIDDEN |= {
    "expected",
    "correct_answer",
    "answer",
    "check",
    "check_kind",
    "file",
    "filename",
    "path",
    "slot",
}
FORBIDDEN |= {
    "confidence",
    "logits",
    "group",
    "item",
    "stimulus",
    "verdict",
    "reasons",
    "pseudonym",
    "remaining",
}
EXPECTED_PATHS = {
    "/api/sessions/": {"post"},
    "/api/session/": {"get"},
    "/api/session/{step}/": {"post"},
    "/api/session/responses/": {"post"},
    "/api/session/events/": {"post"},
    "/api/session/finish/": {"post"},
    "/api/session/withdraw/": {"post"},
    "/api/session/pay/": {"get"},
    "/api/session/check/": {"get"},
    "/api/session/invitation/": {"post"},
    "/api/session/{step}/kept/": {"post"},
    "/api/session/{step}/told/": {"post"},
}


def written(*options: str) -> str:
    """The schema as a process of its own writes it: in this one, a test may have added kinds of trials."""
    command = [sys.executable, "manage.py", "spectacular", "--validate", "--fail-on-warn", *options]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, check=True, text=True)
    return done.stdout


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(written("--format", "openapi-json"))
    return document


@lru_cache(maxsize=32)
def validator(component: str) -> Draft202012Validator:
    """OpenAPI's `nullable` as JSON Schema, and objects closed: a field too many is a mistake."""
    components = {name: _closed(part) for name, part in schema()["components"]["schemas"].items()}
    return Draft202012Validator(
        {"$ref": f"#/components/schemas/{component}", "components": {"schemas": components}}
    )


def _closed(part: Any) -> Any:
    if isinstance(part, list):
        return [_closed(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    part = {name: _closed(inner) for name, inner in part.items()}
    if "properties" in part:
        part["additionalProperties"] = False
    if part.pop("nullable", False):
        return {"anyOf": [part, {"type": "null"}]}
    return part


def errors_of(component: str, reply: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator(component).iter_errors(reply)]


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from keys_of(inner)


@pytest.mark.django_db
def test_it_publishes_every_call_and_no_other() -> None:
    published = {path: set(calls) - {"parameters"} for path, calls in schema()["paths"].items()}
    assert published == EXPECTED_PATHS
    served = Client().get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"})
    # Not its parameters: in this process, a test may have added gates of its own.
    calls = {path: set(calls) - {"parameters"} for path, calls in served.json()["paths"].items()}
    assert served.status_code == 200 and calls == EXPECTED_PATHS


@pytest.mark.django_db
def test_it_makes_the_schema_once_for_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made anew it takes as long as many answers of a person, and anybody may ask."""
    first = {form: Client().get("/api/schema/", {"format": form}).content for form in ("json", "yaml")}
    monkeypatch.setattr("crowd.urls.SchemaGenerator", None)
    for form, content in first.items():
        reply = Client().get("/api/schema/", {"format": form})
        assert reply.status_code == 200 and reply.content == content


def test_it_promises_no_field_that_would_unblind() -> None:
    """`exit.method` is the way back to the platform; a review shows another person's `answer`."""
    named = {
        name
        for component, part in schema()["components"]["schemas"].items()
        for name in part.get("properties", {})
        if (component, name) not in {("Exit", "method"), ("ReviewContent", "answer")}
    }
    assert named and not named & FORBIDDEN


def test_it_describes_the_same_error_everywhere() -> None:
    for calls in schema()["paths"].values():
        for call in calls.values():
            errors = {code: reply for code, reply in call["responses"].items() if code >= "400"}
            assert {"400", "401", "404", "409", "410", "413"} <= set(errors)
            for reply in errors.values():
                assert reply["content"]["application/json"]["schema"]["$ref"].endswith("/Error")


@pytest.mark.django_db
def test_it_keeps_its_promises_through_a_whole_life(small: Study) -> None:
    ada, seen = Person("ada"), set()
    joined = ada.join()
    assert errors_of("Joined", joined.json()) == []
    while ada.state["step"] != "trials":
        seen.add(ada.state["step"])
        assert errors_of("SessionState", ada.gate(ada.good_value()).json()) == []
    for trial in ada.trials():
        assert errors_of("SessionState", ada.refresh()) == []
        assert errors_of("Recorded", ada.respond(ada.good_response(trial)).json()) == []
    ada.refresh()
    while ada.state["step"] != "comment":
        assert errors_of("SessionState", ada.gate(ada.good_value()).json()) == []
    assert errors_of("Ended", ada.finish("fine").json()) == []
    assert errors_of("SessionState", ada.refresh()) == []
    assert seen == {"device", "consent", "questions", "instructions", "quiz", "practice"}


@pytest.mark.django_db
def test_it_keeps_its_promises_to_those_who_leave(small: Study) -> None:
    bo = Person("bo")
    bo.arrive("consent")
    assert errors_of("SessionState", bo.gate({"agree": False}).json()) == []
    assert errors_of("Ended", bo.finish().json()) == []
    cy = Person("cy")
    cy.arrive("quiz")
    for _ in range(2):
        assert errors_of("SessionState", cy.gate({"task": "truth"}).json()) == []
    dee = Person("dee")
    dee.arrive()
    reply = dee.call("POST", "/api/session/withdraw/", {"reason": "late", "erase": True})
    assert errors_of("Ended", reply.json()) == []
    assert errors_of("Error", dee.respond({}).json()) == []


def test_it_would_notice_a_broken_promise() -> None:
    """The validator itself: a field too many, one too few, and a wrong type."""
    good = {"next": 1, "step": "trials", "feedback": {}}
    assert errors_of("Recorded", good) == []
    for wrong in ({**good, "condition": "x"}, {"next": 1, "step": "trials"}, {**good, "next": None}):
        assert errors_of("Recorded", wrong)


@pytest.mark.pure
def test_it_has_generated_the_page_s_types_from_this_schema(tmp_path: Path) -> None:
    """`make schema` writes both; a wire.ts of yesterday would let the page and the server drift apart."""
    written("--file", str(tmp_path / "schema.yml"))
    frontend = settings.BASE_DIR / "frontend"
    tool = frontend / "node_modules" / ".bin" / "openapi-typescript"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(
        [tool, tmp_path / "schema.yml", "--output", tmp_path / "wire.ts"],
        env={**os.environ, "PATH": path}, cwd=frontend, check=True, capture_output=True,
    )  # fmt: skip
    assert (tmp_path / "wire.ts").read_text() == (frontend / "src" / "server" / "wire.ts").read_text()


def test_the_server_takes_every_event_that_the_page_sends() -> None:
    model = (settings.BASE_DIR / "frontend" / "src" / "server" / "model.ts").read_text()
    union = model.partition("export type EventKind =")[2].partition(";")[0]
    assert set(re.findall(r'"(\w+)"', union)) == EVENT_KINDS


def test_states_that_pages_are_tested_with_have_the_wires_form() -> None:
    """Pages without a server are told what a server would tell: nothing may be missing or too much."""
    shown = [staged.learn("Husky"), staged.predict(["Husky", "Wolf"]), staged.instructed("Press the key D.")]
    for state in (
        staged.state(staged.facts(definition()), shown),
        canned.trials_state(2, fixation_ms=200),
        canned.gate_state("screen", "<p>Your screen</p>"),
    ):
        assert errors_of("SessionState", state) == []
        assert set(state) == set(schema()["components"]["schemas"]["SessionState"]["properties"])
        facts = schema()["components"]["schemas"]["StudyFacts"]["properties"]
        assert set(state["study"]) == set(facts)
