"""Names of files: what other programs leave among material, and names that are alike to the eye."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath
from unicodedata import normalize

SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""Written by file managers."""
_OTHERS = frozenset({"__macosx", "@eadir", *map(str.casefold, SYSTEM_FILES)})
HIDDEN = "hidden"
"""What any other hidden or foreign file is counted as."""


def is_foreign(path: PurePath) -> bool:
    """Whether a path below a folder of material leads to what other programs left there: a name with a dot in
    front (._1.png, .ipynb_checkpoints), __MACOSX, @eaDir, Thumbs.db, desktop.ini, and all in such folders."""
    return any(part.startswith(".") or part.casefold() in _OTHERS for part in path.parts)


def counts_by_kind(paths: Iterable[Path]) -> dict[str, int]:
    """How many of each kind: the suffix of a file, or what else it is known by."""
    return dict(Counter(map(_kind, paths)))


def _kind(path: Path) -> str:
    if is_foreign(PurePath(path.name)):
        return path.name if path.name in SYSTEM_FILES else HIDDEN
    return "folder" if path.is_dir() else path.suffix.lower() or path.name


def own_entries(place: Path) -> list[Path]:
    """What lies in a folder, by name, but for what is foreign."""
    return sorted(path for path in place.iterdir() if not is_foreign(PurePath(path.name)))


def own_files(root: Path) -> list[Path]:
    """All files below a folder, by path, but for those that are foreign."""
    return [path for path in files_below(root) if not is_foreign(PurePath(path.name))]


def files_below(root: Path) -> list[Path]:
    """All files below a folder, by path; of what is foreign each file and folder, and nothing in these."""
    return sorted(
        path
        for path in root.rglob("*")
        if not is_foreign(path.relative_to(root).parent)
        and (path.is_file() or is_foreign(PurePath(path.name)))
    )


class Names:
    """Known names, found as they are written, else by their letters in Unicode NFC: a Mac writes an accent as
    a character of its own."""

    def __init__(self, known: Iterable[str]) -> None:
        self.known = tuple(known)
        self._by_letters = {normalize("NFC", name): name for name in self.known}
        self._by_letters |= {name: name for name in self.known}

    def find(self, written: str) -> str | None:
        """The known name that is meant, None if there is none."""
        return self._by_letters.get(written) or self._by_letters.get(normalize("NFC", written))
