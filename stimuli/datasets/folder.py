"""Images in class folders: images/<class>/*.png|jpg|jpeg|webp, the path of a researcher's own pictures.

Beside the class folders, concepts.csv may say which concepts a picture shows, and parts.csv where; uses.csv
what a picture is for, and annotations.csv which labels several people gave it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from pydantic import Field

from stimuli.datasets.annotations import Annotations, Size, annotation_files, read_annotations
from stimuli.datasets.lines import check_sides, first_alike, said_of_sides
from stimuli.datasets.uses import check_uses, use_files, with_uses
from stimuli.errors import BadSpec
from stimuli.registry import Params, read_params
from stimuli.spec import Component
from stimuli.types import Item, Part, Pixels, Split

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
MIN_PER_CLASS = 2
MIN_CLASSES = 2
MAX_PIXELS = 50_000_000
MIN_SIDE_PX = 8
MAX_NAMED = 3
SPLITS: tuple[Split, Split] = ("model", "people")
SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""Written by file managers: that they are not read needs no warning."""
GROUP_MARK = "__"
ORIENTATION = 274
SIDEWAYS = frozenset({5, 6, 7, 8})
"""EXIF orientations that exchange width and height."""


class FolderParams(Params):
    """`path` holds one folder per class, or the folders model/ and people/ that each hold one per class.

    Without those two, `people_share` of the groups (0-1) is kept for people by a hash of the group's name; 1
    suits a model that was trained elsewhere.
    """

    path: str
    people_share: Annotated[float, Field(gt=0, le=1)] = 0.5


@dataclass(frozen=True)
class FolderDataset:
    """Pictures in class folders; the classes are in alphabetical order.

    A key is the path below the root. The group is the part of the file name before "__" (with class and
    folder), so that `park__1.png` and `park__2.png`, crops of one photograph, always stay together; else
    the key. Files that are equal byte for byte are of one group too, and so are their groups; it is called
    after its first picture. The same picture saved anew, with other bytes, is not recognised. `unread` counts
    the files and folders that are no pictures of a class by their suffix, or name if they have none.
    `people_share` is None if the folders say which pictures are people's.
    """

    root: Path
    labels: tuple[str, ...]
    files: tuple[Item, ...]
    annotations: Annotations = field(default_factory=Annotations)
    unread: Mapping[str, int] = field(default_factory=dict)
    people_share: float | None = None

    @property
    def told(self) -> tuple[str, ...]:
        """Which pictures are whose, if neither people nor folders have said so, and what is not read."""
        return (*said_of_sides(self.files, "pictures", self.people_share), *_said_of_unread(self.unread))

    @property
    def doubted(self) -> tuple[str, ...]:
        """What of it was hardly meant: that files are not read, but for those of file managers."""
        return _said_of_unread(self.unread) if self.unread.keys() - SYSTEM_FILES else ()

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
        return read_picture(self.root / key)

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
        joined, and over the annotations.
        """
        return self._digest

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
        for path in (*annotation_files(self.root), *use_files(self.root)):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{path.name}\0annotations\0{content}\n".encode())
        return total.hexdigest()


def open_folder(component: Component, folder: Path) -> FolderDataset:
    """Read the names and the headers of all pictures below `path`.

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
        _refuse_one_side(root)
    if has_sides:
        items = tuple(item for split in SPLITS for item in _read_tree(root, root / split, split))
    else:
        items = _read_tree(root, root, "people")
    for item in items:
        _check_header(root / item.key)
    contents = _equal_files(root, items)
    if has_sides:
        _check_apart(items, contents)
    items = with_uses(root, _joined(items, contents))
    check_uses(items)
    if not has_sides:
        items = _share_out(items, params.people_share)
    annotations = read_annotations(root, [item.key for item in items], lambda key: _upright_size(root / key))
    unread = _unread(root, [root / split for split in SPLITS] if has_sides else [root])
    labels = tuple(sorted({item.truth for item in items} - {""}))
    return FolderDataset(root, labels, items, annotations, unread, None if has_sides else params.people_share)


def read_picture(path: Path) -> Pixels:
    """One file as RGB, uint8 (H, W, 3): upright, flattened on white, without metadata.

    Raises BadSpec that names the file if it is damaged, and the limit if it is too large.
    """
    _check_header(path)
    try:
        with Image.open(path) as picture:
            upright = ImageOps.exif_transpose(picture)
            if upright.mode in {"RGBA", "LA", "PA"} or "transparency" in upright.info:
                upright = upright.convert("RGBA")
                ground = Image.new("RGBA", upright.size, "white")
                upright = Image.alpha_composite(ground, upright)
            return np.asarray(_eight_bit(upright).convert("RGB"), dtype=np.uint8).copy()
    except (OSError, SyntaxError, ValueError) as error:
        raise BadSpec(f'the picture "{path}" cannot be read ({error}); replace or remove it') from error


def _eight_bit(picture: Image.Image) -> Image.Image:
    """16-bit greys scaled to 8 bit; Pillow's own conversion would clip everything above 255 to white."""
    if not picture.mode.startswith("I"):
        return picture
    return Image.fromarray((np.asarray(picture, dtype=np.float64) / 257).clip(0, 255).astype(np.uint8))


def _check_header(path: Path) -> None:
    try:
        with Image.open(path) as picture:
            width, height = picture.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadSpec(_too_large(path, "far more")) from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise BadSpec(f'the picture "{path}" cannot be read; replace or remove it') from error
    if width * height > MAX_PIXELS:
        raise BadSpec(_too_large(path, f"{width} x {height}"))
    if min(width, height) < MIN_SIDE_PX:
        raise BadSpec(
            f'the picture "{path}" is {width} x {height} pixels; at least {MIN_SIDE_PX} '
            "on each side are needed"
        )


def _upright_size(path: Path) -> Size:
    """Width and height in pixels of the picture as `read_picture` gives it."""
    with Image.open(path) as picture:
        width, height = picture.size
        return (height, width) if picture.getexif().get(ORIENTATION) in SIDEWAYS else (width, height)


def _too_large(path: Path, size: str) -> str:
    return f'the picture "{path}" has {size} pixels, the limit is {MAX_PIXELS:,}; scale it down'


def _refuse_one_side(root: Path) -> None:
    """BadSpec if model/ or people/ stands alone: a folder of that name with folders in it, and no picture."""
    for split, other in (SPLITS, SPLITS[::-1]):
        place = root / split
        if not any(p.is_dir() for p in _entries(place)) or any(_is_picture(p) for p in _entries(place)):
            continue
        raise BadSpec(
            f'dataset folder: "{root}" has {split}/ and no {other}/: put {other}/ beside it, with the same '
            f"class folders; or, if the model was trained elsewhere, put the class folders of {split}/ into "
            f'"{root}" itself and set people_share = 1.0'
        )


def _read_tree(root: Path, place: Path, split: Split) -> tuple[Item, ...]:
    classes = _class_folders(place)
    if len(classes) < MIN_CLASSES:
        named = f" ({', '.join(entry.name for entry in classes)})" if classes else ""
        raise BadSpec(
            "; ".join(
                [
                    f'dataset folder: "{place}" holds {len(classes)} class folder(s){named}, at least '
                    f"{MIN_CLASSES} are needed; make one folder per class",
                    *_said_of_unread(_unread(place, [place])),
                ]
            )
        )
    return tuple(item for entry in classes for item in _read_class(root, entry, split))


def _read_class(root: Path, place: Path, split: Split) -> list[Item]:
    names = sorted(p.name for p in place.iterdir() if _is_picture(p))
    if len(names) < MIN_PER_CLASS:
        raise BadSpec(
            "; ".join(
                [
                    f'dataset folder: class "{place.name}" has {len(names)} picture(s) in "{place}", at '
                    f"least {MIN_PER_CLASS} are needed; add pictures ({', '.join(sorted(SUFFIXES))}) or "
                    "remove the folder",
                    *_said_of_unread(Counter(map(_kind, _not_pictures(place)))),
                ]
            )
        )
    keys = [f"{place.relative_to(root).as_posix()}/{name}" for name in names]
    return [Item(key, place.name, _named_group(key), split) for key in keys]


def _class_folders(place: Path) -> list[Path]:
    return sorted(entry for entry in place.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _entries(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.is_dir() else []


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.is_file()


def _not_pictures(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if not _is_picture(path)]


def _unread(root: Path, sides: Sequence[Path]) -> dict[str, int]:
    """Kind -> number of what lies in the class folders and is no picture, and of the files beside them."""
    beside = {path for place in {root, *sides} for path in place.iterdir() if path.is_file()}
    within = [path for side in sides for folder in _class_folders(side) for path in _not_pictures(folder)]
    tables = (*annotation_files(root), *use_files(root))
    return dict(Counter(map(_kind, [*within, *beside.difference(tables)])))


def _kind(path: Path) -> str:
    """The suffix of a file, or what else it is known by."""
    if path.is_dir():
        return "folder"
    return path.name if path.name in SYSTEM_FILES else path.suffix.lower() or path.name


def _said_of_unread(unread: Mapping[str, int]) -> tuple[str, ...]:
    if not unread:
        return ()
    kinds = sorted(unread.items(), key=lambda kind: (-kind[1], kind[0]))
    count = sum(unread.values())
    return (
        f"{count} {'file is' if count == 1 else 'files are'} not read: "
        f"{', '.join(f'{n} {kind}' for kind, n in kinds)}; "
        f"pictures are {', '.join(sorted(SUFFIXES))} in class folders",
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


def _joined(items: Sequence[Item], contents: dict[str, str]) -> tuple[Item, ...]:
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
        more = f", and {len(torn) - MAX_NAMED} more" if len(torn) > MAX_NAMED else ""
        raise BadSpec(
            f"dataset folder: pictures of model/ are in people/ too ({'; '.join(torn[:MAX_NAMED])}{more}); "
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
