"""What a demo keeps beside a report is shown with it, and is in no export and no other origin's report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.exports.study_export import Request, export_study
from analysis.models import Report
from analysis.reports.parts.demo_cases import NOT_YET
from analysis.stored_reports.demo_case_file import keep_beside, read_beside
from analysis.stored_reports.refresh import make_report, refresh_report, store_report
from experiments.models import Session, Study
from tests.analysis.stored import full, opened

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(tmp_path: Path, settings: Settings) -> Study:
    settings.VAR_DIR = tmp_path / "var"
    study = opened()
    full(study, origin="simulated")
    return study


def test_it_is_kept_until_it_is_replaced(study: Study) -> None:
    assert read_beside(study.slug, study.digest) == {}
    keep_beside(study.slug, study.digest, controls=None, seed=1)
    keep_beside(study.slug, study.digest, controls={"rows": []})
    assert read_beside(study.slug, study.digest) == {"controls": {"rows": []}, "seed": 1}
    assert read_beside(study.slug, "0" * 64) == {}, "another definition has none"


def test_the_stored_report_of_simulated_people_has_it_and_nothing_else_does(
    study: Study, tmp_path: Path
) -> None:
    keep_beside(study.slug, study.digest, controls=None, planted={"why_not": "Planted, but not run."})
    store_report(study, "simulated")
    stored = Report.objects.get()
    assert NOT_YET in stored.html and "Planted, but not run." in stored.html
    stored.delete()
    assert NOT_YET in refresh_report(study, "simulated").html, "also if a page makes it anew"
    bare = make_report(study, "simulated").json()
    assert not {"controls", "planted_cases"} & set(bare)
    export_study(study, tmp_path / "package", Request(origin="simulated"))
    written = [file.read_bytes() for file in (tmp_path / "package").rglob("*") if file.is_file()]
    assert written and not any(b"planted_cases" in text or NOT_YET.encode() in text for text in written)
    Session.objects.update(origin="pilot")
    store_report(study, "pilot")
    assert NOT_YET not in Report.objects.get(origin="pilot").html
