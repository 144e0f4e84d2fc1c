"""With --pictures the package holds what was shown, each picture once under the digest of its row."""

from __future__ import annotations

import csv
import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from analysis.exports import manifest
from analysis.exports.base import ExportError
from analysis.exports.study_export import PICTURES, Request, export_study
from experiments.models import Study
from stimuli.models import Stimulus
from stimuli.render.png import decode, pixel_key
from tests.analysis.stored import opened
from tests.world import Person, opened_study, write_study

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def shared() -> dict[str, Path]:
    return {}


@pytest.fixture
def package(
    db: None, shared: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> Path:
    """A copy of one export with pictures, made once."""
    if "package" not in shared:
        folder = tmp_path_factory.mktemp("pictures")
        study = opened_study(write_study(folder / "study", slots=2))
        Person("ada").take_part()
        Study.objects.filter(pk=study.pk).update(state="closed")
        call_command("export", study.slug, "--out", str(folder / "out"), "--pictures", stdout=StringIO())
        shared["package"] = folder / "out"
    return Path(shutil.copytree(shared["package"], tmp_path / "package"))


def test_it_holds_every_picture_that_a_row_names(package: Path) -> None:
    with (package / "stimuli.csv").open(newline="", encoding="utf-8") as handle:
        named = {row["picture_digest"] for row in csv.DictReader(handle)}
    files = list((package / "pictures").iterdir())
    assert {path.stem for path in files} == named and len(files) == len(named) > 10
    for path in files:
        assert pixel_key(decode(path.read_bytes())) == path.stem
    content = json.loads((package / "manifest.json").read_text())
    assert PICTURES not in content["left_out"]
    call_command("verify", str(package), stdout=StringIO())


def test_verify_names_a_picture_that_was_changed_or_added(package: Path) -> None:
    first, second = sorted((package / "pictures").iterdir())[:2]
    first.write_bytes(second.read_bytes())
    (package / "pictures" / "more.png").write_bytes(b"x")
    second.unlink()
    with pytest.raises(CommandError) as refused:
        call_command("verify", str(package))
    problems = str(refused.value).splitlines()
    named = {problem.split(":")[0] for problem in problems}
    assert named == {f"pictures/{first.name}", f"pictures/{second.name}", "pictures/more.png"}


@pytest.mark.parametrize(
    "name",
    ["../x", "pictures/../../x", "pictures/", "pictures/..", "pictures/a/b", "..", "/etc/passwd",
     "pictures\\x", "pictures//x"],
)  # fmt: skip
def test_it_follows_no_name_out_of_the_folder(package: Path, name: str) -> None:
    content = json.loads((package / "manifest.json").read_text())
    content["files"][0]["name"] = name
    (package / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ExportError, match="not a manifest"):
        manifest.check(package)


def test_it_reads_no_link_that_leads_out_of_the_folder(package: Path, tmp_path: Path) -> None:
    path = sorted((package / "pictures").iterdir())[0]
    shutil.move(path, tmp_path / "elsewhere.png")
    path.symlink_to(tmp_path / "elsewhere.png")
    (problem,) = manifest.check(package).problems
    assert "is a link that leads out of the folder" in problem


def test_a_picture_that_is_lost_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    study = opened()
    Stimulus.objects.filter(pk=Stimulus.objects.earliest("pk").pk).update(image_file="views/00/lost.png")
    with pytest.raises(ExportError, match=r"views/00/lost.png: the store has not got .* without --pictures"):
        export_study(study, tmp_path / "out", Request(pictures=True))
    assert list(tmp_path.iterdir()) == []
