"""docs/own-texts.md: its corpus and study are made, checked and opened as they stand; mistakes end in a
sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from analysis.stats.planning.rank_power import people_needed, rank_power
from experiments.errors import InvalidStudy
from experiments.models import Slot, Study
from experiments.paradigms import get_paradigm
from experiments.study_files.load import find_study, load_study
from stimuli.datasets.synthetic.sentences import BINS
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


COVERAGE = r"(none|lime|control) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)"
"""A line of the table of exposures."""


@pytest.fixture
def letters(tmp_path: Path, store_folder: Path) -> Path:
    """The study of the page, in its folder."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    texts_of("sentiment", tmp_path)
    subprocess.run([sys.executable, "write_letters.py"], cwd=tmp_path, check=True)
    return tmp_path / "study.toml"


FEW = re.compile(r"Warning: people are tested on \d+ texts, fewer than 60: [^.]*\.")
"""Said of every study of few texts."""


def printed(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> str:
    capsys.readouterr()
    call_command("study_check", str(path), *options)
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.long(stays="test_the_pre_experiment_is_planned_and_its_blind_way_told")
def test_the_page_s_study_is_checked_without_a_warning_and_opens(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, few = FEW.subn("", printed(capsys, letters))
    assert "Warning" not in told and few == 1
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


@pytest.mark.long(stays="test_the_pre_experiment_is_planned_and_its_blind_way_told")
@pytest.mark.parametrize("slug", ["sentiment", "sorted-sentences"])
def test_the_shipped_studies_of_texts_are_checked_without_a_warning(
    slug: str, capsys: pytest.CaptureFixture[str], store_folder: Path
) -> None:
    told, few = FEW.subn("", printed(capsys, find_study(slug)))
    assert "Warning" not in told and few == 1
    accuracy = re.search(r"Its accuracy on them: 0\.(\d\d)", told)
    assert accuracy and 70 <= int(accuracy[1]) <= 80
    assert "Explained is the probability of the predicted class." in told
    for name, *_, tested, least, most in re.findall(COVERAGE, told):
        assert (tested, least, most) == {"sentiment": ("45", "8", "8")}.get(slug, ("30", "12", "12")), name
    cells = re.findall(r"(?:right|wrong) (\d+) (\d+) (\d+(?: to \d+)?) (\d+(?: to \d+)?)", told)
    assert len(cells) == 4 and all(int(have) >= int(shown) >= 26 for have, shown, *_ in cells)
    assert {train for *_, train, _ in cells} <= {"6", "6 to 7"}
    named = "Answers stand for classes of the material: class_1 is p" in told
    assert named == (slug == "sorted-sentences"), "the researcher is told what the drawn names stand for"
    assert re.search(r"nearest (0\.\d{3})", told)
    minutes = re.search(r"([\d.]+) minutes each as declared \(about ([\d.]+) by the plan\)", told)
    assert minutes and float(minutes[1]) >= float(minutes[2]), "people are paid for the time that it takes"


def test_the_preregistration_holds_the_planned_analysis_and_whole_people(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = printed(capsys, letters, "--preregistration", "--pictures", "0", "--quality", "0")
    assert get_paradigm("reverse_turing").planned_analysis in told
    needed = people_needed((0.557, 0.694), 15)
    assert f"- people per condition for power .80: {needed} -" in told


def test_each_snippet_of_the_page_is_a_study(letters: Path) -> None:
    assert len(SNIPPETS) == 4
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


def changed(path: Path, **changes: str) -> Path:
    """The study of the page with these lines in place of those that begin so."""
    text = path.read_text()
    for key, line in changes.items():
        text, count = re.subn(rf"^{key} = .*$", line, text, flags=re.MULTILINE)
        assert count, key
    path.write_text(text)
    return path


def test_the_pre_experiment_is_planned_and_its_blind_way_told(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """25 + 20 texts that the model gets wrong; of two answers the opposite of the truth is then right."""
    changed(
        letters,
        test_items='test_items = 20\npredictions = "wrong"',
        subsets="subsets = 1",
        balance='balance = "prediction"',
    )
    told = printed(capsys, letters, "--quality", "0")
    assert "train 25" in told and "test 20" in told and "true class 0.000" in told
    assert re.search(r"delivery wrong \d+ \d+ (12|13) 10", told) and "delivery right" not in told
    assert "Warning: the answer that is not the true class is right in 1.00 of the test trials" in told


@pytest.mark.long(stays="test_the_pre_experiment_is_planned_and_its_blind_way_told")
def test_a_run_without_training_is_planned_and_opens(
    letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(letters, train_items="train_items = 0", expected_minutes="expected_minutes = 5")
    told = FEW.sub("", printed(capsys, letters, "--quality", "0"))
    assert "Warning" not in told and "train 25" not in told
    assert re.findall(COVERAGE, told)[0] == ("none", "45", "0", "360", "45", "8", "8")
    call_command("study_open", str(letters), "--quality", "0")
    study = Study.objects.get(slug="letters")
    kinds = set(study.slots.values_list("trials__kind", flat=True))
    assert study.state == "open" and kinds == {"predict", "instructed"}


@pytest.mark.long(stays="test_the_pre_experiment_is_planned_and_its_blind_way_told")
@pytest.mark.parametrize(
    ("task", "classes", "sizes"),
    [
        ("sentence_length", [f"{low} to {high} words" for low, high in BINS], (24, 12)),
        ("subject_number", ["singular", "plural"], (24, 12)),
    ],
)
def test_the_grammar_s_other_tasks_are_studies_with_models_trained_on_the_spot(
    task: str, classes: list[str], sizes: tuple[int, int], letters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Masked, under names in a drawn order; six bins of length have twelve cells."""
    texts_of("sorted-sentences", letters.parent)
    changed(
        letters,
        slug='slug = "sorted-further"',
        title='title = "Sorted sentences"',
        task='task = "masked"\ntask_words = ["length", "singular", "plural", "subject*"]',
        train_items=f"train_items = {sizes[0]}",
        test_items=f"test_items = {sizes[1]}",
        dataset=f'dataset = {{ name = "sentences", task = "{task}", count = 900, model_count = 1500 }}',
        predictor='predictor = { name = "trained_text", pooling = "mean", epochs = 4 }',
        classes=f'classes = {json.dumps(classes)}\nlabel_names = "drawn"',
        items="items = 300",
        expected_minutes="expected_minutes = 20",
    )
    text = letters.read_text()
    letters.write_text(text.replace('id = "strategy"', 'id = "guess"').replace(
        "what the machine answers?", "which class was chosen?"))  # fmt: skip
    told = printed(capsys, letters, "--quality", "0")
    accuracy = re.search(r"Its accuracy on them: 0\.(\d\d)", told)
    assert accuracy and 55 <= int(accuracy[1]) <= 92
    assert re.search(r"true class 0\.(4[0-9]|5[0-9])", told)
    names = re.search(r"Answers stand for classes of the material: ([^.]+)\.", told)
    assert names and sorted(re.findall(r"class_\d is ([^,]+)", names[1])) == sorted(classes)
    cells = re.findall(r"class_\d (?:right|wrong) (\d+) (\d+) (\d+)(?: to \d+)? (\d+)(?: to \d+)?", told)
    assert len(cells) == 2 * len(classes)
    each = sizes[0] // len(cells), sizes[1] // len(cells)
    assert {(int(train), int(test)) for *_, train, test in cells} == {each}
