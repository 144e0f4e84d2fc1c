"""A stored solve stage: its report through the registry and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from analysis.stored_reports.refresh import refresh_report
from experiments.models import Response, Study
from tests.experiments.protocols import SOLVE, USES, opened, take_part
from tests.world import Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def tasks(tmp_path: Path) -> Study:
    """Everybody answers as the preview does."""
    study = opened(tmp_path / "s", "tasks", "blind_review", SOLVE, uses=USES)
    take_part(Person("eve", slug="tasks"))
    return study


def test_its_report_counts_the_stored_answers(tasks: Study, tmp_path: Path) -> None:
    given = Response.objects.filter(session__study=tasks, trial__item__use="task")
    answers = [response.value["choice"] for response in given]
    Study.objects.filter(pk=tasks.pk).update(state="closed")
    tasks.refresh_from_db()
    told = refresh_report(tasks, "human")
    assert not told.sealed
    whole = next(row for row in told.json["answers"] if row["truth"] == "")
    assert whole["solutions"] == len(answers)
    assert whole["cannot_say"] == answers.count("cannot_say") / len(answers)
    call_command("report", "tasks", "--out", str(tmp_path / "out"))
    assert json.loads((tmp_path / "out" / "report.json").read_text())["answers"] == told.json["answers"]
