"""Money, downloads, pictures and previews: what leaves the dashboard."""

import csv
import io
import json
import zipfile
from typing import Any

import pytest
from django.test import Client

from analysis.columns import TABLES
from analysis.exports import manifest
from crowd.dashboard.rows.pay_due import money_of
from crowd.ground.amounts import share_of
from experiments.definition.study import StudyDefinition
from experiments.models import Session, Slot, Study
from stimuli.models import Stimulus
from stimuli.spec import content_key
from tests.analysis import stored
from tests.world import Person

ROOT = "/studies/wolf-or-husky/"


def body_of(reply: Any) -> bytes:
    return b"".join(reply.streaming_content) if reply.streaming else reply.content


def paying(study: Study, **policy: Any) -> Study:
    """The study with a reward of 1.40 and a policy; its definition is read again."""
    definition = {
        **study.definition,
        "reward": {"amount_cents": 140, "currency": "USD", "expected_minutes": 5},
        "policy": policy,
    }
    digest = StudyDefinition.model_validate(definition).digest
    Study.objects.filter(pk=study.pk).update(definition=definition, digest=digest)
    return Study.objects.get(pk=study.pk)


def test_it_owes_what_the_policy_says(study: Study) -> None:
    study = paying(study, screened_share=0.5, turned_away_share=0.25)
    cast = stored.cast(study)  # one kept, one excluded: both in full; one left and one declined: nothing
    half = stored.sitting(study, "half", condition="baseline", verdict="withdrawn")
    planned = half.responses.count()
    half.responses.filter(position__gte=planned // 2).delete()
    stored.sitting(study, "quiz", verdict="screened")
    away = stored.sitting(study, "away", verdict="")
    Session.objects.filter(pk=away.pk).update(state="turned_away")
    stored.sitting(study, "robot", condition="control", origin="simulated")
    stored.sitting(study, "look", condition="control", origin="preview")
    money = money_of(study, places=12, in_progress=0)
    assert money.owed_cents == 2 * 140 + share_of(140, planned // 2 / planned) + 70 + 35
    assert (money.cap_cents, money.simulated.cents, money.people) == (1680, 140, 7)
    assert cast["bo"].verdict == "screened"


def test_it_pays_pro_rata_after_erasure(study: Study) -> None:
    study = paying(study)
    gone = stored.sitting(study, "gone", condition="baseline", verdict="withdrawn")
    planned = gone.responses.count()
    gone.responses.all().delete()
    Session.objects.filter(pk=gone.pk).update(erased={"responses": planned // 4})
    assert money_of(study, 12, 0).owed_cents == share_of(140, planned // 4 / planned)


def test_it_says_that_nothing_was_sent(study: Study, desk: Client) -> None:
    stored.cast(paying(study))
    page = desk.get(f"{ROOT}money/").content.decode()
    assert "Owed by policy, not yet sent" in page and "2.80 USD" in page


@pytest.mark.parametrize("cleaned,people", [("raw", 2), ("cleaned", 1)])
def test_it_streams_the_export_of_one_origin(study: Study, desk: Client, cleaned: str, people: int) -> None:
    stored.sitting(study, "robot", condition="control", origin="simulated")
    stored.sitting(study, "broken", condition="control", origin="simulated", verdict="screened")
    stored.sitting(study, "person", condition="control")
    reply = desk.post(f"{ROOT}downloads/export/", {"origin": "simulated", "cleaned": cleaned})
    assert reply.status_code == 200 and reply.streaming
    assert f"wolf-or-husky-simulated-{cleaned}.zip" in reply["Content-Disposition"]
    assert reply["Cache-Control"] == "private, no-store"
    archive = zipfile.ZipFile(io.BytesIO(body_of(reply)))
    folder = f"wolf-or-husky-simulated-{cleaned}"
    assert {name.removeprefix(f"{folder}/") for name in archive.namelist()} == {
        *(f"{table}.csv" for table in TABLES),
        *("codebook.csv", "codebook.json", "definition.json", "manifest.json", "study.json"),
        *("preregistration.json", "preregistration.md", "conditions.csv", "report-simulated.json"),
        *("table1-simulated.csv", "analysis.py", "analysis.R", "README.md", "CITATION.cff"),
        "dataset_description.json",
    }
    rows = list(csv.DictReader(io.StringIO(archive.read(f"{folder}/participants.csv").decode())))
    assert [row["origin"] for row in rows] == ["simulated"] * people
    assert "simulated sessions" in desk.get(f"{ROOT}log/").content.decode()


def test_it_streams_an_export_that_verifies(study: Study, desk: Client, tmp_path: Any) -> None:
    stored.full(study)
    reply = desk.post(f"{ROOT}downloads/export/", {"origin": "human", "cleaned": "cleaned"})
    zipfile.ZipFile(io.BytesIO(body_of(reply))).extractall(tmp_path)
    assert manifest.check(tmp_path / "wolf-or-husky-human-cleaned").problems == ()


def test_it_withholds_people_s_data_while_results_are_sealed(study: Study, desk: Client) -> None:
    stored.cast(study)
    reply = desk.post(f"{ROOT}downloads/export/", {"origin": "human", "cleaned": "raw"})
    assert reply.status_code == 409 and b"Sealed until the stopping rule is met" in reply.content
    assert study.releases.count() == 0


@pytest.mark.parametrize("posted", [{}, {"origin": "preview", "cleaned": "raw"}, {"origin": "human"}])
def test_it_says_what_is_wrong_with_a_request(study: Study, desk: Client, posted: dict[str, str]) -> None:
    assert desk.post(f"{ROOT}downloads/export/", posted).status_code == 400


def test_it_hands_out_the_definition_under_its_digest(study: Study, desk: Client) -> None:
    reply = desk.get(f"{ROOT}downloads/definition.json")
    assert reply["Content-Disposition"].startswith("attachment")
    assert content_key(json.loads(reply.content)) == study.digest


def test_it_shows_pictures_of_the_study_only(small: Study, study: Study, desk: Client) -> None:
    stimulus = Stimulus.objects.filter(renderings__item__study=small).exclude(explanation_file="").first()
    assert stimulus is not None
    for kind in ("image", "explanation", "tile", "explanation-tile"):
        reply = desk.get(f"/studies/small/pictures/{stimulus.pk}/{kind}/")
        assert reply["Content-Type"] == "image/png" and reply.content.startswith(b"\x89PNG")
        assert reply["Cache-Control"].startswith("private")
    assert desk.get(f"{ROOT}pictures/{stimulus.pk}/image/").status_code == 404
    assert desk.get(f"/studies/small/pictures/{stimulus.pk}/spec/").status_code == 404
    lost = Stimulus.objects.filter(renderings__item__study=study).first()
    assert lost is not None
    Stimulus.objects.filter(pk=lost.pk).update(image_file="pictures/gone.png")
    assert desk.get(f"{ROOT}pictures/{lost.pk}/image/").status_code == 404


def test_it_previews_a_slot_of_any_condition_and_holds_nothing(small: Study, desk: Client) -> None:
    first = desk.get("/studies/small/preview/").content.decode()
    assert 'alt="explanation of' in first, "who looks for the first time sees an explanation"
    for condition in ("baseline", "control", "saliency"):
        page = desk.get(f"/studies/small/preview/?condition={condition}&plan=2").content.decode()
        slots = Slot.objects.filter(arm=condition).order_by("ordinal")
        assert page.count('<tr id="trial-') == slots[1].trials.count()
        start = page.index("/join/small/?preview=")
        query = page[start : page.index('"', start)].removeprefix("/join/small/")
        me = Person("me", slug="small")
        reply = me.call(
            "POST", "/api/sessions/", {"study": "small", "platform": "local", "query": query}, "none"
        )
        assert reply.status_code == 201
        me.token, me.state = reply.json()["token"], reply.json()["session"]
        assert me.state["study"]["origin"] == "preview"
        assert me.session().slot == slots[1]
        assert me.state["step"] != "finish"
    assert set(Session.objects.values_list("origin", flat=True)) == {"preview"}
    assert not Slot.objects.exclude(holder=None, claimed_count=0, kept=False).exists()


def test_it_counts_no_preview(small: Study, desk: Client) -> None:
    session = Session.objects.create(
        study=small, participant=small.participants.create(), origin="preview", token_hash="x", media_id="x"
    )
    assert "Nobody has arrived yet" in desk.get("/studies/small/").content.decode()
    assert str(session.pk) not in desk.get("/studies/small/participants/").content.decode()
    assert str(session.pk) in desk.get("/studies/small/participants/?origin=preview").content.decode()
