"""What is known of concepts: from files beside class folders, and from the plans of planted pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from stimuli.datasets import open_dataset
from stimuli.datasets.folder import FolderDataset
from stimuli.datasets.synthetic import canines, leaves, scenario_pictures
from stimuli.datasets.synthetic.concept_presence import parts_of, show_biased
from stimuli.datasets.synthetic.cue_scenarios import SyntheticDataset, open_synthetic
from stimuli.datasets.synthetic.drawing import Box
from stimuli.errors import BadSpec
from stimuli.predictors import open_predictor
from stimuli.spec import Component
from stimuli.types import Part

pytestmark = pytest.mark.pure
SCENARIOS = ("biased", "strategy", "lookalike", "imperceptible")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for place, label in enumerate(("cat", "dog")):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (20, 10), (place, number, 0)).save(tmp_path / "images" / label / f"{number}.png")
    return tmp_path / "images"


def opened(pictures: Path, **files: str) -> FolderDataset:
    for name, text in files.items():
        (pictures / f"{name}.csv").write_text(text)
    made = open_dataset(Component("folder", {"path": "images"}), pictures.parent)
    assert isinstance(made, FolderDataset)
    return made


def test_it_knows_nothing_without_files(pictures: Path) -> None:
    dataset = opened(pictures)
    assert dataset.concepts == () and dataset.concept_values("cat/0.png").shape == (0,)
    assert list(dataset.parts("cat/0.png")) == []


def test_it_reads_values_and_boxes_in_shares(pictures: Path) -> None:
    dataset = opened(
        pictures,
        concepts="concept,image,value\nfur,cat/0.png,0.75\n\nfur, dog/1.png ,1\nbone,dog/1.png,0\n",
        parts="image,concept,left,top,right,bottom\ndog/1.png,tail,5,0,20,2.5\ndog/1.png,bone,0,0,1,1\n",
    )
    assert dataset.concepts == ("bone", "fur", "tail")
    assert dataset.concept_values("cat/0.png").tolist() == [0, 0.75, 0]
    assert dataset.concept_values("dog/1.png").tolist() == [0, 1, 1]  # listed as 0, though it has a box
    assert dataset.concept_values("dog/1.png").dtype == np.float32
    assert dataset.parts("dog/1.png") == (
        Part("tail", 0.25, 0.0, 1.0, 0.25),
        Part("bone", 0.0, 0.0, 0.05, 0.1),
    )


def test_it_invents_no_values_for_a_picture_without_a_line(pictures: Path) -> None:
    dataset = opened(
        pictures,
        concepts="image,concept,value\ncat/0.png,fur,1\ncat/0.png,bone,0.5\ncat/1.png,fur,0\n",
        parts="image,concept,left,top,right,bottom\ndog/1.png,tail,5,0,20,2.5\n",
    )
    assert dataset.concept_values("cat/1.png").tolist() == [0, 0, 0]  # listed: what is not named is 0
    assert dataset.concept_values("dog/1.png").tolist() == [0, 0, 1]
    said = r'1 of 4 pictures have no line, the first is "dog/0.png".*list every picture, with the value 0'
    with pytest.raises(BadSpec, match=said):
        dataset.concept_values("dog/0.png")
    assert list(dataset.parts("dog/0.png")) == []


def test_it_trains_on_no_invented_values(tmp_path: Path) -> None:
    rows = ["image,concept,value"]
    for place, label in enumerate(("cat", "dog")):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (20, 10), (place, number, 0)).save(tmp_path / "images" / label / f"{number}.png")
    (tmp_path / "images" / "concepts.csv").write_text("\n".join([*rows, "cat/0.png,fur,1"]))
    dataset = open_dataset(Component("folder", {"path": "images"}), tmp_path)
    wishes = Component("concept_bottleneck", {"epochs": 1, "width": 2, "input_px": 32})
    with pytest.raises(BadSpec, match="15 of 16 pictures have no line"):
        open_predictor(wishes, tmp_path, dataset)


def test_it_measures_boxes_in_the_upright_picture(pictures: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6  # to be shown turned: 20 x 10 pixels become 10 x 20
    Image.new("RGB", (20, 10)).save(pictures / "cat" / "2.jpg", exif=exif)
    dataset = opened(pictures, parts="image,concept,left,top,right,bottom\ncat/2.jpg,ear,0,10,10,20\n")
    assert dataset.pixels("cat/2.jpg").shape[:2] == (20, 10)
    assert dataset.parts("cat/2.jpg") == (Part("ear", 0.0, 0.5, 1.0, 1.0),)


def test_it_digests_the_annotations_too(pictures: Path) -> None:
    plain = opened(pictures).content_digest()
    some = opened(pictures, concepts="image,concept,value\ncat/0.png,fur,1\n").content_digest()
    other = opened(pictures, concepts="image,concept,value\ncat/0.png,fur,0\n").content_digest()
    assert len({plain, some, other}) == 3
    (pictures / "concepts.csv").unlink()
    assert opened(pictures).content_digest() == plain


HEAD, BOXES = "image,concept,value\n", "image,concept,left,top,right,bottom\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("concepts", "", "its first line names the columns, and is empty"),
        ("concepts", "image,value\n", "the columns must be image, concept, value"),
        ("concepts", HEAD + "cat/9.png,fur,1\n", r'line 2: there is no picture "cat/9.png".*"cat/0.png"'),
        ("concepts", HEAD + "cat/0.png,,1\n", 'line 2: concept = "": a name of 1 to 80'),
        ("concepts", HEAD + "cat/0.png,fur,2\n", "value = 2, but must lie between 0"),
        ("concepts", HEAD + "cat/0.png,fur,nan\n", 'value = "nan" is no number'),
        (
            "concepts",
            HEAD + "cat/0.png,fur\n",
            "names 3 columns, but 1 row has another number of cells: line 2 has 2",
        ),
        ("concepts", HEAD + "cat/0.png,fur,1\ncat/0.png,fur,0\n", "line 3: .* is given twice"),
        ("parts", BOXES + "cat/0.png,ear,0,0,21,5\n", "does not lie in the picture of 20 x 10 pixels"),
        ("parts", BOXES + "cat/0.png,ear,5,0,5,5\n", "left < right"),
        ("parts", BOXES + "cat/0.png,ear,a,0,5,5\n", 'left = "a" is no number'),
    ],
)
def test_it_names_the_line_that_cannot_be_right(pictures: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(BadSpec, match=words):
        opened(pictures, **{name: text})


def test_it_refuses_a_table_that_is_no_text(pictures: Path) -> None:
    (pictures / "concepts.csv").write_bytes(b"image,concept,value\n\xff\xfe\n")
    with pytest.raises(BadSpec, match="save it as CSV in UTF-8"):
        opened(pictures)


def planted(scenario: str, **params: object) -> SyntheticDataset:
    settings = {"scenario": scenario, "count": 40, "model_count": 40, "seed": 3, **params}
    return open_synthetic(Component("synthetic", settings), Path())


MEANS = {"biased": (147.93, 107.45), "strategy": (161.57, 142.18), "lookalike": (149.35, 142.80)}
"""Mean pixels of two pictures of each scenario, from before their concepts were named."""


@pytest.mark.parametrize("scenario", MEANS)
def test_it_draws_the_pictures_that_it_always_drew(scenario: str) -> None:
    dataset = planted(scenario)
    before = [dataset.pixels(item.key) for item in dataset.all_items[:3]]
    for item in dataset.all_items:
        dataset.concept_values(item.key)
        dataset.parts(item.key)
    after = [dataset.pixels(item.key) for item in dataset.all_items[:3]]
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    means = [dataset.pixels(key).mean() for key in ("people-00000", "model-00007")]
    assert means == pytest.approx(MEANS[scenario], abs=0.05)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_says_of_the_cue_what_was_planted(scenario: str) -> None:
    dataset = planted(scenario)
    for item in dataset.all_items:
        plan, values = dataset.plans[item.key], dataset.concept_values(item.key)
        assert values.shape == (len(dataset.concepts),) and values.dtype == np.float32
        assert sorted(values[:2]) == [0, 1] and (values >= 0).all() and (values <= 1).all()
        cues = {
            "biased": ("meadow", "snow"),
            "strategy": ("serrated margin", "smooth margin"),
            "imperceptible": ("reddish camera", "bluish camera"),
        }
        name = cues.get(scenario, ("sandy coat", "russet coat"))[plan.cue]
        assert values[dataset.concepts.index(name)] == 1


@pytest.mark.parametrize(
    ("scenario", "first", "second"),
    [
        ("biased", "long ears", "broad cheeks"),
        ("lookalike", "long ears", "broad cheeks"),
        ("strategy", "many veins", None),
    ],
)
def test_it_grades_what_tells_of_the_class_and_not_of_the_cue(
    scenario: str, first: str, second: str | None
) -> None:
    """Every value of one class lies above every value of the other; among people's items the cue does not."""
    dataset = planted(scenario)
    for name, higher in ((first, 0), (second, 1)):
        if name is None:
            continue
        place = dataset.concepts.index(name)
        by_class = [
            [
                dataset.concept_values(i.key)[place]
                for i in dataset.all_items
                if dataset.plans[i.key].truth == k
            ]
            for k in (0, 1)
        ]
        assert min(by_class[higher]) > max(by_class[1 - higher])
        assert len({float(value) for value in by_class[higher]}) > 2


def test_it_marks_only_what_is_shown_and_inside_the_picture() -> None:
    for scenario in SCENARIOS:
        dataset = planted(scenario)
        for item in dataset.all_items:
            values = dict(zip(dataset.concepts, dataset.concept_values(item.key), strict=True))
            parts = dataset.parts(item.key)
            assert parts and all(values[part.concept] >= 0.5 for part in parts)
            for part in parts:
                assert 0 <= part.left < part.right <= 1 and 0 <= part.top < part.bottom <= 1


SIDE = 160


def inside(boxes: Sequence[Box]) -> NDArray[np.bool_]:
    """The pixels of some boxes, one pixel around them included."""
    mask = np.zeros((SIDE, SIDE), bool)
    for left, top, right, bottom in boxes:
        rows = slice(max(0, int(top * SIDE) - 1), int(np.ceil(bottom * SIDE)) + 1)
        mask[rows, max(0, int(left * SIDE) - 1) : int(np.ceil(right * SIDE)) + 1] = True
    return mask


def heads(seed: int) -> tuple[scenario_pictures.Plan, canines.Breed, canines.Bearing]:
    plan = scenario_pictures.Plan(seed % 2, 0, (seed,), SIDE)
    animal = canines.individual(scenario_pictures.dog_of(plan), plan.stream(scenario_pictures.BODY))
    return plan, animal, canines.draw_bearing(plan.stream(scenario_pictures.POSE))


@pytest.mark.parametrize("seed", range(4))
def test_it_marks_ears_where_ears_are_drawn(seed: int) -> None:
    """What changes when the ears are painted another colour lies in the boxes, and reaches their edges."""
    plan, animal, bearing = heads(seed)
    drawn = [
        canines.draw_head(breed, bearing, plan.stream(scenario_pictures.BODY), SIDE)
        for breed in (
            scenario_pictures.dog_of(plan),
            replace(scenario_pictures.dog_of(plan), ear_in=(1.0, 0.0, 1.0), ear_tip=(1.0, 0.0, 1.0)),
        )
    ]
    changed = np.abs(drawn[0].rgb - drawn[1].rgb).max(axis=2) * drawn[0].alpha > 0.1
    for box in canines.ear_boxes(animal, bearing):
        changed_inside = changed & inside([box])
        assert changed_inside.sum() > 0.1 * inside([box]).sum()
        assert abs(np.flatnonzero(changed_inside.any(axis=1))[0] - box[1] * SIDE) < 4
    assert not (changed & ~inside(canines.ear_boxes(animal, bearing))).any()


@pytest.mark.parametrize("seed", range(4))
def test_it_marks_the_mouth_where_it_opens(seed: int) -> None:
    plan, animal, bearing = heads(seed)
    opened_wide, shut = replace(bearing, mouth=1.0), replace(bearing, mouth=0.0)
    drawn = [
        canines.draw_head(scenario_pictures.dog_of(plan), bearing, plan.stream(scenario_pictures.BODY), SIDE)
        for bearing in (opened_wide, shut)
    ]
    changed = np.abs(drawn[0].rgb - drawn[1].rgb).max(axis=2) * drawn[0].alpha > 0.1
    assert changed.any()
    assert changed[inside([canines.mouth_box(animal, opened_wide)])].sum() == changed.sum()


@pytest.mark.parametrize("seed", range(4))
def test_it_marks_the_face_over_eyes_and_cheeks(seed: int) -> None:
    plan, animal, bearing = heads(seed)
    blue, red = (
        replace(scenario_pictures.dog_of(plan), eye=eye) for eye in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    )
    drawn = [
        canines.draw_head(dog, bearing, plan.stream(scenario_pictures.BODY), SIDE) for dog in (blue, red)
    ]
    eyes = np.abs(drawn[0].rgb - drawn[1].rgb).max(axis=2) > 0.1
    face = inside([canines.face_box(animal, bearing)])
    assert eyes.any() and not (eyes & ~face).any()
    assert drawn[0].alpha[face].mean() > 0.6


@pytest.mark.parametrize("margin", ["serrated", "smooth"])
def test_it_marks_a_leaf_to_its_edges(margin: leaves.Margin) -> None:
    for seed in range(4):
        habit = leaves.draw_habit(np.random.default_rng(seed))
        layer = leaves.draw_leaf(habit, margin, "straight", 1.0, np.random.default_rng(0), SIDE)
        left, top, right, bottom = (SIDE * edge for edge in leaves.leaf_box(habit, margin))
        marked, seen = inside([leaves.leaf_box(habit, margin)]), layer.alpha > 0.5
        assert (seen & ~marked).sum() < 0.02 * seen.sum()  # the stem
        columns = np.flatnonzero((seen & marked).any(axis=0))
        rows = np.flatnonzero((seen & marked).any(axis=1))
        assert [columns[0], columns[-1] + 1] == pytest.approx([left, right], abs=3)
        assert [rows[0], rows[-1] + 1] == pytest.approx([top, bottom], abs=3)


def test_it_marks_landscape_and_not_the_head() -> None:
    dataset = planted("biased")
    for item in dataset.all_items[:12]:
        marked = [part for part in dataset.parts(item.key) if part.concept in ("snow", "meadow")]
        assert len(marked) == 2
        pixels = inside([(part.left, part.top, part.right, part.bottom) for part in marked])
        assert dataset.mask(item.key)[pixels].mean() > 0.75


def test_it_shows_the_other_cue_when_the_cue_is_exchanged() -> None:
    plan = planted("biased").plans["people-00000"]
    here, there = show_biased(plan), show_biased(plan.swapped(cue=True))
    assert [concept.value for concept in there[:2]] == [1 - concept.value for concept in here[:2]]
    assert here[2:] == there[2:]
    assert {part.concept for part in parts_of(here)} ^ {part.concept for part in parts_of(there)} == {
        "snow",
        "meadow",
    }
