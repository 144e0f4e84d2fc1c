"""What is measured and what is seen: deletion and insertion of each method's own map and of the drawn field.

    .venv/bin/python -m tests.proofs.measured [--seed S] [--network NAME]

Two networks are trained here, all their weights, on crops of five photographs that scikit-image and
scikit-learn carry, to say which photograph a crop is of: a ResNet-18 and a small vision transformer. They are
no networks of ImageNet, and the photographs that are explained are those of the training crops, so that
nothing is said of methods in general. Three of the photographs are explained by every method for pictures,
at its defaults but for `BUDGETS`, for the class of the photograph.

Columns: the method's own signed map ("own"), the field that was drawn before recipes had a sign ("magnitude")
and the one that is drawn now ("positive"). `against` is the share of the brightest tenth drawn that speaks
against the answer, `tied` the share of pixels whose order was drawn. Contact sheets go to var/proofs/. Exits
1 if a network does not know the photographs, or if the own maps and the drawn ones were scored alike.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.stats import rankdata, spearmanr
from torch import Tensor, nn

from stimuli.explainers import BORROWED, CONTROLS, EXPLAINERS, kind_of, open_explainer
from stimuli.metrics import open_metric
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors.architectures import prefix_of, timm, torchvision
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import PictureSettings
from stimuli.render.attribution_field import drawn_field
from stimuli.render.heatmap import overlay, top_places
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.training import repeatable
from stimuli.types import PixelAttribution, Pixels
from tests.proofs.recipes import photograph

CLASSES = ("astronaut", "coffee", "chelsea", "rocket", "flower")
EXPLAINED = CLASSES[:3]
SIDE = 96
STEPS = {"resnet18": 60, "vit_tiny_patch16_224": 120}
BATCH = 20
ENOUGH = 0.5
"""A share of the target's probability from which a network is taken to know a photograph."""
OTHERS = {"bcos", "captum", "recorded", "none", "bottom_up_saliency", "spectral_residual"}
"""An adapter, files, controls, and a method for networks of its kind."""
BUDGETS: Mapping[str, Mapping[str, Any]] = {
    "rise": {"masks": 256},
    "shap_partition": {"evaluations": 100},
    "smooth_grad": {"draws": 20},
    "integrated_gradients": {"steps": 20},
}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RECIPES = {"magnitude": RenderSpec(sign="magnitude"), "positive": RenderSpec(sign="positive")}
COLUMNS = ("own", *RECIPES)
SHEETS = Path(__file__).resolve().parents[2] / "var" / "proofs"


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one network, means over the photographs; by column, in the order of `COLUMNS`."""

    method: str
    deletion: tuple[float, ...]
    insertion: tuple[float, ...]
    tied: tuple[float, ...]
    against: float


def methods() -> list[str]:
    left_out = OTHERS | CONTROLS | BORROWED
    return [name for name in EXPLAINERS if name not in left_out and kind_of(Component(name)) == "image"]


def squared(picture: Image.Image, share: float, at: tuple[float, float]) -> Pixels:
    """A square of `share` of the shorter side, at a place in 0-1 of the room there is, at SIDE pixels."""
    side = round(share * min(picture.size))
    left, top = (round(place * (room - side)) for place, room in zip(at, picture.size, strict=True))
    box = (left, top, left + side, top + side)
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC, box=box)).copy()


def trained(name: str, pictures: Sequence[Image.Image], seed: int) -> TorchPredictor:
    """The network of a name, all of its weights trained to tell crops of the pictures apart."""
    draws = np.random.default_rng(seed)
    with repeatable(seed):
        made = torchvision(name, 5) if name == "resnet18" else timm(name, 5, SIDE)
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
        optimiser = torch.optim.AdamW(made.parameters(), lr=3e-4, weight_decay=0.05)
        for _ in range(STEPS[name]):
            labels = [at % len(pictures) for at in range(BATCH)]
            crops = [
                squared(pictures[at], draws.uniform(0.5, 1), (draws.uniform(), draws.uniform()))
                for at in labels
            ]
            shade = torch.from_numpy(draws.uniform(0.7, 1.2, (BATCH, 1, 1, 1))).float()
            inputs = (tensor(crops) * shade).clamp(0, 1)
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(made((inputs - mean) / std), torch.tensor(labels))
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return assemble(
        BuiltNetwork(made.eval(), prefix_of(made)),
        PictureSettings(SIDE, MEAN, STD), labels=CLASSES, layer="",
        architecture={"kind": name}, payload=b"", provenance={},
    )  # fmt: skip


def tensor(pictures: Sequence[Pixels]) -> Tensor:
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255


def explained(predictor: TorchPredictor, subjects: Sequence[Subject]) -> dict[tuple[str, int], Any]:
    """The maps by method and photograph; methods that refuse the network are left out, with their reason."""
    jobs = []
    for name in methods():
        method = open_explainer(Component(name, dict(BUDGETS.get(name, {}))))
        for at, subject in enumerate(subjects):
            jobs.append(Job((name, at), subject, partial(method.explain, predictor, subject)))
        try:
            method.require(predictor, predictor.layer)
        except Exception as refused:  # noqa: BLE001
            print(f"{name} is left out: {refused}")
            jobs = jobs[: -len(subjects)]
    done: dict[tuple[str, int], Any] = {}
    for each in drive(jobs, Network(predictor, rows=16)):
        if each.error is not None:
            raise each.error
        done[each.name] = each.result  # type: ignore[index]
    return done


def measured(
    predictor: TorchPredictor, subjects: Sequence[Subject], maps: Mapping[tuple[str, int], PixelAttribution]
) -> dict[tuple[str, int, str, str], Any]:
    """Deletion and insertion of every map, by method, photograph, column and metric."""
    jobs = []
    for (name, at), made in maps.items():
        for column in COLUMNS:
            shown = made
            if column in RECIPES:
                shown = PixelAttribution(drawn_field(made, RECIPES[column]), signed=False)
            for metric in ("deletion", "insertion"):
                chosen = open_metric(Component(metric if column == "own" else f"{metric}_drawn"))
                step = partial(chosen.measure, predictor, subjects[at], shown)
                jobs.append(Job((name, at, column, metric), subjects[at], step))
    done: dict[tuple[str, int, str, str], Any] = {}
    for each in drive(jobs, Network(predictor, rows=16)):
        if each.error is not None:
            raise each.error
        done[each.name] = each.result  # type: ignore[index]
    return done


def against(made: PixelAttribution) -> float:
    """The share of the brightest tenth of the magnitudes that speaks against the answer."""
    top = top_places(drawn_field(made, RECIPES["magnitude"]), 0.1) > 0
    return float((made.values[top] < 0).mean()) if top.any() else 0.0


def table_of(predictor: TorchPredictor, subjects: Sequence[Subject]) -> tuple[list[Row], dict[Any, Any]]:
    maps = explained(predictor, subjects)
    numbers = measured(predictor, subjects, maps)
    places = range(len(subjects))

    def mean(name: str, metric: str, of: Any) -> tuple[float, ...]:
        return tuple(
            float(np.mean([of(numbers[name, at, column, metric]) for at in places])) for column in COLUMNS
        )

    rows = [
        Row(
            name,
            mean(name, "deletion", lambda number: number.value),
            mean(name, "insertion", lambda number: number.value),
            mean(name, "deletion", lambda number: number.details["tied"]),
            float(np.mean([against(maps[name, at]) for at in places])),
        )
        for name in dict.fromkeys(name for name, _ in maps)
    ]
    return rows, maps


def told(rows: Sequence[Row]) -> list[str]:
    """The table, each number with its rank in its column, and Spearman's correlation between columns."""
    head = "".join(f"{f'{metric} {column}':>15}" for metric in ("del", "ins") for column in COLUMNS)
    lines = [f"{'method':27}{head}{'against':>9}" + "".join(f"{f'tied {column}':>15}" for column in COLUMNS)]
    columns: list[NDArray[np.float64]] = []
    for values, sign in (([row.deletion for row in rows], 1), ([row.insertion for row in rows], -1)):
        columns += [np.asarray(column) for column in zip(*values, strict=True)]
        columns[-3:] = [column * sign for column in columns[-3:]]
    ranks = [rankdata(np.round(column, 4), method="min") for column in columns]
    for at, row in enumerate(rows):
        both = (*row.deletion, *row.insertion)
        cells = "".join(
            f"{f'{value:.3f} ({int(rank[at]):2d})':>15}" for value, rank in zip(both, ranks, strict=True)
        )
        tied = "".join(f"{share:15.2f}" for share in row.tied)
        lines.append(f"{row.method:27}{cells}{row.against:9.2f}{tied}")
    for metric, first in (("deletion", 0), ("insertion", 3)):
        rho = [float(spearmanr(columns[first], columns[first + step]).statistic) for step in (1, 2)]
        lines.append(
            f"{metric}: Spearman of own and magnitude {rho[0]:.2f}, of own and positive {rho[1]:.2f}"
        )
    return lines


def sheet(pictures: Sequence[Pixels], maps: Mapping[tuple[str, int], PixelAttribution]) -> Image.Image:
    """Methods down, photographs across, drawn by the default recipe; the photographs themselves on top."""
    names = list(dict.fromkeys(name for name, _ in maps))
    wide, step = 190, SIDE + 4
    page = Image.new("RGB", (wide + step * len(pictures), step * (1 + len(names))), "white")
    for at, picture in enumerate(pictures):
        page.paste(Image.fromarray(picture), (wide + step * at, 0))
    for down, name in enumerate(names, 1):
        ImageDraw.Draw(page).text((4, step * down + SIDE // 2), name, fill="black")
        for at, picture in enumerate(pictures):
            drawn = overlay(picture, maps[name, at], RenderSpec())
            page.paste(Image.fromarray(drawn), (wide + step * at, step * down))
    return page


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Score every method's own map and the drawn field.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--network", choices=STEPS, help="one of them alone")
    asked = parser.parse_args(words)
    seed = asked.seed
    opened = [photograph(name) for name in CLASSES]
    views = [squared(picture, 1.0, (0.5, 0.5)) for picture in opened[: len(EXPLAINED)]]
    SHEETS.mkdir(parents=True, exist_ok=True)
    is_good = True
    for name in [asked.network] if asked.network else STEPS:
        predictor = trained(name, opened, seed)
        inputs = tensor(views)
        with torch.no_grad():
            known = predictor(inputs).softmax(1)[range(len(views)), range(len(views))].tolist()
        print(f"\n{name}: probability of the photograph's class " + ", ".join(f"{p:.2f}" for p in known))
        subjects = [
            Subject(at, EXPLAINED[at], seed, predictor.layer, image) for at, image in enumerate(inputs)
        ]
        rows, maps = table_of(predictor, subjects)
        print("\n".join(told(rows)), flush=True)
        sheet(views, maps).save(SHEETS / f"measured-{name}.png")
        differ = any(row.deletion[0] != row.deletion[1] for row in rows)
        is_good = is_good and min(known) > ENOUGH and differ
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
