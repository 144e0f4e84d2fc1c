"""Notes on a record, by name; and finding people by name, rule and note, on the page of participants."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from crowd.ground.audit import study_log
from crowd.joining.entry_and_exit import withdraw
from crowd.models import PersonNote
from experiments.models import Session, Study
from tests.analysis import stored
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/participants/"


@pytest.fixture
def study(store_folder: object) -> Study:
    study = stored.opened()
    stored.cast(study)
    return study


@pytest.fixture
def desk(study: Study) -> Client:
    return login("vera", "view", "run")


def names(desk: Client, query: str = "") -> list[str]:
    page = desk.get(f"{ROOT}{query}").content.decode()
    return re.findall(r"<code>(p-[0-9a-f]{16})</code>", page)


def test_a_note_stands_on_the_record_with_its_author(study: Study, desk: Client) -> None:
    row = Session.objects.filter(study=study).first()
    assert row is not None
    page = f"{ROOT}{row.pk}/"
    assert "None yet." in desk.get(page).content.decode()
    reply = desk.post(f"{page}note/", {"text": "  They wrote: <the lamp went out>.  "})
    assert (reply.status_code, reply["Location"]) == (302, f"{page}#notes")
    note = PersonNote.objects.get()
    assert (note.by, note.text, note.session_id) == ("vera", "They wrote: <the lamp went out>.", row.pk)
    shown = desk.get(page).content.decode()
    assert "They wrote: &lt;the lamp went out&gt;." in shown and "<strong>vera</strong>" in shown
    lines = [entry.change_message for entry in study_log(study) if "oted" in entry.change_message]
    assert len(lines) == 1 and re.fullmatch(r"Noted something on the record of p-[0-9a-f]{16}\.", lines[0])


@pytest.mark.parametrize(("text", "said"), [("ok", "this one 2."), ("x" * 2_001, "this one 2,001.")])
def test_a_note_that_is_none_is_refused(study: Study, desk: Client, text: str, said: str) -> None:
    row = Session.objects.filter(study=study).first()
    assert row is not None
    reply = desk.post(f"{ROOT}{row.pk}/note/", {"text": text}, follow=True)
    assert said in reply.content.decode() and not PersonNote.objects.exists()


def test_a_login_that_may_only_look_reads_notes_and_writes_none(study: Study) -> None:
    row = Session.objects.filter(study=study).first()
    assert row is not None
    viewer = login("mo", "view")
    assert viewer.post(f"{ROOT}{row.pk}/note/", {"text": "Let me in."}).status_code == 403
    assert "Note, as mo" not in viewer.get(f"{ROOT}{row.pk}/").content.decode()


def test_people_are_named_and_found(study: Study, desk: Client) -> None:
    everybody = names(desk)
    assert len(everybody) == 4 == len(set(everybody))
    for name in everybody:
        for asked in (name, name[2:9], name.upper()):
            assert names(desk, f"?q={asked}") == [name]
    slow = [row for row in Session.objects.filter(study=study) if row.reasons]
    assert len(names(desk, "?q=too+fast")) == len(slow) == 1, "by the words of a rule"
    assert names(desk, "?q=no-one-is-called-so") == []
    assert "Nobody fits" in desk.get(f"{ROOT}?q=no-one-is-called-so").content.decode()


def test_people_are_found_by_a_note_and_within_a_filter(study: Study, desk: Client) -> None:
    row = Session.objects.get(study=study, verdict="passed")
    desk.post(f"{ROOT}{row.pk}/note/", {"text": "The lamp went out."})
    found_ones = names(desk, "?q=LAMP")
    assert len(found_ones) == 1
    assert names(desk, "?q=lamp&status=passed") == found_ones
    assert names(desk, "?q=lamp&status=screened") == []
    page = desk.get(f"{ROOT}?q=lamp&status=passed").content.decode()
    assert '<input type="hidden" name="status" value="passed">' in page and 'value="lamp"' in page


def test_a_condition_is_called_as_figures_call_it(study: Study, desk: Client) -> None:
    Study.objects.filter(pk=study.pk).update(state="closed")
    page = desk.get(ROOT).content.decode()
    assert "<td>Grad-CAM</td>" in page and "grad_cam" not in page


def test_notes_go_with_the_answers(study: Study, desk: Client) -> None:
    row = Session.objects.get(study=study, verdict="passed")
    desk.post(f"{ROOT}{row.pk}/note/", {"text": "The lamp went out."})
    withdraw(row, "They asked.", erase=False)
    assert PersonNote.objects.exists()
    withdraw(row, "They asked.", erase=True)
    assert not PersonNote.objects.exists()
