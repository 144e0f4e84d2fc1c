"""docs/own-texts.md: its corpus and study are made, checked and opened as they stand; mistakes end in a
sentence."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from analysis.stats.rank_power import people_needed, rank_power
from experiments.errors import InvalidStudy
from experiments.models import Slot, Study
from experiments.paradigms import get_paradigm
from experiments.study_file import find_study, load_study
from tests.services import ROOT

pytestmark = pytest.mark.django_db

PAGE = (ROOT / "docs" / "own-texts.md").read_text()
FILES = dict(re.findall(r"^Save as `([^`]+)`:\n\n```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
SNIPPETS = [
    tomllib.loads(text)
    for text in re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if text not in FILES.values()
]


def texts_of(slug: str, folder: Path) -> None:
    for path in find_study(slug).parent.iterdir():
        if path.suffix == ".md" or path.name == "quiz.toml":
            shutil.copy(path, folder)


@pytest.fixture
def letters(tmp_path: Path, store_folder: Path) -> Path:
    """The study of the page, in its folder."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    texts_of("sentiment", tmp_path)
    subprocess.run([sys.executable, "write_letters.py"], cwd=tmp_path, check=True)
    return tmp_path / "study.toml"


def printed(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> str:
    capsys.readouterr()
    call_command("study_check", str(path), *options)
    return " ".join(capsys.readouterr().out.split())


def test_the_page_s_study_is_checked_without_a_warning_and_opens(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = printed(capsys, letters)
    assert "Warning" not in told
    accuracy = re.search(r"Its accuracy on them: 0\.(\d\d)", told)
    assert accuracy and 60 <= int(accuracy[1]) <= 90, "the model errs, and knows more than nothing"
    gold = re.search(r"true class (0\.\d{3})", told)
    assert gold and 0.4 <= float(gold[1]) <= 0.6
    assert "72 of 72 plans are matched" in told
    shares = (0.557, 0.694)
    assert "Power of Mann-Whitney's test, 24 people per condition, 15 test texts" in told
    for spread in (0.0, 0.1):
        power, needed = rank_power(shares, 15, 24, spread=spread), people_needed(shares, 15, spread=spread)
        row = f"people differ by SD {spread:.2f} {power:.3f} people per condition for power .80 {needed}"
        assert row in told
    call_command("study_open", str(letters))
    study = Study.objects.get(slug="letters")
    assert study.state == "open" and Slot.objects.filter(study=study).count() == 72
    assert {"text" in row for row in study.practice} == {True}


@pytest.mark.parametrize("slug", ["sentiment", "sorted-sentences"])
def test_the_shipped_studies_of_texts_are_checked_without_a_warning(
    slug: str, capsys: pytest.CaptureFixture[str], store_folder: Path
) -> None:
    told = printed(capsys, find_study(slug))
    assert "Warning" not in told
    accuracy = re.search(r"Its accuracy on them: 0\.(\d\d)", told)
    assert accuracy and 70 <= int(accuracy[1]) <= 80
    minutes = re.search(r"([\d.]+) minutes each as declared \(about ([\d.]+) by the plan\)", told)
    assert minutes and float(minutes[1]) >= float(minutes[2]), "people are paid for the time that it takes"


def test_the_preregistration_holds_the_planned_analysis_and_whole_people(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = printed(capsys, letters, "--preregistration")
    assert get_paradigm("reverse_turing").planned_analysis in told
    needed = people_needed((0.557, 0.694), 15)
    assert f"- people per condition for power .80: {needed} -" in told


def test_each_snippet_of_the_page_is_a_study(letters: Path) -> None:
    assert len(SNIPPETS) == 3
    for changes in SNIPPETS:
        if changes.get("slug"):
            texts_of("sorted-sentences", letters.parent)
        assert load_study(letters, changes=changes).render.spec().sign == "magnitude"


def test_the_masked_study_of_the_page_refuses_what_tells_its_task(letters: Path) -> None:
    (masked,) = [changes for changes in SNIPPETS if "slug" in changes]
    texts_of("sorted-sentences", letters.parent)
    (letters.parent / "instructions.md").write_text("# A shop\n\nRead what people ask for.\n")
    with pytest.raises(InvalidStudy) as refused:
        load_study(letters, changes={**masked, "title": "Refunds"})
    told = str(refused.value)
    assert "title" in told and "'refund*'" in told and "texts.instructions" in told and "'shop'" in told
    assert "Say it in words that tell nothing of the task" in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"items = 160": "items = 100"},
            r"needs 60 wrong predictions for the 3 disjoint subsets of 25 \+ 15 items, the pool has 50",
        ),
        (
            {"between": "square", "slots = 24": "slots = 18", "train_items = 25": "train_items = 40"},
            r"needs \d+ wrong predictions for the 3 disjoint subsets of 40 \+ 15 items, the pool has 80",
        ),
        (
            {"between": "square"},
            "all conditions need the same number of slots, a multiple of 18; got none: 24",
        ),
        ({"slots = 24": "slots = 5"}, "ask for at least 6 slots, or fewer subsets"),
        ({"[texts]": '[render]\nsign = "diverging"\n[texts]'}, "a signed colour would hint at the answer"),
    ],
)
def test_what_cannot_be_planned_is_told_with_its_remedy(
    letters: Path, changes: dict[str, str], said: str
) -> None:
    text = letters.read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    letters.write_text(text)
    with pytest.raises((CommandError, InvalidStudy), match=said):
        call_command("study_check", str(letters), "--pictures", "0", "--quality", "0")
