"""How files become items is a version: what was opened keeps its pixels and keys, and drafts get today's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from experiments.drafting import decoding
from experiments.drafting.draft import build_draft, gather, with_copies
from experiments.drafting.stimulus_specs import every_spec
from experiments.models import Rendering, Study
from experiments.opening.opening import open_study
from experiments.study_files.load import load_study
from stimuli.datasets import DECODING
from stimuli.datasets.lines import open_lines
from stimuli.errors import BadSpec
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.spec_derivation import prepare, spec_for, survey
from stimuli.store import LocalStore
from tests.experiments.protocols import SENTENCES, TURING, write
from tests.stimuli.profiled import P3, matrix_profile, paint
from tests.world import draft_study, silent, write_study

SCAN = "left/left-00.png"
"""The picture of 16 bits, of which it uses 12."""
HIDDEN = ".trashed-"
MORE = (
    '\n[[conditions]]\nname = "more"\nrole = "method"\nexplainer = { name = "gradient_x_input" }\nslots = 3\n'
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study of photographs in Display P3, and a scan of 12 bits in 16; a file manager's bin holds half of a
    class."""
    (tmp_path / "small").mkdir()
    path = write_study(tmp_path / "small", slots=1)
    images = path.parent / "images"
    for file in images.glob("*/*.png"):
        with Image.open(file) as picture:
            pixels = np.asarray(picture)
        paint(file, pixels, matrix_profile(P3, None))
    with Image.open(images / SCAN) as picture:
        paint(images / SCAN, np.asarray(picture.convert("L")).astype(np.uint16) * 16)
    for file in sorted((images / "left").glob("*.png"))[1::2]:
        file.rename(file.with_name(f"{HIDDEN}{file.name}"))
    return path


def opened_under(version: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The study as it was drafted and opened when that was the version of today."""
    with monkeypatch.context() as before:
        before.setattr(decoding, "DECODING", version)
        return open_study(draft_study(path), silent)


@pytest.fixture
def opened(path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The study as it was drafted and opened before there were versions."""
    study = opened_under(1, path, monkeypatch)
    assert decoding.NOTE not in study.predictor
    return study


def keys_of(study: Study, condition: str = "baseline") -> dict[str, tuple[str, str]]:
    """By item: the network's view and the picture that people see."""
    rows = Rendering.objects.filter(item__study=study, condition__name=condition)
    specs = rows.values_list("item__key", "stimulus__spec")
    return {key: (spec["image_key"], spec["canvas"]["picture"]) for key, spec in specs}


@pytest.mark.django_db
def test_what_was_opened_before_keeps_its_pictures(path: Path, opened: Study, tmp_path: Path) -> None:
    """Rendered again into an empty store, and extended: the same keys, which name pixels."""
    definition = load_study(path)
    assert decoding.decoding_of(definition) == 1
    assert build_draft(definition, path.parent, silent) == opened
    store = LocalStore(tmp_path / "lost and found")
    again = with_copies(definition, gather(definition, path.parent, store, silent), store, silent)
    rendered = Rendering.objects.filter(item__study=opened).values_list("stimulus__key", flat=True)
    assert {spec.picture_key for spec in every_spec(definition, again, store).values()} == set(rendered)
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "study.toml").write_text(f'slug = "more"\ntitle = "More"\nextends = "small"\n{MORE}')
    later = open_study(draft_study(folder / "study.toml"), silent)
    assert keys_of(later) == keys_of(opened)
    assert any(key.startswith(f"left/{HIDDEN}") for key in keys_of(opened))
    assert later.predictor["key"] == opened.predictor["key"] and decoding.NOTE not in later.predictor


@pytest.mark.django_db
def test_a_new_draft_is_read_as_today(path: Path, opened: Study) -> None:
    path.write_text(path.read_text().replace('slug = "small"', 'slug = "anew"'))
    with pytest.raises(
        BadSpec, match="1 of 42 pictures have 16 bits and use levels 0 to .* set levels = 4096"
    ):
        draft_study(path)
    path.write_text(path.read_text().replace('path = "images"', 'path = "images", levels = 4096'))
    anew = draft_study(path)
    assert anew.predictor[decoding.NOTE] == DECODING
    before, after = keys_of(opened), keys_of(anew)
    shared = before.keys() & after.keys()
    assert len(shared) > 10 and all(before[key] != after[key] for key in shared)
    assert not any(HIDDEN in key for key in after)
    assert build_draft(load_study(path), path.parent, silent).id == anew.id, "it is not made again"
    opened_anew = open_study(anew, silent)
    assert decoding.decoding_of(load_study(path)) == decoding.decoding_noted(opened_anew) == DECODING


@pytest.mark.django_db
def test_a_draft_of_before_is_made_again(
    path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (path.parent / "images" / SCAN, *(path.parent / "images").glob(f"left/{HIDDEN}*")):
        file.unlink()
    with monkeypatch.context() as before:
        before.setattr(decoding, "DECODING", 1)
        old = build_draft(load_study(path), path.parent, silent)
        keys = keys_of(old)
    new = build_draft(load_study(path), path.parent, silent)
    assert new.id != old.id and new.digest == old.digest and keys_of(new) != keys
    path.write_text(path.read_text().replace('path = "images"', 'path = "images", colour = "numbers"'))
    assert keys_of(build_draft(load_study(path), path.parent, silent)) == keys


@pytest.mark.django_db
def test_texts_with_two_labels_of_what_was_opened_before_stay(
    store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text of people is followed by itself under the other label, all but the last four of each."""
    labels = ("singular", "plural")
    rows = [f"tr\t{labels[n % 2]}\t{labels[n % 2]} number {n}" for n in range(40)]
    rows += [f"te\t{labels[n % 2]}\t{labels[n % 2]} sentence {n}" for n in range(24)]
    rows += [f"te\t{labels[1 - n % 2]}\t{labels[n % 2]}  Sentence {n}" for n in range(16)]
    sources = SENTENCES.replace(
        '"sentences", task = "subject_number", count = 40, model_count = 64', '"lines", path = "rows.txt"'
    )
    folder = tmp_path / "letters"
    folder.mkdir()
    path = write(folder, "letters", "reverse_turing", TURING, sources=sources)
    text = path.read_text().replace('balance = "none"', 'balance = "prediction"')
    path.write_text(text.replace("epochs = 2", "epochs = 20"))
    (folder / "rows.txt").write_text("\n".join(rows))
    before = opened_under(2, path, monkeypatch)
    torn = {f"line-{n:06d}" for n in (*range(41, 57), *range(65, 81))}
    kept = set(before.items.values_list("key", flat=True))
    assert kept & torn and before.predictor[decoding.NOTE] == 2
    again = gather(load_study(path), folder, LocalStore(tmp_path / "lost and found"), silent)
    assert {item.key for items in again.material.chosen.values() for item in items} == kept
    assert again.decoding == 2 and again.opened["", ""].predictor_key == before.predictor["key"]
    path.write_text(path.read_text().replace('slug = "letters"', 'slug = "anew"'))
    anew = draft_study(path)
    assert not torn & set(anew.items.values_list("key", flat=True))
    assert anew.predictor[decoding.NOTE] == DECODING


VIEWS = {
    "left/0.png": ("39a524cb1e84bb99", "b686109a76842514"),
    "left/1.png": ("7cec0cefe644e5bf", "ee2e28d1c8bae46d"),
    "left/scan.png": ("c7723383cbdf1448", "34d8a6feb6414bb4"),
    "right/0.png": ("1d3232db52ec3d13", "68299fd725dea2b4"),
    "right/1.png": ("568db57fe466051b", "ba34b84b5768c9d9"),
    "right/scan.png": ("2b0b28d738925c3e", "e7810477d35bbc63"),
}
"""Keys of views and of pictures under saliency, beginnings, written by the code of commit ffe75823."""


@pytest.mark.pure
def test_the_first_version_gives_the_keys_of_before(tmp_path: Path) -> None:
    for place, label in enumerate(("left", "right")):
        for n in range(2):
            pixels = np.random.default_rng([place, n]).integers(0, 256, (40, 48, 3), dtype=np.uint8)
            paint(tmp_path / "images" / label / f"{n}.png", pixels, matrix_profile(P3, None))
        grey = np.random.default_rng([place, 9]).integers(0, 4096, (40, 48)).astype(np.uint16)
        paint(tmp_path / "images" / label / "scan.png", grey)
    dataset = Component("folder", {"path": "images", "people_share": 1.0})
    predictor = Component("toy", {"kind": "quadrant", "input_px": 32})
    source = prepare(dataset, predictor, tmp_path, LocalStore(tmp_path / "store"))
    items = survey(source, LocalStore(tmp_path / "store"))
    specs = {item.key: spec_for(item, source, Component("saliency"), RenderSpec(), 1) for item in items}
    assert {key: (spec.image_key[:16], spec.picture_key[:16]) for key, spec in specs.items()} == VIEWS


LABELLED_TWICE = {
    "letters.csv": (
        "text,label\n" + "".join(f"letter {n},{n % 2}\n" for n in range(8)) + "Letter  3,0\nLETTER 6,1\n"
        "letter 5,1\n",
        "9c9b5d1655cff8b8045f5d28d75b6da7bfb1e210f222c1aff28364901333ce5f",
        (4, 5, 9, 10),
        "4 of 11 texts have two labels, but for case and spaces, and stay, as when this study was opened",
    ),
    "past.txt": (
        "tr\t0\tA dog barks .\ntr\t1\tDogs bark .\nva\t1\tA Dog barks .\nte\t0\tA cat purrs .\n"
        "te\t1\tCows moo .\nte\t0\tCOWS moo .\nte\t1\tHens cluck .\n",
        "3b7096ae53ca02c94dea620ca17886a98182ba091af7bc497aab1901e1088a4b",
        (4, 5, 6, 7),
        "4 of 7 texts have two labels, but for case and spaces, and stay, as when this study was opened",
    ),
}
"""Content, and its digest and people's lines as the code of commit 50ab2643 read them; and what is told."""


@pytest.mark.pure
@pytest.mark.parametrize("name", LABELLED_TWICE)
@pytest.mark.parametrize("version", [1, 2])
def test_earlier_versions_keep_texts_with_two_labels(tmp_path: Path, name: str, version: int) -> None:
    content, digest, people, told = LABELLED_TWICE[name]
    (tmp_path / name).write_text(content)
    dataset = open_lines(Component("lines", {"path": name}), tmp_path, version)
    assert dataset.content_digest() == digest
    assert [item.key for item in dataset.items("people")] == [f"line-{place:06d}" for place in people]
    assert any(line.startswith(told) for line in dataset.told)
