"""Images in class folders: images/<class>/*.png|jpg|jpeg|webp, the path of a researcher's own pictures.

Beside the class folders, concepts.csv may say which concepts a picture shows, and parts.csv where; uses.csv
what a picture is for, and annotations.csv which labels several people gave it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path, PurePath
from typing import Annotated
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray
from PIL import features
from pydantic import Field

from stimuli.datasets.colour_profiles import Colour, Intent
from stimuli.datasets.concept_annotations import Annotations, annotation_files, read_annotations
from stimuli.datasets.file_names import HIDDEN, SYSTEM_FILES, counts_by_kind, is_foreign, own_entries
from stimuli.datasets.lines import check_sides, first_alike, said_of_sides
from stimuli.datasets.picture_reader import (
    LEVELS,
    NUMBERS,
    Decoding,
    check_levels,
    check_pictures,
    measured_difference,
    read_picture,
    upright_size,
)
from stimuli.datasets.uses_and_labels import check_uses, use_files, with_uses
from stimuli.errors import BadSpec, first_of
from stimuli.registry import Params, read_params
from stimuli.spec import Component
from stimuli.types import Item, Part, Pixels, Split

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})

HEIC = frozenset({".heic", ".heif"})
DRAFT_SUFFIXES = SUFFIXES | ({".avif"} if features.check("avif") else set())
"""What is read since there are versions of decoding."""
with suppress(ImportError):  # the plug-in of Pillow that the extra heic installs
    import_module("pillow_heif").register_heif_opener()
    DRAFT_SUFFIXES |= HEIC
MIN_PER_CLASS = 2
MIN_CLASSES = 2
LOOKED_AT = 24
"""So many pictures with profiles are looked at for what the profiles do."""
SPLITS: tuple[Split, Split] = ("model", "people")
OTHER_SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})
"""What others call folders of class folders."""
GROUP_MARK = "__"


class FolderParams(Params):
    """`path` holds one folder per class, or the folders model/ and people/ that each hold one per class.

    Without those two, `people_share` of the groups (0-1) is kept for people by a hash of the group's name; 1
    suits a model that was trained elsewhere. `colour` says whether colour profiles are followed into sRGB or
    left aside (None: as the version of decoding says), with which `intent`; `levels` is how many levels the
    greys of 16-bit files have.
    """

    path: str
    people_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    colour: Colour | None = None
    intent: Intent = "relative"
    levels: Annotated[int, Field(ge=256, le=LEVELS)] | None = None


@dataclass(frozen=True)
class FolderDataset:
    """Pictures in class folders; the classes are in alphabetical order.

    A key is the path below the root. The group is the part of the file name before "__" (with class and
    folder), so that `park__1.png` and `park__2.png`, crops of one photograph, always stay together; else
    the key. Files that are equal byte for byte are of one group too, and so are their groups; it is called
    after its first picture. The same picture saved anew, with other bytes, is not recognised. `unread` counts
    the files and folders that are no pictures of a class by their suffix, or name if they have none.
    `people_share` is None if the folders say which pictures are people's. `profiled` are the keys of pictures
    whose colour profile is not sRGB.
    """

    root: Path
    labels: tuple[str, ...]
    files: tuple[Item, ...]
    annotations: Annotations = field(default_factory=Annotations)
    unread: Mapping[str, int] = field(default_factory=dict)
    people_share: float | None = None
    decoding: Decoding = NUMBERS
    profiled: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """Which pictures are whose, if neither people nor folders have said so, what is not read, and what
        colour profiles do."""
        sides = said_of_sides(self.files, "pictures", self.people_share)
        return (*sides, *said_of_unread(self.unread), *self._said_of_profiles())

    @property
    def doubted(self) -> tuple[str, ...]:
        """What of it was hardly meant: that files are not read, but for hidden and foreign ones."""
        return said_of_unread(self.unread) if self.unread.keys() - SYSTEM_FILES - {HIDDEN} else ()

    @property
    def grouping(self) -> str:
        """What makes pictures one group, in words."""
        return (
            f'pictures of one folder whose names are equal up to "{GROUP_MARK}" are one group, crops of one '
            "photograph; so are equal files"
        )

    @property
    def concepts(self) -> tuple[str, ...]:
        """The concepts of concepts.csv and parts.csv in alphabetical order; empty without these files."""
        return self.annotations.concepts

    def items(self, split: Split) -> Sequence[Item]:
        return tuple(item for item in self.files if item.split == split)

    def pixels(self, key: str) -> Pixels:
        """RGB, uint8 (H, W, 3), turned upright by its EXIF orientation, transparency laid on white."""
        if key not in self._keys:
            raise BadSpec(f'there is no item "{key}" in {self.root}')
        return read_picture(self.root / key, self.decoding)

    def pixels_otherwise(self, key: str) -> Pixels:
        """As `pixels`, with colour profiles left aside if they are followed, and followed if not."""
        other: Colour = "numbers" if self.decoding.colour == "convert" else "convert"
        return read_picture(self.root / key, replace(self.decoding, colour=other))

    def concept_values(self, key: str) -> NDArray[np.float32]:
        """How much of each concept was said to be shown, float32 (concepts,) in 0-1: 0 for a concept that the
        files do not name for this picture although they name others. BadSpec if they do not name the picture.
        """
        return self.annotations.values_of(key)

    def parts(self, key: str) -> Sequence[Part]:
        """The parts that parts.csv marks, in its order; boxes in shares of the upright picture."""
        return self.annotations.parts_of(key)

    def content_digest(self) -> str:
        """SHA-256 over the keys, splits and bytes of all pictures, over the groups that equal files have
        joined, over the annotations, and over what of the way of decoding makes a difference.
        """
        return self._digest

    def _said_of_profiles(self) -> tuple[str, ...]:
        if not self.profiled:
            return ()
        looked = self.profiled[:: -(-len(self.profiled) // LOOKED_AT)]
        apart = measured_difference([self.root / key for key in looked], self.decoding)
        of = "" if len(looked) == len(self.profiled) else f" ({len(looked)} of them looked at)"
        way = (
            'are converted to sRGB; colour = "numbers" would leave profiles aside, as torchvision and timm do'
            if self.decoding.colour == "convert"
            else 'are read as bare numbers, as torchvision and timm read them; colour = "convert" would show '
            "them in their own colours"
        )
        return (
            f"{len(self.profiled)} of {len(self.files)} pictures have a colour profile that is not sRGB and "
            f"{way}: between the two are {apart.words}{of}",
        )

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(item.key for item in self.files)

    @cached_property
    def _digest(self) -> str:
        total = hashlib.sha256()
        for item in self.files:
            content = hashlib.sha256((self.root / item.key).read_bytes()).hexdigest()
            total.update(f"{item.key}\0{item.split}\0{content}\n".encode())
            if item.group != _named_group(item.key):
                total.update(f"{item.key}\0group\0{item.group}\n".encode())
            if item.truth not in ("", PurePath(item.key).parent.name):
                total.update(f"{item.key}\0truth\0{item.truth}\n".encode())
        for path in (*annotation_files(self.root), *use_files(self.root)):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{path.name}\0annotations\0{content}\n".encode())
        if self.profiled and self.decoding.colour == "convert":
            total.update(f"colour\0convert\0{self.decoding.intent}\n".encode())
        if self.decoding.levels != LEVELS:
            total.update(f"levels\0{self.decoding.levels}\n".encode())
        return total.hexdigest()


def open_folder(component: Component, folder: Path, version: int = 1) -> FolderDataset:
    """Read the names and the headers of all pictures below `path`.

    `version` is that of decoding (`stimuli.datasets.DECODING`). From 2 on colour profiles are followed unless
    the study says otherwise, greys of 16 bits that use a part of their levels are refused unless it says how
    many they have, names of classes are in Unicode NFC, .avif is read, .heic with its plug-in, and hidden
    pictures are not.

    Raises BadSpec for a missing folder, fewer than two classes, a class with a single picture, and a file
    that is no readable picture or is larger than MAX_PIXELS; for a group or a picture in model/ that is in
    people/ too, and a people_share below 1 that leaves a class on one side alone; each names the place, the
    number and the remedy. The same holds for an invalid line of the tables beside the class folders.
    """
    params = read_params(component, FolderParams, "dataset")
    root = (folder / params.path).resolve()
    if not root.is_dir():
        raise BadSpec(
            f'dataset folder: there is no folder "{root}"; put one folder of pictures per class there'
        )
    has_sides = all((root / split).is_dir() for split in SPLITS)
    if not has_sides:
        _refuse_one_side(root, version)
        _refuse_other_splits(root, version)
    if has_sides:
        items = tuple(item for split in SPLITS for item in _read_tree(root, root / split, split, version))
    else:
        items = _read_tree(root, root, "people", version)
    paths = [root / item.key for item in items]
    colour = params.colour or ("convert" if version > 1 else "numbers")
    decoding = Decoding(colour, params.intent, params.levels or LEVELS)
    profiled = frozenset(check_pictures(paths, decoding))
    if version > 1:
        items = tuple(replace(item, truth=normalize("NFC", item.truth)) for item in items)
    if version > 1 or params.levels is not None:
        check_levels(paths, params.levels)
    contents = _equal_files(root, items)
    if has_sides:
        _check_apart(items, contents)
    items = with_uses(root, _join_groups(items, contents))
    check_uses(items)
    if not has_sides:
        items = _share_out(items, params.people_share)
    annotations = read_annotations(root, [item.key for item in items], lambda key: upright_size(root / key))
    unread = _unread(root, [root / split for split in SPLITS] if has_sides else [root], version)
    labels = tuple(sorted({item.truth for item in items} - {""}))
    return FolderDataset(
        root,
        labels,
        items,
        annotations,
        unread,
        None if has_sides else params.people_share,
        decoding,
        tuple(item.key for item in items if root / item.key in profiled),
    )


def _refuse_one_side(root: Path, version: int) -> None:
    """BadSpec if model/ or people/ stands alone: a folder of that name with folders in it, and no picture."""
    for split, other in (SPLITS, SPLITS[::-1]):
        place = root / split
        if not _holds_class_folders(place, version):
            continue
        raise BadSpec(
            f'dataset folder: "{root}" has {split}/ and no {other}/: put {other}/ beside it, with the same '
            f"class folders; or, if the model was trained elsewhere, put the class folders of {split}/ into "
            f'"{root}" itself and set people_share = 1.0'
        )


def _refuse_other_splits(root: Path, version: int) -> None:
    """BadSpec if sides have the names that others give them: they would count as classes."""
    sides = [place.name for place in own_entries(root) if place.name.lower() in OTHER_SPLITS]
    sides = [name for name in sorted(sides, key=str.lower) if _holds_class_folders(root / name, version)]
    if not sides:
        return
    remedy = "call the one that the model learnt from model/ and the one that people see people/"
    others = ", and put the others elsewhere" if len(sides) > 2 else ""
    named = " and ".join(f"{name}/" for name in sides)
    raise BadSpec(
        f'dataset folder: "{root}" has {named} '
        f"with class folders in them: {remedy}{others}; or, if the model was trained elsewhere, put the "
        f'class folders of one into "{root}" itself and set people_share = 1.0'
    )


def _read_tree(root: Path, place: Path, split: Split, version: int) -> tuple[Item, ...]:
    classes = _class_folders(place)
    if len(classes) < MIN_CLASSES:
        named = f" ({', '.join(entry.name for entry in classes)})" if classes else ""
        raise BadSpec(
            "; ".join(
                [
                    f'dataset folder: "{place}" holds {len(classes)} class folder(s){named}, at least '
                    f"{MIN_CLASSES} are needed; make one folder per class",
                    *said_of_unread(_unread(place, [place], version)),
                ]
            )
        )
    return tuple(item for entry in classes for item in _read_class(root, entry, split, version))


def _read_class(root: Path, place: Path, split: Split, version: int) -> list[Item]:
    names = sorted(path.name for path in place.iterdir() if _is_picture(path, version))
    if len(names) < MIN_PER_CLASS:
        raise BadSpec(
            "; ".join(
                [
                    f'dataset folder: class "{place.name}" has {len(names)} picture(s) in "{place}", at '
                    f"least {MIN_PER_CLASS} are needed; add pictures ({', '.join(sorted(SUFFIXES))}) or "
                    "remove the folder",
                    *said_of_unread(counts_by_kind(_not_pictures(place, version))),
                ]
            )
        )
    keys = [f"{place.relative_to(root).as_posix()}/{name}" for name in names]
    return [Item(key, place.name, _named_group(key), split) for key in keys]


def _class_folders(place: Path) -> list[Path]:
    return [entry for entry in own_entries(place) if entry.is_dir()]


def _holds_class_folders(place: Path, version: int) -> bool:
    """Whether it is a folder with folders in it, and no picture."""
    if not place.is_dir() or not _class_folders(place):
        return False
    return not any(_is_picture(path, version) for path in place.iterdir())


def _is_picture(path: Path, version: int) -> bool:
    """By its name. The first version read hidden ones too; no picture is what a Mac writes beside a file."""
    if version > 1:
        suffixes, is_left_out = DRAFT_SUFFIXES, is_foreign(PurePath(path.name))
    else:
        suffixes, is_left_out = SUFFIXES, path.name.startswith("._")
    return path.suffix.lower() in suffixes and not is_left_out and path.is_file()


def _not_pictures(place: Path, version: int) -> list[Path]:
    return [path for path in place.iterdir() if not _is_picture(path, version)]


def _unread(root: Path, sides: Sequence[Path], version: int) -> dict[str, int]:
    """Kind -> number of what lies in the class folders and is no picture, and of the files beside them."""
    entries = {path for place in {root, *sides} for path in place.iterdir()}
    beside = {path for path in entries if path.is_file() or is_foreign(PurePath(path.name))}
    within = [
        path for side in sides for folder in _class_folders(side) for path in _not_pictures(folder, version)
    ]
    tables = (*annotation_files(root), *use_files(root))
    return counts_by_kind([*within, *beside.difference(tables)])


def said_of_unread(unread: Mapping[str, int], where: str = "in class folders") -> tuple[str, ...]:
    """How many files of which kinds are not read, with what is read; nothing if there are none."""
    if not unread:
        return ()
    kinds = sorted(unread.items(), key=lambda kind: (-kind[1], kind[0]))
    count = sum(unread.values())
    remedy = '; save .heic as .jpg or .png, or run pip install "legible[heic]"'
    saved = remedy if unread.keys() & HEIC else ""
    return (
        f"{count} {'file is' if count == 1 else 'files are'} not read: "
        f"{', '.join(f'{n} {kind}' for kind, n in kinds)}; "
        f"pictures are {', '.join(sorted(SUFFIXES))} {where}{saved}",
    )


def _named_group(key: str) -> str:
    """The group that is part of a picture's name: the key itself if the name has no mark."""
    here, _, name = key.rpartition("/")
    before, mark, _ = name.partition(GROUP_MARK)
    return f"{here}/{before}" if mark and before else key


def _equal_files(root: Path, items: Sequence[Item]) -> dict[str, str]:
    """SHA-256 of the bytes by key, of the pictures that could equal another: only files of one size do."""
    sizes = {item.key: (root / item.key).stat().st_size for item in items}
    shared = Counter(sizes.values())
    return {
        key: hashlib.sha256((root / key).read_bytes()).hexdigest()
        for key, size in sizes.items()
        if shared[size] > 1
    }


def _join_groups(items: Sequence[Item], contents: dict[str, str]) -> tuple[Item, ...]:
    """Pictures with equal bytes, and their whole groups, under the name of the first one's group."""
    marks: list[list[Hashable]] = [
        [("group", item.group), ("content", contents.get(item.key, item.key))] for item in items
    ]
    return tuple(
        replace(item, group=items[at].group) for item, at in zip(items, first_alike(marks), strict=True)
    )


def _check_apart(items: Sequence[Item], contents: dict[str, str]) -> None:
    """Refuse a group or a picture that is in both model/ and people/: people would be shown what the model
    has learnt from. Names without the mark do not name a group: 1.png may be in both.
    """
    seen: dict[tuple[str, str], Item] = {}
    torn = []
    for item in items:
        marks = [("the same picture", contents[item.key])] if item.key in contents else []
        if item.group != item.key:
            marks.append(("of one group", item.group.removeprefix(f"{item.split}/")))
        for mark in marks:
            other = seen.setdefault(mark, item)
            if other.split != item.split:
                torn.append(f'"{other.key}" and "{item.key}" are {mark[0]}')
                break
    if torn:
        raise BadSpec(
            f"dataset folder: pictures of model/ are in people/ too ({first_of(torn)}); "
            f'keep each on one side, or give groups that differ other names before "{GROUP_MARK}"'
        )


def _share_out(items: Sequence[Item], people_share: float) -> tuple[Item, ...]:
    """Per class, the groups with the smallest hashes go to the people: stable, and whole. So do all groups
    with a picture that is no task. BadSpec if people_share is below 1 and a class has an empty side.
    """
    people = {item.group for item in items if item.use != "task"}
    tasks = [item for item in items if item.group not in people]
    for truth in {item.truth for item in tasks}:
        groups = sorted({item.group for item in tasks if item.truth == truth}, key=_hash)
        count = round(people_share * len(groups))
        people.update(groups[: max(1, count if people_share == 1 else min(count, len(groups) - 1))])
    shared = tuple(replace(item, split="people" if item.group in people else "model") for item in items)
    check_sides(
        "dataset folder",
        ((item.truth, item.group, item.split) for item in shared if item.use == "task"),
        people_share,
        f'add pictures of other groups (names that differ before "{GROUP_MARK}", other contents), make the '
        "folders model and people",
    )
    return shared


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
