"""A stored study of ratings: its report through the registry, its export in PASTA's format by the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from analysis.pasta_records import ratings_from
from analysis.stored_reports.refresh import refresh_report
from analysis.tables.response_reader import study_facts
from experiments.models import Study
from tests.analysis.stored import as_ratings, opened, rater

pytestmark = pytest.mark.django_db
SIX = ("q1", "q2", "q3", "q4", "q5", "q6")
LOW, HIGH = dict.fromkeys(SIX, 2), dict.fromkeys(SIX, 4)


@pytest.fixture
def study() -> Study:
    """Two people rate the control with 2, two the method with 4."""
    made = as_ratings(opened(), SIX)
    for number in range(2):
        rater(made, f"low-{number}", LOW)
        rater(made, f"high-{number}", HIGH, condition="grad_cam")
    return made


def closed(study: Study) -> None:
    study.state = Study.State.CLOSED
    study.save()


def test_its_report_is_sealed_and_then_tells_means_by_condition(study: Study) -> None:
    sealed = refresh_report(study, "human")
    assert sealed.sealed and "2.00 (2)" not in sealed.html and "4.00 (4)" not in sealed.html
    closed(study)
    opened_report = refresh_report(study, "human")
    assert not opened_report.sealed
    rows = {(row["name"], row["question"]): row["mean"] for row in opened_report.json["conditions"]}
    assert (rows["control", "q1"], rows["grad_cam", "q1"]) == (2, 4)
    assert (rows["control", "q5"], rows["grad_cam", "q5"]) == (4, 2), "high is bad as it is asked"
    assert "2.00 (2)" in opened_report.html and "4.00 (4)" in opened_report.html


def test_its_conditions_know_method_model_dataset_and_form(study: Study) -> None:
    told = {c.name: (c.method, c.predictor, c.dataset, c.shows) for c in study_facts(study).conditions}
    named = study.definition["stimuli"]
    names = (named["predictor"]["name"], named["dataset"]["name"])
    assert told["baseline"] == ("", *names, "")
    methods = {c.name: (c.explainer or {}).get("name", "") for c in study.conditions.all()}
    assert {name: row[0] for name, row in told.items()} == methods
    assert {row[1:3] for row in told.values()} == {names}


def test_the_command_exports_pasta_s_records_and_verifies_them(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    closed(study)
    call_command("export", study.slug, "--out", str(folder), "--format", "pasta", "--origin", "human")
    call_command("verify", str(folder))
    table = ratings_from(folder / "records.json")
    # Eight pages of each slot.
    assert len(table) == 4 * 8 * 6 and set(table["value"]) == {2, 4}
    assert set(table["GTclass"]) | set(table["predictedclass"]) == {"husky", "wolf"}


def test_the_command_says_why_it_cannot(tmp_path: Path) -> None:
    rater(as_ratings(made := opened(), ("q1",)), "p", {"q1": 3})
    closed(made)
    with pytest.raises(CommandError, match="Some ratings lack q2"):
        call_command("export", made.slug, "--out", str(tmp_path / "x"), "--format", "pasta")
    assert not (tmp_path / "x").exists()
