"""The plan that is printed before a study opens, and the one that is stored when it does."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from experiments.models import Preregistration, Study
from experiments.opening.preregistration_text import as_markdown
from tests import world
from tests.experiments.protocols import RATING, TWO_MODELS, write
from tests.run.authority import authority

pytestmark = pytest.mark.django_db
DECLARED = """
[preregistration]
hypotheses = ["Saliency maps raise the share of answers that match the model."]
smallest_effect = { points = 5 }
"""
QUESTIONS = {
    "Study Information": ("Title", "Description", "Hypotheses"),
    "Design Plan": ("Study type", "Blinding", "Study design", "Randomization"),
    "Sampling Plan": (
        *("Existing data", "Explanation of existing data", "Data collection procedures"),
        *("Sample size", "Sample size rationale", "Stopping rule"),
    ),
    "Variables": ("Manipulated variables", "Measured variables", "Indices"),
    "Analysis Plan": (
        *("Statistical models", "Transformations", "Inference criteria"),
        *("Data exclusion", "Missing data", "Exploratory analysis"),
    ),
    "Other": ("Other",),
}
"""Those of the form "OSF Preregistration" (Bowman et al. 2020, doi 10.31222/osf.io/epgjd)."""


def printed(path: Path, option: str) -> str:
    out = StringIO()
    call_command("study_check", str(path), option, "--quality", "0", stdout=out)
    return out.getvalue()


def parts(text: str, level: str) -> dict[str, str]:
    """Heading -> what stands below it."""
    blocks = f"\n{text}".split(f"\n{level} ")[1:]
    return {title: body.strip() for title, _, body in (block.partition("\n") for block in blocks)}


def test_it_preregisters_the_analysis_of_the_paradigm_and_of_no_other(
    tmp_path: Path, store_folder: Path
) -> None:
    ours = printed(world.write_study(tmp_path / "small"), "--preregistration")
    assert "- Between subjects: all places" in ours and "two-sided Dunnett" in ours and "## Power" in ours
    assert "Explained is the logit of the predicted class." in ours
    assert "blocked by plan" in ours and "blocked by slot" not in ours
    assert "not independently witnessed" in ours
    rated = printed(
        write(tmp_path / "r", "ratings", "rating", RATING, sources=TWO_MODELS), "--preregistration"
    )
    assert "- round-0: 2\n- round-1: 2\n" in rated
    assert not [word for word in ("Dunnett", "ANOVA", "Utility", "Between subjects") if word in rated]


@pytest.mark.long(stays="test_a_time_stamp_is_verified_before_the_study_opens")
def test_what_is_printed_is_what_opening_stores(
    tmp_path: Path, store_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for the pictures, which are not rendered before."""
    path = world.write_study(tmp_path / "small")
    path.write_text(path.read_text() + DECLARED)
    before = parts(printed(path, "--preregistration"), "##")
    call_command("study_open", str(path), "--quality", "0")
    stored = Preregistration.objects.get()
    assert f"Plan {stored.digest}, stored" in capsys.readouterr().out
    after = parts(as_markdown(json.loads(stored.document)), "##")
    digests = (before.pop("Digests (SHA-256)"), after.pop("Digests (SHA-256)"))
    assert before["Hypotheses"] == "- Saliency maps raise the share of answers that match the model."
    assert before["Smallest effect of interest"] == "- 5 percentage points"
    assert before["Missing data"] == "- Not stated."
    assert {title: before[title] for title in after if title != "Code"} == {
        title: text for title, text in after.items() if title != "Code"
    }
    lines = [set(text.splitlines()) for text in digests]
    assert lines[0] - lines[1] == {"- pictures: known when they are rendered"}
    assert f"- plans: {Study.objects.get().plan_digest}" in lines[0]


def test_the_form_of_the_registry_has_every_question(tmp_path: Path, store_folder: Path) -> None:
    path = world.write_study(tmp_path / "small")
    path.write_text(path.read_text() + DECLARED)
    form = parts(printed(path, "--osf"), "##")
    assert list(form) == list(QUESTIONS)
    for section, questions in QUESTIONS.items():
        answers = parts(form[section], "###")
        assert set(questions) <= set(answers)
        assert all(answer.startswith("- ") for answer in answers.values())
    assert parts(form["Sampling Plan"], "###")["Existing data"] == "- Not stated."
    assert "power" in parts(form["Sampling Plan"], "###")["Sample size rationale"].lower()


def test_planned_looks_are_printed_with_their_levels(tmp_path: Path, store_folder: Path) -> None:
    path = world.write_study(tmp_path / "small")
    slots = re.sub(r"slots = \d+", "slots = 12", path.read_text())
    path.write_text(f'{slots}\n[preregistration]\nlooks = [6]\nboundary = "pocock"\n')
    told = parts(printed(path, "--preregistration"), "##")
    assert "At 6 people kept per condition, the first" in told["Planned looks"]
    assert "or until a planned look says stop" in told["Stopping rule"]
    levels = told["Levels of the planned contrasts at each look"].splitlines()
    assert [line.split(": ")[0] for line in levels] == ["- 6 people per condition", "- the end"]
    assert all(0 < float(line.split(": ")[1].split()[0]) < 5 for line in levels)
    assert (
        "Error is spent as Pocock"
        in parts(parts(printed(path, "--osf"), "##")["Sampling Plan"], "###")["Stopping rule"]
    )


@pytest.mark.long(stays="test_a_time_stamp_is_verified_before_the_study_opens")
def test_a_registry_that_is_named_later_is_stored_with_its_time(
    tmp_path: Path, store_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = world.write_study(tmp_path / "small")
    call_command("study_open", str(path), "--quality", "0")
    assert Preregistration.objects.get().registry == ""
    text = path.read_text()
    path.write_text(f'{text}\n[preregistration]\nregistry = "https://osf.io/abc12"\n')
    call_command("study_open", str(path), "--quality", "0")
    stored = Preregistration.objects.get()
    assert stored.registry == "https://osf.io/abc12" and stored.registry_named_at > stored.stored_at  # type: ignore[operator]
    assert "Registered at https://osf.io/abc12" in capsys.readouterr().out


def test_a_time_stamp_is_verified_before_the_study_opens(
    tmp_path: Path, store_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of another plan leaves a draft; naming the file changes neither plan nor digest."""
    path, asked = world.write_study(tmp_path / "small"), authority(tmp_path / "authority")
    plain = path.read_text()
    request, out = tmp_path / "plan.tsq", StringIO()
    call_command("study_check", str(path), "--timestamp-request", str(request), "--quality", "0", stdout=out)
    (path.parent / "plan.tsr").write_bytes(asked.reply(request.read_bytes()))
    (path.parent / "root.pem").write_bytes(asked.root)
    named = 'timestamp = "plan.tsr"\ntimestamp_certificates = "root.pem"\n'
    path.write_text(f"{plain}\n[preregistration]\nalpha = 0.01\n{named}")
    with pytest.raises(CommandError, match="stamps another plan"):
        call_command("study_open", str(path), "--quality", "0")
    assert Study.objects.get().state == "draft" and not Preregistration.objects.exists()
    path.write_text(f"{plain}\n[preregistration]\n{named}")
    call_command("study_open", str(path), "--quality", "0")
    stamp = Preregistration.objects.get().timestamp
    assert stamp["digest"] in out.getvalue() and stamp["authority"] == "CN=Test Authority"
    told = capsys.readouterr().out
    assert "Time stamp (RFC 3161) of CN=Test Authority" in told and "not independently" not in told
    assert "after the study opened" not in told
