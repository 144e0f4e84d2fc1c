"""Declared parameters of the observers of texts and of explanations, each with its unit and source."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path

from experiments.simulation.parameters import Parameter

ROOM = Path(__file__).parent


@lru_cache
def declared(file: str) -> dict[str, dict[str, Parameter]]:
    """The parameters of a file of this folder, by group and name."""
    read = tomllib.loads((ROOM / file).read_text(encoding="utf-8"))
    return {group: {name: Parameter(**row) for name, row in rows.items()} for group, rows in read.items()}


def declared_value(file: str, group: str, name: str) -> float:
    """Raises KeyError for a parameter that is not declared."""
    return declared(file)[group][name].value
