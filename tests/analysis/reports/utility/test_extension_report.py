"""An extension's report: bridge, drift, what is pooled; and the list of methods of both studies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from django.contrib.auth.models import User

from analysis.exports.study_export import Request, export_study
from analysis.stored_reports.extension_families import family_of, methods_of
from analysis.stored_reports.refresh import make_report, refresh_report
from crowd.models import StudyRole
from experiments.models import Slot, Study, Trial
from tests.analysis.exports.test_packages import alike, report_from
from tests.analysis.stored import sitting
from tests.crowd.logins import login
from tests.experiments.study_files.test_extending import extension
from tests.snapshots import made_once
from tests.world import Person, opened_study, write_study

pytestmark = pytest.mark.django_db
SCORED = 8
"""Test trials of a person in the small study, checks apart."""
PARENT = {"baseline": [4, 5, 5, 6, 5], "control": [5, 4, 5, 6, 5], "saliency": [8, 7, 8, 7, 8]}
EXTENSION = {"baseline": [5, 5, 4, 6, 5], "gradient_x_input": [6, 7, 6, 7, 6]}
NEW = """
[[conditions]]
name = "baseline"
role = "baseline"
slots = 5
[[conditions]]
name = "gradient_x_input"
role = "method"
explainer = { name = "gradient_x_input" }
slots = 5
"""


def fill(study: Study, given: dict[str, list[int]]) -> None:
    """Every place is kept by a person with so many right answers, the first ones."""
    for name, counts in given.items():
        slots = study.slots.filter(condition__name=name).order_by("ordinal")
        for slot, count in zip(slots, counts, strict=True):
            scored = slot.trials.filter(phase="test", check_kind="").order_by("position")
            assert len(scored) == SCORED
            wrong = {trial.pk for trial in scored[count:]}

            def right(trial: Trial, wrong: set[int] = wrong) -> bool:
                return trial.pk not in wrong

            sitting(study, f"{study.slug}-{slot.ordinal}", condition=name, right=right)


POOLED = "[extension]\ndrift_points = 30\npool = true\n"


@pytest.fixture
def studies(tmp_path: Path, store_folder: Path) -> tuple[Study, Study]:
    """The parent and its extension, every place of which is kept."""
    (tmp_path / "small").mkdir()
    path = write_study(tmp_path / "small", slots=5)
    file = extension(path, NEW, POOLED)

    def make() -> Study:
        fill(opened_study(path), PARENT)
        later = opened_study(file)
        fill(later, EXTENSION)
        return later

    later = made_once(f"extension, kept {PARENT} {EXTENSION} {path.read_text()} {file.read_text()}", make)
    return Study.objects.get(slug="small"), later


def test_it_tells_drift_and_both_studies_methods(studies: tuple[Study, Study]) -> None:
    parent, later = studies
    assert family_of(parent) == family_of(later) == [parent, later]
    report = make_report(later, "human")
    content = report.json()["extension"]
    assert content["randomised_together"] is False and content["parent"] == "small"
    # Counted by hand: 25 of 40 right in both baselines.
    drift = content["drift"]
    assert drift["n"] == drift["n_parent"] == 5 and drift["difference"] == pytest.approx(0)
    # Welch's interval of two groups with variances .5 / 64 each, 8 degrees of freedom, t = 1.859548.
    assert drift["interval_90"][1] == pytest.approx(1.859548 * np.sqrt(2 * 0.5 / 64 / 5), abs=1e-6)
    assert drift["decision"] == "equivalent"
    assert content["pooled"][0]["utility"] == pytest.approx((32 / 40) / (25 / 40))
    told = {row["condition"]: (row["study"], row["utility"]) for row in content["methods"]}
    assert told["saliency"] == ("small", pytest.approx(38 / 25))
    assert told["gradient_x_input"] == ("more", pytest.approx(32 / 25))
    said = " ".join(next(s for s in report.sections if s.key == "extension").paragraphs)
    assert "Not randomised together." in said and "also pooled, as a second result" in said
    # The parent's own report is as it was.
    assert "extension" not in make_report(parent, "human").json()


@pytest.mark.usefixtures("undrawn")
def test_it_pools_nothing_without_the_plan_or_beyond_the_margin(studies: tuple[Study, Study]) -> None:
    _, later = studies
    later.definition["extension"]["drift_points"] = 5
    later.save()
    section = next(s for s in make_report(later, "human").sections if s.key == "extension")
    assert section.content["pooled"] == [] and section.content["drift"]["decision"] == "inconclusive"
    assert "do not count as one" in section.paragraphs[1] and "they are not" in section.paragraphs[2]


@pytest.mark.usefixtures("undrawn")
def test_methods_are_listed_once_all_results_are_open(studies: tuple[Study, Study]) -> None:
    parent, later = studies
    told = methods_of(parent, "human")
    assert told.table is not None
    # Utilities by hand: 38/40 over 25/40, 32/40 over 25/40, 25/40 over 25/40.
    assert [(row[0], row[1], row[3], row[4]) for row in told.table.rows] == [
        ("Saliency", "small", "1.52", "1"),
        ("Gradient × Input", "more", "1.28", "2"),
        ("Control", "small", "1.00", "3"),
    ]
    refresh_report(later, "human")
    client = login("ada", "view", study=later)
    # A role in one of the two does not open the other.
    assert client.get("/studies/more/report/methods/").status_code == 403
    StudyRole.objects.create(study=parent, user=User.objects.get(username="ada"), role="view")
    page = client.get("/studies/more/report/methods/").content.decode()
    assert "Not randomised together." in page and "Gradient × Input" in page
    assert "report/methods/" in client.get("/studies/more/report/").content.decode()
    # One place is free again: nothing is told of either study.
    Slot.objects.filter(study=later, ordinal=0).update(kept=False)
    sealed = methods_of(parent, "human")
    assert sealed.table is None and sealed.sealed.startswith("more: Sealed until the stopping rule is met")
    page = client.get("/studies/small/report/methods/").content.decode()
    assert "Results are sealed." in page and "Saliency" not in page
    sections = {s.key: s for s in make_report(later, "human").sections}
    assert sections["extension"].content is None


@pytest.mark.long(stays="test_it_tells_drift_and_both_studies_methods")
@pytest.mark.usefixtures("undrawn")
def test_a_package_gives_all_but_what_needs_the_parent(tmp_path: Path, studies: tuple[Study, Study]) -> None:
    """The tables of either format are read alike by any report (test_packages.py)."""
    _, later = studies
    package = tmp_path / "package"
    export_study(later, package, Request(format="parquet"))
    stored = json.loads((package / "report-human.json").read_text())
    assert stored["extension"]["drift"]["n_parent"] == 5, "the stored report has what was beside the parent"
    made, printed = report_from(package, tmp_path / "again")
    assert made.pop("package") == {
        "absent": ["extension"],
        "as_stored": [],
        "report": "report-human.json",
    }
    assert "extension" not in made
    del stored["extension"]
    for report in (made, stored):
        del report["made_at"]
        report["section_marks"].pop("package", None)
    assert alike(made, stored)
    said = " ".join(printed.split())
    assert "one study alone. Left out, since they need other sessions too: extension." in said
    assert "report-human.json has them" in said and "Not randomised together" not in said


def test_a_person_of_the_parent_is_not_let_in(tmp_path: Path, store_folder: Path) -> None:
    (tmp_path / "small").mkdir()
    path = write_study(tmp_path / "small", slots=1)
    opened_study(path)
    opened_study(extension(path, NEW))
    Person("ada").take_part()
    assert Person("ada", slug="more").join().status_code == 409
    assert Person("bo", slug="more").join().status_code == 201
