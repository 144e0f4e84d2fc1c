"""What methods, recipes and trials look like, for the documentation: sheets of real attributions of a small
network that is trained on drawn pictures, each method with its defaults, and a trial of each paradigm."""

from __future__ import annotations

import subprocess
import sys
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

DATASET = {"name": "synthetic", "scenario": "biased", "size_px": 224, "count": 40, "model_count": 320}
PREDICTOR = {
    "name": "trained_cnn",
    "downsampling": "average",
    "width": 8,
    "train_items": 320,
    "epochs": 4,
}
COLUMNS, QUALITY = 6, 88
FAMILIES: Mapping[str, Sequence[str]] = {
    "gradient": (
        "saliency",
        "gradient_x_input",
        "integrated_gradients",
        "smooth_grad",
        "guided_backprop",
        "lrp",
        "full_grad",
    ),
    "layer": (
        "grad_cam",
        "hires_cam",
        "grad_cam_elementwise",
        "grad_cam_plus_plus",
        "xgrad_cam",
        "layer_cam",
        "ablation_cam",
        "score_cam",
        "eigen_cam",
        "eigen_grad_cam",
        "deep_feature_factorization",
    ),
    "perturbation": ("occlusion", "rise", "lime_image", "shap_partition"),
    "control": ("random", "permuted", "smooth_random", "bottom_up_saliency", "spectral_residual"),
}
"""Methods of pictures that explain a network of this kind, by what they work with."""
RECIPE_METHOD = "occlusion"
RECIPES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "colormap = inferno": {"colormap": "inferno"},
    "alpha = 0.4": {"alpha": 0.4},
    "base = grey": {"base": "grey"},
    "sign = diverging": {"sign": "diverging", "colormap": "PuOr_r"},
    "smooth_px = 4": {"smooth_px": 4.0},
    "style = contour": {"style": "contour"},
    "style = mask": {"style": "mask"},
    "style = top_share": {"style": "top_share"},
}

TRIALS: Mapping[str, str] = {
    "sentiment": "predict-test-lime",
    "rate-explanations": "rate-test-canines_grad_cam-round-0-list-0",
    "find-the-digit": "solve-test-marked-expert",
    "alder-or-dogwood": "decide-second-test-grad_cam",
}
"""A shipped study of each paradigm -> the trial of it that is shown; the demo's own is in README."""


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
