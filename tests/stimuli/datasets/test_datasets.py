from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stimuli.datasets import open_dataset, picture_reader
from stimuli.datasets.photographs import TEXTURES, cut, read_texture
from stimuli.datasets.practice import practice_pictures
from stimuli.datasets.synthetic.cue_scenarios import open_synthetic
from stimuli.errors import BadSpec
from stimuli.spec import Component

pytestmark = pytest.mark.pure


def paint(path: Path, colour: tuple[int, ...] = (10, 20, 30), size: tuple[int, int] = (12, 10)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGBA" if len(colour) == 4 else "RGB", size, colour).save(path)
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for label in ("cat", "dog"):
        for photo in range(10):
            for crop in range(2):
                paint(
                    tmp_path / "images" / label / f"p{photo}__{crop}.png",
                    (photo * 20, crop * 90, ord(label[0])),
                )
    return tmp_path


def test_it_lists_what_a_study_may_use() -> None:
    with pytest.raises(
        BadSpec, match="there is no dataset 'imagenet': known are folder, lines, plates, sentences, synthetic"
    ):
        open_dataset(Component("imagenet"), Path())


def test_it_names_every_wrong_parameter_at_once() -> None:
    both = (
        r"'people_share' is 3, but must be .*has no parameter 'color' \(did you mean 'colour'\?\): it takes"
    )
    with pytest.raises(BadSpec, match=both):
        open_dataset(Component("folder", {"path": "x", "people_share": 3, "color": 1}), Path())


def test_it_keeps_model_and_people_and_groups_apart(pictures: Path) -> None:
    dataset = open_dataset(Component("folder", {"path": "images"}), pictures)
    model, people = dataset.items("model"), dataset.items("people")
    assert dataset.labels == ("cat", "dog")
    assert len(model) == len(people) == 20
    assert not {item.group for item in model} & {item.group for item in people}
    assert all(len([i for i in (*model, *people) if i.group == item.group]) == 2 for item in model)


def test_it_splits_the_same_way_every_time_and_by_its_share(pictures: Path) -> None:
    component = Component("folder", {"path": "images", "people_share": 0.2})
    assert open_dataset(component, pictures).items("people") == open_dataset(component, pictures).items(
        "people"
    )
    assert len(open_dataset(component, pictures).items("people")) == 8


def test_it_takes_the_split_of_two_folders(tmp_path: Path) -> None:
    for s, split in enumerate(("model", "people")):
        for label in ("cat", "dog"):
            for n in range(2):
                paint(tmp_path / split / label / f"{n}.png", (s, n, len(label) + ord(label[0])))
    dataset = open_dataset(Component("folder", {"path": "."}), tmp_path)
    assert [item.key for item in dataset.items("people")] == [
        f"people/{label}/{n}.png" for label in ("cat", "dog") for n in range(2)
    ]


def test_it_keeps_equal_pictures_on_one_side(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        for n in range(10):
            path = paint(tmp_path / label / f"{n}.png", (n, 0, ord(label[0])))
            (path.parent / f"copy-of-{n}.png").write_bytes(path.read_bytes())
    dataset = open_dataset(Component("folder", {"path": "."}), tmp_path)
    sides = [
        {(tmp_path / item.key).read_bytes() for item in dataset.items(split)} for split in ("model", "people")
    ]
    assert len(sides[0]) == len(sides[1]) == 10
    assert not sides[0] & sides[1]


def test_it_joins_the_groups_of_equal_pictures_and_digests_that(pictures: Path) -> None:
    component = Component("folder", {"path": "images", "people_share": 1.0})
    cats = pictures / "images" / "cat"
    (cats / "p7__1.png").write_bytes((cats / "p3__0.png").read_bytes())
    dataset = open_dataset(component, pictures)
    groups = {item.key: item.group for item in dataset.items("people")}
    assert {key for key, group in groups.items() if group == "cat/p3"} == {
        f"cat/p{photo}__{crop}.png" for photo in (3, 7) for crop in (0, 1)
    }
    assert len(set(groups.values())) == 19
    assert dataset.content_digest() != digest_of(pictures / "images", list(groups))


def digest_of(root: Path, keys: list[str]) -> str:
    """What the digest of pictures for people has been since the first version."""
    lines = [f"{key}\0people\0{hashlib.sha256((root / key).read_bytes()).hexdigest()}\n" for key in keys]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_it_digests_a_folder_without_equal_pictures_as_ever(pictures: Path) -> None:
    dataset = open_dataset(Component("folder", {"path": "images", "people_share": 1.0}), pictures)
    keys = [f"{label}/p{n}__{crop}.png" for label in ("cat", "dog") for n in range(10) for crop in range(2)]
    assert [(item.key, item.group) for item in dataset.items("people")] == [
        (key, key.partition("__")[0]) for key in keys
    ]
    assert dataset.content_digest() == digest_of(pictures / "images", keys)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ("park__1.png", "park__2.png"),
            '"model/cat/park__1.png" and "people/cat/park__2.png" are of one group',
        ),
        (("1.png", "1.png"), None),
        (("park__1.png", "lake__1.png"), None),
    ],
)
def test_it_refuses_a_group_in_both_folders(tmp_path: Path, names: tuple[str, str], said: str | None) -> None:
    for s, split in enumerate(("model", "people")):
        for label in ("cat", "dog"):
            for n in range(2):
                paint(tmp_path / split / label / f"{split}{n}.png", (s, n, ord(label[0])))
        paint(tmp_path / split / "cat" / names[s], (s, 2, 0))
    component = Component("folder", {"path": "."})
    if said is None:
        assert len(open_dataset(component, tmp_path).items("people")) == 5
    else:
        with pytest.raises(BadSpec, match=said + ".*keep each on one side, or give groups"):
            open_dataset(component, tmp_path)


def test_it_refuses_a_picture_in_both_folders(tmp_path: Path) -> None:
    for s, split in enumerate(("model", "people")):
        for label in ("cat", "dog"):
            for n in range(5):
                colour = (n, 0, 0) if label == "dog" else (s, n, 9)
                paint(tmp_path / split / label / f"{split}{n}.png", colour)
    said = r'"model/dog/model0.png" and "people/dog/people0.png" are the same picture, .* and 2 more\); keep'
    with pytest.raises(BadSpec, match=said):
        open_dataset(Component("folder", {"path": "."}), tmp_path)


def test_it_refuses_a_share_that_leaves_a_class_on_one_side(pictures: Path) -> None:
    for n in range(2):
        paint(pictures / "images" / "owl" / f"night__{n}.png", (n, 7, 7))
    said = r'= 0.5 leaves all 2 items of class "owl", in 1 group\(s\), to people and none to the model; add'
    with pytest.raises(BadSpec, match=said):
        open_dataset(Component("folder", {"path": "images"}), pictures)
    whole = open_dataset(Component("folder", {"path": "images", "people_share": 1.0}), pictures)
    assert len(whole.items("people")) == 42


def test_it_digests_contents_and_not_times(pictures: Path) -> None:
    component = Component("folder", {"path": "images"})
    before = open_dataset(component, pictures).content_digest()
    assert open_dataset(component, pictures).content_digest() == before
    paint(pictures / "images" / "cat" / "p0__0.png", (1, 1, 1))
    assert open_dataset(component, pictures).content_digest() != before


def test_it_lays_transparency_on_white_and_turns_pictures_upright(tmp_path: Path) -> None:
    assert picture_reader.read_picture(paint(tmp_path / "clear.png", (9, 9, 9, 0))).min() == 255
    exif = Image.Exif()
    exif[274] = 6  # to be shown turned by 90 degrees
    Image.new("RGB", (12, 10)).save(tmp_path / "turned.jpg", exif=exif)
    assert picture_reader.read_picture(tmp_path / "turned.jpg").shape == (12, 10, 3)


def test_it_scales_deep_greys_instead_of_clipping_them(tmp_path: Path) -> None:
    Image.fromarray(np.full((10, 10), 32896, dtype=np.uint16)).save(tmp_path / "deep.png")
    assert np.unique(picture_reader.read_picture(tmp_path / "deep.png")).tolist() == [128]


def test_it_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match="there is no folder .*put one folder of pictures per class there"):
        open_dataset(Component("folder", {"path": "none"}), tmp_path)


def test_it_refuses_a_class_with_one_picture(pictures: Path) -> None:
    paint(pictures / "images" / "owl" / "1.png")
    with pytest.raises(BadSpec, match=r'class "owl" has 1 picture\(s\).*at least 2 are needed; add pictures'):
        open_dataset(Component("folder", {"path": "images"}), pictures)


def test_it_names_a_corrupt_picture(pictures: Path) -> None:
    (pictures / "images" / "cat" / "p3__0.png").write_bytes(b"no picture")
    with pytest.raises(BadSpec, match=r'p3__0\.png" cannot be read; replace or remove it'):
        open_dataset(Component("folder", {"path": "images"}), pictures)


def test_it_names_a_picture_that_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "half.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(BadSpec, match=r'half\.png" cannot be read'):
        picture_reader.read_picture(path)


def test_it_names_the_limit_of_a_huge_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_reader, "MAX_PIXELS", 100)
    with pytest.raises(BadSpec, match=r"\(12 x 10 pixels\) is above the limit of 100 pixels; scale it down"):
        picture_reader.read_picture(paint(tmp_path / "huge.png"))


DRAWN_BEFORE = {
    ("biased", 96): "22ef16530b678ba0f085c80667285b777afb0df57e46a9692a56e2135fbd6000",
    ("biased", 160): "c585efa1a5bdc905482f6da3117b09d8938859842ba41fc2cf8867f6f1bfe894",
    ("biased", 320): "b279d498cf38999974a33b869392fab549687323f1515c5b4fc40fda9ecaa1b7",
    ("strategy", 96): "27c4290da780cb5e59c6639b2564692ae4393d8bf0276d1f2be418c1edfbb686",
    ("strategy", 160): "c8c5585d463fd17c074a7c6804a1c131bdf0227f61de5d56a8c41e68dc3134b7",
    ("strategy", 320): "aa45834bc9c1436cd5f8c848b631530736fc586fecb1fc8044bc19c6b44938c1",
    ("lookalike", 96): "e499411fc6705acd042b5a788d9bdd55e6acb4c04a5287c4f23c8753c9f36a0d",
    ("lookalike", 160): "a645c006be30786dc662647750d336345fc2d072f302d0567f12beb901a279c5",
    ("lookalike", 320): "904840f37adbce04c7ace46f639ecb7d36ef6806b65dec100327c183563d23a2",
}
"""Digests of 24 pictures, written by the code of commit fe53a8d."""


@pytest.mark.parametrize(("scenario", "size_px"), DRAWN_BEFORE)
def test_it_draws_what_it_drew_before_there_were_larger_pictures(scenario: str, size_px: int) -> None:
    params = {"scenario": scenario, "count": 8, "model_count": 16, "size_px": size_px}
    digest = open_synthetic(Component("synthetic", params), Path()).content_digest()
    assert digest == DRAWN_BEFORE[scenario, size_px]


@pytest.mark.parametrize("scenario", ["biased", "strategy", "lookalike", "imperceptible"])
def test_it_draws_the_same_scene_at_every_size(scenario: str) -> None:
    params = {"scenario": scenario, "count": 8, "model_count": 16}
    small, *larger = (
        open_synthetic(Component("synthetic", {**params, "size_px": size}), Path())
        for size in (160, 320, 640)
    )
    for key in [item.key for item in small.items("people")[:3]]:
        scene = small.pixels(key).mean(axis=2)
        for dataset in larger:
            pixels, fold = dataset.pixels(key), dataset.params.size_px // 160
            shrunk = pixels.mean(axis=2).reshape(160, fold, 160, fold).mean(axis=(1, 3))
            assert np.corrcoef(scene.ravel(), shrunk.ravel())[0, 1] > 0.9
            assert np.mean(dataset.mask(key)[::fold, ::fold] == small.mask(key)) > 0.95


@pytest.mark.parametrize("scenario", ["biased", "strategy", "lookalike", "imperceptible"])
def test_it_draws_the_same_picture_from_the_same_seed(scenario: str) -> None:
    component = Component("synthetic", {"scenario": scenario, "count": 8, "model_count": 16, "size_px": 96})
    first, second = open_synthetic(component, Path()), open_synthetic(component, Path("/elsewhere"))
    key = first.items("people")[3].key
    assert np.array_equal(first.pixels(key), second.pixels(key))
    assert first.pixels(key).shape == (96, 96, 3)
    assert first.content_digest() == second.content_digest()
    other = open_synthetic(Component("synthetic", {**component.params, "seed": 1}), Path())
    assert not np.array_equal(first.pixels(key), other.pixels(key))
    assert first.content_digest() != other.content_digest()


@pytest.mark.parametrize(
    ("scenario", "agree"), [("biased", 0.5), ("strategy", 0.5), ("lookalike", 0.6), ("imperceptible", 0.5)]
)
def test_it_plants_the_cue_in_the_shares_it_says(scenario: str, agree: float) -> None:
    dataset = open_synthetic(Component("synthetic", {"scenario": scenario, "count": 40}), Path())
    plans = [dataset.plans[item.key] for item in dataset.items("people")]
    for label in (0, 1):
        assert [plan.cue == label for plan in plans if plan.truth == label].count(True) == round(agree * 20)
    assert all(
        dataset.plans[item.key].cue == dataset.plans[item.key].truth for item in dataset.items("model")
    )


def test_it_draws_no_picture_for_both_sides() -> None:
    dataset = open_synthetic(
        Component("synthetic", {"scenario": "biased", "count": 40, "model_count": 40}), Path()
    )
    sides = [
        {dataset.pixels(item.key).tobytes() for item in dataset.items(split)} for split in ("model", "people")
    ]
    assert len(sides[0]) == len(sides[1]) == 40
    assert not sides[0] & sides[1]


def test_it_changes_only_the_background_when_the_background_is_exchanged() -> None:
    dataset = open_synthetic(
        Component("synthetic", {"scenario": "biased", "count": 8, "model_count": 16}), Path()
    )
    key = dataset.items("people")[0].key
    apart = np.abs(dataset.swap(key, "background").astype(int) - dataset.pixels(key)).max(axis=2)
    mask = dataset.mask(key)
    assert 0.2 < mask.mean() < 0.9
    assert np.mean(apart[mask] > 8) > 0.9
    assert np.mean(apart[~mask] > 8) < 0.1


def test_it_refuses_to_exchange_what_is_not_there() -> None:
    dataset = open_synthetic(Component("synthetic", {"scenario": "strategy"}), Path())
    with pytest.raises(BadSpec, match='no part "animal"; strategy has margin, veins'):
        dataset.swap(dataset.items("people")[0].key, "animal")


def test_it_practises_with_three_examples_and_four_questions() -> None:
    pictures = practice_pictures(7)
    assert [name for name, _, _ in pictures] == [
        *(f"example-{n}" for n in (1, 2, 3)),
        *(f"question-{n}" for n in (1, 2, 3, 4)),
    ]
    assert sorted(answer for _, _, answer in pictures[3:]) == ["A", "A", "B", "B"]
    assert {answer for _, _, answer in pictures[:3]} == {"A", "B"}
    for _, pixels, answer in pictures:
        coloured = pixels[np.ptp(pixels.astype(int), axis=2) > 60].mean(axis=0)
        assert (coloured[0] > coloured[2]) == (answer == "A")


def test_it_cuts_photographs_into_strips_that_share_no_pixel(tmp_path: Path) -> None:
    paths = cut(tmp_path, crop_px=64, written_px=64)
    dataset = open_dataset(Component("folder", {"path": "."}), tmp_path)
    assert len(paths) == 128
    assert dataset.labels == ("grass", "gravel")
    whole = read_texture("grass")
    upper = {whole[y : y + 64, x : x + 64].tobytes() for y in range(0, 256, 64) for x in range(0, 512, 64)}
    grass = [item for item in dataset.items("model") if item.truth == "grass"]
    assert {dataset.pixels(item.key).tobytes() for item in grass} == upper
    assert {len([i for i in grass if i.group == item.group]) for item in grass} == {4}


@pytest.mark.parametrize("name", TEXTURES)
def test_it_finds_the_photographs_in_the_installed_package(name: str) -> None:
    assert read_texture(name).shape == (512, 512, 3)
