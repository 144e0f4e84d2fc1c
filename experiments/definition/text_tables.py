"""Tables of study.toml about what people read: the study's texts, and the sentences around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from experiments.definition.gate_page_tables import Part


class TextFiles(Part):
    """A paradigm may have further texts, for the people of some arms (`Paradigm.texts`)."""

    consent: str
    instructions: str
    debrief: str
    quiz: str | None = None
    instructions_explained: str | None = None
    instructions_baseline: str | None = None


class InterfaceFiles(Part):
    """`words` is the file with every sentence of the pages; a definition has it as an InterfaceTable."""

    words: str


class InterfaceTable(Part):
    """What the file says: sentences by path ("pages.device"), who wrote them, and the language's tag
    (BCP 47)."""

    language: str
    translator: str
    words: dict[str, str]

    @cached_property
    def tables(self) -> dict[str, dict[str, Any]]:
        """The sentences as the server's tables are: by part, those of `page` and `paradigms` by name too."""
        tables: dict[str, dict[str, Any]] = {}
        for path, text in self.words.items():
            part, _, key = path.partition(".")
            table = tables.setdefault(part, {})
            if part in ("page", "paradigms"):
                name, _, key = key.partition(".")
                table = table.setdefault(name, {})
            table[key] = text
        return tables


def practice_of(language: str, interface: InterfaceTable | None) -> Mapping[str, Sequence[str]]:
    """What is sorted in practice, by the answer A or B; in an order that no database changes."""
    from stimuli.datasets.practice import SENTENCES

    if interface is None:
        return SENTENCES[language]
    said = sorted(interface.tables["practice"].items())
    return {side: [text for key, text in said if key.startswith(f"{side}.")] for side in ("A", "B")}
