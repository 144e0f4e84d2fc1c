"""`study_check` tells what the model knows of people's pictures, first, and what is wrong with it: planted
faults in real networks."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from django.core.management import CommandError, call_command
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from experiments.models import Slot, Study, Trial
from stimuli.predictors.architectures import timm, torchvision
from stimuli.training import Recipe, TrainedNetwork, train
from stimuli.types import Pixels
from tests import world
from tests.crowd.conftest import Outcome
from tests.stimuli.profiled import P3, matrix_profile, paint

pytestmark = pytest.mark.django_db
SIDE = 48
HALF, QUARTER = "[0.5, 0.5, 0.5]", "[0.25, 0.25, 0.25]"
SMALL = 'builder = "stimuli.training:small_network", builder_params = { width = 6, classes = 2 }'
NORMALISED = f"mean = {HALF}, std = {QUARTER}"


def tinted(count: int, seed: int) -> list[tuple[str, Pixels]]:
    """Pictures of two tints that overlap, under any light: about one in eight looks like the other class."""
    rng = np.random.default_rng(seed)
    made = []
    for place in range(count):
        truth = world.CLASSES[place % 2]
        tint = (8 if truth == "left" else -8) + rng.normal(0, 7)
        pixels = rng.uniform(70, 185) + np.array([tint, 0, -tint]) + rng.normal(0, 12, (SIDE, SIDE, 3))
        made.append((truth, pixels.clip(0, 255).astype(np.uint8)))
    return made


@pytest.fixture(scope="module")
def trained() -> TrainedNetwork:
    pictures = tinted(400, 1)
    targets = np.array([world.CLASSES.index(truth) for truth, _ in pictures])
    groups = [str(place) for place in range(len(pictures))]
    recipe = Recipe(seed=1, epochs=8, width=6, learning_rate=0.01)
    return train(np.stack([p for _, p in pictures]), targets, groups, 2, recipe, lambda *_: None)


def study(folder: Path, network: nn.Module, predictor: str, balance: str = "none") -> Path:
    """The small study with tinted pictures and the weights of a network."""
    path = world.write_study(folder, slots=8)
    for old in (folder / "images").rglob("*.png"):
        old.unlink()
    for place, (truth, pixels) in enumerate(tinted(160, 2)):
        Image.fromarray(pixels).save(folder / "images" / truth / f"{place:03d}.png")
    save_file({k: v.contiguous() for k, v in network.state_dict().items()}, folder / "model.safetensors")
    labels = "" if "labels" in predictor else 'labels = ["left", "right"], '
    table = f'{{ name = "torch_image", weights = "model.safetensors", {labels}{predictor} }}'
    text = path.read_text().replace('{ name = "toy", input_px = 32 }', table)
    path.write_text(text.replace("[stimuli]\n", f'[stimuli]\nbalance = "{balance}"\n'))
    return path


CAUSES = ("does not know", "label order", "normalisation", "weights loaded", "published_accuracy is")


def test_a_good_model_is_not_accused(tmp_path: Path, trained: TrainedNetwork, outcome: Outcome) -> None:
    params = f"{SMALL}, input_px = {SIDE}, {NORMALISED}, published_accuracy = 0.8"
    for balance in ("none", "prediction_x_correct"):
        printed, why = outcome(study(tmp_path / balance, trained.network, params, balance))
        assert why == "" and not any(cause in printed for cause in CAUSES), printed
    assert "published_accuracy, as declared: 0.80." in printed and "95 % interval" in printed


def test_it_prints_the_table_of_answers_as_they_are(
    tmp_path: Path, trained: TrainedNetwork, outcome: Outcome
) -> None:
    """Against the network itself, run by hand."""
    path = study(tmp_path, trained.network, f"{SMALL}, input_px = {SIDE}, {NORMALISED}")
    printed, _ = outcome(path)
    counts: dict[tuple[str, str], int] = {}
    for truth, pixels in tinted(160, 2):
        inputs = (torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255 - 0.5) / 0.25
        answer = world.CLASSES[int(trained.network(inputs).argmax())]
        counts[truth, answer] = counts.get((truth, answer), 0) + 1
    for truth in world.CLASSES:
        assert f"{truth} {counts[truth, 'left']} {counts[truth, 'right']}" in printed
    right = counts["left", "left"] + counts["right", "right"]
    assert f"Its accuracy on them: {right / 160:.2f} ({right} of 160;" in printed


def test_what_the_view_cuts_off_is_told(tmp_path: Path, trained: TrainedNetwork, outcome: Outcome) -> None:
    path = study(tmp_path, trained.network, f"{SMALL}, input_px = {SIDE}, {NORMALISED}")
    assert "The view cuts off" not in outcome(path)[0]
    for at in (tmp_path / "images" / "left").glob("*.png"):
        with Image.open(at) as picture:
            picture.resize((2 * SIDE, SIDE)).save(at)
    assert "The view cuts off 0.25 of a picture on average, 0.50 at most." in outcome(path)[0]


@pytest.mark.long(stays="test_pictures_without_colour_are_named_as_the_cause")
@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ('labels = ["right", "left"], ' + NORMALISED, "right on fewer than half of the pictures"),
        (f"mean = [0.0, 0.0, 0.0], std = {QUARTER}", "with pictures in -2 to 2"),
        (
            "published_accuracy = 0.89",
            "with pictures in -2 to 2",
        ),
        ("mean = [127.5, 127.5, 127.5], std = [63.75, 63.75, 63.75]", "divide mean and std by 255"),
    ],
)
def test_the_cause_is_named_whether_it_can_be_planned_or_not(
    tmp_path: Path, trained: TrainedNetwork, outcome: Outcome, params: str, sentence: str
) -> None:
    for balance in ("none", "prediction_x_correct"):
        path = study(tmp_path / balance, trained.network, f"{SMALL}, input_px = {SIDE}, {params}", balance)
        printed, why = outcome(path)
        assert "Pool of items" in printed and "Its accuracy on them" in printed
        assert sentence in printed + why, printed + why
        assert "were the trained weights loaded" not in printed + why
        assert "weaker model" not in why and "stronger model" not in why


def test_pictures_without_colour_are_named_as_the_cause(
    tmp_path: Path, trained: TrainedNetwork, outcome: Outcome
) -> None:
    """The network knows the classes by their tint alone."""
    params = f"{SMALL}, input_px = {SIDE}, {NORMALISED}"
    for balance in ("none", "prediction_x_correct"):
        path = study(tmp_path / balance, trained.network, params, balance)
        for at in (tmp_path / balance / "images").rglob("*.png"):
            with Image.open(at) as picture:
                grey = picture.convert("L")
            grey.save(at)
        printed, why = outcome(path)
        assert "160 of 160 pictures have no colour." in printed
        asked = "was the model trained on pictures in colour? 160 of these 160 have none: show it pictures"
        assert asked in printed + why and "weights loaded" not in printed + why
        assert not any(mark in printed + why for mark in ("?.", ".."))


def test_a_few_pictures_without_colour_are_no_cause(
    tmp_path: Path, trained: TrainedNetwork, outcome: Outcome
) -> None:
    path = study(tmp_path, trained.network, f"{SMALL}, input_px = {SIDE}, {NORMALISED}")
    for at in sorted((tmp_path / "images" / "left").glob("*.png"))[:5]:
        with Image.open(at) as picture:
            grey = picture.convert("L")
        grey.save(at)
    printed, why = outcome(path)
    assert "colour" not in printed + why  # it knows the others: the accuracy is above guessing


def test_the_colours_of_a_training_are_told_beside_those_that_the_study_shows(
    tmp_path: Path, trained: TrainedNetwork, outcome: Outcome
) -> None:
    params = f'{SMALL}, input_px = {SIDE}, {NORMALISED}, training_colour = "numbers"'
    path = study(tmp_path, trained.network, params)
    for at in sorted((tmp_path / "images" / "left").glob("*.png"))[:4]:
        with Image.open(at) as picture:
            paint(at, np.asarray(picture), matrix_profile(P3, None))
    printed, why = outcome(path)
    line = 'another label that people see; it was trained with colour = "numbers".'
    told = 'but the study shows colours converted to sRGB (colour = "convert"): in the table of'
    assert why == "" and line in printed and told in printed
    path.write_text(path.read_text().replace('path = "images"', 'path = "images", colour = "numbers"'))
    printed, why = outcome(path)
    assert why == "" and line in printed and "but the study shows" not in printed


def collapsed(network: nn.Module) -> Any:
    made = torch.nn.Sequential()
    for name, part in network.named_children():
        made.add_module(name, part)
    made.head = nn.Linear(24, 2)
    nn.init.zeros_(made.head.weight)
    return made


RESNET = 'builder = "torchvision", builder_params = { name = "resnet18", classes = 2 }, input_px = 32'
VIT = 'builder = "timm", builder_params = { name = "vit_tiny_patch16_224", classes = 2, image_px = 32 }'
VIT += ", input_px = 32"


@pytest.mark.long(stays="test_such_a_study_does_not_open_either")
@pytest.mark.parametrize(
    ("kind", "balance"),
    [
        ("collapsed", "none"),
        ("collapsed", "prediction_x_correct"),
        ("resnet18", "none"),
        ("vit", "prediction_x_correct"),
    ],
)
def test_a_network_that_knows_nothing_is_refused_with_the_true_cause(
    tmp_path: Path, trained: TrainedNetwork, outcome: Outcome, kind: str, balance: str
) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        network, params = {
            "collapsed": (collapsed(trained.network), f"{SMALL}, input_px = {SIDE}, {NORMALISED}"),
            "resnet18": (torchvision("resnet18", 2), f"{RESNET}, {NORMALISED}"),
            "vit": (timm("vit_tiny_patch16_224", 2, 32), f"{VIT}, {NORMALISED}"),
        }[kind]
    printed, why = outcome(study(tmp_path, network, params, balance))
    assert "Pool of items" in printed and "Its accuracy on them: 0." in printed
    assert "the network does not know these pictures: its accuracy" in why and "is what guessing gives" in why
    assert "were the trained weights loaded?" in why and "weaker model" not in why
    assert "?." not in printed + why


def test_such_a_study_does_not_open_either(
    tmp_path: Path, store_folder: Path, trained: TrainedNetwork
) -> None:
    """One answer throughout, and balance = "none": planned it could be."""
    network = collapsed(trained.network)
    with torch.no_grad():
        # It has a gradient, without which its method would be refused, and says the first class of all.
        network.head.weight[0].fill_(1e-4)
        network.head.bias.copy_(torch.tensor([2.0, -1.0]))
    path = study(tmp_path, network, f"{SMALL}, input_px = {SIDE}, {NORMALISED}")
    with pytest.raises(
        CommandError, match=r"may not open: the network does not know .* study_check measures"
    ):
        call_command("study_open", str(path), stdout=StringIO())
    assert Study.objects.get().state == Study.State.DRAFT
    assert not Slot.objects.exists() and not Trial.objects.exists()
