"""Nothing that experts or leads get over the wire says that a model is among the solvers, or what of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import InvalidStudy
from experiments.models import Study
from experiments.paradigms.blind_review import TELLING
from experiments.stages.solution_freeze import freeze
from experiments.study_files.load import load_study
from experiments.wording.sentence_tables import LANGUAGES
from tests.experiments.protocols import LABELS, REVIEW, SOLVE, USES, solved, staged, take_part, write
from tests.world import Person

pytestmark = pytest.mark.django_db

FORBIDDEN = re.compile(
    r"(?<![a-z])(ai|ki|models?|modell\w*|machines?|maschin\w*|predict\w*|vorher\w*|explain\w*|explanation\w*"
    r"|erklär\w*|legible)(?![a-z])",
    re.IGNORECASE,
)
"""Within names of keys too, which are joined by "_" and "."."""
ADDRESS = re.compile(r"/m/[A-Za-z0-9_-]{44}")


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every key and every text of a reply, with where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, "a key"), key
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, (*path, "*"))
    elif isinstance(value, str):
        yield path, value


def told(reply: Any) -> list[tuple[tuple[str, ...], str]]:
    """What a reply says that it must not; random texts, such as addresses, may hold anything."""
    hits = []
    for path, text in leaves(reply):
        if path[-1] == "url":
            assert ADDRESS.fullmatch(text), text
        elif path[-1] not in ("token", "digest", "id", "sitting") and FORBIDDEN.search(text):
            hits.append((path, text))
    return hits


def whole_session(slug: str) -> list[Any]:
    """All replies to a person who takes part, from joining to the last page before the debrief."""
    replies = []
    person = Person("eve", slug=slug)
    call = person.call

    def listening(method: str, path: str, *given: Any, **more: Any) -> Any:
        reply = call(method, path, *given, **more)
        if not path.endswith("/finish/"):
            replies.append(json.loads(reply.content))
        return reply

    person.call = listening  # type: ignore[method-assign]
    take_part(person)
    return replies


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("stage", ["solve", "review", "labels"])
def test_no_word_key_or_address_tells(tmp_path: Path, stage: str, language: str) -> None:
    def in_language(folder: Path) -> None:
        path = folder / "study.toml"
        path.write_text(path.read_text().replace("seed = 3", f'seed = 3\nlanguage = "{language}"'))

    study: Study
    if stage == "review":
        freeze(solved(tmp_path / "s"))
        study = staged(tmp_path / "v", "judged", REVIEW, change=in_language)
    else:
        tables, slug = {"solve": (SOLVE, "tasks"), "labels": (LABELS, "labels")}[stage]
        study = staged(tmp_path / "v", slug, tables, change=in_language)
    replies = whole_session(study.slug)
    assert len(replies) > 10
    assert [hit for reply in replies for hit in told(reply)] == []


def test_the_scan_finds_what_is_planted() -> None:
    for planted in (
        {"explanation": None},
        {"a": [{"b": "A model"}]},
        {"trial.explanation": "Marked"},
        {"x": "die Maschine"},
        {"x": "Our AI."},
        {"ai_answer": "7"},
    ):
        assert told(planted), planted
    assert not told({"a": "The campaign is modest; main, said, Kind", "url": "/m/" + "a" * 44})


# What a study says itself


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ('title = "tasks"', 'title = "Our model and you"', "title: 'model*'"),
        ('slug = "tasks"', 'slug = "ai-tasks"', "slug: 'ai'"),
        ("# consent", "# A machine", "texts.consent: 'machine*'"),
        ("# instructions", "Please explain.", "texts.instructions: 'explain*'"),
    ],
)
def test_a_study_that_tells_is_refused_with_the_place(
    tmp_path: Path, before: str, after: str, place: str
) -> None:
    path = write(tmp_path / "t", "tasks", "blind_review", SOLVE, uses=USES)
    for file in (path, *path.parent.glob("*.md")):
        file.write_text(file.read_text().replace(before, after))
    with pytest.raises(InvalidStudy) as refused:
        load_study(path)
    key, _, word = place.partition(": ")
    assert f"{key} = {word}" in str(refused.value) and "only the debrief may tell" in str(refused.value)


def test_the_debrief_may_tell(tmp_path: Path) -> None:
    path = write(tmp_path / "t", "tasks", "blind_review", SOLVE, uses=USES)
    (path.parent / "debrief.md").write_text("# Half of the solutions were those of a model.\n")
    assert load_study(path).slug == "tasks"


def test_every_word_of_the_list_is_looked_for_once() -> None:
    assert len(set(TELLING)) == len(TELLING)
    assert all(FORBIDDEN.search(word.rstrip("*")) for word in TELLING)
