"""The items of a study for another framework: their keys, and exactly what the model sees of each."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from pathlib import Path

from crowd.recruiting.checking import ReadThrough
from experiments.definition import StudyDefinition
from experiments.drafts import gather
from experiments.errors import StudyError
from stimuli.store import LocalStore, Store
from stimuli.store.files import read_text, view_file

COLUMNS = ("item", "dataset", "predictor", "label", "index", "height_px", "width_px", "file")


def list_items(
    definition: StudyDefinition,
    folder: Path,
    store: Store,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> int:
    """Write `items.csv` and one file per item into the empty or new folder `out`; how many items there are.

    `label` and `index` name the answer that is explained, `file` holds the network's view (PNG) or the text.
    Nothing is stored, and recorded explanations need not be there yet. StudyError if the folder is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StudyError(f"{out} is not an empty folder: name a new one for the items.")
    with tempfile.TemporaryDirectory(prefix="legible-items-") as scratch:
        reading = ReadThrough(store, LocalStore(Path(scratch)))
        gathered = gather(definition, folder, reading, progress, recorded=False)
        out.mkdir(parents=True, exist_ok=True)
        count = 0
        with (out / "items.csv").open("w", newline="", encoding="utf-8") as stream:
            table = csv.writer(stream)
            table.writerow(COLUMNS)
            for source, items in gathered.material.chosen.items():
                for item in items:
                    view = gathered.view(source, item)
                    is_text = not view.width_px
                    name = f"{view.image_key}.{'txt' if is_text else 'png'}"
                    data = (
                        read_text(reading, view.image_key).encode()
                        if is_text
                        else reading.get(view_file(view.image_key))
                    )
                    (out / name).write_bytes(data)
                    size = (view.height_px, view.width_px)
                    table.writerow((item.key, *source, view.predicted, view.index, *size, name))
                    count += 1
    return count
