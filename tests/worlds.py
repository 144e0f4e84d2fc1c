"""Worlds: what many tests need and one makes. A study that was opened, pictures that were rendered, a network
that was trained are kept under a digest of all that they depend on; every process of the run takes them from
there, and so does a later run of the same code (.venv/worlds).

What is taken is what making it again would have made, with its keys and times. The store that tests share
(STORAGE_URL) lies beside them. A run with a failure removes them, in case a test has spoilt one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tests.run.databases import only_one

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".venv" / "worlds"
FOLDER_VARIABLE = "LEGIBLE_TEST_WORLDS"
"""Names the folder of this code's worlds to all processes of a run."""
SOURCES = ("stimuli", "experiments", "analysis", "crowd", "requirements", "tests")
STAMP = "whole"


class SpoiltWorld(Exception):
    """A test has changed a file that it shares with other tests."""


def code_digest() -> str:
    """Names everything by which worlds are made: the four packages, their libraries, what tests share, and
    the day, because rows hold times that tests compare with now.

    Tests themselves are left out: how a test makes its world is part of the world's own name.
    """
    total = hashlib.sha256(datetime.now(UTC).date().isoformat().encode())
    for room in SOURCES:
        for here, folders, names in os.walk(ROOT / room):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                path = Path(here, name)
                if not name.startswith("test_") and path.suffix not in {".pyc", ".webp"} and path.is_file():
                    total.update(f"\n{path.relative_to(ROOT)} ".encode() + path.read_bytes())
    return total.hexdigest()[:24]


@contextmanager
def prepared() -> Iterator[Path]:
    """The folder of this code's worlds, for as long as a run needs it; those of other code are removed,
    unless another run needs them."""
    here = KEPT / code_digest()
    here.mkdir(parents=True, exist_ok=True)
    for other in KEPT.iterdir():
        if other.is_dir() and other != here:
            remove(other)
    with _lock_of(here).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        here.mkdir(exist_ok=True)
        yield here


def remove(worlds: Path) -> None:
    """Removes these worlds, unless a run needs them."""
    with _lock_of(worlds).open("a") as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(worlds, ignore_errors=True)


def _lock_of(worlds: Path) -> Path:
    return worlds.with_name(f"{worlds.name}.lock")


@cache
def folder() -> Path | None:
    """The folder of this run's worlds; none outside a run."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else None


@contextmanager
def world(kind: str, name: str) -> Iterator[tuple[Path, bool]]:
    """The folder of one world, and whether it is whole; else the caller fills it. One process at a time.

    A folder that its maker left unfinished is emptied.
    """
    top = folder()
    assert top is not None
    here = top / kind / name
    here.parent.mkdir(parents=True, exist_ok=True)
    if (here / STAMP).exists():
        yield here, True
        return
    with only_one(here.with_name(f"{name}.lock")):
        if (here / STAMP).exists():
            yield here, True
            return
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        yield here, False
        (here / STAMP).touch()


def keep(files: Iterable[Path], source: Path, target: Path) -> None:
    """Copies the files; a list of them, with sizes and times, is written last."""
    lines = []
    for path in files:
        name = path.relative_to(source)
        copied = target / "files" / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
        lines.append(f"{_state(copied)} {name}\n")
    (target / "list").write_text("".join(lines))


def fetch(source: Path, target: Path) -> None:
    """Links the kept files into a store. They are written once and never changed there; a test that spoils a
    file of its own must replace it, as `spoil` does."""
    made = set[Path]()
    for line in (source / "list").read_text().splitlines():
        state, _, name = line.partition(" ")
        kept, linked = source / "files" / name, target / name
        if _state(kept) != state:
            raise SpoiltWorld(f"{kept} was changed by a test: it must use tests.worlds.spoil")
        if linked.parent not in made:
            linked.parent.mkdir(parents=True, exist_ok=True)
            made.add(linked.parent)
        try:
            os.link(kept, linked)
        except FileExistsError:
            pass
        except OSError:  # another file system
            shutil.copyfile(kept, linked)


def spoil(path: Path, content: bytes) -> None:
    """Another content for a stored file of this test alone, or a new file."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _state(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size}-{stat.st_mtime_ns}"
