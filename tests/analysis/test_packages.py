"""A package is enough: checked, and its report made again without the study that it came from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.exports import study_file
from analysis.exports.base import ExportError
from analysis.exports.release import Request, export_study
from analysis.exports.study_file import OriginFile, StudyFile, as_text, parse
from analysis.models import Release
from analysis.refresh import make_report
from analysis.tables import study_facts
from experiments.models import Study
from experiments.stages import freeze
from tests.analysis.stored import as_ratings, cast, full, opened, rater, sitting
from tests.experiments import protocols
from tests.experiments.protocols import ASSISTED, REVIEW, SENTENCES, TURING, solved, staged, take_part
from tests.world import Person

pytestmark = pytest.mark.django_db
Made = Callable[[Path], Study]


def predicted(folder: Path) -> Study:
    """A meta-predictor study: everybody of four passed in each condition, and four who were lost."""
    study = opened(slots=6)
    full(study)
    cast(study)
    return study


def rated(folder: Path) -> Study:
    study = as_ratings(opened(), ("q1", "q2"))
    for number, condition in enumerate(("control", "grad_cam")):
        rater(study, f"{condition}-one", {"q1": 2 + number, "q2": 4}, condition=condition)
        rater(study, f"{condition}-two", {"q1": 3 + number, "q2": 5}, condition=condition)
    return study


def taken(study: Study) -> Study:
    """Everybody answers as the kind's preview does."""
    for number in range(study.slots.count()):
        take_part(Person(f"p{number}", slug=study.slug))
    return study


def told_apart(folder: Path) -> Study:
    return taken(protocols.opened(folder, "turing", "reverse_turing", TURING, sources=SENTENCES))


def advised(folder: Path) -> Study:
    return taken(protocols.opened(folder, "advised", "assisted_decision", ASSISTED))


def reviewed(folder: Path) -> Study:
    freeze(solved(folder / "tasks"))
    return taken(staged(folder / "reviews", "judged", REVIEW))


STUDIES: dict[str, Made] = {
    "meta_predictor": predicted,
    "rating": rated,
    "reverse_turing": told_apart,
    "blind_review": reviewed,
    "assisted_decision": advised,
}


@pytest.fixture(params=STUDIES)
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    return closed(STUDIES[request.param](tmp_path))


def closed(study: Study) -> Study:
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    return study


def without_time(content: dict[str, Any]) -> dict[str, Any]:
    """A report as JSON gives it, without the moment at which it was made."""
    read: dict[str, Any] = json.loads(json.dumps(content))
    return {key: value for key, value in read.items() if key != "made_at"}


def forgotten() -> None:
    """Every row of every study is gone."""
    call_command("flush", interactive=False, verbosity=0)
    assert not Study.objects.exists()


def report_from(package: Path, folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    out = StringIO()
    with CaptureQueriesContext(connection) as asked:
        call_command("report", "--from", str(package), "--out", str(folder), *options, stdout=out)
    assert not asked.captured_queries, "the database was asked"
    return json.loads((folder / "report.json").read_text()), out.getvalue()


def test_it_makes_the_same_report_when_the_study_is_gone(study: Study, tmp_path: Path) -> None:
    before = without_time(make_report(study, "human").json())
    export_study(study, tmp_path / "package", Request())
    stored = json.loads((tmp_path / "package" / "report-human.json").read_text())
    assert without_time(stored) == before
    forgotten()
    call_command("verify", str(tmp_path / "package"), stdout=StringIO())
    made, printed = report_from(tmp_path / "package", tmp_path / "report")
    assert without_time(made) == before
    assert before["study"]["title"] in printed and made["made_at"] >= stored["made_at"]


def test_it_stores_facts_that_read_back_exactly(study: Study) -> None:
    facts = study_facts(study)
    content = StudyFile(study_file.VERSION, "1", study.slug, study.paradigm, False, {}, (), {})
    content = replace(content, origins={"human": OriginFile(facts, "r.json", "", ("flow",))})
    assert parse(as_text(content)) == content
