"""In which line a fault of a study.toml stands."""

from __future__ import annotations

import pytest

from experiments.errors import Problem
from experiments.study_files.fault_lines import line_of

pytestmark = pytest.mark.pure

FILE = '''slug = "a"
seed = 1
[design]
blocks = 2   # as many
[stimuli]
classes = [
  "b = c",
]
[[conditions]]
name = "one"
[[conditions]]
name = "two"
explainer = { name = "grad_cam" }
[conditions.explained]
of = "predicted"
[texts]
consent = """
slots = 3
"""
debrief = "d.md"
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("seed", 2),
        ("design.blocks", 4),
        ("design.unknown", 3),
        ("stimuli.classes.0", 6),
        ("conditions", 9),
        ("conditions.0.name", 10),
        ("conditions.1.explainer.name", 13),
        ("conditions.1.slots", 11),
        ("texts.debrief", 20),
        ("reward", None),
        ("study", None),
    ],
)
def test_it_is_that_of_the_key_or_of_the_table_around_it(key: str, line: int | None) -> None:
    assert line_of(FILE, Problem(key, "", "is wrong", "Mend it.")) == line


def test_a_file_that_is_not_toml_says_where() -> None:
    stopped = Problem("file", "", "is not TOML: Invalid value (at line 7, column 10)", "Mend that line.")
    assert line_of("", stopped) == 7
