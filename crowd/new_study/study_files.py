"""The files of a new study from those of its paradigm: study.toml, and what people read in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.definition.study import StudyDefinition
from experiments.study_files.load import load_study
from stimuli.spec import JsonValue

TEMPLATES = Path(__file__).parent / "templates"
"""A folder of files of each paradigm. What they name in braces is worked out here, or, if it is what any text
may name ({title}), when people read it."""
PARADIGMS = tuple(sorted(path.name for path in TEMPLATES.iterdir()))
"""What is made here; the first is the usual one."""


@dataclass(frozen=True, slots=True)
class NewStudy:
    """What the files say. `predictor` is the table of that name, `why` has the reason for some of its keys.
    `size` is blocks, training and test trials of each; `sizes` the reason."""

    slug: str
    paradigm: str
    contact: str
    shows: str
    dataset: Mapping[str, JsonValue]
    answers: tuple[str, ...]
    predictor: Mapping[str, JsonValue]
    why: Mapping[str, str] = field(default_factory=dict)
    method: str = "occlusion"
    size: Sequence[int] = (1, 1, 1)
    sizes: str = ""

    @property
    def has_size(self) -> bool:
        """Whether its people learn and predict, in numbers that depend on the pictures."""
        return "{blocks}" in (TEMPLATES / self.paradigm / "study.toml").read_text(encoding="utf-8")

    def write(self, folder: Path) -> StudyDefinition:
        """Write all files into a folder that holds the network, and read them. Errors as `load_study`."""
        buttons = [name.replace("_", " ").capitalize() for name in self.answers]
        words = {
            "slug": _toml(self.slug),
            "address": _toml(self.contact),
            "dataset": _toml(self.dataset),
            "answers": _toml(list(self.answers)),
            "predictor": "\n".join(self._predictor_lines()),
            "method": self.method,
            "sizes": self.sizes,
            **dict(zip(("blocks", "train", "test"), map(str, self.size), strict=True)),
            **dict(zip(("first", "second"), buttons, strict=True)),
            "shows": self.shows,
        }
        for path in (TEMPLATES / self.paradigm).iterdir():
            text = path.read_text(encoding="utf-8")
            for name, word in words.items():
                text = text.replace(f"{{{name}}}", word)
            (folder / path.name).write_text(text, encoding="utf-8")
        return load_study(folder / "study.toml")

    def _predictor_lines(self) -> list[str]:
        lines = []
        for key, value in self.predictor.items():
            lines += [f"# {self.why[key]}"] if key in self.why else []
            lines.append(f"{key} = {_toml(value)}")
        return lines


def _toml(value: object) -> str:
    """Text, numbers and lists are written as in JSON."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(inner)}' for key, inner in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)
