"""Other entries in a table of names, for one test."""

from __future__ import annotations

from typing import Any

import pytest

from stimuli.registry import Table


def overridden(monkeypatch: pytest.MonkeyPatch, table: Table[Any], name: str, target: str) -> None:
    """Until the test ends, `name` stands for "module:attribute", also if it stood for something else."""
    monkeypatch.setattr(table, "_entries", {**table._entries, name: target})
    monkeypatch.setattr(table, "_loaded", {})
