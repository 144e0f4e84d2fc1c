"""A package is enough: checked, and its report made again without the study that it came from."""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.exports import study_facts_file
from analysis.exports.base import ExportError
from analysis.exports.study_export import Request, export_study
from analysis.exports.study_facts_file import OriginFile, StudyFile, as_text, parse
from analysis.stored_reports.refresh import make_report
from analysis.tables.response_reader import study_facts
from experiments.models import Study, Trial
from experiments.stages.solution_freeze import freeze
from tests.analysis.exports import (
    test_package_scripts,
    test_script_advice,
    test_script_rating,
    test_script_review,
    test_script_turing,
)
from tests.analysis.exports.scripted import agrees, run
from tests.analysis.stored import as_ratings, cast, full, opened, rater, sitting
from tests.experiments import protocols
from tests.experiments.protocols import ASSISTED, REVIEW, SENTENCES, TURING, solved, staged, take_part
from tests.snapshots import made_once
from tests.world import Person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("undrawn")]
ROOT = Path(__file__).resolve().parents[3]
Made = Callable[[Path], Study]


def predicted(folder: Path) -> Study:
    """A meta-predictor study of six places per condition: one or none lost its person, five have theirs."""

    def make() -> Study:
        study = opened(slots=6)
        cast(study)
        for condition, every in (("baseline", 2), ("control", 3), ("grad_cam", 5)):
            for number in range(5):

                def right(trial: Trial, every: int = every, number: int = number) -> bool:
                    return bool(trial.check_kind) or (trial.position * (1 + number % 2) + number) % every != 0

                sitting(study, f"{condition}-{number}", condition=condition, right=right, minutes=10 + number)
        return study

    return made_once(inspect.getsource(make), make)


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


EXPECTED = {
    "meta_predictor": test_package_scripts.expected,
    "rating": test_script_rating.expected,
    "reverse_turing": test_script_turing.expected,
    "blind_review": test_script_review.expected,
    "assisted_decision": test_script_advice.expected,
}
"""The numbers of a report that the scripts in the package give too."""


@pytest.fixture(params=STUDIES)
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    return study_of(request.param, tmp_path)


def study_of(paradigm: str, folder: Path) -> Study:
    """The closed study of a paradigm, which a run makes once."""
    make = STUDIES[paradigm]
    if make is predicted:
        return closed(make(folder))
    return closed(made_once(inspect.getsource(make), lambda: make(folder)))


def closed(study: Study) -> Study:
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    return study


def without_time(content: dict[str, Any]) -> dict[str, Any]:
    """A report as JSON gives it, without the moment at which it was made."""
    read: dict[str, Any] = json.loads(json.dumps(content))
    return {key: value for key, value in read.items() if key != "made_at"}


def alike(first: Any, second: Any) -> bool:
    """Whether two reports say the same: numbers to 9 digits, as the last ones of a least-squares fit depend
    on where a process holds its arrays."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(alike(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(alike, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    return bool(first == second)


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


SHORT = {"meta_predictor"}
MORE = pytest.mark.long(stays="test_it_makes_the_same_report_when_the_study_is_gone")
AGAIN = [pytest.param(name, marks=[] if name in SHORT else [MORE]) for name in STUDIES]


@pytest.mark.parametrize("study", AGAIN, indirect=True)
@pytest.mark.django_db(transaction=True)
def test_it_makes_the_same_report_when_the_study_is_gone(study: Study, tmp_path: Path) -> None:
    before = without_time(make_report(study, "human").json())
    for name in ("csv", "parquet"):
        export_study(study, tmp_path / name, Request(format=name))
    stored = json.loads((tmp_path / "csv" / "report-human.json").read_text())
    assert alike(without_time(stored), before)
    forgotten()
    for name in ("csv", "parquet"):
        call_command("verify", str(tmp_path / name), stdout=StringIO())
        made, printed = report_from(tmp_path / name, tmp_path / f"{name}-report")
        assert alike(without_time(made), before), name
        assert before["study"]["title"] in printed and made["made_at"] >= stored["made_at"]
    numbers, said = run("python", tmp_path / "csv")
    assert agrees(EXPECTED[study.paradigm](stored), numbers) > 10
    left_out = said.strip().splitlines()[-1].removeprefix("Not re-run here, see the report: ")
    assert left_out in (tmp_path / "csv" / "README.md").read_text(), "the README names what is not re-run"


@pytest.mark.parametrize("study", AGAIN, indirect=True)
def test_it_stores_facts_that_read_back_exactly(study: Study) -> None:
    facts = study_facts(study)
    content = StudyFile(study_facts_file.VERSION, "1", study.slug, study.paradigm, False, {}, (), {})
    content = replace(content, origins={"human": OriginFile(facts, "r.json", "", ("flow",))})
    assert parse(as_text(content)) == content


def test_it_reads_the_facts_of_packages_of_before() -> None:
    """Facts that joined since are not written while they are empty."""
    stored = (ROOT / "tests" / "before" / "stored" / "study-facts.json").read_text()
    content = parse(stored)
    facts = content.origins["simulated"].facts
    assert facts.slug == "pics" and facts.wording == {}
    said = replace(facts, wording={"rate_q1": "..."})
    content = replace(content, origins={"simulated": replace(content.origins["simulated"], facts=said)})
    assert parse(as_text(content)) == content and as_text(content) != stored


def test_it_names_the_changed_file_and_makes_no_report(tmp_path: Path) -> None:
    export_study(closed(predicted(tmp_path)), tmp_path / "package", Request())
    for name in ("trials.csv", "study.json", "report-human.json", "table1-human.csv"):
        path = tmp_path / "package" / name
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"1", b"2", 1))
        with pytest.raises(CommandError, match=rf"{name}: its content was changed[^\0]*No report is made"):
            call_command("report", "--from", str(tmp_path / "package"), "--out", str(tmp_path / "r"))
        path.write_bytes(whole)
    assert not (tmp_path / "r").exists()


@pytest.mark.usefixtures("few_draws")
def test_a_cleaned_package_tells_what_it_cannot_give(tmp_path: Path) -> None:
    study = closed(predicted(tmp_path))
    before = without_time(make_report(study, "human").json())
    export_study(study, tmp_path / "package", Request(cleaned=True))
    stored = json.loads((tmp_path / "package" / "report-human.json").read_text())
    assert alike(without_time(stored), before), "the report of the moment is of everybody"
    made, printed = report_from(tmp_path / "package", tmp_path / "report")
    absent = made["package"]["absent"]
    assert "as_assigned" in absent and not {"conditions", "planned", "anova", "tukey"} & set(absent)
    assert made["flow"] == before["flow"] and made["package"]["as_stored"] == ["flow"]
    assert "as_assigned" not in made and "as_assigned" in printed
    assert "This package holds only the sessions that were kept" in printed
    kept = {key: value for key, value in without_time(made).items() if key != "package"}
    there = {key: value for key, value in before.items() if key not in absent}
    marks = {key: mark for key, mark in before["section_marks"].items() if key not in absent}
    assert alike(kept, {**there, "section_marks": marks})
    page = (tmp_path / "report" / "report.html").read_text()
    assert "What the package cannot give" in page


@pytest.mark.usefixtures("few_draws")
def test_a_cleaned_package_without_anybody_lost_gives_the_whole_report(tmp_path: Path) -> None:
    study = opened()
    full(study)
    before = without_time(make_report(study, "human").json())
    export_study(study, tmp_path / "package", Request(cleaned=True))
    made, _ = report_from(tmp_path / "package", tmp_path / "report")
    assert alike(without_time(made), before)


@pytest.mark.usefixtures("few_draws")
def test_the_pseudonyms_of_a_release_are_those_of_its_report(tmp_path: Path) -> None:
    study = closed(predicted(tmp_path))
    export_study(study, tmp_path / "package", Request(release="public"))
    made, _ = report_from(tmp_path / "package", tmp_path / "report")
    assert alike(without_time(made), without_time(make_report(study, "human", release="public").json()))


def test_a_sealed_package_tells_no_result(tmp_path: Path) -> None:
    """The command asks for a name first; what writes the files must keep the seal by itself as well."""
    study = predicted(tmp_path)
    Study.objects.filter(pk=study.pk).update(state="open")
    study.refresh_from_db()
    study.slots.filter(kept=True).update(kept=False)
    export_study(study, tmp_path / "package", Request())
    stored = json.loads((tmp_path / "package" / "report-human.json").read_text())
    assert stored["sealed"] and "Sealed until" in stored["seal"]["sentence"]
    assert stored["anova"] is None and all(row["accuracy"] is None for row in stored["conditions"])
    assert not (tmp_path / "package" / "table1-human.csv").exists()
    made, printed = report_from(tmp_path / "package", tmp_path / "report")
    assert made["sealed"] and "Sealed until" in printed


@pytest.mark.long(stays="test_a_sealed_package_tells_no_result")
@pytest.mark.usefixtures("few_draws")
def test_each_origin_has_its_own_report(tmp_path: Path) -> None:
    study = closed(predicted(tmp_path))
    sitting(study, "sim", condition="control", origin="simulated")
    sitting(study, "look", condition="control", origin="preview")
    export_study(study, tmp_path / "package", Request())
    for options, origin in (((), "human"), (("--origin", "simulated"), "simulated")):
        made, _ = report_from(tmp_path / "package", tmp_path / origin, *options)
        assert made["origin"] == origin
        assert alike(without_time(made), without_time(make_report(study, origin).json()))
    content = study_facts_file.read_study_file(tmp_path / "package")
    assert content.origins["preview"].why == "Sessions of origin 'preview' have no report."
    with pytest.raises(CommandError, match="no sessions of origin 'pilot'.*human, preview, simulated"):
        call_command("report", "--from", str(tmp_path / "package"), "--origin", "pilot")


def test_it_says_why_it_cannot_make_a_report(tmp_path: Path) -> None:
    study = closed(rated(tmp_path))
    with pytest.raises(CommandError, match="there is no manifest"):
        call_command("report", "--from", str(tmp_path))
    with pytest.raises(CommandError, match="Give a study's slug, or --from"):
        call_command("report")
    with pytest.raises(CommandError, match="Give a study's slug, or --from"):
        call_command("report", study.slug, "--from", str(tmp_path))
    with pytest.raises(CommandError, match="leave it out with --from"):
        call_command("report", "--from", str(tmp_path), "--reporter", "rating")


def test_it_refuses_the_facts_of_another_version() -> None:
    text = as_text(StudyFile(study_facts_file.VERSION, "9.9", "s", "rating", False, {}, (), {}))
    with pytest.raises(ExportError, match="written by version 9.9"):
        parse(text.replace('"version": 1', '"version": 2'))
    with pytest.raises(ExportError, match="more or other facts"):
        parse(text.replace('"cleaned"', '"more": 1, "cleaned"'))
    with pytest.raises(ExportError, match=r"study.json: cannot be read by this version.*extra"):
        parse(text.replace('"extra": []', '"extra": 3'))


@pytest.mark.long(stays="test_it_makes_the_same_report_when_the_study_is_gone")
def test_it_needs_no_table_of_the_database(tmp_path: Path) -> None:
    """Another process, whose database is an empty file: as on a stranger's machine."""
    study = closed(predicted(tmp_path))
    before = without_time(make_report(study, "human").json())
    export_study(study, tmp_path / "package", Request())
    (tmp_path / "var").mkdir()
    env = {
        # Sums over threads may differ in the last digit.
        **{name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")},
        "PATH": os.environ["PATH"],
        "LEGIBLE_VAR": str(tmp_path / "var"),
        "DATABASE_URL": f"sqlite:///{tmp_path / 'var' / 'empty.sqlite3'}",
    }
    words = ["report", "--from", str(tmp_path / "package"), "--out", str(tmp_path / "r")]
    for command in (words, ["verify", str(tmp_path / "package")]):
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *command], env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert alike(without_time(json.loads((tmp_path / "r" / "report.json").read_text())), before)
    assert "no record of it" in done.stdout
