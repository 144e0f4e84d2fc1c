"""Explanations made elsewhere go the whole way: check, rendering, a session over HTTP, export."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from analysis.tables.response_reader import read_frames, study_facts
from experiments.drafting.draft import build_draft
from experiments.drafting.draft_rows import picture_keys
from experiments.models import Condition, Study
from experiments.simulation.browser.picture_cache import Album
from experiments.study_files.load import load_study
from stimuli.build import build
from stimuli.models import Stimulus
from stimuli.render import png
from stimuli.store.media_access import current_store
from tests import world
from tests.experiments.protocols import SENTENCES, TURING, take_part, write
from tests.world import Person, silent

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]
CONDITION = """
[[conditions]]
name = "{name}"
role = "method"
label = "{name} of another framework"
explainer = {{ name = "recorded", path = "{path}"{more} }}
slots = 1
"""
FORMS = {"heat": "heat", "parts": "parts.csv", "near": "near.csv", "why": "why.csv"}
Row = tuple[object, ...]


def table(path: Path, *rows: Row) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)


def write_study(folder: Path, more: str = "", **forms: str) -> Path:
    """The small study, in which recorded explanations take the place of the control and of saliency."""
    path = world.write_study(folder / "small", slots=1)
    text = path.read_text()
    head, rest = text.split('[[conditions]]\nname = "control"', 1)
    added = "".join(CONDITION.format(name=name, path=file, more=more) for name, file in forms.items())
    head = head.replace("[stimuli]\n", "[stimuli]\nitems = 24\n")
    path.write_text(f"{head}{added}[texts]{rest.split('[texts]', 1)[1]}")
    return path


def keys_of(folder: Path) -> list[str]:
    root = folder / "small" / "images"
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*.png"))


def explain_all(folder: Path) -> None:
    """Every form of explanation of every item, as another framework would save them."""
    root, rng = folder / "small", np.random.default_rng(1)
    keys = keys_of(folder)
    for key in keys:
        path = root / "heat" / f"{key}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, rng.normal(size=(world.SIZE_PX, world.SIZE_PX)))
    table(
        root / "parts.csv",
        ("item", "concept", "value"),
        *((key, name, value) for key in keys for name, value in (("bright", 1), ("dark", -0.5))),
    )
    table(
        root / "near.csv",
        ("item", "picture", "caption"),
        *((key, f"images/{keys[(at + 1) % len(keys)]}", "The most alike") for at, key in enumerate(keys)),
    )
    reasons = [(key, f"It looks like no. {at}.") for at, key in enumerate(keys)]
    table(root / "why.csv", ("item", "sentence"), *reasons)


@pytest.fixture
def study_file(tmp_path: Path, store_folder: Path) -> Path:
    path = write_study(tmp_path, **FORMS)
    explain_all(tmp_path)
    return path


def test_it_checks_every_form_and_stores_nothing(
    study_file: Path, store_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("study_check", str(study_file))
    assert "plans are matched" in capsys.readouterr().out
    assert not Stimulus.objects.exists() and not Study.objects.exists()
    assert not [path for path in store_folder.rglob("*") if path.is_file() and "recorded" in path.parts]


@pytest.mark.long(stays="test_it_explains_texts_by_spans_and_by_sentences")
def test_it_shows_every_form_to_people_and_exports_it(study_file: Path) -> None:
    study = world.opened_study(study_file)
    met: dict[str, list[str]] = {}
    for number in range(len(FORMS) + 1):
        person = Person(f"p{number}")
        person.arrive()
        slot = person.session().slot
        assert slot is not None and slot.condition is not None
        trials = [t for t in person.state["block"]["trials"] if t["kind"] == "learn"]
        shown = [trial["content"]["explanation"] for trial in trials]
        met[slot.condition.name] = [media["alt"] for media in shown if media]
        # What says itself what it means has no legend of maps.
        assert all(media["is_said"] == media["alt"].startswith("In words") for media in shown if media)
        told = json.dumps(person.state)
        assert not any(name in told for name in ("recorded", "another framework", "digest", "csv"))
        if slot.condition.name in ("parts", "near", "why"):
            image, explanation = (
                person.client.get(trials[0]["content"][part]["url"]).content
                for part in ("image", "explanation")
            )
            assert png.decode(explanation).shape == (640, 640, 3)
            assert Album().percept(image, explanation).attention is None, "it leads no eye over the picture"
        if number == 0:
            person.take_part()
    assert set(met) == {"baseline", *FORMS} and met["baseline"] == []
    assert set(met["heat"]) == {"Picture with an explanation"}
    assert set(met["parts"]) == {"In words: bright +100%, dark −50%"}
    assert set(met["near"]) == {"In words: The most alike"}
    assert all(alt.startswith("In words: It looks like no. ") for alt in met["why"])
    assert len(set(met["why"])) == len(met["why"]) == 4
    rows = read_frames(study).stimuli
    for name in FORMS:
        cells = [row for row in rows.to_dict("records") if row["condition"] == name]
        assert cells and {row["state"] for row in cells} == {"done"}
        named = [json.loads(row["explainer"]) for row in cells]
        assert {row["name"] for row in named} == {"recorded"}
        assert all(set(row) == {"name", "kind", "digest", "of"} for row in named)
    labels = {condition.label for condition in study_facts(study).conditions}
    assert labels >= {f"{name} of another framework" for name in FORMS}


def test_a_changed_file_changes_the_draft(study_file: Path, tmp_path: Path) -> None:
    study = build_draft(load_study(study_file), study_file.parent, silent)
    before = set(picture_keys(study))
    assert set(picture_keys(build_draft(load_study(study_file), study_file.parent, silent))) == before
    why = tmp_path / "small" / "why.csv"
    why.write_text(why.read_text(encoding="utf-8").replace("no. 3.", "number 3."), encoding="utf-8")
    heat = tmp_path / "small" / "heat" / f"{keys_of(tmp_path)[3]}.npy"
    np.save(heat, np.load(heat) + 1)
    after = set(picture_keys(build_draft(load_study(study_file), study_file.parent, silent)))
    assert (len(before - after), len(after - before)) in ((2, 2), (0, 0))
    shown = Study.objects.get().items.filter(key=keys_of(tmp_path)[3]).exists()
    assert bool(after - before) == shown


def test_everything_that_is_drawn_is_in_the_store(study_file: Path, tmp_path: Path) -> None:
    """A worker on another machine has the store alone."""
    study = build_draft(load_study(study_file), study_file.parent, silent)
    keys = picture_keys(study)
    (tmp_path / "small").rename(tmp_path / "gone")
    build(keys)
    assert {s.state for s in Stimulus.objects.all()} == {"done"}
    drawn = Stimulus.objects.filter(spec__explainer__kind="pictures").first()
    assert drawn is not None and drawn.explanation_text == "The most alike"
    assert png.decode(current_store().get(drawn.explanation_file)).shape == (640, 640, 3)


Spoil = Callable[[Path, str], object]
MISTAKES: dict[str, tuple[Spoil, str]] = {
    "missing": (
        lambda root, key: "0" in key and (root / "heat" / f"{key}.npy").rename(root / "gone.npy"),
        "items have no explanation",
    ),
    "shape": (
        lambda root, key: np.save(root / "heat" / f"{key}.npy", np.zeros((64, 64))),
        "has 64 x 64 values (rows x columns), but the network sees 32 x 32 pixels",
    ),
    "NaN": (
        lambda root, key: np.save(root / "heat" / f"{key}.npy", np.full((32, 32), np.nan)),
        "not finite",
    ),
    "unknown": (lambda root, key: np.save(root / "heat" / "left.npy", np.zeros((32, 32))), 'no item "left"'),
    "object": (
        lambda root, key: np.save(root / "heat" / f"{key}.npy", np.array([[{}]]), allow_pickle=True),
        "holds values of type object, not numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_refuses_a_mistake_by_name(study_file: Path, tmp_path: Path, mistake: str) -> None:
    spoil, sentence = MISTAKES[mistake]
    for key in keys_of(tmp_path):
        spoil(tmp_path / "small", key)
    with pytest.raises(CommandError) as refused:
        call_command("study_check", str(study_file), stdout=StringIO())
    assert "condition 'heat': recorded" in str(refused.value) and sentence in str(refused.value)
    assert "'why'" not in str(refused.value)
    assert not Stimulus.objects.exists()


def test_it_names_all_conditions_that_are_wrong_at_once(study_file: Path, tmp_path: Path) -> None:
    for name in ("parts.csv", "why.csv"):
        (tmp_path / "small" / name).unlink()
    for command in ("study_check", "build_stimuli", "study_open"):
        with pytest.raises(CommandError) as refused:
            call_command(command, str(study_file), stdout=StringIO())
        assert "condition 'parts'" in str(refused.value) and "condition 'why'" in str(refused.value)
    assert not Stimulus.objects.exists()


def test_it_refuses_to_hide_the_picture_under_its_explanation(study_file: Path, tmp_path: Path) -> None:
    study_file.write_text(study_file.read_text().replace("[design]\n", '[design]\ndisplay = "overlay"\n'))
    with pytest.raises(CommandError) as refused:
        call_command("study_check", str(study_file))
    assert "condition 'why'" in str(refused.value) and "condition 'heat'" not in str(refused.value)


def test_it_refuses_a_map_that_the_recipe_cannot_draw(study_file: Path, tmp_path: Path) -> None:
    for key in keys_of(tmp_path):
        path = tmp_path / "small" / "heat" / f"{key}.npy"
        np.save(path, np.abs(np.load(path)))
    recipe = '[render]\nsign = "diverging"\n[texts]'
    study_file.write_text(study_file.read_text().replace("[texts]", recipe))
    with pytest.raises(CommandError, match="condition 'heat': this method has no sign"):
        call_command("study_check", str(study_file))


def test_it_says_at_reading_what_a_condition_lacks(tmp_path: Path) -> None:
    path = write_study(tmp_path, heat="heat")
    path.write_text(path.read_text().replace(', path = "heat"', ', paths = "heat"'))
    with pytest.raises(Exception, match=r"no parameter 'paths' \(did you mean 'path'\?\)"):
        load_study(path)


def test_it_writes_the_items_for_another_framework(
    study_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop of the documentation: list the items, explain what the model saw, save by item key."""
    for name in FORMS.values():
        (tmp_path / "small" / name).rename(tmp_path / name)  # nothing is recorded yet
    out = tmp_path / "items"
    call_command("study_check", str(study_file), items=out)
    assert not Stimulus.objects.exists()
    with (out / "items.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert rows and {row["item"] for row in rows} <= set(keys_of(tmp_path))
    for row in rows:
        with Image.open(out / row["file"]) as view:
            assert view.size == (int(row["width_px"]), int(row["height_px"])) == (32, 32)
            half = np.asarray(view)[:16].mean(axis=(0, 2))
        # The quadrant model says which side of the upper half is brighter.
        assert row["label"] == ("left" if half[:16].mean() > half[16:].mean() else "right")
        assert world.CLASSES[int(row["index"])] == row["label"]
    assert {row["conditions"] for row in rows} == {"heat parts near why"}
    assert {(row["operator"], row["against"]) for row in rows} == {("logit", "")}
    explained = '[explained]\nof = "runner_up"\noperator = "margin"\n[texts]'
    study_file.write_text(study_file.read_text().replace("[texts]", explained))
    call_command("study_check", str(study_file), items=tmp_path / "others")
    with (tmp_path / "others" / "items.csv").open(newline="", encoding="utf-8") as stream:
        others = {row["item"]: row for row in csv.DictReader(stream)}
    for row in rows:
        other = others[row["item"]]
        assert (other["against"], other["operator"]) == (row["label"], "margin")
        assert int(other["index"]) == 1 - int(row["index"]) and other["label"] != row["label"]
    with pytest.raises(CommandError, match="is not an empty folder"):
        call_command("study_check", str(study_file), items=out)
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "recorded.md").read_text(), re.DOTALL)
    assert [len(block.splitlines()) for block in lines] == [5]
    names = {"csv": csv, "np": np, "Path": Path, "Image": Image}
    exec(lines[0], {**names, "explain": lambda view, index: view[..., index]})
    (tmp_path / "maps").rename(tmp_path / "small" / "heat")
    study_file.write_text(write_study(tmp_path / "again", heat="heat").read_text())
    call_command("study_check", str(study_file), stdout=StringIO())


def test_conditions_and_their_files_stand_in_the_definition(study_file: Path) -> None:
    build_draft(load_study(study_file), study_file.parent, silent)
    stored = dict(Condition.objects.values_list("name", "explainer"))
    assert stored["why"] == {"name": "recorded", "path": "why.csv"}


def test_it_explains_texts_by_spans_and_by_sentences(tmp_path: Path, store_folder: Path) -> None:
    tables = TURING.replace('{ name = "random_text" }', '{ name = "recorded", path = "spans.json" }')
    tables += (
        TURING[TURING.index('[[conditions]]\nname = "marked"') :]
        .replace("marked", "told")
        .replace('{ name = "random_text" }', '{ name = "recorded", path = "why.csv" }')
    )
    path = write(tmp_path / "small", "lines", "reverse_turing", tables, sources=SENTENCES)
    call_command("study_check", str(path), items=tmp_path / "items")
    with (tmp_path / "items" / "items.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    texts = {row["item"]: (tmp_path / "items" / row["file"]).read_text(encoding="utf-8") for row in rows}
    spans = {key: [{"start": 0, "end": 3, "weight": -2, "text": text[:3]}] for key, text in texts.items()}
    (tmp_path / "small" / "spans.json").write_text(json.dumps(spans))
    why = tmp_path / "small" / "why.csv"
    table(
        why, ("item", "sentence"), *((key, f"Because of {text.split()[-1]}") for key, text in texts.items())
    )
    world.opened_study(path)
    seen = set()
    for number in range(3):
        person = Person(f"p{number}", slug="lines")
        person.arrive()
        for trial in person.state["block"]["trials"]:
            content = trial["content"]
            if content.get("text") is None:
                continue
            pieces, picture = content["text"]["tokens"], content["explanation"]
            text = "".join(piece["text"] for piece in pieces)
            assert text in texts.values() and content["image"] is None
            marked = [piece["text"] for piece in pieces if piece["shade"]]
            assert marked in ([], [text[:3]]) and not (marked and picture)
            if picture:
                assert picture["alt"] == f"In words: Because of {text.split()[-1]}"
                assert (picture["width_px"], picture["height_px"]) == (640, 640)
                assert png.decode(person.client.get(picture["url"]).content).shape == (640, 640, 3)
            seen.add("told" if picture else "marked" if marked else "plain")
        take_part(person)
    assert seen == {"told", "marked", "plain"}
