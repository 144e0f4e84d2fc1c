"""`[preregistration]` of study.toml: what may be said, and what it does to the digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import InvalidStudy
from experiments.study_files.load import load_study
from tests import world
from tests.experiments.protocols import RATING, write

WHOLE = """
[preregistration]
hypotheses = ["Saliency maps raise the share of answers that match the model."]
primary_outcome = "Share of a person's test answers that match the model."
smallest_effect = { points = 5 }
alpha = 0.01
contrasts = "tukey"
missing = "A person without all test answers is left out; nothing is filled in."
registry = "https://osf.io/abc12"
"""


def with_table(folder: Path, table: str) -> Path:
    path = world.write_study(folder)
    path.write_text(path.read_text() + table)
    return path


def test_an_absent_or_silent_table_changes_no_digest(tmp_path: Path) -> None:
    plain = load_study(world.write_study(tmp_path / "plain")).digest
    for number, table in enumerate(
        ("[preregistration]\n", '[preregistration]\nregistry = "https://osf.io/a"\n')
    ):
        assert load_study(with_table(tmp_path / str(number), f"\n{table}")).digest == plain


def test_what_is_declared_is_frozen_and_its_registry_is_not(tmp_path: Path) -> None:
    whole = load_study(with_table(tmp_path / "whole", WHOLE))
    assert whole.digest != load_study(world.write_study(tmp_path / "plain")).digest
    assert whole.digest != load_study(with_table(tmp_path / "b", WHOLE.replace("0.01", "0.02"))).digest
    later = WHOLE.replace("https://osf.io/abc12", "https://osf.io/other")
    assert whole.digest == load_study(with_table(tmp_path / "c", later)).digest


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("alpha = 0.5", ["preregistration.alpha = 0.5", "less than or equal to 0.2"]),
        ('contrasts = "scheffe"', ["'scheffe'", "'dunnett' or 'tukey'"]),
        ("smallest_effect = { points = 5, d = 0.5 }", ["Give either { points = 5 }"]),
        ("smallest_effect = {}", ["its unit is not clear"]),
        ("smallest_effect = { points = -1 }", ["smallest_effect.points = -1", "greater than 0"]),
        ('registry = "osf.io/abc12"', ["'osf.io/abc12'", "must be the address of the registration"]),
        ("looks = [10]", ["go together"]),
        ('looks = [2]\nboundary = "pocock"', ["looks.0 = 2", "greater than or equal to 5"]),
        ('looks = [9, 6]\nboundary = "pocock"', ["[9, 6] must rise"]),
        ('looks = [6]\nboundary = "pocock"\ncontrasts = "tukey"', ["Remove contrasts"]),
        ('looks = [6]\nboundary = "pocock"', ["looks = [6]", "must lie below the 3 slots"]),
        ('hypotheses = ["H1"]', ["'H1'", "at least 10 characters"]),
        ('hypothesis = "One sentence."', ["is not a key of this table", "did you mean 'hypotheses'"]),
    ],
)
def test_it_refuses_what_cannot_be_a_plan(tmp_path: Path, table: str, told: list[str]) -> None:
    with pytest.raises(InvalidStudy) as refused:
        load_study(with_table(tmp_path, f"\n[preregistration]\n{table}\n"))
    assert not [words for words in told if words not in str(refused.value)], str(refused.value)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('contrasts = "tukey"', "rating has only those of its own. Remove it."),
        ('looks = [6]\nboundary = "pocock"', "rating has none that can be looked at. Remove looks"),
        ("alpha = 0.01", "must be 0.05, the level at which the report of rating tests. Remove it."),
    ],
)
def test_it_refuses_a_choice_that_the_report_would_not_follow(tmp_path: Path, table: str, told: str) -> None:
    path = write(tmp_path / "r", "ratings", "rating", RATING)
    path.write_text(f"{path.read_text()}\n[preregistration]\n{table}\n")
    with pytest.raises(InvalidStudy, match=told.replace(".", r"\.")):
        load_study(path)


def test_an_extension_declares_a_plan_of_its_own(tmp_path: Path) -> None:
    with_table(tmp_path / "small", WHOLE)
    later = tmp_path / "later" / "study.toml"
    later.parent.mkdir()
    added = '[[conditions]]\nname = "rise"\nrole = "method"\nexplainer = { name = "rise" }\nslots = 3\n'
    head = 'slug = "later"\ntitle = "Left or right, later"\nextends = "small"\n'
    later.write_text(f"{head}{added}")
    assert load_study(later).preregistration is None
    later.write_text(f"{head}{added}[preregistration]\nalpha = 0.02\n")
    declared = load_study(later).preregistration
    assert declared is not None and declared.alpha == 0.02 and declared.hypotheses == ()
