"""Further items of a study with the answers of its model: from them an observer learns its ceiling."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from django.conf import settings

from experiments.definition.study import StudyDefinition
from experiments.models import Item, Study
from experiments.simulation import OBSERVERS
from experiments.simulation.controls.substitute_explanations import Seen
from experiments.simulation.looking import perceive
from experiments.simulation.passage import Passage, read_text
from experiments.simulation.sight import WORKING_PX, Percept
from experiments.simulation.versions import version_of
from stimuli.datasets import open_dataset
from stimuli.errors import BadSpec
from stimuli.predictors import restore
from stimuli.spec import Component, content_key
from stimuli.store import open_store
from stimuli.store.files import predictor_file
from stimuli.types import Dataset, Progress

AT_ONCE = 64
SEEDS_ON = 1_000_003
"""Added to the dataset's seed: pictures that neither the model nor a person has met."""


def unseen_items(
    study: Study, definition: StudyDefinition, folder: Path, count: int, progress: Progress
) -> tuple[Sequence[tuple[Seen, str]], str]:
    """What is seen of `count` further items, with the model's answers, and a sentence if there are fewer
    (then none).

    A dataset that draws its items from a seed draws as many more; of others there are only those that the
    study did not choose. Percepts of pictures are kept in a file by what they depend on.
    """
    (table, _), *_ = definition.stimuli.sources.values()
    component = table.component()
    try:
        data = _redrawn(component, folder, count)
    except BadSpec:
        there = len(open_dataset(component, folder).items("people"))
        left = max(0, there - Item.objects.filter(study=study, copy_of=None).count())
        return [], f"No ceiling: only {left:,} unseen items, {count:,} are needed."
    choices = {value for value, _ in definition.choices}
    if hasattr(data, "text"):
        return [(text, said) for text, said in _read(data, study, count) if said in choices], ""
    version = version_of(OBSERVERS[0])
    eye = version.digest if version else ""
    key = content_key(["unseen", data.content_digest(), study.predictor["key"], count, eye])
    path = settings.VAR_DIR / "unseen" / f"{key}.npz"
    if not path.exists():
        _keep(path, *_looked_at(data, study.predictor["key"], count, progress))
    with np.load(io.BytesIO(path.read_bytes())) as kept:
        answers, features, unguided = kept["answers"], kept["features"], kept["unguided"]
    rows = zip(features, unguided, answers, strict=True)
    return [(Percept(f, unguided=o), str(a)) for f, o, a in rows if str(a) in choices], ""


def _redrawn(component: Component, folder: Path, count: int) -> Any:
    """The dataset with another seed and `count` pictures, as large as observers see them. BadSpec if it draws
    none."""
    seed = int(component.params.get("seed", 0)) + SEEDS_ON
    # Classes and cues in equal cells ask for a multiple of four.
    drawn = max(8, count + -count % 4)
    more: dict[str, Any] = {"seed": seed, "count": drawn}
    # Those that a model learns from come first, and keep people's from repeating them; sentences are small.
    is_text = hasattr(open_dataset(component, folder), "text")
    more |= {} if is_text else {"model_count": 16, "size_px": WORKING_PX}
    return open_dataset(Component(component.name, {**component.params, **more}), folder)


def _read(data: Any, study: Study, count: int) -> list[tuple[Passage, str]]:
    """Each further text without marks, and what the model says of it."""
    predictor: Any = restore(open_store(settings.STORAGE_URL).get(predictor_file(study.predictor["key"])))
    texts = [data.text(item.key) for item in data.items("people")[:count]]
    said = [predictor.labels[int(row.argmax())] for row in predictor.text_logits(texts)]
    return [(read_text([{"text": t, "shade": None}]), label) for t, label in zip(texts, said, strict=True)]


def _looked_at(data: Dataset, predictor_key: str, count: int, progress: Progress) -> tuple[Any, Any, Any]:
    """Answers (N,), features (N, 100, 10), own looking (N, 100)."""
    predictor: Any = restore(open_store(settings.STORAGE_URL).get(predictor_file(predictor_key)))
    items = data.items("people")[:count]
    answers: list[str] = []
    seen: list[Percept] = []
    for start in range(0, len(items), AT_ONCE):
        drawn = [data.pixels(item.key) for item in items[start : start + AT_ONCE]]
        rows = predictor.logits([predictor.view(pixels) for pixels in drawn])
        answers += [predictor.labels[int(row.argmax())] for row in rows]
        seen += [perceive(pixels) for pixels in drawn]
        progress("unseen pictures for the ceiling", len(seen), len(items))
    unguided = [cast("Any", percept.unguided) for percept in seen]
    return np.array(answers), np.stack([percept.features for percept in seen]), np.stack(unguided)


def _keep(path: Path, answers: Any, features: Any, unguided: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = io.BytesIO()
    np.savez_compressed(written, answers=answers, features=features, unguided=unguided)
    partial = path.with_suffix(".part")
    partial.write_bytes(written.getvalue())
    partial.replace(path)
