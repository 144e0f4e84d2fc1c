"""Who may enter from a platform, and who may not."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from crowd.ground.identity_hashes import person_hash
from crowd.joining.entry_and_exit import preview_query
from crowd.models import ExcludedPerson, Identity, Posting, Submission
from experiments.models import Participant, Session, Slot, Study
from experiments.simulation.versions import version_of
from experiments.tokens import keyed_hash
from tests.crowd.arrivals import HIT, SUBMIT, Visitor, posting, prolific, refused, turker
from tests.world import silent

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("constraints")]


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
    """A second open study without content."""
    fields = {"title": study.title, "paradigm": study.paradigm, "definition": study.definition,
              "digest": slug, "seed": 1, "state": "open"}  # fmt: skip
    return Study.objects.create(slug=slug, **fields)


def took_part(study: Study, person: str) -> None:
    participant = Participant.objects.create(study=study)
    Identity.objects.create(study=study, platform="prolific", person_hash=person, participant=participant)
    Session.objects.create(
        study=study, participant=participant, origin="human", token_hash=person, media_id=person[:22]
    )


def rows() -> tuple[int, ...]:
    return tuple(table.objects.count() for table in (Session, Identity, Submission, Participant))


def test_it_admits_a_person_by_the_posting_s_key_and_keeps_only_hashes(offered: Posting) -> None:
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


@pytest.mark.parametrize("via", ["", "nobody", "0" * 22, "x" * 200, "<script>"])
def test_it_finds_no_study_behind_an_unknown_key(offered: Posting, via: str) -> None:
    body = refused(prolific("ada", offered, extra={"via": via or "-"}).join(), 404, "no_study")
    assert body["exit"] is None and rows() == (0, 0, 0, 0)


def test_it_refuses_a_key_of_another_study_or_platform(offered: Posting) -> None:
    stranger = prolific("ada", offered)
    stranger.slug = another_study(offered.study, "other").slug
    refused(stranger.join(), 404, "no_study")
    stranger.slug, stranger.platform = offered.study.slug, "mturk"
    refused(stranger.join(), 404, "no_study")


def test_it_takes_no_new_people_on_a_closed_posting_but_lets_people_finish(offered: Posting) -> None:
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
def test_it_sends_no_person_to_a_foreign_host(hits: Posting, address: str) -> None:
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


def test_it_refuses_another_person_s_submission(offered: Posting, hits: Posting) -> None:
    assert prolific("ada", offered, "s1").join().status_code == 201
    refused(prolific("bo", offered, "s1").join(), 403, "not_admitted")
    # The platform's own list came first, and counts more than an address that any person can write.
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
    spec = posting(small, platform)
    change_recruiting(small, description="You **look** at pictures.")
    visitor = Visitor("p", via=spec.key, platform=platform, fields=fields)
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
    spec = posting(small, "prolific")
    visitor = Visitor("p", via=spec.key, fields=PREVIEWS[-1][1])
    text = Client().get(f"/join/small/?{visitor.address()}").content.decode()
    assert '<html lang="de" dir="ltr">' in text and "etwa 4 Minuten" in text and "Was Sie tun werden" in text
    assert "Vorschau" in refused(visitor.join(), 403, "not_admitted")["error"]["message"]
    app = Client().get(f"/join/small/?{prolific('ada', spec).address()}").content.decode()
    assert "&quot;language&quot;: &quot;de&quot;" in app and "&quot;words&quot;" not in app


def test_it_speaks_a_language_of_the_study_s_own_at_the_door(small: Study) -> None:
    """The preview, a refusal, an address that leads nowhere, and the page before it asks for anything."""
    said = {"entry.mark": "معاينة", "entry.preview_refused": "هذه معاينة", "entry.lost": "لا توجد"}
    said |= {"page.common.skip": "تخطي", "page.common.block.test.other": "{count} صور"}
    file = {"language": "ar", "translator": "Ada", "words": said}
    Study.objects.update(definition={**small.definition, "interface": file}, digest="arabic")
    spec = posting(small, "prolific")
    visitor = Visitor("p", via=spec.key, fields=PREVIEWS[-1][1])
    text = Client().get(f"/join/small/?{visitor.address()}").content.decode()
    assert '<html lang="ar" dir="rtl">' in text and "معاينة" in text
    assert refused(visitor.join(), 403, "not_admitted")["error"]["message"] == "هذه معاينة"
    assert "لا توجد" in Client().get("/join/small/?via=none").content.decode()
    app = Client().get(f"/join/small/?{prolific('ada', spec).address()}").content.decode()
    (meta,) = re.findall('<meta name="study" content="([^"]*)">', app)
    told = json.loads(html.unescape(meta))
    forms = {f"block.test.{form}": "{count} صور" for form in ("zero", "one", "two", "few", "many", "other")}
    assert told["language"] == "ar" and told["words"] == {"direction": "rtl", "skip": "تخطي", **forms}


def test_it_makes_no_row_and_no_cookie_for_a_visit_of_the_page_alone(offered: Posting, hits: Posting) -> None:
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
    spec = posting(small, platform, mode=mode, site=site)
    for query in (f"via={spec.key}", f"via={spec.key}&{prolific('a', spec).address()}"):
        page = Client().get(f"/join/small/?{query}")
        policy = dict(part.strip().split(" ", 1) for part in page["Content-Security-Policy"].split(";"))
        assert policy["frame-ancestors"].startswith(ancestors)
        if "script" in page.content.decode():
            assert policy["form-action"].startswith(targets) and "https:" not in policy["form-action"].split()
        assert "X-Frame-Options" not in page


def test_it_takes_a_person_once_over_all_panels_of_a_register(small: Study) -> None:
    """Two panels with one register, and a returned submission."""
    first = posting(small, "link", options={"panel": "students"})
    second = posting(small, "link", pilot=True, options={"panel": "students"})
    assert Visitor("ada", platform="link", via=first.key, fields={"person": "ada"}).join().status_code == 201
    back = Visitor("ada", platform="link", via=second.key, fields={"person": "ada", "submission": "x"})
    body = refused(back.join(), 409, "taken_part")
    assert body["exit"]["fields"] == {"code": second.codes["turned_away"]}
    Posting.objects.filter(id=first.pk).update(state="closed")
    third = posting(small, "link", options={"panel": "staff"})
    assert Visitor("ada", platform="link", via=third.key, fields={"person": "ada"}).join().status_code == 201


def test_it_takes_a_person_of_prolific_once(offered: Posting) -> None:
    prolific("ada", offered, "s1").join()
    body = refused(prolific("ada", offered, "s2").join(), 409, "taken_part")
    assert body["exit"] == {
        "method": "GET",
        "url": f"https://app.prolific.com/submissions/complete?cc={offered.codes['turned_away']}",
        "fields": {},
    }


def test_it_submits_no_work_for_a_person_who_did_none(hits: Posting) -> None:
    """On Mechanical Turk every submission is paid, so a second visit has to be given back."""
    turker("A1ADA", hits, "3A1").join()
    body = refused(turker("A1ADA", hits, "3A2").join(), 409, "taken_part")
    assert body["exit"]["method"] == "none"


def test_it_takes_no_people_of_an_excluded_study(offered: Posting) -> None:
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


def test_it_sends_people_back_from_a_full_or_closed_study(offered: Posting) -> None:
    Slot.objects.update(kept=True)
    body = refused(prolific("ada", offered).join(), 410, "full")
    assert body["exit"]["url"].endswith(offered.codes["turned_away"])
    Slot.objects.update(kept=False)
    Study.objects.update(state="closed")
    body = refused(prolific("ada", offered).join(), 410, "full")
    assert "closed" in body["error"]["message"] and body["exit"]["method"] == "GET"


def test_it_turns_people_away_at_the_last_gate_with_the_way_back(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive("practice")
    Slot.objects.update(kept=True)
    refused(ada.gate(ada.good_value()), 410, "full")
    assert ada.refresh()["page"]["kind"] == "turned_away"
    assert ada.end().json()["exit"]["url"].endswith(offered.codes["turned_away"])


def test_it_keeps_the_pilot_apart(small: Study) -> None:
    from experiments.opening.opening import plan_pilot

    plan_pilot(small, 1, silent)
    pilot = posting(small, "prolific", pilot=True)
    ada = prolific("ada", pilot)
    ada.arrive()
    session = ada.session()
    assert session.origin == "pilot" and session.slot is not None and session.slot.pilot
    Session.objects.update(arrival="verified")
    refused(prolific("bo", pilot).join(), 410, "full")
    live = posting(small, "prolific", external_id="2" * 24)
    assert prolific("bo", live).join().status_code == 201
    refused(prolific("ada", live, "s9").join(), 409, "taken_part")


@pytest.mark.parametrize(("asked", "kind"), [("", "visitor"), ("guesser", "guesser")])
def test_it_marks_everybody_of_a_rehearsal_as_simulated(small: Study, asked: str, kind: str) -> None:
    spec = posting(small, "prolific", mode="rehearsal", site="http://127.0.0.1:4711")
    ada = prolific("ada", spec, extra={"simulated": asked} if asked else {})
    ada.join()
    assert (ada.session().origin, ada.session().simulated_kind) == ("simulated", kind)
    assert ada.session().simulated_digest == "", "neither is an observer, so nothing of theirs was frozen"
    refused(prolific("bo", spec, extra={"simulated": "<b>"}).join(), 400, "invalid")
    posting(small, "mturk")
    refused(prolific("cy", spec).join(), 403, "not_admitted")


def test_it_keeps_the_digest_of_the_observer_who_comes(small: Study) -> None:
    spec = posting(small, "prolific", mode="rehearsal", site="http://127.0.0.1:4711")
    ada = prolific("ada", spec, extra={"simulated": "exemplar"})
    ada.join()
    frozen = version_of("exemplar")
    assert frozen is not None and ada.session().simulated_digest == frozen.digest


def test_it_does_not_believe_a_simulated_person_of_a_live_posting(offered: Posting) -> None:
    ada = prolific("ada", offered, extra={"simulated": "guesser"})
    ada.join()
    assert (ada.session().origin, ada.session().simulated_kind) == ("human", "")


def test_it_admits_no_person_to_a_live_study_by_a_test_address(small: Study) -> None:
    """The local posting is still open; any person can write its addresses."""
    bot = Visitor("bot1", platform="local", query="person=bot1")
    trial = posting(small, "link", mode="rehearsal", options={"panel": "students"})
    sandbox = posting(small, "mturk", mode="sandbox")
    assert Posting.objects.get(platform="local").mode == "rehearsal"
    early = Visitor("early", platform="local", query="person=early")
    assert early.join().status_code == 201
    live = posting(small, "prolific")
    linked = Visitor("bot2", platform="link", via=trial.key, fields={"person": "bot2"})
    for visitor in (bot, linked, turker("A1BOT", sandbox)):
        body = refused(visitor.join(), 403, "not_admitted")
        assert "simulated" in body["error"]["message"] or "has begun" in body["error"]["message"]
    assert Session.objects.count() == 1
    # A started session may go on, a researcher may look, and a local posting may be live itself.
    assert Visitor("early", platform="local", query="person=early").join().status_code == 200
    assert Visitor("me", platform="local", query=preview_query(small, 0)).join().status_code == 201
    assert prolific("ada", live).join().status_code == 201
    Posting.objects.filter(platform="local").update(mode="live")
    assert Visitor("bot1", platform="local", query="person=bot1").join().status_code == 201


def test_it_gives_away_no_place_that_a_platform_has_promised(offered: Posting) -> None:
    by_link = posting(offered.study, "link")
    guest = Visitor("guest", platform="link", via=by_link.key, fields={"person": "guest"})
    free = Slot.objects.filter(study=offered.study).count()
    Posting.objects.filter(pk=offered.pk).update(places=free)
    refused(guest.join(), 410, "full")
    Posting.objects.filter(pk=offered.pk).update(places=free - 1)
    assert guest.join().status_code == 201
