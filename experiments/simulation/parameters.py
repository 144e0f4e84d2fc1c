"""The declared parameters of the computational observers, each with its unit and source (observers.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

FILE = Path(__file__).with_name("observers.toml")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`kind`: from a published figure or rule, or from what people reach without explanation."""

    value: float
    unit: str
    kind: Literal["literature", "baseline"]
    source: str


@lru_cache(maxsize=1)
def parameters() -> dict[str, dict[str, Parameter]]:
    """All of them, by group and name."""
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {group: {name: Parameter(**row) for name, row in rows.items()} for group, rows in read.items()}


def value(group: str, name: str) -> float:
    """Raises KeyError for a parameter that is not declared."""
    return parameters()[group][name].value
