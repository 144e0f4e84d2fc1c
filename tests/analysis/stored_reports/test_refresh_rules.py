"""When a stored report is made again, and what remains after a reporter fails."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from analysis import models, reports
from analysis.facts import ReportError, StudyFacts
from analysis.frames import Frames
from analysis.reports.report import Report
from analysis.stored_reports import refresh
from analysis.stored_reports.refresh import (
    facts_digest,
    make_report,
    newest_session_at,
    refresh_all,
    refresh_report,
    store_report,
)
from analysis.tables.response_reader import read_frames
from experiments.models import Session, Slot, Study
from stimuli.types import Progress
from tests.analysis.stored import cast, full, opened, sitting
from tests.tables import overridden

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    return opened()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which studies were read whole."""
    seen: list[str] = []

    def counting(
        study: Study, *, release: str = "", progress: Progress | None = None, held: Collection[str] = ()
    ) -> Frames:
        seen.append(study.slug)
        return read_frames(study, release=release, progress=progress, held=held)

    monkeypatch.setattr(refresh, "read_frames", counting)
    return seen


def close(study: Study) -> None:
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()


def unseal(study: Study) -> None:
    Study.objects.filter(pk=study.pk).update(
        unsealed_at=timezone.now(), unsealed_by="Grace", unsealed_reason="An audit was asked for."
    )
    study.refresh_from_db()


def free_a_slot(study: Study) -> None:
    Slot.objects.filter(study=study, kept=True).update(kept=False)


def leave_out(study: Study) -> None:
    Session.objects.filter(study=study, verdict="passed").update(
        excluded={"by": "grace", "reason": "Told us."}
    )


def rename(study: Study) -> None:
    Study.objects.filter(pk=study.pk).update(title="Another title")
    study.refresh_from_db()


def screen_late(study: Study) -> None:
    newest = newest_session_at(study, "human")
    assert newest is not None
    Session.objects.filter(study=study, verdict="passed").update(verdict_at=newest + timedelta(minutes=1))


@pytest.mark.long(stays="test_it_does_not_mind_the_sessions_of_another_origin")
@pytest.mark.usefixtures("undrawn", "few_draws")
@pytest.mark.parametrize("change", [close, unseal, free_a_slot, leave_out, rename, screen_late])
def test_it_is_due_again_when_something_it_says_has_changed(
    study: Study, reads: list[str], change: Callable[[Study], None]
) -> None:
    cast(study)
    first = refresh_report(study, "human")
    assert refresh_report(study, "human").created_at == first.created_at and len(reads) == 1
    change(study)
    assert refresh_report(study, "human").created_at > first.created_at
    assert len(reads) == 2 and refresh_all() == 0


def test_it_does_not_mind_the_sessions_of_another_origin(study: Study, reads: list[str]) -> None:
    cast(study)
    first = refresh_report(study, "human")
    sitting(study, "sim", condition="control", origin="simulated", minutes=60)
    assert refresh_report(study, "human").created_at == first.created_at
    assert facts_digest(study, "human") != facts_digest(study, "simulated")


def test_it_reads_a_study_once_to_print_and_store_its_report(study: Study, reads: list[str]) -> None:
    full(study)
    call_command("report", study.slug, stdout=StringIO())
    assert reads == [study.slug]
    assert refresh_all() == 0, "the dashboard has it already"


def test_it_prints_what_it_stores(study: Study) -> None:
    full(study)
    report = store_report(study, "human")
    row = models.Report.objects.get()
    assert row.json == report.json()
    assert (row.sealed, row.opening) == (report.seal.sealed, report.opening)
    assert row.opening == "12 people kept; mean accuracy over all conditions " + row.opening[-7:]


def test_it_opens_with_a_sentence_that_a_seal_lets_through(study: Study) -> None:
    cast(study)
    row = refresh_report(study, "human")
    assert row.sealed
    assert row.opening == "1 person kept; mean accuracy over all conditions 100.0 %."


def test_it_stores_no_report_without_people(study: Study) -> None:
    assert refresh_all() == 0
    with pytest.raises(ReportError, match="no sessions of origin 'human' .there are: none yet.; choose"):
        store_report(study, "human")
    assert not models.Report.objects.exists()


def test_it_makes_no_report_of_a_draft_or_of_previews(study: Study) -> None:
    cast(study)
    Session.objects.update(origin="preview")
    assert refresh_all() == 0
    Session.objects.update(origin="human")
    Study.objects.update(state="draft")
    assert refresh_all() == 0


def failing(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    raise ReportError("The ratings have no scale; name it in the design.")


def test_it_keeps_the_last_report_when_the_reporter_fails(
    study: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cast(study)
    before = refresh_report(study, "human")
    close(study)
    overridden(
        monkeypatch,
        reports.REPORTERS,
        "meta_predictor",
        "tests.analysis.stored_reports.test_refresh_rules:failing",
    )
    with pytest.raises(CommandError, match="The ratings have no scale; name it"):
        call_command("report", study.slug, "--out", str(tmp_path / "r"))
    assert models.Report.objects.get().created_at == before.created_at
    assert not (tmp_path / "r").exists()


def test_it_reports_only_paradigms_that_have_a_reporter(study: Study) -> None:
    cast(study)
    Study.objects.update(paradigm="from_elsewhere")
    study.refresh_from_db()
    assert refresh_all() == 0
    with pytest.raises(ReportError, match="'from_elsewhere' has no reporter.*Its data can be exported"):
        make_report(study, "human")


def test_it_reports_observers_beside_people_and_never_together(study: Study) -> None:
    cast(study)
    sitting(study, "sim", condition="control", origin="simulated")
    assert refresh_all() == 2
    arrived = {row.origin: row.json["flow"]["arrived"] for row in models.Report.objects.all()}
    assert arrived == {"human": 4, "simulated": 1}
    assert sum(arrived.values()) == Session.objects.count()
