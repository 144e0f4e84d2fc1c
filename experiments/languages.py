"""The tables of the server's words, one file per language in `words/`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "words"
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@lru_cache(maxsize=16)
def table_of(language: str) -> Mapping[str, Any]:
    """The whole table of a language: `pages`, `entry`, `legend`, and `paradigms` by name."""
    return tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
