"""How the simulated Prolific answers: token, paths, schema, pages, errors, faults, log."""

import json
import threading
from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator

from crowd.rehearsal.faults import Fault, Faults
from crowd.rehearsal.prolific import schema
from crowd.rehearsal.serving import Call
from tests.crowd.rehearsal.prolific.prolific_client import CODES, DONE, researcher, said
from tests.crowd.rehearsal.prolific.prolific_client import study as documented

pytestmark = pytest.mark.pure

BALANCE = "workspaces/rehearsal/balance/"


def test_it_takes_the_rehearsal_token_only() -> None:
    with researcher(token="live-token") as client:
        assert client.get(BALANCE).status_code == 401
        assert client.post("studies/", documented()).status_code == 401
        assert (
            client.http.get(f"/api/v1/{BALANCE}", headers={"Authorization": "Bearer rehearsal"}).status_code
            == 401
        )
        assert not client.sim.world.studies
    with researcher() as client:
        assert set(client.get(BALANCE).json()) >= {"currency_code", "available_balance"}


def test_it_needs_the_slash_at_the_end_and_the_right_method() -> None:
    with researcher() as client:
        assert client.get("studies").status_code == 404
        assert client.get("users/you/").status_code == 404
        assert client.delete(BALANCE).status_code == 405
        assert client.get("submissions/bulk-approve/").status_code == 405
        assert client.get(f"studies/{'0' * 24}/").status_code == 404


@pytest.mark.parametrize(
    "changes",
    [
        {"reward": 1.5},
        {"reward": "200"},
        {"reward": 0},
        {"name": None},
        {"prolific_id_option": "guess"},
        {"external_study_url": "http://lab.example/join/"},
        {"external_study_url": None},
        {"eligibility_requirements": []},
        {"completion_code": "OLD"},
        {"device_compatibility": ["watch"]},
        {"completion_codes": [{**CODES[0], "code_type": "DEFAULT"}]},
        {
            "completion_codes": [
                {"code": "A", "code_type": "OTHER", "actions": [{"action": "REQUEST_RETURN"}]}
            ]
        },
        {"estimated_completion_time": 0},
        {"filters": [{"filter_id": "age"}]},
        {"study_labels": ["fun"]},
        {"submissions_config": {"maximum": 1}},
        {"maximum_allowed_time": 1441},
    ],
)
def test_it_refuses_and_records_what_the_documentation_does_not_allow(changes: dict[str, object]) -> None:
    with researcher() as client:
        answer = client.post("studies/", documented(**changes))
        assert answer.status_code == 400
        assert not client.sim.world.studies
        [violation] = client.verb("state")["violations"]
        assert violation.startswith("studies.create: ")


def test_it_records_nothing_for_documented_requests() -> None:
    with researcher() as client:
        study = client.published(
            submissions_config={"max_submissions_per_participant": 1, "max_concurrent_submissions": -1},
            study_labels=["decision_making_task", "ai_annotation"],
            content_warnings=["sensitive"],
            naivety_distribution_rate=0,
            filters=[{"filter_id": "age", "selected_range": {"lower": 18, "upper": None}}],
            metadata="ours",
        )
        client.finished(study)
        client.get("submissions/", study=study, ordering="started_at", page=1, page_size=100)
        client.get("hooks/subscriptions/", workspace_id="rehearsal", limit=10, offset=0)
        assert client.verb("state")["violations"] == []
        assert client.get(f"studies/{study}/").json()["metadata"] == "ours"


def test_it_refuses_unknown_and_missing_parameters_of_a_query() -> None:
    with researcher() as client:
        study = client.published()
        assert client.get("submissions/").status_code == 400
        for query in (
            {"limit": 5},
            {"page": "0"},
            {"page_size": "all"},
            {"ordering": "mood"},
            {"active": "true"},
        ):
            assert client.get("submissions/", study=study, **query).status_code == 400
        assert client.http.get(f"/api/v1/submissions/?study={study}&study={study}").status_code == 400
        assert client.get(BALANCE, verbose="1").status_code == 400
        assert len(client.verb("state")["violations"]) == 8


def test_it_refuses_a_body_that_is_no_json() -> None:
    with researcher() as client:
        assert client.http.post("/api/v1/studies/", content=b"{").status_code == 400
        assert client.http.post("/api/v1/studies/", content=b"[]").status_code == 400


def test_it_has_a_sound_schema_for_every_operation() -> None:
    document = json.loads(Path(schema.__file__).with_name("schema.json").read_text(encoding="utf-8"))
    parts = [
        operation[part]
        for operation in document["operations"].values()
        for part in ("query", "body")
        if part in operation
    ]
    Draft202012Validator.check_schema({"allOf": parts, "$defs": document["$defs"]})
    for operation in schema.operations():
        for validator in (operation.query, operation.body):
            list(validator.iter_errors({}))  # every reference has a target
    names = {operation.name for operation in schema.operations()}
    with researcher() as client:
        assert names == set(client.sim.handlers)


@pytest.mark.parametrize("count", [0, 1, 19, 20, 21, 40])
def test_it_pages_twenty_at_a_time_and_has_no_page_past_the_end(count: int) -> None:
    with researcher() as client:
        study = client.published(total_available_places=50)
        for _ in range(count):
            client.take(study)
        url, rows, pages = f"/api/v1/submissions/?study={study}", [], 0
        while url:
            page = client.http.get(url).json()
            assert len(page["results"]) <= 20
            assert page["meta"]["count"] == count
            rows += [row["id"] for row in page["results"]]
            url, pages = page["_links"]["next"]["href"], pages + 1
        assert len(set(rows)) == len(rows) == count
        assert pages == max(1, -(-count // 20))
        assert client.get("submissions/", study=study, page=pages + 1).status_code == 404
        assert len(client.get("submissions/", study=study, page_size=100).json()["results"]) == count


def test_it_walks_by_limit_and_offset_elsewhere() -> None:
    with researcher() as client:
        client.post("hooks/secrets/", {"workspace_id": "rehearsal"})
        for number in range(25):
            target = f"https://lab.example/hooks/{number}"
            sent = {"event_type": "study.status.change", "target_url": target, "workspace_id": "rehearsal"}
            client.post("hooks/subscriptions/", sent)
        first = client.get("hooks/subscriptions/", workspace_id="rehearsal", limit=20).json()
        second = client.http.get(first["_links"]["next"]["href"]).json()
        assert (len(first["results"]), len(second["results"])) == (20, 5)
        assert second["_links"]["next"]["href"] is None


def test_it_says_no_in_three_shapes() -> None:
    shapes, details = set(), set()
    with researcher() as client:
        study = client.published()
        for _ in range(30):
            for answer in (
                client.get("submissions/nothing/"),
                client.patch(f"studies/{study}/", {"reward": 1}),
                client.post("submissions/bulk-approve/", {"submission_ids": ["nothing"]}),
            ):
                body = answer.json()
                shapes.add(next(name for name in ("error", "error_code", "message") if name in body))
                details.add(type(said(answer)).__name__)
    assert shapes == {"error", "error_code", "message"}
    assert details == {"str", "list", "dict"}


@pytest.mark.parametrize(
    ("kind", "status", "drafts"), [("429", 429, 0), ("5xx_before", 503, 0), ("5xx_after", 502, 1)]
)
def test_it_fails_with_and_without_effect(kind: Fault, status: int, drafts: int) -> None:
    with researcher() as client:
        client.verb("faults", forced=[kind, "", kind])
        first = client.post("studies/", documented())
        assert first.status_code == status
        assert ("Retry-After" in first.headers) == (kind == "429")
        assert len(client.sim.world.studies) == drafts
        assert client.post("studies/", documented()).status_code == 201
        assert client.get(BALANCE).status_code == status
        assert client.get(BALANCE).status_code == 200
        assert client.sim.faults.met == {kind: 2}


def test_it_pays_and_says_nothing_when_the_answer_is_lost() -> None:
    with researcher() as client:
        study = client.published()
        submission = client.finished(study)
        batch = client.batch(study, f"{submission},1.00").json()["id"]
        client.verb("faults", forced=["lost_answer"])
        with pytest.raises(httpx.RemoteProtocolError):
            client.post(f"bulk-bonus-payments/{batch}/pay/")
        assert client.work(submission)["bonus_payments"] == [100]
        call = client.sim.log[-2]
        assert (call.operation, call.status, call.fault, call.effect) == (
            "bonuses.pay",
            202,
            "lost_answer",
            True,
        )


def test_it_can_be_down_altogether() -> None:
    with researcher() as client:
        client.verb("faults", down=True)
        assert client.get(BALANCE).status_code == 503
        assert client.http.get("/.well-known/study/jwks.json").status_code == 503
        client.verb("faults", down=False)
        assert client.get(BALANCE).status_code == 200


def test_it_fails_the_share_of_calls_that_was_asked_for() -> None:
    with researcher(faults=Faults(5, share=0.25, kinds=("429", "5xx_before"))) as client:
        answers = [client.get(BALANCE).status_code for _ in range(200)]
        assert answers.count(200) + answers.count(429) + answers.count(503) == 200
        assert 30 <= 200 - answers.count(200) <= 70  # 50 expected, 3.3 standard deviations either way
        assert client.sim.calls_count == 200


def test_it_calls_hooks_after_the_effect_and_before_the_answer() -> None:
    with researcher() as client:
        seen: list[tuple[Call, int]] = []
        release, reached = threading.Event(), threading.Event()

        def hold(call: Call) -> None:
            seen.append((call, len(client.sim.world.studies)))
            reached.set()
            release.wait(10)

        client.sim.before_reply.append(hold)
        answered: list[int] = []
        asking = threading.Thread(
            target=lambda: answered.append(client.post("studies/", documented()).status_code)
        )
        asking.start()
        assert reached.wait(10)
        assert answered == []
        release.set()
        asking.join(10)
        assert answered == [201]
        [(call, studies)] = seen
        assert (call.operation, call.effect, studies) == ("studies.create", True, 1)


def test_it_loses_nothing_when_many_ask_at_once() -> None:
    with researcher() as client:
        study = client.published(total_available_places=10)

        def ask() -> None:
            with httpx.Client(base_url=client.sim.url, timeout=30) as http:
                http.post("/_simulator/take", json={"posting": study})

        threads = [threading.Thread(target=ask) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        works = client.verb("state")["submissions"].values()
        assert len(works) == len({work["person"] for work in works}) == 10


def test_it_shows_participants_a_page_for_their_code() -> None:
    with researcher() as client:
        page = client.http.get("/submissions/complete", params={"cc": DONE}, headers={})
        assert page.status_code == 200
        assert f"Thank you, code {DONE} received" in page.text and "simulation" in page.text
        assert client.http.get("/submissions/complete").status_code == 400
        sly = client.http.get("/submissions/complete", params={"cc": "<script>"})
        assert "<script>" not in sly.text


def test_it_refuses_verbs_that_make_no_sense() -> None:
    with researcher() as client:
        for verb, members, status in (
            ("fly", {}, 404),
            ("take", {"wings": 2}, 400),
            ("take", {"posting": "nothing"}, 404),
            ("take", {}, 409),
            ("complete", {"submission": "nothing"}, 404),
            ("faults", {"forced": ["earthquake"]}, 400),
            ("message", {"person": "nobody", "body": "Hello"}, 404),
        ):
            assert client.http.post(f"/_simulator/{verb}", json=members).status_code == status, verb
        assert client.http.get("/_simulator/state").status_code == 404
