"""Stored reports follow their study; the command writes files."""

from __future__ import annotations

import json
from collections.abc import Collection
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from analysis import models
from analysis.frames import Frames
from analysis.stored_reports.refresh import refresh_report
from analysis.tables.response_reader import Reader
from analysis.tasks import refresh_reports
from experiments.models import Study
from tests.analysis.stored import cast, full, opened, sitting

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    return opened()


def test_it_makes_a_report_once_and_again_after_a_new_person(study: Study) -> None:
    cast(study)
    assert refresh_reports() == 1
    assert refresh_reports() == 0
    sitting(study, "eve", condition="control", minutes=30)
    assert refresh_reports() == 1
    row = models.Report.objects.get()
    assert row.sealed and row.json["flow"]["arrived"] == 5
    assert row.json["pooled"]["n"] == 2


def test_it_opens_when_every_place_is_kept(study: Study) -> None:
    cast(study)
    assert refresh_report(study, "human").sealed
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    assert not refresh_report(study, "human").sealed


def test_it_keeps_one_report_per_origin(study: Study) -> None:
    cast(study)
    sitting(study, "sim", condition="control", origin="simulated")
    assert refresh_reports() == 2
    assert set(models.Report.objects.values_list("origin", "sealed")) == {
        ("human", True),
        ("simulated", False),
    }


@pytest.mark.long(stays="test_it_opens_when_every_place_is_kept")
def test_it_writes_json_html_and_figures(study: Study, tmp_path: Path) -> None:
    full(study)
    out = StringIO()
    call_command("report", study.slug, "--out", str(tmp_path / "r"), stdout=out)
    data = json.loads((tmp_path / "r" / "report.json").read_text())
    assert not data["sealed"] and data["anova"]["df_within"] == 9
    figures = {p.name for p in (tmp_path / "r" / "figures").iterdir()}
    assert {
        f"{key}.{form}" for key in ("utility", "flow", "blocks") for form in ("pdf", "svg", "csv")
    } <= figures
    assert (tmp_path / "r" / "tables" / "table_1.tex").exists()
    assert (tmp_path / "r" / "report.html").read_text().startswith("<!doctype html>")
    assert "Grad-CAM" in out.getvalue()


@pytest.mark.usefixtures("undrawn", "few_draws")
def test_it_reads_the_rows_once_in_a_command(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(study)
    read, frames = [], Reader.frames

    def counted(reader: Reader, held: Collection[str] = ()) -> Frames:
        read.append(reader)
        return frames(reader, held)

    monkeypatch.setattr(Reader, "frames", counted)
    call_command("report", study.slug, "--out", str(tmp_path / "r"), stdout=StringIO())
    assert len(read) == 1
    call_command("report", study.slug, "--reporter", "meta_predictor", stdout=StringIO())
    assert len(read) == 2


def test_it_reports_simulated_observers_when_asked(study: Study, tmp_path: Path) -> None:
    full(study, origin="simulated")
    with pytest.raises(CommandError, match="no sessions of origin 'human'"):
        call_command("report", study.slug)
    out = StringIO()
    call_command("report", study.slug, "--origin", "simulated", stdout=out)
    assert "Computational observers, not people." in out.getvalue()


def test_it_agrees_with_the_answers_that_were_given(study: Study) -> None:
    full(study)
    data = refresh_report(study, "human").json
    for row in data["conditions"]:
        from experiments.models import Response

        scored = Response.objects.filter(
            session__slot__condition__name=row["name"], trial__phase="test", trial__check_kind=""
        ).select_related("trial__item")
        right = [r.value["choice"] == r.trial.item.predicted for r in scored if r.trial.item]
        assert row["accuracy_mean"] == pytest.approx(sum(right) / len(right))
