"""The scripts in a package give the report's numbers, in Python and in R, without this project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import f_oneway

from analysis.exports import manifest
from analysis.exports.companion_files import write_scripts
from analysis.exports.study_export import Request, export_study
from experiments.models import Slot, Study, Trial
from experiments.paradigms import PARADIGMS
from tests.analysis.exports.scripted import LANGUAGES, agrees, run
from tests.analysis.stored import cast, full, opened, sitting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("undrawn")]


def expected(report: dict[str, Any]) -> Iterator[tuple[tuple[str, str, str], float | None]]:
    """The numbers of a report under the names that the scripts give them; None: there is no such number."""
    for row in report["conditions"]:
        name, intervals = row["name"], row["intervals"]
        yield ("conditions", name, "n"), row["n"]
        yield ("conditions", name, "accuracy_mean"), row["accuracy_mean"]
        ends = intervals["accuracy_mean"] or (None, None)
        yield from zip(
            [("conditions", name, "accuracy_low"), ("conditions", name, "accuracy_high")], ends, strict=True
        )
        for number, accuracy in enumerate(row["accuracy"], start=1):
            yield ("conditions", name, f"block_{number}"), accuracy
            yield ("conditions", name, f"utility_block_{number}"), row["utility_k"][number - 1]
        if row["role"] == "baseline":
            continue
        yield ("utility", name, "utility"), row["utility"]
        for key, of in (("", "utility_fieller"), ("together_", "utility_simultaneous")):
            low, high = intervals[of] or (None, None)
            yield ("utility", name, f"{key}low"), low
            yield ("utility", name, f"{key}high"), high
    for contrast in report["planned"]["contrasts"]:
        name = contrast["condition"]
        for measure in ("difference", "t", "df", "p"):
            yield ("dunnett", name, measure), contrast[measure]
        for measure, end in zip(("low", "high"), contrast["ci"], strict=True):
            yield ("dunnett", name, measure), end
    for measure in ("F", "p", "df_between", "df_within", "eta_squared"):
        yield ("anova", "", measure), report["anova"][measure]
    for pair in report["tukey"]["pairs"]:
        # The report takes the later condition less the earlier.
        name = f"{pair['first']} - {pair['second']}"
        yield ("tukey", name, "difference"), pair["difference"]
        yield ("tukey", name, "p"), pair["p"]
        yield ("tukey", name, "low"), pair["ci"][0]
        yield ("tukey", name, "high"), pair["ci"][1]


def answered(study: Study, people: dict[str, int]) -> None:
    """So many people per condition, each with a share of right answers of their own."""
    rng = np.random.default_rng(16)
    share = {"baseline": 0.5, "control": 0.55, "grad_cam": 0.8}
    for condition, count in people.items():
        for number in range(count):

            def right(trial: Trial, condition: str = condition) -> bool:
                return bool(trial.check_kind) or bool(rng.random() < share[condition])

            sitting(study, f"{condition}-{number}", condition=condition, right=right, minutes=10 + number)


def package(study: Study, folder: Path, request: Request | None = None) -> tuple[Path, dict[str, Any]]:
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    export_study(study, folder / "package", request or Request())
    report = json.loads((folder / "package" / "report-human.json").read_text())
    return folder / "package", report


def test_they_give_the_numbers_of_the_report(tmp_path: Path) -> None:
    study = opened(slots=9)
    cast(study)
    answered(study, {"baseline": 8, "control": 7, "grad_cam": 8})
    folder, report = package(study, tmp_path)
    for language in LANGUAGES:
        numbers, printed = run(language, folder)
        assert agrees(expected(report), numbers) > 50, language
        assert "One-way ANOVA" in printed and "Grad-CAM" in printed
    assert not manifest.check(folder).problems, "the script wrote into the package"


@pytest.mark.long(stays="test_they_give_the_numbers_of_the_report")
def test_they_take_the_level_of_the_plan(tmp_path: Path) -> None:
    study = opened(12, preregistration={"alpha": 0.01})
    full(study)
    folder, report = package(study, tmp_path / "out")
    assert report["planned"]["level"] == 0.99
    for language in LANGUAGES:
        numbers, printed = run(language, folder)
        assert "99 % together" in printed
        assert agrees(expected(report), numbers) > 40, language


@pytest.mark.long(stays="test_they_give_the_numbers_of_the_report")
def test_they_keep_the_rules_for_few_people_and_uneven_plans(tmp_path: Path) -> None:
    study = opened(slots=9)
    answered(study, {"baseline": 8, "control": 3, "grad_cam": 8})
    unused = study.slots.filter(condition__name="control", holder=None)
    Slot.objects.filter(pk__in=list(unused.values_list("pk", flat=True))[2:]).delete()
    folder, report = package(study, tmp_path)
    assert report["planned"]["variances"] == "separate", "the planned sizes differ by more than a half"
    for language in LANGUAGES:
        numbers, _ = run(language, folder)
        agrees(expected(report), numbers)
        assert ("dunnett", "control", "p") not in numbers and ("dunnett", "grad_cam", "p") in numbers


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_both_languages_name_the_same_that_they_leave_out(paradigm: str) -> None:
    folder = resources.files("analysis.exports.scripts")
    of_r = (folder / f"{paradigm}.R").read_text().partition("NOT_RE_RUN <- c(\n")[2].partition("\n)")[0]
    module = import_module(f"analysis.exports.scripts.{paradigm}")
    assert re.findall(r'"(.+)"', of_r) == list(module.NOT_RE_RUN) != []


@pytest.mark.long(stays="test_they_give_the_numbers_of_the_report")
def test_they_say_when_nobody_is_a_person(tmp_path: Path) -> None:
    study = opened(slots=6)
    full(study, origin="simulated")
    folder = tmp_path / "package"
    export_study(study, folder, Request(cleaned=True, origin="simulated"))
    report = json.loads((folder / "report-simulated.json").read_text())
    for language in LANGUAGES:
        numbers, printed = run(language, folder, "simulated")
        agrees(expected(report), numbers)
        assert printed.startswith("Computational observers, not people.")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["null", "nan", "none"])
def test_a_condition_may_be_called_by_a_word_for_missing(tmp_path: Path, name: str, language: str) -> None:
    """pandas would read such names as missing values, and lose a whole condition."""
    people = [(arm, f"{arm}-{at}") for arm in ("baseline", name, "grad_cam") for at in range(4)]
    hits = {
        session: [(3 * at + len(arm) + n) % 4 > 0 for n in range(6)]
        for at, (arm, session) in enumerate(people)
    }
    tables = {
        "conditions": ["condition,label,role,wanted", *(f"{arm},{arm},{arm},4" for arm, _ in people[::4])],
        "participants": [
            "session,condition,origin,status,excluded_by_hand,arrival",
            *(f"{session},{arm},human,passed,0,local" for arm, session in people),
        ],
        "trials": [
            "session,block,matches_model",
            *(f"{session},0,{int(hit)}" for session, mine in hits.items() for hit in mine),
        ],
    }
    folder = tmp_path / "package"
    folder.mkdir()
    for table, lines in tables.items():
        (folder / f"{table}.csv").write_text("\n".join(lines))
    write_scripts(folder, "meta_predictor", 0.95)
    numbers, _ = run(language, folder)
    groups = [[np.mean(hits[session]) for arm, session in people if arm == each] for each, _ in people[::4]]
    assert numbers["anova", "", "F"] == pytest.approx(f_oneway(*groups).statistic)
