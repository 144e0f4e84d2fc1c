"""What differs between two studies: exactly what was changed, value by value, texts by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from crowd.dashboard.rows.study_differences import Difference, differences
from experiments.drafting.draft import build_draft
from experiments.models import Study
from experiments.study_files.load import load_study, material_folder
from tests.crowd.logins import login
from tests.crowd.people.test_roles import other_study
from tests.world import draft_study, silent, write_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store_folder")]


def copied(path: Path, slug: str, **changes: str) -> Path:
    """The command's copy, with some lines changed."""
    folder = path.parents[1] / slug
    call_command("copy_study", str(path), slug, "--to", str(folder))
    text = (folder / "study.toml").read_text()
    for old, new in changes.items():
        assert text.count(f"{old} = ") == 1
        text = "\n".join(new if line.startswith(f"{old} = ") else line for line in text.splitlines())
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def test_a_copy_is_the_same_study_under_another_slug(tmp_path: Path) -> None:
    path = write_study(tmp_path / "first")
    first = draft_study(path)
    second = draft_study(copied(path, "second"))
    assert (second.slug, second.definition | {"slug": "small"}) == ("second", first.definition)
    assert differences(first, second) == []
    page = login("ada", is_superuser=True).get("/studies/second/compare/?with=small").content.decode()
    assert "they ask people the same" in page


def test_it_tells_exactly_what_was_changed(tmp_path: Path) -> None:
    path = write_study(tmp_path / "first")
    first = draft_study(path)
    other = copied(path, "second", min_view_ms="min_view_ms = 400", repeat="repeat = 2")
    text = other.read_text().replace('{ name = "saliency" }', '{ name = "gradient_x_input" }')
    other.write_text(text.replace('name = "saliency"', 'name = "product"'))
    (other.parent / "debrief.md").write_text("# debrief\n\nThank you.\n")
    second = build_draft(load_study(other), material_folder(other), silent)
    seen = {difference.place: difference for difference in differences(first, second)}
    assert seen["design.min_view_ms"] == Difference("design.min_view_ms", "0", "400")
    assert seen["checks.repeat"] == Difference("checks.repeat", "1", "2")
    assert seen["conditions.saliency.explainer.name"].there == ""
    assert seen["conditions.product.explainer.name"].there == "gradient_x_input"
    (text_place,) = [place for place, difference in seen.items() if difference.lines]
    changed = [line for line in seen[text_place].lines if line[0] in "+-"]
    assert "debrief" in text_place and ("+", "Thank you.") in changed and len(changed) == 2
    assert {place.partition(".")[0] for place in seen} == {"design", "checks", "conditions", "texts"}
    page = login("ada", is_superuser=True).get("/studies/small/compare/?with=second").content.decode()
    assert "design.min_view_ms" in page and "Thank you." in page and "56, of which 56 in both" in page


def test_it_compares_only_what_a_login_may_look_at(study: Study) -> None:
    theirs = other_study()
    client = login("ada", "view")
    page = client.get(f"/studies/wolf-or-husky/compare/?with={theirs.slug}").content.decode()
    assert "There is no other study that you may look at" in page and "Theirs" not in page


@pytest.mark.parametrize(
    ("slug", "folder", "said"),
    [
        ("small", "new", "is the slug of the study itself"),
        ("Not A Slug", "new", "slug"),
        ("second", "first", "is there already"),
        ("second", "first/new", "lies within the study"),
    ],
)
def test_it_copies_nothing_half(tmp_path: Path, slug: str, folder: str, said: str) -> None:
    path = write_study(tmp_path / "first")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CommandError, match=said):
        call_command("copy_study", str(path), slug, "--to", str(tmp_path / folder))
    assert sorted(tmp_path.rglob("*")) == before


def test_it_refuses_a_slug_that_it_cannot_replace(tmp_path: Path) -> None:
    path = write_study(tmp_path / "first")
    path.write_text(path.read_text().replace("slug = ", "'slug' = "))
    with pytest.raises(CommandError, match="Nothing was copied.*on a line of its own"):
        call_command("copy_study", str(path), "second", "--to", str(tmp_path / "second"))
    assert not (tmp_path / "second").exists()
