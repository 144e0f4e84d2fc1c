"""An extension asks the people of a later time the same as its parent did, under new conditions."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import InvalidStudy, StudyError
from experiments.models import Item, Slot, Study, Trial
from experiments.opening.opening import open_study
from experiments.study_files.load import load_study, material_folder
from tests.world import draft_study, opened_study, silent, write_study

NEW = """
[[conditions]]
name = "gradient_x_input"
role = "method"
explainer = { name = "gradient_x_input" }
slots = 3
"""


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    (tmp_path / "small").mkdir()
    return write_study(tmp_path / "small")


def extension(parent: Path, conditions: str = NEW, head: str = "") -> Path:
    folder = parent.parent.parent / "more"
    folder.mkdir(exist_ok=True)
    path = folder / "study.toml"
    path.write_text(f'slug = "more"\ntitle = "More"\nextends = "small"\n{head}{conditions}')
    return path


def planned(study: Study, condition: str) -> list[list[tuple[object, ...]]]:
    """Of each place of a condition, in order, what is shown where."""
    slots = Slot.objects.filter(study=study, condition__name=condition).order_by("matched")
    fields = ("position", "phase", "kind", "check_kind", "item__key", "label", "choices", "reservoir")
    return [list(Trial.objects.filter(slot=slot).order_by("position").values_list(*fields)) for slot in slots]


@pytest.mark.django_db
def test_it_has_the_parent_s_items_and_plans_under_new_conditions(parent: Path, store_folder: Path) -> None:
    first, later = opened_study(parent), opened_study(extension(parent, head="[recruitment]\n"))
    assert sorted(first.items.values_list("key", "truth", "predicted")) == sorted(
        later.items.values_list("key", "truth", "predicted")
    )
    assert [(c.name, c.role, c.slots) for c in later.conditions.all()] == [
        ("baseline", "baseline", 15),
        ("gradient_x_input", "method", 3),
    ]
    # Matched plan k is the same in both studies, and depends on no condition.
    assert planned(later, "baseline")[:3] == planned(first, "baseline")
    new, before = planned(later, "gradient_x_input"), planned(first, "saliency")
    assert new == before and len(new) == 3 and all(new)
    assert later.definition["texts"] == first.definition["texts"]


@pytest.mark.django_db
def test_its_people_are_not_the_parent_s(parent: Path, store_folder: Path) -> None:
    head = '[recruitment]\nexcludes = ["list:lab"]\n'
    assert load_study(extension(parent, head=head)).recruitment.excludes == ("list:lab", "small")
    assert load_study(extension(parent)).recruitment.excludes == ("small",)


def test_it_reads_texts_and_pictures_beside_the_parent_s_file(parent: Path) -> None:
    path = extension(parent)
    assert material_folder(path) == parent.parent and material_folder(parent) == parent.parent
    assert load_study(path).texts == load_study(parent).texts
    assert load_study(path).digest != load_study(parent).digest


def test_a_definition_that_extends_nothing_keeps_its_digest(parent: Path) -> None:
    assert not {"extends", "extension"} & set(load_study(parent).as_met())
    assert load_study(extension(parent)).as_met()["extends"] == "small"


BAD = {
    "a table of the parent": ("[checks]\nrepeat = 2\n", NEW, "checks: comes from 'small'"),
    "no new condition": ("", "", "adds no condition to 'small'"),
    "a condition of the parent": (
        "",
        NEW.replace("gradient_x_input", "saliency"),
        "is a condition of 'small'",
    ),
    "another baseline": (
        "",
        NEW + '[[conditions]]\nname = "plain"\nrole = "baseline"\nslots = 4\n',
        "is not the baseline of 'small'",
    ),
    "a pool without a margin": ("[extension]\npool = true\n", NEW, "pool = true needs drift_points"),
    "a margin beyond reason": ("[extension]\ndrift_points = 80\n", NEW, "less than or equal to 50"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told(parent: Path, case: str) -> None:
    head, conditions, said = BAD[case]
    with pytest.raises(InvalidStudy) as refused:
        load_study(extension(parent, conditions, head))
    assert said in str(refused.value)


def test_it_says_where_it_looked_for_the_parent(parent: Path) -> None:
    path = extension(parent)
    path.write_text(path.read_text().replace('"small"', '"smal"'))
    with pytest.raises(StudyError, match=r"there is no smal/study\.toml in the folder beside"):
        load_study(path)


def test_an_extension_is_not_extended(parent: Path) -> None:
    extension(parent)
    folder = parent.parent.parent / "third"
    folder.mkdir()
    third = folder / "study.toml"
    third.write_text('slug = "third"\ntitle = "Third"\nextends = "more"\n' + NEW)
    with pytest.raises(InvalidStudy, match="is an extension itself, of 'small'. Extend 'small'"):
        load_study(third)


def test_extension_without_a_parent_is_refused(parent: Path) -> None:
    parent.write_text(parent.read_text() + "[extension]\ndrift_points = 5\n")
    with pytest.raises(InvalidStudy, match="extension: goes with extends"):
        load_study(parent)


def test_paradigms_of_several_conditions_a_person_cannot_be_extended(tmp_path: Path) -> None:
    from tests.experiments.protocols import SENTENCES, TURING, write

    (tmp_path / "small").mkdir()
    write(tmp_path / "small", "small", "reverse_turing", TURING, sources=SENTENCES)
    path = extension(tmp_path / "small" / "study.toml")
    with pytest.raises(InvalidStudy, match="Extend a study of meta_predictor"):
        load_study(path)


@pytest.mark.django_db
def test_it_waits_for_the_parent(parent: Path, store_folder: Path) -> None:
    with pytest.raises(StudyError, match="which is not open in this database. Open it first"):
        draft_study(extension(parent))


@pytest.mark.django_db
def test_it_refuses_a_parent_whose_file_has_changed(parent: Path, store_folder: Path) -> None:
    opened_study(parent)
    (parent.parent / "consent.md").write_text("# Another text\n")
    with pytest.raises(StudyError, match="cannot extend 'small': texts changed in its file"):
        draft_study(extension(parent))


@pytest.mark.django_db
def test_it_refuses_other_items(parent: Path, store_folder: Path) -> None:
    opened_study(parent)
    later = draft_study(extension(parent))
    changed = Item.objects.filter(study=later).order_by("key")[0]
    Item.objects.filter(pk=changed.pk).update(predicted="left" if changed.predicted == "right" else "right")
    with pytest.raises(StudyError, match=f"1 items differ, for example '{changed.key}'"):
        open_study(later, silent)
    later.refresh_from_db()
    assert later.state == "draft" and not Slot.objects.filter(study=later).exists()
