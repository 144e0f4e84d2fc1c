"""The items of a study for another framework: their keys, and exactly what the model sees of each."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.definition.study import StudyDefinition
from experiments.drafting.draft import gather
from experiments.errors import StudyError
from experiments.paradigms.base import Source
from stimuli.explainers import is_recorded
from stimuli.explainers.targets import Target
from stimuli.store import LocalStore, Store
from stimuli.store.files import read_text, read_units, view_file
from stimuli.store.read_through import ReadThrough

if TYPE_CHECKING:
    from stimuli.spec_derivation import PredictedItem
    from stimuli.spec_derivation import Source as Opened

COLUMNS = (
    *("item", "conditions", "dataset", "predictor"),
    *("label", "index", "operator", "against", "height_px", "width_px", "file"),
)


def list_items(
    definition: StudyDefinition,
    folder: Path,
    store: Store,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> int:
    """Write `items.csv` and one file per item into the empty or new folder `out`; how many lines there are:
    one per item and explained number.

    `label` and `index` name the class that is explained, `file` holds the network's view (PNG) or the text;
    beside a text stand the spans of its units, if the study declares some.
    No explanation is stored, and recorded ones need not be there yet. StudyError if the folder is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StudyError(f"{out} is not an empty folder: name a new one for the items.")
    with tempfile.TemporaryDirectory(prefix="legible-items-") as scratch:
        reading = ReadThrough(store, LocalStore(Path(scratch)))
        gathered = gather(definition, folder, reading, progress, recorded=False)
        out.mkdir(parents=True, exist_ok=True)
        lines = [
            _line(item.key, gathered.view(source, item), names, source, target, gathered.opened[source])
            for (source, target), names in _conditions_to_explain(definition).items()
            for item in gathered.material.chosen[source]
        ]
        for view in {view.image_key: view for view, _ in lines}.values():
            if not view.width_px and (units := read_units(reading, view.image_key)) is not None:
                (out / f"{view.image_key}.units.json").write_text(json.dumps(units))
            (out / _file(view)).write_bytes(
                reading.get(view_file(view.image_key))
                if view.width_px
                else read_text(reading, view.image_key).encode()
            )
        with (out / "items.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([COLUMNS, *(cells for _, cells in lines)])
    return len(lines)


def _conditions_to_explain(definition: StudyDefinition) -> dict[tuple[Source, Target], list[str]]:
    """What is to be explained, and for which conditions: the recorded ones, or all if none is."""
    every = [condition for condition in definition.conditions if condition.explainer is not None]
    recorded = [c for c in every if c.explainer is not None and is_recorded(c.explainer.component())]
    wanted: dict[tuple[Source, Target], list[str]] = {}
    for condition in recorded or every:
        wanted.setdefault((condition.source, definition.target_of(condition)), []).append(condition.name)
    return wanted


def _line(
    key: str, view: PredictedItem, names: Sequence[str], source: Source, target: Target, opened: Opened
) -> tuple[PredictedItem, tuple[object, ...]]:
    labels = opened.predictor.labels
    number = target.number(labels, view.index, view.truth, view.logits)
    against = "" if number.against is None else labels[number.against]
    explained = (labels[number.target], number.target, number.operator, against)
    return view, (key, " ".join(names), *source, *explained, view.height_px, view.width_px, _file(view))


def _file(view: PredictedItem) -> str:
    return f"{view.image_key}.{'png' if view.width_px else 'txt'}"
