"""What all forms of recorded explanations share: where files may lie, and what is known of an item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stimuli.datasets.file_names import own_files
from stimuli.errors import BadSpec
from stimuli.types import Attribution, Span

MAX_TABLE_BYTES = 64 * 2**20
"""Of a .csv or .json file: a table is read as a whole."""


@dataclass(frozen=True, slots=True)
class ItemView:
    """The item that an explanation must fit: the size of the network's view (height, width), or the text, and
    the spans of its units if the study declares some."""

    height: int = 0
    width: int = 0
    text: str = ""
    units: tuple[Span, ...] | None = None


Reader = Callable[[ItemView], Attribution]
Readers = Mapping[str, Reader]
"""How each explanation is read, by item key."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a study: nothing outside `root`, its folder, is ever opened."""

    root: Path

    def inside(self, name: str, what: str, below: Path | None = None) -> Path:
        """The file or folder of that name below `below` (the study's folder). BadSpec in the words of `what`
        if it leads out of the study's folder, by links too, or is not there."""
        try:
            path = ((below or self.root) / name).resolve()
            is_there = path.exists()
        except (OSError, ValueError, RuntimeError) as error:
            raise BadSpec(f"{what} is no name of a file ({error})") from None
        if Path(name).is_absolute() or not path.is_relative_to(self.root):
            raise BadSpec(f"{what} leads out of the study's folder: put the files below it")
        if not is_there:
            raise BadSpec(f"{what}: there is no such file or folder; write it relative to study.toml")
        return path

    def below(self, folder: Path) -> list[Path]:
        """The files below a folder in alphabetical order, without foreign ones. BadSpec for a link that leads
        out of the study's folder, or if there is none."""
        names = own_files(folder)
        for path in names:
            self.inside(path.relative_to(self.root).as_posix(), f'recorded file "{path.name}"')
        if not names:
            raise BadSpec(f'recorded folder "{folder.name}" is empty: record at least one explanation in it')
        return names


def by_key(names: list[Path], root: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """The files of a folder by the item key that they name. BadSpec for another ending, and for two files of
    one item."""
    paths: dict[str, Path] = {}
    for path in names:
        name = path.relative_to(root).as_posix()
        if path.suffix not in endings:
            raise BadSpec(
                f'recorded folder "{root.name}": "{name}" is none of {", ".join(endings)}; name each file by '
                "its item key and one of these endings, and put other files elsewhere"
            )
        key = name.removesuffix(path.suffix)
        if key in paths:
            raise BadSpec(
                f'recorded folder "{root.name}": "{paths[key].name}" and "{path.name}" are two files of item '
                f'"{key}"; keep one'
            )
        paths[key] = path
    return paths


def check_bytes(path: Path, most: int) -> None:
    """BadSpec if the file is larger than `most` bytes."""
    size = path.stat().st_size
    if size > most:
        raise BadSpec(f'recorded "{path.name}" has {size:,} bytes, the limit is {most:,}; make it smaller')


@contextmanager
def name_file_faults(what: str, remedy: str, *errors: type[BaseException]) -> Iterator[None]:
    """Tells a fault of a file as a BadSpec that names it."""
    try:
        yield
    except errors as error:
        raise BadSpec(f"recorded {what} cannot be read ({error}): {remedy}") from None
