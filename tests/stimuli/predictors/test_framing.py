"""What the network sees of a picture, compared with the libraries that published models are made with."""

from __future__ import annotations

import hashlib
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from stimuli.errors import BadSpec
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.files.hub_folder import open_hub_folder
from stimuli.predictors.files.hub_preprocessing import picture_settings
from stimuli.predictors.files.picture_settings import PictureSettings, read_published
from stimuli.predictors.framing import Framing, cropped_share
from stimuli.predictors.parameters import HubPictureParams
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.store import LocalStore
from stimuli.types import Pixels
from tests.stimuli.material import toy_source
from tests.stimuli.predictors.test_predictors import export, network, opened, restored
from tests.witnesses import timm, torchvision

pytestmark = pytest.mark.pure
SIZES = [(90, 160), (160, 90), (77, 131), (131, 78), (64, 64), (400, 305), (225, 301), (40, 333)]
MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]


def picture(height: int, width: int) -> Pixels:
    return np.random.default_rng([height, width]).integers(0, 256, (height, width, 3), dtype=np.uint8)


def normalised(view: Pixels, mean: Any = MEAN, std: Any = STD) -> NDArray[np.float32]:
    scaled = (view.astype(np.float64) / 255 - np.array(mean)) / np.array(std)
    return np.asarray(scaled.transpose(2, 0, 1), np.float32)


@pytest.mark.parametrize(
    ("height", "width", "side", "digest"),
    [
        (90, 160, 64, "e36e39d07e6d24cc"),
        (160, 90, 64, "ee92b812ce6e2cd9"),
        (77, 131, 48, "68c247f6da006140"),
        (40, 333, 64, "5bd75b5fdf9814e4"),
        (64, 64, 64, "ad104576726e1dde"),
        (301, 301, 224, "baf84896ad29fd89"),
        (20, 60, 16, "75e074f0490fd90e"),
    ],
)
def test_it_shows_what_it_showed_when_there_was_one_framing(
    height: int, width: int, side: int, digest: str
) -> None:
    """The digests were made by commit 77e2e66, whose views stand in studies."""
    view = Framing().view(picture(height, width), side)
    assert hashlib.sha256(view.tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize(("resize_px", "side", "way"), [(256, 224, "bilinear"), (232, 224, "bicubic")])
def test_it_sees_what_torchvision_s_transforms_give(
    tmp_path: Path, height: int, width: int, resize_px: int, side: int, way: str
) -> None:
    torchvision()
    presets, functional = (
        import_module(f"torchvision.transforms.{name}") for name in ("_presets", "functional")
    )
    mode = functional.InterpolationMode(way)
    preset = presets.ImageClassification(
        crop_size=side, resize_size=resize_px, interpolation=mode, mean=MEAN, std=STD
    )
    fields = {name: getattr(preset, name) for name in ("crop_size", "resize_size", "mean", "std")}
    (tmp_path / "transforms.json").write_text(json.dumps({**fields, "interpolation": mode.value}))
    settings = read_published(tmp_path / "transforms.json", "transforms.json")
    pixels = picture(height, width)
    expected = preset(Image.fromarray(pixels)).numpy()
    np.testing.assert_allclose(normalised(settings.view(pixels)), expected, atol=1e-5)


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize(
    ("mode", "share", "way", "side"),
    [("center", 0.9, "bicubic", 96), ("squash", 1.0, "bilinear", 64), ("border", 0.95, "lanczos", 80)],
)
def test_it_sees_what_timm_s_transforms_give(
    tmp_path: Path, height: int, width: int, mode: str, share: float, way: str, side: int
) -> None:
    data = import_module(f"{timm().__name__}.data")
    cfg = {"input_size": [3, side, side], "crop_pct": share, "crop_mode": mode, "interpolation": way}
    cfg |= {"mean": MEAN, "std": STD}
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "x", "pretrained_cfg": cfg}))
    settings = read_published(tmp_path / "config.json", "config.json")
    transform = data.create_transform(**data.resolve_data_config({}, pretrained_cfg=cfg), is_training=False)
    pixels = picture(height, width)
    expected = transform(Image.fromarray(pixels)).numpy()
    np.testing.assert_allclose(normalised(settings.view(pixels)), expected, atol=1e-5)


def hub_settings(
    folder: Path, written: dict[str, Any], model_type: str, **given: JsonValue
) -> PictureSettings:
    (folder / "net").mkdir(exist_ok=True)
    (folder / "net" / "preprocessor_config.json").write_text(json.dumps(written))
    params = read_params(Component("x", {"folder": "net", **given}), HubPictureParams, "predictor")
    return picture_settings(open_hub_folder(folder, "net"), None, model_type, params)


NORM = {"image_mean": MEAN, "image_std": STD}
PROCESSORS: list[tuple[str, str, dict[str, Any]]] = [
    ("ViT", "vit", {"size": 96, **NORM}),
    ("ViT", "vit", {"size": {"height": 64, "width": 64}, "resample": 3, **NORM}),
    ("DeiT", "deit", {"size": 80, "crop_size": 64, "do_center_crop": True, "resample": 3, **NORM}),
    ("CLIP", "clip", {"size": 64, "crop_size": 64, "do_center_crop": True, "resample": 3, **NORM}),
    ("CLIP", "clip", {}),
    ("Bit", "dinov2", {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, **NORM}),
    ("Siglip", "siglip", {"size": {"height": 64, "width": 64}, "resample": 3, **NORM}),
    ("ConvNext", "resnet", {"size": 224, "crop_pct": 0.875, "resample": 3, **NORM}),
    ("ConvNext", "convnext", {"size": {"shortest_edge": 384}, "resample": 2, **NORM}),
    ("MobileNetV2", "mobilenet_v2", {"resample": 2, **NORM}),
    ("Beit", "beit", {"size": {"height": 64, "width": 64}, "resample": 1, **NORM}),
]


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "by its model"])
@pytest.mark.parametrize(("name", "model_type", "written"), PROCESSORS)
def test_it_sees_what_the_processor_of_transformers_gives(
    tmp_path: Path, name: str, model_type: str, written: dict[str, Any], is_named: bool
) -> None:
    """Settings as the hub has them, often without the processor's name and with a bare number as size."""
    processor = getattr(import_module("transformers"), f"{name}ImageProcessorPil")(**written)
    stored = {**written, "image_processor_type": f"{name}ImageProcessor"} if is_named else written
    settings = hub_settings(tmp_path, stored, model_type)
    for height, width in SIZES:
        pixels = picture(height, width)
        expected = processor(Image.fromarray(pixels), return_tensors="np")["pixel_values"][0]
        view = normalised(settings.view(pixels), settings.mean, settings.std)
        np.testing.assert_allclose(view, expected, atol=1e-5, err_msg=f"{height} x {width}")


def test_it_lets_the_study_say_otherwise(tmp_path: Path) -> None:
    written = {
        "size": {"shortest_edge": 256},
        "crop_size": 224,
        "do_center_crop": True,
        "resample": 3,
        **NORM,
    }
    assert hub_settings(tmp_path, written, "clip").framing == Framing(256, "bicubic", "crop", "transformers")
    smaller = hub_settings(tmp_path, written, "clip", input_px=112)
    assert (smaller.input_px, smaller.framing.resize_px) == (112, 128)
    assert hub_settings(
        tmp_path, written, "clip", fit="squash", resize_px=224, interpolation="box"
    ).framing == (Framing(224, "box", "squash", "transformers"))


def test_it_refuses_ways_that_it_does_not_have(tmp_path: Path) -> None:
    levit = {"image_processor_type": "LevitImageProcessor", **NORM}
    with pytest.raises(BadSpec, match=r"prepares its pictures in a way .*LevitImageProcessor.*give fit and"):
        hub_settings(tmp_path, levit, "levit")
    assert hub_settings(tmp_path, levit, "levit", fit="crop", resize_px=256).framing.resize_px == 256
    with pytest.raises(BadSpec, match="resizes by 9: give interpolation, one of nearest, box"):
        hub_settings(tmp_path, {"resample": 9, **NORM}, "vit")
    with pytest.raises(BadSpec, match="crop_pct of .* is 0, and 0.1 to 1"):
        hub_settings(tmp_path, {"size": 224, "crop_pct": 0, **NORM}, "resnet")
    for content, words in (
        ("{", "cannot be read as JSON"),
        ('{"a": 1}', "neither a config.json of timm"),
        ('{"pretrained_cfg": {"input_size": [3, 224, 256]}}', "squares of three channels"),
        ('{"pretrained_cfg": {"input_size": [3, 224, 224], "crop_mode": "twist"}}', "crop_mode = 'twist'"),
        (
            '{"pretrained_cfg": {"input_size": [3, 224, 224], "interpolation": "random"}}',
            "resizes by 'random'",
        ),
        ('{"crop_size": 9999, "resize_size": 256}', "one whole number of pixels, 8 to 2048"),
        ('{"crop_size": 224, "resize_size": 256, "mean": [1]}', "not three numbers"),
    ):
        (tmp_path / "said.json").write_text(content)
        with pytest.raises(BadSpec, match=words):
            read_published(tmp_path / "said.json", "said.json")


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize(
    "framing",
    [
        Framing(),
        Framing(80, "bilinear", "crop", "torchvision"),
        Framing(72, "bicubic", "squash", "torchvision"),
        Framing(64, "bilinear", "pad", "torchvision"),
        Framing(70, "bilinear", "pad", "torchvision"),
    ],
)
def test_it_knows_which_part_of_the_picture_it_shows(height: int, width: int, framing: Framing) -> None:
    """In a picture whose colour tells the place, the view's colours are the places in the box."""
    side = 64
    rows, columns = np.mgrid[:height, :width]
    places = np.stack([(columns + 0.5) / width, (rows + 0.5) / height, np.full((height, width), 0.5)], -1)
    view = framing.view(np.rint(places * 255).astype(np.uint8), side) / 255
    left, top, right, bottom = framing.box(height, width, side)
    across, down = (
        (np.arange(side) + 0.5) / side * (end - start) + start
        for start, end in ((left, right), (top, bottom))
    )
    inside = np.outer((down > 0.03) & (down < 0.97), (across > 0.03) & (across < 0.97))
    assert inside.any()
    wide, high = np.meshgrid(across, down)
    assert np.abs(view[..., 0] - wide)[inside].max() < 0.02
    assert np.abs(view[..., 1] - high)[inside].max() < 0.02
    bars = (wide < 0) | (wide > 1) | (high < 0) | (high > 1)
    assert not view[bars].any()


def test_it_says_how_much_is_cut_away() -> None:
    assert cropped_share(Framing().box(90, 160, 64)) == pytest.approx(1 - 90 / 160, abs=0.005)
    box = Framing(256, "bilinear", "crop", "torchvision").box(256, 256, 224)
    assert box == (16 / 256, 16 / 256, 240 / 256, 240 / 256)
    assert cropped_share(box) == pytest.approx(1 - (224 / 256) ** 2)
    assert cropped_share(Framing(64, fit="pad").box(90, 160, 64)) == pytest.approx(0)
    assert cropped_share(Framing(64, fit="squash").box(90, 160, 64)) == 0


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export(network(), folder / "model.pt2")
    return folder


def load(folder: Path, **params: JsonValue) -> TorchPredictor:
    settings = {"weights": "model.pt2", "labels": ["cat", "dog"], "mean": MEAN, "std": STD, **params}
    return opened("torch_image", folder, **settings)


def test_it_keeps_the_key_of_a_predictor_that_says_nothing_of_its_framing(exported: Path) -> None:
    """Keys and archives are as they were; a framing makes another predictor, and comes back with it."""
    plain = load(exported, input_px=32)
    assert plain.key == load(exported, input_px=32, fit="crop", interpolation="bicubic").key
    assert b'"framing"' not in plain.dump()[:20_000]
    wide = picture(90, 160)
    for params in ({"resize_px": 40}, {"interpolation": "bilinear"}, {"fit": "squash"}, {"fit": "pad"}):
        framed = load(exported, input_px=32, **params)
        back = restored(framed)
        assert framed.key != plain.key and back.key == framed.key and back.framing == framed.framing
        np.testing.assert_array_equal(back.view(wide), framed.view(wide))
        assert not np.array_equal(framed.view(wide), plain.view(wide))
    assert load(exported, input_px=32, fit="pad").view(wide)[0, 0].tolist() == [102, 128, 153]
    assert load(exported, input_px=32, fit="pad").box(wide.shape)[1] < 0


@pytest.mark.parametrize(
    ("params", "digest"),
    [
        ({"kind": "quadrant"}, "ce3774a041b87efb"),
        ({"kind": "linear", "seed": 3, "input_px": 16}, "4e4adada69208a57"),
    ],
)
def test_it_keeps_the_keys_of_stored_predictors(params: dict[str, JsonValue], digest: str) -> None:
    """Made by commit 77e2e66."""
    assert opened("toy", **params).key.startswith(digest)


def test_it_takes_what_a_file_says_unless_the_study_says_otherwise(exported: Path, tmp_path: Path) -> None:
    (exported / "config.json").write_text(
        json.dumps(
            {"pretrained_cfg": {"input_size": [3, 32, 32], "crop_pct": 0.875, "mean": [0, 0, 0], "std": STD}}
        )
    )
    said = opened(
        "torch_image", exported, weights="model.pt2", labels=["cat", "dog"], preprocessing="config.json"
    )
    assert (said.input_px, said.mean, said.framing.resize_px) == (32, (0.0, 0.0, 0.0), 36)
    assert load(exported, preprocessing="config.json").mean == tuple(MEAN)
    assert load(exported, preprocessing="config.json", resize_px=48).framing.resize_px == 48
    with pytest.raises(BadSpec, match="needs parameter 'input_px', or 'preprocessing'"):
        load(exported)
    with pytest.raises(BadSpec, match='resize_px = 16, but the network takes 32 pixels.*unless fit = "pad"'):
        load(exported, input_px=32, resize_px=16)


def test_it_tells_what_is_stated_of_it_and_makes_no_other_key_of_it(exported: Path) -> None:
    told = load(exported, input_px=32, published_accuracy=0.76, training_colour="numbers")
    assert told.provenance["published_accuracy"] == 0.76
    assert told.provenance["training_colour"] == "numbers"
    assert told.key == load(exported, input_px=32).key
    with pytest.raises(BadSpec, match="published_accuracy' is 76, but must lie between 0 and 1"):
        load(exported, input_px=32, published_accuracy=76)
    with pytest.raises(BadSpec, match="training_colour' is 'srgb', but must be one of"):
        load(exported, input_px=32, training_colour="srgb")


def test_it_looks_at_pictures_as_it_is_asked_about_them(exported: Path) -> None:
    """The logits of a view are those of the picture prepared by hand."""
    framed = load(exported, input_px=32, resize_px=40, interpolation="bilinear")
    pixels = picture(120, 80)
    resized = Image.fromarray(pixels).resize((40, 60), Image.Resampling.BILINEAR).crop((4, 14, 36, 46))
    with torch.no_grad():
        expected = network()(torch.from_numpy(normalised(np.asarray(resized)))[None])
    np.testing.assert_allclose(framed.logits([framed.view(pixels)]), expected.numpy(), atol=1e-5)


def test_it_tells_of_every_item_what_was_cut_away(tmp_path: Path) -> None:
    """The pictures have 48 x 40 pixels: of the width, 8 are outside of the square."""
    _, items = toy_source(tmp_path, LocalStore(tmp_path / "store"))
    assert len({item.box for item in items}) == 1
    assert items[0].box == pytest.approx((4 / 48, 0, 44 / 48, 1), abs=0.01)
    assert items[0].cropped_share == pytest.approx(8 / 48, abs=0.01)
