"""A package says what it is: README, licence, citation, and the layout and description of Psych-DS."""

from __future__ import annotations

import json
import re
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from django.core.management import CommandError, call_command
from pydantic import ValidationError

from analysis import spreadsheet_cells
from analysis.exports import manifest
from analysis.exports.base import ExportError
from analysis.exports.study_export import Request, export_study
from experiments.definition.export_package_table import PackageTable
from experiments.models import Gate, Study
from tests.analysis.stored import as_ratings, full, opened, rater
from tests.oracles import psychds
from tests.run.rlang import rscript

pytestmark = pytest.mark.django_db
WORDS = {
    "title": 'Wolves: "and" #huskies',
    "authors": ["Ada Lovelace", "Grace: Hopper"],
    "licence": "CC-BY-4.0",
    "doi": "10.5281/zenodo.1234",
}


def study_with(**tables: Any) -> Study:
    study = opened()
    study.definition = {**study.definition, **tables}
    study.save()
    return study


def test_the_readme_says_what_the_package_is(tmp_path: Path) -> None:
    words = "Look at animals and say what a machine sees."
    study = study_with(package=WORDS, recruitment={"description": words})
    full(study)
    content = export_study(study, tmp_path / "p", Request())
    text = (tmp_path / "p" / "README.md").read_text()
    assert text.startswith('# Wolves: "and" #huskies\n')
    assert words in text and study.digest in text and "lab@example.org" in text
    assert "all 12 places are kept" in text and "CC-BY-4.0" in text
    for entry in content["files"]:
        assert f"`{entry['name']}`" in text.partition("## Cells")[0], entry["name"]
        if entry["name"].endswith(".csv"):
            assert f"| `{entry['name']}` | {entry['rows']:,} |" in text
    assert "verify FOLDER" in text and "report --from FOLDER" in text and "analysis.R" in text


def test_the_readme_of_a_public_package_promises_no_report(tmp_path: Path) -> None:
    study = opened()
    full(study)
    export_study(study, tmp_path / "p", Request(public=True))
    text = (tmp_path / "p" / "README.md").read_text()
    assert "report --from" not in text and "No report can be made from these files" in text
    assert "\n- `human`\n" in text and "analysis.R" in text
    with pytest.raises(CommandError, match=r"a package made with --public has none \(its scripts give"):
        call_command("report", "--from", str(tmp_path / "p"))


@pytest.mark.parametrize("public", [False, True])
def test_the_first_line_says_that_data_are_simulated(tmp_path: Path, public: bool) -> None:
    study = opened()
    full(study, origin="simulated")
    export_study(study, tmp_path / "p", Request(public=public))
    first = (tmp_path / "p" / "README.md").read_text().splitlines()[0]
    assert first == "Simulated data: computational observers answered, not people."
    described = json.loads((tmp_path / "p" / "dataset_description.json").read_text())
    assert described["description"].startswith("Simulated data")


def test_without_a_licence_all_rights_are_reserved(tmp_path: Path) -> None:
    study = opened()
    full(study)
    export_study(study, tmp_path / "p", Request())
    assert "all rights are reserved" in (tmp_path / "p" / "README.md").read_text()
    assert not (tmp_path / "p" / "LICENSE").exists()
    cited = yaml.safe_load((tmp_path / "p" / "CITATION.cff").read_text())
    assert "license" not in cited and cited["identifiers"][0]["value"] == f"sha256:{study.digest}"
    assert cited["authors"] == [{"name": "The people who ran the study wolf-or-husky"}]


def test_licence_and_citation_are_the_study_s(tmp_path: Path) -> None:
    study = study_with(package=WORDS)
    full(study)
    content = export_study(study, tmp_path / "p", Request())
    assert "SPDX-License-Identifier: CC-BY-4.0\n" in (tmp_path / "p" / "LICENSE").read_text()
    cited = yaml.safe_load((tmp_path / "p" / "CITATION.cff").read_text())
    assert (cited["title"], cited["license"], cited["doi"]) == (WORDS["title"], "CC-BY-4.0", WORDS["doi"])
    assert [author["name"] for author in cited["authors"]] == WORDS["authors"]
    assert cited["references"][0]["version"] == content["code_version"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"licence": "CC BY 4.0"}, "'CC BY 4.0' is not one of CC0-1.0.*LicenseRef-NAME"),
        ({"licence": "cc-by-4.0"}, "'cc-by-4.0' is not one of"),
        ({"doi": "https://doi.org/10.1/x"}, "doi"),
        ({"authors": [""]}, "authors"),
        ({"license": "MIT"}, "license"),
    ],
)
def test_it_refuses_words_that_nobody_could_use(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        PackageTable.model_validate(table)
    assert PackageTable.model_validate({"licence": "LicenseRef-lab"}).licence == "LicenseRef-lab"


def test_the_layout_is_that_of_psych_ds(tmp_path: Path) -> None:
    study = study_with(package=WORDS)
    full(study)
    folder = tmp_path / "p"
    call_command("export", study.slug, "--format", "psychds", "--out", str(folder), stdout=StringIO())
    assert psychds.problems(folder) == []
    call_command("verify", str(folder), stdout=StringIO())
    out = StringIO()
    call_command("report", "--from", str(folder), stdout=out)
    assert "One-way ANOVA" in out.getvalue()
    trials = folder / "data" / "study-wolforhusky_description-trials_data.csv"
    trials.write_bytes(trials.read_bytes().replace(b"wolf", b"wolv", 1))
    with pytest.raises(
        CommandError, match="^data/study-wolforhusky_description-trials_data.csv: its content"
    ):
        call_command("verify", str(folder))


def test_the_check_of_psych_ds_sees_what_is_wrong(tmp_path: Path) -> None:
    study = opened()
    full(study)
    folder = tmp_path / "p"
    export_study(study, folder, Request(format="psychds"))
    path = folder / "dataset_description.json"
    described = json.loads(path.read_text())
    first = described["variableMeasured"].pop(0)["name"]
    path.write_text(json.dumps({**described, "name": ""}))
    (folder / "data" / "my trials_data.csv").write_text("session\r\n1,2\r\n")
    codes = {problem.split()[0] for problem in psychds.problems(folder)}
    assert codes == {
        "JSON_KEY_REQUIRED",
        "CSV_COLUMN_MISSING_FROM_METADATA",
        "FILENAME_KEYWORD_FORMATTING_ERROR",
        "FILENAME_UNOFFICIAL_KEYWORD_WARNING",
        "CSV_HEADER_LENGTH_MISMATCH",
    }
    assert first == "study"


def test_pandas_and_r_read_the_tables_without_options(tmp_path: Path) -> None:
    study = opened()
    full(study)
    export_study(study, tmp_path / "p", Request(format="psychds"))
    (path,) = (tmp_path / "p" / "data").glob("*-trials_data.csv")
    table = pd.read_csv(path)
    assert table["rt_ms"].dtype.kind == "i" and table["matches_model"].dtype.kind == "f"
    code = (
        f'd <- read.csv("{path}"); cat(nrow(d), ncol(d), class(d$rt_ms), mean(d$matches_model, na.rm = TRUE))'
    )
    told = subprocess.run([rscript(), "--vanilla", "-e", code], capture_output=True, text=True, check=True)
    rows, columns, kind, mean = told.stdout.split()
    assert (int(rows), int(columns), kind) == (*table.shape, "integer")
    assert abs(float(mean) - table["matches_model"].mean()) < 1e-6


@pytest.mark.parametrize("is_guarded", [False, True])
def test_pandas_and_r_read_ratings_from_minus_2_to_2_as_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """Without options; with an apostrophe in front of what looks like a formula they were texts."""
    if is_guarded:
        monkeypatch.setattr(spreadsheet_cells, "PLAIN", re.compile(r"(?!)"))
    study = opened()
    full(study)
    gates = list(Gate.objects.filter(kind="questions_before").order_by("pk"))
    given = [place % 5 - 2 for place in range(len(gates))]
    for gate, point in zip(gates, given, strict=True):
        Gate.objects.filter(pk=gate.pk).update(value={"age": point})
    export_study(study, tmp_path / "p", Request())
    path = tmp_path / "p" / "questions.csv"
    code = f'd <- read.csv("{path}")$answer; cat(class(d), if (is.numeric(d)) c(sum(d), min(d), length(d)))'
    told = subprocess.run([rscript(), "--vanilla", "-e", code], capture_output=True, text=True, check=True)
    answers = pd.read_csv(path)["answer"]
    if is_guarded:
        assert told.stdout == "character" and answers.dtype.kind != "i"
        return
    assert told.stdout == f"integer {sum(given)} -2 {len(given)}"
    assert answers.dtype.kind == "i" and sorted(answers) == sorted(given)


def test_other_paradigms_and_formats_say_what_they_lack(tmp_path: Path) -> None:
    study = as_ratings(opened(), [f"q{number}" for number in range(1, 7)])
    rater(study, "p", {f"q{number}": 3 for number in range(1, 7)})
    Study.objects.update(state="closed")
    study.refresh_from_db()
    export_study(study, tmp_path / "csv", Request())
    text = (tmp_path / "csv" / "README.md").read_text()
    assert "Not re-run by them: the cumulative logit mixed model;" in text
    assert (tmp_path / "csv" / "analysis.py").exists() and (tmp_path / "csv" / "analysis.R").exists()
    export_study(study, tmp_path / "pasta", Request(format="pasta"))
    assert not (tmp_path / "pasta" / "dataset_description.json").exists()
    with pytest.raises(CommandError, match="holds no tables, so no report"):
        call_command("report", "--from", str(tmp_path / "pasta"))


@pytest.mark.parametrize(
    "name", ["a/b/c.csv", "../x.csv", "/etc/passwd", "data/../x.csv", "data\\x.csv", "data/", "./x.csv", ""]
)
def test_names_in_a_manifest_stay_in_the_folder(name: str, tmp_path: Path) -> None:
    entry = {"name": name, "bytes": 1, "sha256": "0", "rows": 1}
    (tmp_path / "manifest.json").write_text(json.dumps({"files": [entry]}))
    with pytest.raises(ExportError, match="not a manifest"):
        manifest.check(tmp_path)
