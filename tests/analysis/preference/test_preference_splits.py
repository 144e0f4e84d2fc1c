"""Splits: what the published code leaves, and what shares no image, method or picture."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pytest

from analysis.preference.rated_explanations import RatedExplanations
from analysis.preference.splits import Split, splits_of
from stimuli.errors import BadRatings
from tests.analysis.preference.rated_rows import rated

pytestmark = pytest.mark.pure
PARTS = ("train", "validation", "test")


def of(made: RatedExplanations, split: Split, names: str) -> list[set[str]]:
    return [{getattr(made, names)[row] for row in getattr(split, part)} for part in PARTS]


def test_the_released_split_leaves_what_the_paper_s_code_leaves() -> None:
    """T9: .7 x .7 = 49 % to learn from, half of .3 x .3 = 4.5 % each, 42 % in neither."""
    made = rated(1000, 20)
    (split,) = splits_of(made, "released", [3])
    assert split.counts == {"train": 9800, "validation": 900, "test": 900, "discarded": 8400}
    images, methods = of(made, split, "images"), of(made, split, "methods")
    assert not images[0] & images[2] and not methods[0] & methods[2]
    assert images[1] & images[2] and methods[1] & methods[2], "validation and test are related"
    assert not set(split.validation) & set(split.test)


def test_new_images_leave_all_methods_in() -> None:
    made = rated(40, 14)
    (split,) = splits_of(made, "images", [2])
    images, methods = of(made, split, "images"), of(made, split, "methods")
    assert not any(first & second for first, second in combinations(images, 2))
    assert methods[0] == methods[1] == methods[2] and len(methods[0]) == 14
    assert split.counts == {"train": 28 * 14, "validation": 6 * 14, "test": 6 * 14, "discarded": 0}


@pytest.mark.parametrize("seed", range(3))
def test_the_strict_split_shares_nothing(seed: int) -> None:
    made = rated(40, 14)
    (split,) = splits_of(made, "strict", [seed])
    for names in ("images", "methods", "makers"):
        assert not any(first & second for first, second in combinations(of(made, split, names), 2))
    # Two methods and six images are held out each time.
    assert split.counts == {"train": 28 * 10, "validation": 12, "test": 12, "discarded": 560 - 304}
    assert (splits_of(made, "strict", [seed])[0].test == split.test).all()


def coinciding(equal: int, image: int, method: int) -> str:
    """The second method shows the same as the first on `equal` images of ten."""
    return f"{image} {0 if method == 1 and image % 10 < equal else method}"


def test_methods_whose_pictures_coincide_are_one() -> None:
    """As Grad-CAM and HiRes-CAM do on a network that ends in a mean: on 9 of 10 images, then on 4 of 10."""
    for equal, is_one in ((9, True), (4, False)):
        made = rated(20, 7, shown=partial(coinciding, equal))
        together = []
        for seed in range(30):
            (split,) = splits_of(made, "strict", [seed])
            held = [names & {"m0", "m1"} for names in of(made, split, "methods")]
            together.append(sum(map(bool, held)) <= 1)
        assert all(together) == is_one


def test_no_picture_stands_in_two_sets() -> None:
    """Empty maps of different methods look the same on the same image, and images may repeat."""
    pairs = tuple("ab"[i // 2 % 2] for i in range(30) for _ in range(8))
    made = rated(30, 8, shown=lambda i, m: f"{i // 2} {m}", datasets=pairs)
    for name in ("strict", "images", "dataset_out", "method_out"):
        for split in splits_of(made, name, [1]):
            seen = [{made.subjects[row].digest for row in getattr(split, part)} for part in PARTS]
            assert not any(first & second for first, second in combinations(seen, 2))
            assert sum(split.counts.values()) == 240


def test_a_dataset_and_a_method_are_held_out_in_turn() -> None:
    made = rated(20, 6)
    out = splits_of(made, "dataset_out", [0])
    assert [split.held_out for split in out] == ["a", "b"]
    for split in out:
        datasets = of(made, split, "datasets")
        assert datasets[2] == {split.held_out} and split.held_out not in datasets[0] | datasets[1]
        assert len(split.test) == 60
    out = splits_of(made, "method_out", [0])
    assert [split.held_out for split in out] == [f"m{place}" for place in range(6)]
    for split in out:
        assert of(made, split, "methods")[2] == {split.held_out}
        assert split.held_out not in of(made, split, "methods")[0] | of(made, split, "methods")[1]
        images = of(made, split, "images")
        assert not any(first & second for first, second in combinations(images, 2))


def test_what_cannot_be_split_is_told() -> None:
    with pytest.raises(BadRatings, match='"strict" leaves 0 explanations for train'):
        splits_of(rated(20, 2), "strict", [0])
    alike = rated(20, 4, datasets=("a",) * 80)
    with pytest.raises(BadRatings, match="all explanations are of one dataset, 'a'"):
        splits_of(alike, "dataset_out", [0])
    with pytest.raises(BadRatings, match="no split 'random': known are strict, images"):
        splits_of(alike, "random", [0])  # type: ignore[arg-type]


def test_models_of_one_method_stay_together() -> None:
    """The release's unit is method and model; ours is the method."""
    pairs = [(image, method) for image in range(20) for method in range(8)]
    made = rated(20, 8, makers=tuple(f"maker {method // 2}" for _, method in pairs))
    for seed in range(5):
        (split,) = splits_of(made, "strict", [seed])
        makers = of(made, split, "makers")
        assert not any(first & second for first, second in combinations(makers, 2))
    assert len(np.unique([made.makers[row] for row in split.train])) == 2
