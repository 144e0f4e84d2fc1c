"""Names of files: what other programs leave among material, and names that are alike to the eye."""

from __future__ import annotations

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


def foreign_kind(name: str) -> str:
    """What a foreign file or folder of this name is counted as."""
    return name if name in SYSTEM_FILES else HIDDEN


def own_entries(place: Path) -> list[Path]:
    """What lies in a folder, by name, but for what is foreign."""
    return sorted(path for path in place.iterdir() if not is_foreign(PurePath(path.name)))


def own_files(root: Path) -> list[Path]:
    """All files below a folder, by path, but for those that are foreign."""
    return sorted(
        path for path in root.rglob("*") if not is_foreign(path.relative_to(root)) and path.is_file()
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
