"""Which explanations a scorer learns from, is stopped by, and is tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from analysis.preference.rated_explanations import RatedExplanations
from stimuli.errors import BadRatings

SplitName = Literal["strict", "images", "released", "dataset_out", "method_out"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
TRAIN_SHARE, HELD_SHARE = 0.7, 0.15
COINCIDE_SHARE = 0.5
"""Two methods whose pictures are equal on this share of their common images count as one, and two images
likewise."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from, for early stopping and to test on; `discarded` belong to none. `held_out` names the
    dataset or method that the test is of."""

    name: SplitName
    train: Rows
    validation: Rows
    test: Rows
    discarded: int
    held_out: str = ""

    @property
    def counts(self) -> dict[str, int]:
        return {
            "train": len(self.train),
            "validation": len(self.validation),
            "test": len(self.test),
            "discarded": self.discarded,
        }


def splits_of(rated: RatedExplanations, name: SplitName, seeds: Sequence[int]) -> list[Split]:
    """One split per seed; of "dataset_out" and "method_out" one per dataset or method, in turn, with the
    first seed's images.

    "released": 70 % of the images times 70 % of the methods to learn from, what is outside both halved into
    validation and test by explanation, as PASTA's code does. "strict": no image, method, model or equal
    picture in two sets. "images": no image or equal picture in two sets, all methods in each. "dataset_out",
    "method_out": the test is of a dataset or a method that nothing was learned from, and of images of its
    own. Raises BadRatings if a set stays empty.
    """
    if name not in SPLITS:
        raise BadRatings(f"there is no split {name!r}: known are {', '.join(SPLITS)}")
    if name == "released":
        return [_check_sizes(_split_like_release(rated, seed)) for seed in seeds]
    makers, images = _alike(rated, rated.makers, rated.images), _alike(rated, rated.images, rated.methods)
    if name == "images":
        return [_check_sizes(_images(rated, images, seed)) for seed in seeds]
    if name == "strict":
        return [_check_sizes(_strict(rated, images, makers, seed)) for seed in seeds]
    held = list(rated.datasets) if name == "dataset_out" else makers
    groups = list(dict.fromkeys(held))
    if len(groups) < 2:
        what = "dataset" if name == "dataset_out" else "method"
        raise BadRatings(f"all explanations are of one {what}, {groups[0]!r}: take another split")
    return [_check_sizes(_out(rated, name, images, (held, group), seeds[0])) for group in groups]


def _split_like_release(rated: RatedExplanations, seed: int) -> Split:
    rng = np.random.default_rng(seed)
    inside = [_draw_share(names, TRAIN_SHARE, rng) for names in (rated.images, rated.methods)]
    both, neither = inside[0] & inside[1], ~inside[0] & ~inside[1]
    rest = rng.permutation(np.flatnonzero(neither))
    half = len(rest) // 2
    discarded = len(rated.images) - int(both.sum()) - len(rest)
    return Split("released", np.flatnonzero(both), np.sort(rest[:half]), np.sort(rest[half:]), discarded)


def _strict(rated: RatedExplanations, images: Sequence[str], makers: Sequence[str], seed: int) -> Split:
    rng = np.random.default_rng(seed)
    image, maker = (_thirds(names, rng) for names in (images, makers))
    sets = [np.flatnonzero((image == part) & (maker == part)) for part in range(3)]
    return _without_twice(rated, "strict", sets)


def _images(rated: RatedExplanations, images: Sequence[str], seed: int) -> Split:
    part = _thirds(images, np.random.default_rng(seed))
    return _without_twice(rated, "images", [np.flatnonzero(part == place) for place in range(3)])


def _out(
    rated: RatedExplanations,
    name: SplitName,
    images: Sequence[str],
    out: tuple[Sequence[str], str],
    seed: int,
) -> Split:
    """`out`: the group of each explanation, and the one that the test is of."""
    held, group = out
    is_held = np.array([other == group for other in held])
    image = _thirds(images, np.random.default_rng(seed))
    if name == "dataset_out":
        sets = [np.flatnonzero(~is_held & (image != 2)), np.flatnonzero(~is_held & (image == 2))]
        return _without_twice(rated, name, [*sets, np.flatnonzero(is_held)], group)
    sets = [np.flatnonzero(~is_held & (image == part)) for part in (0, 1)]
    return _without_twice(rated, name, [*sets, np.flatnonzero(is_held & (image == 2))], group)


def _without_twice(
    rated: RatedExplanations, name: SplitName, sets: Sequence[Rows], held_out: str = ""
) -> Split:
    """The sets without what is equal to the pixel to a picture of an earlier set."""
    digests = [subject.digest for subject in rated.subjects]
    before: set[str] = set()
    kept = []
    for rows in sets:
        kept.append(np.array([row for row in rows if digests[row] not in before], dtype=np.int64))
        before |= {digests[row] for row in rows}
    train, validation, test = kept
    return Split(name, train, validation, test, len(digests) - sum(map(len, kept)), held_out)


def _check_sizes(made: Split) -> Split:
    empty = [what for what in ("train", "validation", "test") if made.counts[what] < 2]
    if empty:
        of = f" with {made.held_out!r} held out" if made.held_out else ""
        raise BadRatings(
            f'the split "{made.name}"{of} leaves {made.counts[empty[0]]} explanations for {empty[0]}, and at '
            "least 2 are needed: rate more images and methods, or take another split"
        )
    return made


def _draw_share(names: Sequence[str], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each name is among the drawn share of all names."""
    known = rng.permutation(sorted(set(names)))
    chosen = set(known[: int(share * len(known))])
    return np.array([name in chosen for name in names])


def _thirds(names: Sequence[str], rng: np.random.Generator) -> Rows:
    """0 to learn from, 1 for validation, 2 for the test."""
    known = rng.permutation(sorted(set(names)))
    held = max(1, round(HELD_SHARE * len(known)))
    part: Mapping[str, int] = {
        str(name): 2 if at < held else 1 if at < 2 * held else 0 for at, name in enumerate(known)
    }
    return np.array([part[name] for name in names])


def _alike(rated: RatedExplanations, names: Sequence[str], others: Sequence[str]) -> list[str]:
    """The first name of each explanation's group: of two names whose pictures are equal for most of the
    `others` that both have."""
    pictures: dict[str, dict[str, str]] = {}
    sharing: dict[str, set[str]] = {}
    for subject, name, other in zip(rated.subjects, names, others, strict=True):
        digest = subject.digest
        pictures.setdefault(name, {})[other] = digest
        sharing.setdefault(digest, set()).add(name)
    parent = {name: name for name in pictures}

    def first(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    pairs = {pair for alike in sharing.values() for pair in combinations(sorted(alike), 2)}
    for name, again in sorted(pairs):
        common = pictures[name].keys() & pictures[again].keys()
        equal = sum(pictures[name][other] == pictures[again][other] for other in common)
        if common and equal / len(common) >= COINCIDE_SHARE:
            parent[first(again)] = first(name)
    return [first(name) for name in names]
