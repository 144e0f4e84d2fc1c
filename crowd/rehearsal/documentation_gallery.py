"""What methods, recipes and trials look like, for the documentation: sheets of real attributions of a small
network that is trained on drawn pictures, each method with its defaults, and a trial of each paradigm."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from PIL import Image

from experiments.errors import StudyError
from stimuli.spec import Component
from stimuli.types import Pixels, Progress

if TYPE_CHECKING:
    from stimuli.library.explanations import Explanations

SHOWN = tomllib.loads(Path(__file__).with_name("gallery.toml").read_text(encoding="utf-8"))
DATASET, PREDICTOR = SHOWN["dataset"], SHOWN["predictor"]
FAMILIES: Mapping[str, Sequence[str]] = SHOWN["families"]
RECIPES: Mapping[str, Mapping[str, Any]] = SHOWN["recipes"]
TRIALS: Mapping[str, str] = SHOWN["trials"]
RECIPE_METHOD = "occlusion"
COLUMNS, QUALITY = 6, 88


def draw_trials(to: Path, albums: Path) -> list[Path]:
    """Writes the picture of one trial of each paradigm into `to`. Each study is built and walked through,
    which takes minutes; what else was pictured of it stays in `albums`."""
    written = []
    for study, trial in TRIALS.items():
        command = [sys.executable, "manage.py", "screenshots", study, "--short", "--to", str(albums / study)]
        if subprocess.run(command, cwd=settings.BASE_DIR).returncode:
            raise StudyError(f"{study} could not be pictured; what it printed above says why.")
        with Image.open(picture_of(albums / study, trial)) as picture:
            path = to / f"trial-{study}.webp"
            picture.convert("RGB").save(path, quality=QUALITY, method=6)
        written.append(path)
    return written


def picture_of(album: Path, trial: str) -> Path:
    """The file of that trial in an album. Raises StudyError if there is none."""
    for path in sorted(album.glob("*/*.png")):
        if path.stem.partition("-")[2] == f"trial-{trial}":
            return path
    raise StudyError(f"{album} has no picture of a trial {trial!r}: name one that it has, in TRIALS.")


def draw_sheets(to: Path, progress: Progress) -> list[Path]:
    """Writes one sheet per family of methods and one of recipes into `to`."""
    from stimuli.datasets import open_dataset
    from stimuli.library.explanations import draw, explain, open_model

    to.mkdir(parents=True, exist_ok=True)
    parameters = {name: value for name, value in DATASET.items() if name != "name"}
    dataset = open_dataset(Component(str(DATASET["name"]), parameters), Path())
    model = open_model(PREDICTOR, dataset=DATASET, progress=progress)
    first = {item.truth: item.key for item in reversed(dataset.items("people"))}
    pictures = [dataset.pixels(key) for key in first.values()]
    written = []
    for at, (family, methods) in enumerate(FAMILIES.items()):
        progress("families of methods", at, len(FAMILIES))
        result = explain(model, pictures, list(methods))
        written.append(_save(to / f"explainers-{family}.webp", result, draw(result)))
    progress("families of methods", len(FAMILIES), len(FAMILIES))
    result = explain(model, pictures, [RECIPE_METHOD])
    columns = {name: draw(result, recipe)[RECIPE_METHOD] for name, recipe in RECIPES.items()}
    return [*written, _save(to / "recipes.webp", result, columns)]


def _save(path: Path, result: Explanations, columns: Mapping[str, Sequence[Pixels]]) -> Path:
    """Columns in lines of a few, so that a page shows them, each line after the pictures alone."""
    from stimuli.render.sheet import contact_sheet

    told = [
        (predicted, f"{100 * confidence:.0f} %")
        for predicted, confidence in zip(result.predicted, result.confidence, strict=True)
    ]
    titles = list(columns)
    lines = []
    for start in range(0, len(titles), COLUMNS):
        some = {title: columns[title] for title in titles[start : start + COLUMNS]}
        lines.append(contact_sheet({"picture": result.views} | some, told, None))
    size = max(line.shape[1] for line in lines), sum(line.shape[0] for line in lines)
    whole = Image.new("RGB", size, "white")
    top = 0
    for line in lines:
        whole.paste(Image.fromarray(line), (0, top))
        top += line.shape[0]
    whole.save(path, quality=QUALITY, method=6)
    return path
