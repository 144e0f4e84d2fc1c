"""Trains or loads the predictor of a study, without the rest of the study."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from experiments.management.base import StudyCommand
from experiments.study_files.load import find_study
from experiments.terminal import Terminal
from stimuli.datasets import DECODING
from stimuli.spec import Component
from stimuli.spec_derivation import prepare, survey
from stimuli.store import open_store


class Command(StudyCommand):
    help = "Train the predictor of a study, pictures or texts, into the store, and say how good it is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a file with a table [stimuli]")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        path = find_study(study, tuple(settings.STUDY_DIRS))
        dataset, predictor = _components(path)
        with Terminal() as terminal:
            store = open_store(settings.STORAGE_URL)
            source = prepare(dataset, predictor, path.parent, store, terminal.progress, DECODING)
            items = survey(source, store, terminal.progress)
            right = sum(item.predicted == item.truth for item in items)
            about = [(name, str(value)) for name, value in sorted(source.predictor.provenance.items())]
            labels = ", ".join(source.predictor.labels)
            share = f"{right / len(items):.3f} of {len(items)}" if items else "there are none"
            rows = [("labels", labels), ("right on the items for people", share), *about]
            terminal.table(f"Predictor {predictor.name}", ("", ""), [*rows, ("key", source.predictor_key)])


def _components(path: Path) -> tuple[Component, Component]:
    """Dataset and predictor of the file: all that a training needs of a study."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("stimuli")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CommandError(f"{path}: cannot be read: {error}. Mend the file.") from error
    parts = []
    for name in ("dataset", "predictor"):
        part = table.get(name) if isinstance(table, Mapping) else None
        if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
            raise CommandError(f'{path}: [stimuli] {name} is missing: write {name} = {{ name = "…" }}.')
        parts.append(Component.from_json(part))
    return parts[0], parts[1]
