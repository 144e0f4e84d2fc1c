"""What a file of a rating study may say, and every mistake in it by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import InvalidStudy
from experiments.study_files.load import load_study
from tests.experiments.protocols import RATING, TWO_MODELS, write

pytestmark = pytest.mark.pure
ASKED = 'asked = ["q1", "q2"]'
OWN = """[[design.wording]]
id = "doubt"
text = "How much doubt is left?"
low = "none"
high = "a lot"
reverse = true
"""


def problems(tmp_path: Path, asked: str = ASKED, wording: str = "", checks: str = "") -> str:
    tables = RATING.replace(ASKED, asked).replace("[checks]", f"{wording}[checks]\n{checks}")
    with pytest.raises(InvalidStudy) as refused:
        load_study(write(tmp_path, "ratings", "rating", tables, sources=TWO_MODELS))
    return str(refused.value)


def test_a_study_may_word_its_own_questions(tmp_path: Path) -> None:
    tables = RATING.replace(ASKED, 'asked = ["q1", "doubt"]').replace("[checks]", f"{OWN}[checks]")
    assert load_study(write(tmp_path, "ratings", "rating", tables, sources=TWO_MODELS)).design["asked"]


@pytest.mark.parametrize(
    ("asked", "wording", "message"),
    [
        ('asked = ["q1", "doubt"]', "", "'doubt': has no words: only q1 to q6 have words of their own"),
        (ASKED, OWN, "'doubt': is worded and not asked"),
        ('asked = ["doubt"]', OWN.replace('low = "none"\n', ""), "'doubt': has no low"),
        (
            'asked = ["doubt"]',
            OWN.replace('low = "none"\nhigh = "a lot"\n', ""),
            "'doubt': has no low and no high",
        ),
        ('asked = ["q1", "q1"]', "", "'q1': is asked twice"),
        ('asked = ["doubt"]', OWN + OWN, "'doubt': has two tables"),
        ('asked = ["q5", "q6"]', "", "q5, q6: compares with changed copies alone"),
        (
            'asked = ["doubt"]',
            OWN.replace("reverse = true", 'pair = "light"'),
            'Add a question without a pair, such as "q1"',
        ),
    ],
)
def test_it_names_the_mistakes_in_questions(tmp_path: Path, asked: str, wording: str, message: str) -> None:
    assert message in problems(tmp_path, asked, wording)


def test_one_of_pasta_s_may_be_worded_in_part(tmp_path: Path) -> None:
    part = '[[design.wording]]\nid = "q1"\nlow = "not in the least"\n'
    tables = RATING.replace("[checks]", f"{part}[checks]")
    definition = load_study(write(tmp_path, "ratings", "rating", tables, sources=TWO_MODELS))
    assert definition.design["wording"][0]["low"] == "not in the least"


def test_it_refuses_repeat_checks(tmp_path: Path) -> None:
    told = problems(tmp_path, checks="repeat = 2\n")
    assert "checks.repeat" in told and "nothing is trained" in told and "anchors" in told


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("raters_per_explanation = 0", "greater than or equal to 1"),
        ("anchors = 51", "less than or equal to 50"),
        ("explanations_per_item = 0", "greater than or equal to 1"),
        ('perturbations = { rule = "best" }', "'any' or 'drawn'"),
        ('perturbations = { names = ["tilt"] }', "no perturbation 'tilt'"),
        ("perturbations = { light = [] }", "must rise"),
        ("perturbations = { heavy = [1.0] }", "is not a key of this table"),
    ],
)
def test_it_names_limits_of_the_design(tmp_path: Path, line: str, message: str) -> None:
    asked = ASKED if line.startswith("raters") else f"{ASKED}\n{line}"
    tables = RATING.replace(ASKED, asked)
    if line.startswith("raters"):
        tables = tables.replace("raters_per_explanation = 2", line)
    with pytest.raises(InvalidStudy, match=message):
        load_study(write(tmp_path, "ratings", "rating", tables, sources=TWO_MODELS))
