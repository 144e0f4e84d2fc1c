"""A refused study file: every mistake at once, each at its line, and none that follows from another."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from experiments.errors import InvalidStudy
from experiments.study_files.load import STUDIES_DIR, load_study
from experiments.study_files.toml_lines import read_toml
from stimuli.errors import BadSpec
from stimuli.predictors import check_predictor
from stimuli.spec import Component

pytestmark = pytest.mark.pure


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a study of one's own, in order."""
    shutil.copytree(STUDIES_DIR / "wolf-or-husky", tmp_path / "mine")
    return tmp_path / "mine" / "study.toml"


def change(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    path.write_text(text)


def told(path: Path) -> list[str]:
    """The sentences of the refusal; none if it is in order."""
    try:
        load_study(path)
    except InvalidStudy as error:
        return str(error).splitlines()[1:]
    return []


def line_of(path: Path, start: str) -> int:
    (match,) = [n for n, line in enumerate(path.read_text().splitlines(), 1) if line.startswith(start)]
    return match


PLANTED = (
    ("seed = 2022", "sead = 2022"),
    ('classes = ["husky", "wolf"]', 'classes = ["husky", "wolf"]\ntarget = "wolf"'),
    ("instructed = 2", "instructed = 1"),
    ("repeat = 3", "repeats = 3"),
    ('contact = "lab@example.org"', "contact = 3"),
    ('currency = "USD"', 'currency = "usd"'),
    ("count = 160", "count = -1"),
    ('name = "trained_cnn"', 'name = "trained_cn"'),
    ("total_minutes = [1.5, 30]", "total_minutes = [30]"),
    ("minimum_age = 18", "minimum_age = 18\nminimum_age = 16"),
    ("quiz_attempts_max = 2", "quiz_attempts_max = 2 tries"),
    ('explainer = { name = "grad_cam" }', 'explainer = { name = "gradcam" }'),
)
MISTAKES = {
    "seed": "is missing",
    "sead = 2022": "did you mean 'seed'",
    "stimuli": "classes and target ask two questions. Keep one of them",
    "stimuli.dataset": "parameter 'count' is -1",
    "stimuli.predictor": "did you mean 'trained_cnn'",
    "conditions.6.explainer": "did you mean 'grad_cam'",
    "checks.instructed = 1": "must be 2 or more, since the rule screening.instructed_share_min reads these "
    "checks. Set instructed = 2, or remove the rule",
    "checks.repeats = 3": "did you mean 'repeat'",
    "screening.quiz_attempts_max = 2 tries": "is not TOML",
    "screening.total_minutes = [30]": "is not a pair",
    "ethics.contact = 3": "must be a valid string",
    "ethics.minimum_age": "is given already on line",
    "reward.currency = 'usd'": "must match pattern",
}


def test_it_tells_every_mistake_with_its_line_and_nothing_else(path: Path) -> None:
    assert told(path) == []
    change(path, *PLANTED)
    lines = told(path)
    assert len(lines) == len(MISTAKES), "\n".join(lines)
    for key, words in MISTAKES.items():
        (line,) = [line for line in lines if re.match(rf"  (line \d+: )?{re.escape(key)}(: | = )", line)]
        assert words in line
    numbers = [int(match[1]) for line in lines if (match := re.match(r"  line (\d+): ", line))]
    assert numbers == sorted(numbers) and len(numbers) == len(lines) - 1, "only what is missing has no line"
    for start in ("sead", "currency", "contact", "dataset", "predictor", "repeats"):
        assert line_of(path, start) in numbers


@pytest.mark.parametrize(("before", "after"), PLANTED[2:-1])
def test_one_mistake_alone_is_told_at_its_line_until_it_is_mended(
    path: Path, before: str, after: str
) -> None:
    text = path.read_text()
    change(path, (before, after))
    (line,) = told(path)
    number = path.read_text()[: path.read_text().index(after) + len(after)].count("\n") + 1
    assert line.startswith(f"  line {number}: ")
    path.write_text(text)
    assert told(path) == []


def test_the_rows_of_an_extension_are_those_of_its_file(path: Path) -> None:
    later = path.parents[1] / "later" / "study.toml"
    later.parent.mkdir()
    later.write_text(
        'slug = "later"\ntitle = "Later"\nextends = "mine"\n[[conditions]]\nname = "rise"\nrole = "method"\n'
        'explainer = { name = "rise" }\nslot = 3\n'
    )
    (line,) = told(later)
    assert line.startswith("  line 8: conditions.1.slot = 3: is not a key of this table")


def test_what_is_no_text_of_tables_is_one_mistake(path: Path) -> None:
    path.write_text("\0")
    (line,) = told(path)
    assert line.startswith("  file: is not TOML")


def test_a_mark_of_windows_and_its_line_ends_change_nothing(path: Path) -> None:
    digest = load_study(path).digest
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_study(path).digest == digest


FILES = sorted(STUDIES_DIR.glob("*/*.toml"))


@pytest.mark.parametrize("file", FILES, ids=[f"{file.parent.name}/{file.stem}" for file in FILES])
def test_it_reads_as_the_reader_of_the_language_does(file: Path) -> None:
    """And each line that it names begins with the key that it names."""
    text = file.read_text()
    read = read_toml(text)
    assert read.tables == tomllib.loads(text) and not read.problems and not read.unread
    rows = text.splitlines()
    for path, number in read.lines.items():
        assert str(next(part for part in reversed(path) if isinstance(part, str))) in rows[number - 1]


TABLES = """a = 1
b = 20 22
[t]
c = [
  1,
  2
d = 3
text = \"\"\"
[no table]
\"\"\"
[[rows]]
k = 1
[rows.inner]
k = 2
[[rows]]
k = 3
[t]
lost = 1
[[broken]
lost = 2
[last]
k = 4
k = 5
"""


def test_it_reads_on_behind_lines_that_it_cannot_read() -> None:
    read = read_toml(TABLES)
    assert read.tables == {
        "a": 1,
        "t": {"d": 3, "text": "[no table]\n"},
        "rows": [{"k": 1, "inner": {"k": 2}}, {"k": 3}],
        "last": {"k": 4},
    }
    assert [(p.place, p.key) for p in read.problems] == [
        ("line 2", "b"), ("line 4", "t.c"), ("line 17", "t"), ("line 19", "broken"), ("line 23", "last.k"),
    ]  # fmt: skip
    assert read.line_of(("rows", 0, "inner", "k")) == 14 and read.line_of(("rows", 1, "k", "more")) == 16
    assert read.line_of(("nothing",)) is None
    assert read.is_unread(("t", "c", 0)) and read.is_unread(("broken", 0, "x")) and not read.is_unread(("a",))


def test_parts_that_a_list_lacks_are_one_sentence() -> None:
    given = {"weights": "a.pt2", "labels": ["a", "b"], "input_px": 64}
    with pytest.raises(BadSpec) as refused:
        check_predictor(Component("torch_image", {**given, "mean": [0.47]}))
    assert str(refused.value) == "predictor 'torch_image', parameter 'mean' has 1 number, and 3 are needed"
    check_predictor(Component("torch_image", {**given, "mean": [0.47, 0.47, 0.47]}))
