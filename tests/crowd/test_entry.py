"""Who comes in from a platform, who does not, and how everybody gets back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.test.utils import override_settings

from crowd.identities import person_hash
from crowd.models import ExcludedPerson, Identity, Posting, Submission
from experiments import selectors
from experiments.models import Gate, Participant, Session, Slot, Study
from experiments.sessions import mark_left
from experiments.tokens import keyed_hash
from stimuli.models import Stimulus
from tests import world
from tests.crowd.arrivals import HIT, OUTCOMES, SUBMIT, Visitor, posting, prolific, turker
from tests.world import Person, silent

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def built(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """One small study for the whole file: rendering it costs more than all that is asked of it here."""
    folder = tmp_path_factory.mktemp("entry")
    with django_db_blocker.unblock(), override_settings(STORAGE_URL=str(folder / "store")):
        study = world.opened_study(world.write_study(folder / "small"))
    yield study.pk
    with django_db_blocker.unblock():
        Posting.objects.filter(study=study).delete()
        Slot.objects.filter(study=study).delete()
        study.delete()
        Stimulus.objects.all().delete()
    # The pilot's slots were rolled back, and SQLite gives their numbers to the next study's.
    selectors._cards.cache_clear()


@pytest.fixture
def small(built: int, db: None) -> Study:
    return Study.objects.get(pk=built)


@pytest.fixture
def offered(small: Study) -> Posting:
    """The small study, live on Prolific."""
    return posting(small, "prolific")


@pytest.fixture
def hits(small: Study) -> Posting:
    """The small study, live on Mechanical Turk."""
    return posting(small, "mturk")


def change_recruiting(study: Study, **changes: Any) -> None:
    definition = {**study.definition, "recruitment": {**study.definition["recruitment"], **changes}}
    Study.objects.filter(id=study.pk).update(definition=definition)


def another_study(study: Study, slug: str) -> Study:
    """A second open study with nothing in it."""
    fields = {"title": study.title, "paradigm": study.paradigm, "definition": study.definition,
              "digest": slug, "seed": 1, "state": "open"}  # fmt: skip
    return Study.objects.create(slug=slug, **fields)


def took_part(study: Study, person: str) -> None:
    participant = Participant.objects.create(study=study)
    Identity.objects.create(study=study, platform="prolific", person_hash=person, participant=participant)
    Session.objects.create(
        study=study, participant=participant, origin="human", token_hash=person, media_id=person[:22]
    )


def refused(reply: Any, status: int, code: str) -> dict[str, Any]:
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code), reply.content
    body: dict[str, Any] = reply.json()
    return body


def rows() -> tuple[int, ...]:
    return tuple(table.objects.count() for table in (Session, Identity, Submission, Participant))


def test_it_lets_somebody_in_by_the_posting_s_key_and_keeps_hashes_alone(offered: Posting) -> None:
    ada = prolific("ada5f0c2", offered)
    assert ada.join().status_code == 201
    row = Submission.objects.select_related("identity").get()
    assert row.posting == offered and row.session == ada.session() and row.identity is not None
    assert row.person_hash == row.identity.person_hash == keyed_hash("person", "prolific", "ada5f0c2")
    assert row.submission_hash == keyed_hash("submission", "prolific", "s-ada5f0c2")
    assert ada.session().origin == "human"
    stored = json.dumps([list(t.objects.values()) for t in (Submission, Identity, Session)], default=str)
    assert "ada5f0c2" not in stored
    again = prolific("ada5f0c2", offered)
    assert again.join().status_code == 200 and again.session() == row.session


@pytest.mark.parametrize("via", ["", "nobody", "0" * 22, "x" * 300, "<script>"])
def test_it_finds_no_study_behind_an_unknown_key(offered: Posting, via: str) -> None:
    body = refused(prolific("ada", offered, extra={"via": via or "-"}).join(), 404, "no_study")
    assert body["exit"] is None and rows() == (0, 0, 0, 0)


def test_it_refuses_a_key_of_another_study_or_platform(offered: Posting) -> None:
    stranger = prolific("ada", offered)
    stranger.slug = another_study(offered.study, "other").slug
    refused(stranger.join(), 404, "no_study")
    stranger.slug, stranger.platform = offered.study.slug, "mturk"
    refused(stranger.join(), 404, "no_study")


def test_it_takes_nobody_new_on_a_closed_posting_but_lets_people_finish(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive()
    ada.answer(3)
    Posting.objects.update(state="closed")
    body = refused(prolific("bo", offered).join(), 404, "no_study")
    assert body["exit"]["url"].endswith(f"cc={offered.codes['turned_away']}")
    again = prolific("ada", offered)
    assert again.join().status_code == 200 and again.state["next"] == 3


def test_it_lets_people_in_before_it_knows_that_the_platform_has_opened(small: Study) -> None:
    """The platform may send the first person while its answer to us is on the way."""
    draft = posting(small, "prolific", state="draft", external_id="")
    ada = prolific("ada", draft, extra={"STUDY_ID": "5ec"})
    assert ada.join().status_code == 201


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a b", "a\x00", "", "x" * 300, "A1;DROP"])
def test_it_refuses_a_name_that_no_platform_gives(hits: Posting, offered: Posting, name: str) -> None:
    for visitor in (prolific(name, offered), turker(name, hits)):
        body = refused(visitor.join(), 400, "invalid")
        assert "query" in body["error"]["fields"] and "<script>" not in json.dumps(body)
    assert rows() == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example",
        "https://www.mturk.com.evil.example",
        "http://www.mturk.com",
        "https://www.mturk.com@evil.example",
        "https://evil.example/https://www.mturk.com",
        "javascript:alert(1)",
        "//www.mturk.com",
        SUBMIT["sandbox"],
        "",
    ],
)
def test_it_sends_nobody_to_a_foreign_host(hits: Posting, address: str) -> None:
    refused(turker("A1EVIL", hits, extra={"turkSubmitTo": address}).join(), 400, "invalid")
    ada = turker("A1ADA", hits)
    ada.arrive("consent")
    ada.gate({"agree": False})
    ada.fields = {**(ada.fields or {}), "turkSubmitTo": address}
    refused(ada.end(), 400, "invalid")


def test_it_refuses_an_offer_that_was_not_posted(offered: Posting, hits: Posting) -> None:
    refused(prolific("ada", offered, extra={"STUDY_ID": "0" * 24}).join(), 400, "invalid")
    refused(turker("A1ADA", hits, extra={"hitId": "3OTHER"}).join(), 400, "invalid")
    assert turker("A1ADA", hits).join().status_code == 201


def test_it_refuses_somebody_else_s_submission(offered: Posting, hits: Posting) -> None:
    assert prolific("ada", offered, "s1").join().status_code == 201
    refused(prolific("bo", offered, "s1").join(), 403, "not_admitted")
    # The platform's own list came first, and knows better than an address that anybody can write.
    Submission.objects.create(
        posting=offered,
        submission_hash=keyed_hash("submission", "prolific", "s2"),
        person_hash=person_hash(offered, "cy"),
    )
    refused(prolific("dee", offered, "s2").join(), 403, "not_admitted")
    assert prolific("cy", offered, "s2").join().status_code == 201
    # An assignment that was returned may come back for another worker.
    assert turker("A1ADA", hits, "3SAME").join().status_code == 201
    assert turker("A1BO", hits, "3SAME").join().status_code == 201


def test_it_gives_a_row_of_the_platform_s_list_its_session(offered: Posting) -> None:
    known = Submission.objects.create(
        posting=offered,
        submission_hash=keyed_hash("submission", "prolific", "s-ada"),
        person_hash=person_hash(offered, "ada"),
        external_id="s-ada",
        state="active",
    )
    ada = prolific("ada", offered)
    assert ada.join().status_code == 201
    known.refresh_from_db()
    assert known.session == ada.session() and known.external_id == "s-ada" and known.state == "active"


PREVIEWS = [
    ("mturk", {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": HIT}),
    ("mturk", {"hitId": HIT}),
    ("mturk", {}),
    ("prolific", {name: "{{%" + name + "%}}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")}),
]


@pytest.mark.parametrize(("platform", "fields"), PREVIEWS)
def test_it_shows_a_preview_to_be_read_and_makes_nothing(
    small: Study, platform: str, fields: dict[str, str]
) -> None:
    offer = posting(small, platform)
    change_recruiting(small, description="You **look** at pictures.")
    visitor = Visitor("p", via=offer.key, platform=platform, fields=fields)
    page = Client().get(f"/join/small/?{visitor.address()}")
    text = page.content.decode()
    assert page.status_code == 200 and not page.cookies
    for shown in ("Left or right", "about 4 minutes", "1.00 USD", "<strong>look</strong>", "lab@example.org",
                  "Text of Left or right", "18 or older"):  # fmt: skip
        assert shown in text, shown
    for missing in ("<script", "<form", "<button", "<input", "http"):
        assert missing not in text.replace('lang="en"', ""), missing
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "form-action 'none'" in policy and "script" not in policy
    body = refused(visitor.join(), 403, "not_admitted")
    assert "preview" in body["error"]["message"] and body["exit"] is None
    assert rows() == (0, 0, 0, 0)


def test_it_speaks_the_study_s_language_at_the_door(small: Study) -> None:
    Study.objects.update(definition={**small.definition, "language": "de"}, digest="german")
    offer = posting(small, "prolific")
    visitor = Visitor("p", via=offer.key, fields=PREVIEWS[-1][1])
    text = Client().get(f"/join/small/?{visitor.address()}").content.decode()
    assert '<html lang="de">' in text and "etwa 4 Minuten" in text and "Was Sie tun werden" in text
    assert "Vorschau" in refused(visitor.join(), 403, "not_admitted")["error"]["message"]
    app = Client().get(f"/join/small/?{prolific('ada', offer).address()}").content.decode()
    assert "&quot;language&quot;: &quot;de&quot;" in app


def test_it_makes_no_row_and_no_cookie_for_whoever_only_looks(offered: Posting, hits: Posting) -> None:
    """Robots that follow links in messages load the page and nothing else."""
    for visitor in (prolific("ada", offered), turker("A1ADA", hits)):
        page = Client().get(f"/join/small/?{visitor.address()}")
        assert page.status_code == 200 and not page.cookies
        assert page["Cache-Control"] == "no-store" and page["Referrer-Policy"] == "no-referrer"
    assert rows() == (0, 0, 0, 0)
    lost = Client().get("/join/nowhere/")
    assert lost.status_code == 404 and "cannot be found" in lost.content.decode()
    assert Client().get("/join/small/?via=nobody").status_code == 404


@pytest.mark.parametrize(
    ("platform", "mode", "site", "ancestors", "targets"),
    [
        ("prolific", "live", "", "'none'", "'self'"),
        ("mturk", "live", "", "https://worker.mturk.com", "'self' https://www.mturk.com"),
        ("mturk", "sandbox", "", "https://workersandbox.mturk.com", "'self' https://workersandbox.mturk.com"),
        ("mturk", "rehearsal", "http://127.0.0.1:4711", "http://127.0.0.1:4711",
         "'self' http://127.0.0.1:4711"),
        ("link", "live", "", "'none'", "'self'"),
    ],
)  # fmt: skip
def test_it_may_be_framed_by_its_platform_alone(
    small: Study, platform: str, mode: str, site: str, ancestors: str, targets: str
) -> None:
    offer = posting(small, platform, mode=mode, site=site)
    for query in (f"via={offer.key}", f"via={offer.key}&{prolific('a', offer).address()}"):
        page = Client().get(f"/join/small/?{query}")
        policy = dict(part.strip().split(" ", 1) for part in page["Content-Security-Policy"].split(";"))
        assert policy["frame-ancestors"].startswith(ancestors)
        if "script" in page.content.decode():
            assert policy["form-action"].startswith(targets) and "https:" not in policy["form-action"].split()
        assert "X-Frame-Options" not in page


def test_it_takes_a_person_once_whatever_the_platform(small: Study) -> None:
    """Two panels with one register, and a returned submission."""
    first = posting(small, "link", options={"panel": "students"})
    second = posting(small, "link", pilot=True, options={"panel": "students"})
    third = posting(small, "link", mode="sandbox", options={"panel": "staff"})
    assert Visitor("ada", platform="link", via=first.key, fields={"person": "ada"}).join().status_code == 201
    back = Visitor("ada", platform="link", via=second.key, fields={"person": "ada", "submission": "x"})
    body = refused(back.join(), 409, "taken_part")
    assert body["exit"]["fields"] == {"code": second.codes["turned_away"]}
    assert Visitor("ada", platform="link", via=third.key, fields={"person": "ada"}).join().status_code == 201


def test_it_takes_a_person_of_prolific_once(offered: Posting) -> None:
    prolific("ada", offered, "s1").join()
    body = refused(prolific("ada", offered, "s2").join(), 409, "taken_part")
    assert body["exit"] == {
        "method": "GET",
        "url": f"https://app.prolific.com/submissions/complete?cc={offered.codes['turned_away']}",
        "fields": {},
    }


def test_it_hands_in_no_work_for_somebody_who_did_none(hits: Posting) -> None:
    """On Mechanical Turk whatever is submitted is paid; a second visit is to be given back."""
    turker("A1ADA", hits, "3A1").join()
    body = refused(turker("A1ADA", hits, "3A2").join(), 409, "taken_part")
    assert body["exit"]["method"] == "none"


def test_it_takes_nobody_from_a_study_that_is_excluded(offered: Posting) -> None:
    took_part(another_study(offered.study, "other"), person_hash(offered, "ada"))
    took_part(another_study(offered.study, "unrelated"), person_hash(offered, "cy"))
    change_recruiting(offered.study, excludes=["other", "never-was", "list:banned"])
    ExcludedPerson.objects.create(list_name="banned", person_hash=person_hash(offered, "bo"))
    ExcludedPerson.objects.create(list_name="another", person_hash=person_hash(offered, "cy"))
    for name in ("ada", "bo"):
        body = refused(prolific(name, offered).join(), 409, "taken_part")
        assert "earlier study" in body["error"]["message"]
        assert body["exit"]["url"].endswith(offered.codes["turned_away"])
    assert prolific("cy", offered).join().status_code == 201


def test_it_sends_back_whoever_finds_the_study_full_or_closed(offered: Posting) -> None:
    Slot.objects.update(kept=True)
    body = refused(prolific("ada", offered).join(), 410, "full")
    assert body["exit"]["url"].endswith(offered.codes["turned_away"])
    Slot.objects.update(kept=False)
    Study.objects.update(state="closed")
    body = refused(prolific("ada", offered).join(), 410, "full")
    assert "closed" in body["error"]["message"] and body["exit"]["method"] == "GET"


def test_it_turns_away_whoever_waits_at_the_last_gate_with_the_way_back(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive("practice")
    Slot.objects.update(kept=True)
    refused(ada.gate(ada.good_value()), 410, "full")
    assert ada.refresh()["page"]["kind"] == "turned_away"
    assert ada.end().json()["exit"]["url"].endswith(offered.codes["turned_away"])


def test_it_keeps_the_pilot_apart(small: Study) -> None:
    from experiments.enrolment import plan_pilot

    plan_pilot(small, 1, silent)
    pilot = posting(small, "prolific", pilot=True)
    ada = prolific("ada", pilot)
    ada.arrive()
    session = ada.session()
    assert session.origin == "pilot" and session.slot is not None and session.slot.pilot
    refused(prolific("bo", pilot).join(), 410, "full")
    live = posting(small, "prolific", external_id="2" * 24)
    assert prolific("bo", live).join().status_code == 201
    refused(prolific("ada", live, "s9").join(), 409, "taken_part")


@pytest.mark.parametrize(("asked", "kind"), [("", "visitor"), ("guesser", "guesser")])
def test_it_marks_everybody_of_a_rehearsal_as_simulated(small: Study, asked: str, kind: str) -> None:
    offer = posting(small, "prolific", mode="rehearsal", site="http://127.0.0.1:4711")
    ada = prolific("ada", offer, extra={"simulated": asked} if asked else {})
    ada.join()
    assert (ada.session().origin, ada.session().simulated_kind) == ("simulated", kind)
    refused(prolific("bo", offer, extra={"simulated": "<b>"}).join(), 400, "invalid")
    posting(small, "mturk")
    refused(prolific("cy", offer).join(), 403, "not_admitted")


def test_it_does_not_believe_a_simulated_person_of_a_live_posting(offered: Posting) -> None:
    ada = prolific("ada", offered, extra={"simulated": "guesser"})
    ada.join()
    assert (ada.session().origin, ada.session().simulated_kind) == ("human", "")


def fate(outcome: str, visitor: Visitor) -> Any:
    """Lives until the last call, which is answered with the exit."""
    if outcome in ("complete", "failed_checks"):
        visitor.arrive()
        visitor.answer(miss_checks=outcome == "failed_checks")
        return visitor.end()
    if outcome == "screened":
        visitor.arrive("quiz")
        visitor.gate({"task": "truth"})
        visitor.gate({"task": "truth"})
        return visitor.end()
    if outcome == "declined":
        visitor.arrive("consent")
        visitor.gate({"agree": False})
        return visitor.end()
    if outcome == "turned_away":
        visitor.arrive("practice")
        Slot.objects.update(kept=True)
        visitor.gate(visitor.good_value())
        return visitor.end()
    visitor.join()
    if outcome == "device":
        visitor.gate({**visitor.good_value(), "width_px": 390})
        return visitor.leave("no suitable device")
    visitor.arrive("trials" if outcome == "withdrawn" else "quiz")
    return visitor.leave("technical failure" if outcome == "failure" else "time")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_it_tells_the_platform_how_it_ended_and_nobody_before(
    offered: Posting, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reply before the end holds a code; the last one holds the one code of this outcome."""
    ada, heard = prolific("ada", offered), []
    plain = Person.call

    def listening(self: Person, *arguments: Any) -> Any:
        reply = plain(self, *arguments)
        heard.append(reply.content.decode())
        return reply

    monkeypatch.setattr(Person, "call", listening)
    told = fate(outcome, ada).json()
    assert told["exit"]["url"] == f"https://app.prolific.com/submissions/complete?cc={offered.codes[outcome]}"
    early = [code for code in offered.codes.values() if any(code in reply for reply in heard[:-1])]
    assert early == [] and len(heard) > 1
    assert [code for code in offered.codes.values() if code in heard[-1]] == [offered.codes[outcome]]
    assert ada.end().json()["exit"] == told["exit"]


@pytest.mark.parametrize("outcome", ["complete", "failed_checks", "screened", "turned_away", "failure"])
def test_it_builds_the_form_of_the_platform_from_the_page_s_own_query(hits: Posting, outcome: str) -> None:
    ada = turker("A1ADA", hits)
    told = fate(outcome, ada).json()
    assert told["exit"] == {
        "method": "POST",
        "url": "https://www.mturk.com/mturk/externalSubmit",
        "fields": {"assignmentId": "3AA1ADA", "completion": hits.codes[outcome]},
    }


@pytest.mark.parametrize("outcome", ["declined", "device"])
def test_it_asks_to_give_work_back_where_nothing_was_done(hits: Posting, outcome: str) -> None:
    assert fate(outcome, turker("A1ADA", hits)).json()["exit"]["method"] == "none"


def test_it_does_without_the_query_where_the_way_back_needs_none(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive()
    ada.answer()
    assert ada.finish().json()["exit"]["url"].endswith(offered.codes["complete"])


def test_it_refuses_a_query_of_somebody_else(hits: Posting, offered: Posting) -> None:
    ada, bo = turker("A1ADA", hits), turker("A1BO", hits)
    bo.join()
    ada.arrive()
    ada.answer()
    mine, bo_s = dict(ada.fields or {}), dict(bo.fields or {})
    wrong: list[Any] = [{**mine, "workerId": "A1BO"}, {**mine, "assignmentId": "3OTHER"}, bo_s, {}]
    for fields in wrong:
        ada.fields = fields
        refused(ada.end(), 400, "invalid")
    ada.query = "x" * 5000
    refused(ada.end(), 400, "invalid")
    refused(ada.call("POST", "/api/session/finish/", {"comment": None, "query": 7}), 400, "invalid")
    ada.query = ""
    assert ada.session().state == "running"
    ada.fields = mine
    assert ada.end().json()["exit"]["fields"]["completion"] == hits.codes["complete"]


def test_it_never_gives_the_code_of_completion_to_somebody_who_left(offered: Posting) -> None:
    """The platform said that they are gone: their session is over, but not everything was answered."""
    ada = prolific("ada", offered)
    ada.arrive()
    ada.answer(5)
    mark_left(ada.session())
    assert ada.end().json()["exit"]["url"].endswith(offered.codes["withdrawn"])


def test_it_pays_no_attention_to_the_device_once_one_has_fitted(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.join()
    ada.gate({**ada.good_value(), "width_px": 390})
    ada.gate(ada.good_value())
    assert Gate.objects.filter(kind="device", passed=True).exists()
    told = ada.leave("time").json()
    assert told["exit"]["url"].endswith(offered.codes["withdrawn"]) and told["debrief"] is None


def test_it_shows_the_debrief_to_whoever_agreed_and_left(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive()
    assert "debrief" in ada.leave("time").json()["debrief"]
