"""Stimuli are measured when a study opens; people look at faulty ones only if a name stands for it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from analysis.stored_reports.refresh import make_report
from analysis.tables.response_reader import study_facts
from crowd.ground.audit import study_log
from crowd.ground.roles import change
from crowd.models import Posting
from crowd.recruiting.publishing import publish_posting
from crowd.study_check.quality_record import MEASURED_MAX, measure, quality_json, quality_of
from experiments.drafting.draft import build_draft
from experiments.drafting.stimulus_warnings import (
    acknowledge,
    open_warnings,
    refusing,
    stimuli_sentences,
    warnings_of,
)
from experiments.errors import StudyError
from experiments.models import Item, Study, Trial
from experiments.study_files.load import load_study
from stimuli.explainers.gradients.pixel_gradients import Saliency
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from tests.crowd.offered_studies import public, simulated
from tests.crowd.study_check.test_stimulus_quality import CLEAN
from tests.snapshots import once
from tests.spoilt import empty_for_the_first_answer
from tests.world import Person, draw_images, silent, write_study

__all__ = ["public"]
pytestmark = pytest.mark.django_db
REASON = "A known defect, which the paper describes."
SHOWN_AT_TEST = "min_view_ms = 0\ntest_explanations = true"
ON_PROLIFIC = """
[policy]
turned_away_share = 0
withdrawn = "none"
[platforms.prolific]
signed_entry = false
"""


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted method whose form codes the answer: for the first one it makes nothing."""
    empty_for_the_first_answer(monkeypatch)


ITEMS = 32
"""Enough for a decoder to be sure, and fewer than the folder holds."""


def written(folder: Path, **changes: str) -> Path:
    path = write_study(folder, slots=1, **changes)
    text = path.read_text().replace("[stimuli]\n", f"[stimuli]\nitems = {ITEMS}\n")
    path.write_text(text + ON_PROLIFIC)
    return path


def honest(folder: Path, **changes: str) -> Path:
    """The toy's gradient is one map per answer, which its form tells; times the picture it is not."""
    path = written(folder, **changes)
    path.write_text(path.read_text().replace('"saliency"', '"gradient_x_input"'))
    return path


def opened(path: Path) -> Study:
    """The study as `study_open` leaves it."""
    call_command("study_open", str(path))
    return Study.objects.get()


def opened_spoilt(folder: Path) -> Study:
    """The study with the planted method, for tests of what comes after: opened once in a run."""
    return once(written(folder, min_view_ms=SHOWN_AT_TEST), "opened by its command, spoilt", opened)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    def take() -> str:
        return " ".join(capsys.readouterr().out.split())

    return take


def again() -> Study:
    return Study.objects.get()


def test_a_form_that_codes_the_answer_is_published_live_only_by_name(
    tmp_path: Path, store_folder: Path, spoilt: None, printed: Any
) -> None:
    User.objects.create(username="grace", first_name="Grace", last_name="Hopper")
    study = opened(written(tmp_path, min_view_ms=SHOWN_AT_TEST))
    out = printed()
    assert "empty explanations by answer" in out and "is acknowledged by name" in out
    kinds = {(w["condition"], w["kind"]) for w in refusing(study)}
    assert kinds == {("saliency", "flat"), ("saliency", "leak")}
    with simulated("prolific") as sim:
        with pytest.raises(StudyError, match="not offered to people: saliency: empty"):
            publish_posting(study, "prolific", "live", places=2, cap_cents=5000, site=sim.url)
        rehearsed = publish_posting(study, "prolific", "rehearsal", places=2, cap_cents=5000, site=sim.url)
        assert rehearsed.state == "open"
    for refused in ((), ("--acknowledge", "grace"), ("--acknowledge", "grace", "--reason", "Fine.")):
        with pytest.raises(CommandError, match="--acknowledge|needs a name and a reason"):
            call_command("publish", "small", "--platform", "link", "--live", *refused)
    call_command("publish", "small", "--platform", "local", "--live")
    assert set(Posting.objects.filter(mode="live").values_list("platform", flat=True)) == {"local"}

    acknowledged = ("--acknowledge", "grace", "--reason", REASON, "--by", "grace")
    call_command("publish", "small", "--platform", "link", "--live", *acknowledged)
    assert "2 warnings about the stimuli are acknowledged" in printed()
    call_command("publish", "small", "--platform", "link", "--live", *acknowledged)
    assert "awaits" in printed() and len(again().acknowledged) == 1
    assert Posting.objects.get(platform="link").mode == "live"
    entry = study_log(study)
    assert any("Acknowledged as Grace Hopper" in line.change_message for line in entry)
    with simulated("prolific") as sim:
        posting = publish_posting(again(), "prolific", "live", places=2, cap_cents=5000, site=sim.url)
        assert posting.state == "open"


@pytest.mark.long(stays="test_the_page_of_stimuli_shows_it_and_takes_the_acknowledgement")
def test_the_caption_of_the_main_table_says_who_went_on_and_why(
    tmp_path: Path, store_folder: Path, spoilt: None
) -> None:
    study = opened_spoilt(tmp_path)
    Posting.objects.create(study=study, platform="local", state="open")
    Person("robot", simulated="learner").take_part()
    before = make_report(again(), "simulated").tables()["conditions"].note
    assert "not acknowledged: saliency: empty explanations by answer" in before
    acknowledge(study, "Grace Hopper", REASON)
    report = make_report(again(), "simulated")
    note = report.tables()["conditions"].note
    day = again().acknowledged[0]["at"][:10]
    assert f"Acknowledged by Grace Hopper on {day}" in note and REASON in note
    assert "saliency: empty explanations by answer" in note and "tells which answer it explains" in note
    assert "not acknowledged" not in note and note.endswith(" ".join(report.json()["stimuli"]["sentences"]))


def test_beside_the_label_it_warns_only(
    tmp_path: Path, store_folder: Path, spoilt: None, printed: Any, desk: Client
) -> None:
    study = opened(written(tmp_path))
    assert [(w["kind"], w["refuses"]) for w in warnings_of(study)] == [("flat", False)]
    assert "empty explanations by answer" in printed() and not refusing(study)
    leak = next(q for q in study.quality["conditions"] if q["condition"] == "saliency")["leak"]
    assert leak["low"] > 0.6, "printed all the same"
    assert "a target leak gives nothing away" in desk.get(PAGE).content.decode()
    call_command("publish", "small", "--platform", "link", "--live")
    assert Posting.objects.get().mode == "live"


def test_honest_material_is_published_without_a_word(
    tmp_path: Path, store_folder: Path, printed: Any
) -> None:
    study = opened(honest(tmp_path, min_view_ms=SHOWN_AT_TEST))
    assert warnings_of(study) == [] and "Warning:" not in printed()
    assert study_facts(study).stimuli == ("No warning about the stimuli.",)
    call_command("publish", "small", "--platform", "link", "--live")
    with pytest.raises(StudyError, match="no warning about its stimuli"):
        acknowledge(study, "Grace", REASON)
    assert {row["condition"] for row in study.quality["conditions"]} == {"control", "gradient_x_input"}
    assert all(row["items"] == min(MEASURED_MAX, ITEMS) for row in study.quality["conditions"])


@pytest.mark.long(stays="test_stored_numbers_come_back_as_they_were")
def test_it_is_measured_once_and_the_same_again(tmp_path: Path, store_folder: Path, spoilt: None) -> None:
    study = opened_spoilt(tmp_path)
    files = {path for path in store_folder.rglob("*") if path.is_file()}
    acknowledge(study, "Grace", REASON)
    first = again().quality
    call_command("study_open", str(tmp_path / "study.toml"))
    assert again().quality == first
    call_command("study_open", str(tmp_path / "study.toml"), "--quality", str(ITEMS))
    assert again().quality["digest"] == first["digest"] and not refusing(again())
    assert files == {path for path in store_folder.rglob("*") if path.is_file()}
    # Fewer items give other numbers: another warning, to be acknowledged anew.
    call_command("study_open", str(tmp_path / "study.toml"), "--quality", "20")
    assert again().quality["digest"] != first["digest"] and refusing(again())
    assert "not acknowledged" in " ".join(stimuli_sentences(again()))


@pytest.mark.long(stays="test_honest_material_is_published_without_a_word")
def test_a_study_that_was_not_measured_says_so_and_is_measured_later(
    tmp_path: Path, store_folder: Path, desk: Client
) -> None:
    """And what is not known is not called clean: four items are too few for a decoder, which needs six."""
    path = honest(tmp_path, min_view_ms=SHOWN_AT_TEST)
    call_command("study_open", str(path), "--quality", "0")
    assert stimuli_sentences(again()) == ["The stimuli were not measured."]
    with pytest.raises(CommandError, match="not measured: run study_open small once more"):
        call_command("publish", "small", "--platform", "link", "--live")
    for old in tmp_path.glob("images/left/*.png"):
        old.rename(old.with_suffix(".gone"))
    call_command("study_open", str(path))
    assert again().state == "open" and "not measured: " in stimuli_sentences(again())[0]
    for old in tmp_path.glob("images/left/*.gone"):
        old.rename(old.with_suffix(".png"))
    call_command("study_open", str(path))
    assert stimuli_sentences(again()) == ["No warning about the stimuli."]
    call_command("study_open", str(path), "--quality", "4")
    study = again()
    assert [row["leak"] for row in study.quality["conditions"]] == [None, None]
    (said,) = stimuli_sentences(study)
    assert said.startswith("Unknown, which is not clean") and "control, gradient_x_input" in said
    page = desk.get(PAGE).content.decode()
    assert said in page and "No warning about the stimuli." not in page


def test_a_method_that_shows_nothing_is_warned_of(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty for every answer alike: no answer is given away, and nothing is seen."""
    honest_one = Saliency.explain

    def explain(self: Saliency, predictor: Any, subject: Subject) -> Steps:
        made = yield from honest_one(self, predictor, subject)
        return replace(made, values=np.zeros_like(made.values))

    monkeypatch.setattr(Saliency, "explain", explain)
    study = opened(written(tmp_path, min_view_ms=SHOWN_AT_TEST))
    (warned,) = warnings_of(study)
    assert (warned["condition"], warned["kind"], warned["refuses"]) == ("saliency", "empty", False)
    assert f"{ITEMS} of {ITEMS} explanations are empty" in warned["what"]
    assert f"{ITEMS} of {ITEMS} explanations are empty" in " ".join(stimuli_sentences(study))


def test_what_people_do_not_see_is_not_measured(tmp_path: Path, store_folder: Path) -> None:
    """The pictures were changed after the study had opened."""
    study = opened(written(tmp_path))
    draw_images(tmp_path, per_cell=15)
    measure(study, tmp_path, silent)
    assert "is not what people see" in stimuli_sentences(again())[0]


def test_stored_numbers_come_back_as_they_were() -> None:
    told = replace(CLEAN, told=CLEAN.leak, of="grad_cam")
    unknown = replace(CLEAN, leak=None, leak_p=float("nan"), region=float("nan"))
    for quality, nulls in ((CLEAN, {"told"}), (told, set()), (unknown, {"told", "leak", "leak_p", "region"})):
        row = quality_json(quality)
        assert {name for name, value in row.items() if value is None} == nulls
        back = quality_of(row | {"of a later version": 1})
        assert quality_json(back) == row and repr(asdict(back)) == repr(asdict(quality))


PAGE = "/studies/small/stimuli/"


def test_the_page_of_stimuli_shows_it_and_takes_the_acknowledgement(
    tmp_path: Path, store_folder: Path, spoilt: None, desk: Client
) -> None:
    study = opened_spoilt(tmp_path)
    page = desk.get(PAGE).content.decode().replace("\N{NO-BREAK SPACE}", " ")
    assert "a form that tells the answer gives it away" in page and "a target leak gives nothing" not in page
    flat = next(q for q in study.quality["conditions"] if q["condition"] == "saliency")["flat"]
    assert f"left {flat['left'][0]}/{flat['left'][1]}, right 0/{flat['right'][1]}" in page
    assert "Saliency: empty explanations by answer" in page and "before this is acknowledged" in page
    assert page.count("<figcaption>empty</figcaption>") == 8 and "unknown is not clean" in page
    short = desk.post(f"{PAGE}acknowledge/", {"reason": "Fine."}, follow=True).content.decode()
    assert "reason of at least 20 characters" in short and not again().acknowledged
    said = desk.post(f"{PAGE}acknowledge/", {"reason": REASON}, follow=True).content.decode()
    assert "2 warnings are acknowledged" in said and "Acknowledged by <strong>grace</strong>" in said
    assert not open_warnings(again()) and "Acknowledge the" not in said
    assert desk.get(f"{PAGE}acknowledge/").status_code == 405


def test_only_who_may_run_a_study_acknowledges(tmp_path: Path, store_folder: Path, spoilt: None) -> None:
    study = opened_spoilt(tmp_path)
    viewer = User.objects.create_user("vera", password="a-long-enough-password")
    change(study, viewer, ["view"], [], "grace")
    client = Client()
    client.force_login(viewer)
    assert "Acknowledge the" not in client.get(PAGE).content.decode()
    assert client.post(f"{PAGE}acknowledge/", {"reason": REASON}).status_code == 403
    assert not again().acknowledged


def test_a_draft_has_nothing_to_acknowledge(tmp_path: Path, store_folder: Path) -> None:
    build_draft(load_study(write_study(tmp_path, slots=1)), tmp_path, silent)
    with pytest.raises(StudyError, match="is a draft"):
        acknowledge(again(), "Grace", REASON)
    assert not Trial.objects.exists() and Item.objects.exists()
