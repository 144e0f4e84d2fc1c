"""A report is what its reporter says: the toy's numbers, tables, figures and order reach every form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from rich.console import Console

from analysis import models, reports
from analysis.any_table.result_tables import Table
from analysis.facts import ReportError
from analysis.reports.base import Section
from analysis.reports.output.files import write_report
from analysis.reports.output.html import page
from analysis.reports.output.terminal import print_report
from analysis.reports.report import HEAD_KEYS, Report
from analysis.stored_reports.refresh import refresh_all, refresh_report
from experiments.models import Study
from tests.analysis import stored, toy_reporter
from tests.analysis.toy_reporter import toy_facts, toy_frames
from tests.tables import overridden

pure = pytest.mark.pure
GIVEN = {
    "expert": [["same", "other", "same"], ["same", "same", "unsure"]],
    "lead": [["other", "other", "same"], ["other", "unsure", "other"]],
}
SAME = {"expert": 4 / 6, "lead": 1 / 6}


def toy(**changes: object) -> Report:
    return toy_reporter.report(toy_frames(GIVEN), replace(toy_facts(), **changes))  # type: ignore[arg-type]


def printed(report: Report) -> str:
    out = StringIO()
    print_report(report, Console(file=out, width=80, no_color=True))
    return out.getvalue()


@pure
def test_it_gives_the_reporter_s_numbers_as_json() -> None:
    data = toy().json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert {row["lane"]: row["share"] for row in data["sameness"]} == pytest.approx(SAME)
    assert set(data) == {*HEAD_KEYS, "flow", "sameness"}


@pure
def test_it_prints_the_reporter_s_table_and_sentence_in_the_terminal() -> None:
    text = printed(toy())
    assert "Called the same" in text and "66.7" in text and "16.7" in text
    assert text.index("12 pairs were compared.") < text.index("Called the same")
    assert "4 arrived" in text and "ANOVA" not in text


@pure
def test_it_shows_headline_table_and_figure_on_the_page() -> None:
    text = page(toy())
    assert "<dd>12</dd><dt>pairs compared</dt>" in text
    assert "<dd>4<small> of 4</small></dd><dt>kept for the analysis</dt>" in text
    assert "<caption>Called the same</caption>" in text and 'id="figure-sameness"' in text
    body = text.partition("</style>")[2]
    for word in ("anova", "utility", "accuracy", "tukey", "baseline"):
        assert word not in body.lower()


@pure
def test_it_keeps_the_reporter_s_order() -> None:
    text = page(toy())
    assert text.index('<section id="flow">') < text.index('<section id="sameness">')
    turned = toy()
    turned = replace(turned, sections=turned.sections[::-1])
    text = page(turned)
    assert text.index('<section id="sameness">') < text.index('<section id="flow">')


@pure
def test_it_writes_every_file(tmp_path: Path) -> None:
    assert write_report(toy(), tmp_path) == [
        "report.json",
        "report.html",
        *(f"figures/{key}.{form}" for key in ("flow", "sameness") for form in ("csv", "svg", "pdf")),
        *(f"tables/{key}.csv" for key in toy().tables()),
    ]
    assert (tmp_path / "figures" / "sameness.pdf").read_bytes().startswith(b"%PDF")


@pure
def test_it_starts_without_numbers_where_the_reporter_names_none() -> None:
    plain = replace(toy(), headline=(), main=(), opening="")
    assert '<dl class="numbers">' not in page(plain)
    assert "4 arrived" in printed(plain) and "Called the same" not in printed(plain)


@pure
def test_it_seals_by_slot_in_every_form() -> None:
    report = toy_reporter.report(toy_frames(GIVEN), toy_facts(wanted=20, kept=4, state="open"))
    assert report.seal.sentence == "Sealed until the stopping rule is met: 4 of 20 places are kept."
    assert report.json()["sameness"] is None and report.json()["sealed"] is True
    assert 'id="figure-sameness"' not in page(report) and "66.7" not in page(report)
    assert "66.7" not in printed(report) and "4 of 20 places are kept" in printed(report)


@pure
def test_it_says_that_observers_are_no_people() -> None:
    report = toy_reporter.report(toy_frames(GIVEN, origin="simulated"), toy_facts(kept=0, state="open"))
    assert not report.seal.sealed
    for text in (page(report), printed(report)):
        assert text.count("Computational observers, not people.") == 1
    assert report.json()["heading"] == "Computational observers, not people."


@pure
def test_it_escapes_what_the_reporter_says() -> None:
    evil = "<script>alert(1)</script>"
    report = toy()
    flow = report.flow
    table = Table("t", evil, (evil,), ((evil,),), evil)
    numbers = tuple(replace(n, value=evil, label=evil, small=evil) for n in report.headline)
    report = replace(report, sections=(flow, Section("s", evil, None, (evil,), (table,))), headline=numbers)
    assert "<script" not in page(report)
    # Nine in the numbers; title twice, paragraph, caption, its label, head, cell and note of the table.
    assert page(report).count("&lt;script&gt;") == 9 + 8


@pure
@pytest.mark.parametrize("key", ["flow", "origin", "sealed", "study"])
def test_it_refuses_a_section_that_would_hide_another(key: str) -> None:
    report = toy()
    with pytest.raises(ReportError, match=f"stand twice: {key}. Rename them"):
        replace(report, sections=(report.flow, Section(key, "Mine", None)))


@pure
def test_it_refuses_two_tables_or_figures_of_one_key() -> None:
    report = toy()
    _, section = report.sections
    for part, twice in (
        ("tables", replace(section, key="more", figures=())),
        ("figures", replace(section, key="more", tables=())),
    ):
        with pytest.raises(ReportError, match=f"keys of {part} must differ.*stand twice: sameness"):
            replace(report, sections=(*report.sections, twice))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Study]]:
    """A stored study whose paradigm's reporter is the toy's."""

    def opened() -> Study:
        study = stored.opened()
        stored.full(study)
        return study

    overridden(monkeypatch, reports.REPORTERS, "meta_predictor", "tests.analysis.toy_reporter:report")
    yield opened


@pytest.mark.django_db
def test_it_reports_with_the_registered_reporter(registered: Callable[[], Study], tmp_path: Path) -> None:
    study = registered()
    out = StringIO()
    call_command("report", study.slug, "--out", str(tmp_path / "r"), stdout=out)
    data = json.loads((tmp_path / "r" / "report.json").read_text())
    assert [row["lane"] for row in data["sameness"]] == ["participant"]
    assert "Called the same" in out.getvalue() and "Tukey" not in out.getvalue()
    answers = sum(slot.trials.count() for slot in study.slots.all())
    assert f"{answers} pairs were compared." in out.getvalue()


@pytest.mark.django_db
def test_it_refreshes_and_stores_what_the_registered_reporter_says(registered: Callable[[], Study]) -> None:
    study = registered()
    assert refresh_all() == 1
    row = models.Report.objects.get()
    assert row.opening.endswith("pairs were compared.") and "Called the same" in row.html
    assert refresh_report(study, "human").created_at == row.created_at
