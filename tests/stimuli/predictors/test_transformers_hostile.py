"""Model folders that try to run code, mislead or fill the memory: each is refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from stimuli.errors import BadSpec, ShapeMismatch
from tests.stimuli.hub_models import MEAN, SIDE, STD, rewrite, save_classifier, write_settings
from tests.stimuli.predictors.test_transformers_image import load

pytestmark = pytest.mark.pure


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = {"a": [value]}
    return value


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "code": ({"auto_map": {"AutoModel": "evil.Net"}}, "auto_map names code .* no code of others is run"),
    "code within": ({"extra": {"auto_map": {"AutoModel": "evil.Net"}}}, "auto_map names code"),
    "quantised": ({"quantization_config": {"bits": 4}}, "its weights are quantised"),
    "too wide": ({"hidden_size": 10**9}, "hidden_size = 1000000000, and at most 1,000,000"),
    "too deep": ({"num_hidden_layers": 100_000}, "num_hidden_layers = 100000, and at most 512"),
    "too deep in all": ({"depths": [512, 512]}, "the sum of depths = 1024, and at most 512"),
    "nested": ({"extra": nested(40)}, "nested more than 32 deep"),
    "too many": ({"depths": [1] * 10_000}, "depths has 10,000 entries"),
    "unknown": (
        {"model_type": "mynet"},
        'type "mynet": .* no image classifier of that type; export it as .pt2',
    ),
    "elsewhere": ({"model_type": "timm_wrapper"}, "built by another library, which may download it"),
    "no classifier": ({"architectures": ["ViTModel"]}, "holds a 'ViTModel', which is no image classifier"),
    "no architecture": ({"architectures": None}, "holds a None, which is no image classifier"),
    "any class": ({"architectures": ["AutoModel"]}, "'AutoModel', which is no image classifier"),
    "nonsense": ({"hidden_act": "__import__('os')"}, "the library cannot build this network"),
    "no patches": ({"patch_size": 0}, "the library cannot build this network"),
    "gaps": ({"id2label": {"0": "cat", "2": "dog"}}, "does not number its labels from 0 to 1"),
}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    save_classifier(tmp_path / "net", "ViT")
    return tmp_path


@pytest.mark.parametrize("kind", REFUSED)
def test_it_refuses_a_hostile_configuration(study: Path, kind: str) -> None:
    changes, words = REFUSED[kind]
    rewrite(study / "net", **changes)
    with pytest.raises(BadSpec, match=words):
        load(study)


def test_it_never_makes_what_the_file_does_not_hold(study: Path) -> None:
    """A network of 40 GB is refused by counting, not by running out of memory."""
    rewrite(study / "net", hidden_size=60_000, intermediate_size=60_000, num_attention_heads=2)
    with pytest.raises(ShapeMismatch, match=r"asks for [\d,]+ weights, and its file holds [\d,]+; they do"):
        load(study)


def test_it_refuses_weights_that_are_missing_left_over_or_of_another_shape(study: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = study / "net" / "model.safetensors"
    state = load_file(path)
    extra = {"filler": torch.zeros(100)}
    cases = {
        '"classifier.weight" is missing': {k: v for k, v in state.items() if k != "classifier.weight"}
        | extra,
        '"filler" has no place': state | extra,
        r'"classifier.weight" has the shape \(5, 16\), the network takes \(3, 16\)': state
        | {"classifier.weight": torch.zeros(5, 16)},
    }
    for words, changed in cases.items():
        save_file(changed, path)
        with pytest.raises(ShapeMismatch, match=words):
            load(study)


def test_it_refuses_fewer_layers_than_the_weights_have(study: Path) -> None:
    """Otherwise a part of the network would silently be cut off."""
    rewrite(study / "net", num_hidden_layers=1)
    with pytest.raises(ShapeMismatch, match="has no place in it"):
        load(study)


def test_it_never_reads_a_pickle(study: Path, tmp_path: Path) -> None:
    from tests.stimuli.predictors.test_predictors_hostile import torch_bomb

    target = tmp_path / "ran"
    (study / "net" / "pytorch_model.bin").write_bytes(torch_bomb(target))
    load(study)  # the pickle beside safetensors is not looked at
    (study / "net" / "model.safetensors").unlink()
    with pytest.raises(
        BadSpec, match="pytorch_model.bin, which is not read, for a pickle can run code; save it"
    ):
        load(study)
    (study / "net" / "pytorch_model.bin").rename(study / "net" / "model.safetensors")
    with pytest.raises(BadSpec, match="no safetensors file"):
        load(study)
    assert not target.exists()


def test_it_stays_in_the_study_s_folder(study: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    away = tmp_path_factory.mktemp("away")
    save_classifier(away / "net", "ViT")
    for named in ("../" + away.name + "/net", str(away / "net")):
        with pytest.raises(BadSpec, match="lies outside the study's folder; copy the model into the study"):
            load(study, folder=named)
    (study / "linked").symlink_to(away / "net")
    with pytest.raises(BadSpec, match="lies outside the study's folder"):
        load(study, folder="linked")
    (study / "net" / "model.safetensors").unlink()
    (study / "net" / "model.safetensors").symlink_to(away / "net" / "model.safetensors")
    with pytest.raises(
        BadSpec, match="a link that leads out of the study's folder; put the file itself there"
    ):
        load(study)


def test_it_reads_only_the_shards_of_its_folder(study: Path) -> None:
    (study / "net" / "model.safetensors").rename(study / "net" / "model-1.safetensors")
    for names, words in (
        (["../../secret.safetensors"], "does not name safetensors files of this folder"),
        (["model.bin"], "does not name safetensors files"),
        ([f"model-{n}.safetensors" for n in range(100)], "does not name safetensors files"),
        (["model-2.safetensors"], "lacks model-2.safetensors; copy the whole folder"),
    ):
        (study / "net" / "model.safetensors.index.json").write_text("{}")
        rewrite(
            study / "net",
            "model.safetensors.index.json",
            metadata={"total_size": 10**9},
            weight_map={str(place): name for place, name in enumerate(names)},
        )
        with pytest.raises(BadSpec, match=words):
            load(study)


def test_it_says_which_file_is_damaged_or_missing(study: Path) -> None:
    with pytest.raises(BadSpec, match='folder = "nothing": there is no such folder .* nothing is downloaded'):
        load(study, folder="nothing")
    for content, words in (
        ("{", 'config.json" is no JSON'),
        ("[1]", 'config.json" is no JSON object'),
        ('{"a": NaN}', "NaN is no number"),
        ("[" * 200_000, "is no JSON"),
    ):
        (study / "net" / "config.json").write_text(content)
        with pytest.raises(BadSpec, match=words):
            load(study)
    (study / "net" / "config.json").unlink()
    with pytest.raises(BadSpec, match="holds no config.json: it is no model folder"):
        load(study)


def test_it_follows_no_other_treatment_of_pixels(study: Path) -> None:
    for changes, words in (
        ({"rescale_factor": 1 / 127.5}, "multiplies pixels by 0.0078.* instead of 1/255; .* give both"),
        ({"do_rescale": False}, "takes pixels in 0-255"),
        ({"do_flip_channel_order": True}, "it takes blue, green, red"),
        ({"image_mean": [0.5]}, r"image_mean of .* is \[0.5\], not three numbers"),
        ({"image_std": [0.5, 0.5, "1"]}, "not three numbers"),
        ({"image_std": [0.5, 0.5, 0]}, "every value must be above 0"),
        ({"size": {"height": 4096, "width": 4096}}, "takes pictures of 4096 pixels; 8 to 1024"),
        ({"size": {"height": 64, "width": 64}}, "does not take a batch of .* 64 x 64"),
        ({"auto_map": {"AutoImageProcessor": "evil.P"}}, "auto_map names code"),
    ):
        write_settings(study / "net", **changes)
        with pytest.raises((BadSpec, ShapeMismatch), match=words):
            load(study)
    write_settings(study / "net", rescale_factor=1 / 127.5)
    assert load(study, mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5]).mean == (0.5, 0.5, 0.5)
    write_settings(study / "net", do_normalize=False, image_mean=None)
    assert load(study).std == (1.0, 1.0, 1.0)
    (study / "net" / "preprocessor_config.json").unlink()
    with pytest.raises(BadSpec, match="holds no preprocessor_config.json: give mean and std"):
        load(study)
    assert load(study, mean=MEAN, std=STD).input_px == SIDE


def test_it_refuses_labels_that_do_not_match(study: Path) -> None:
    with pytest.raises(BadSpec, match=r"has the same labels in another order, \['cat', 'dog', 'owl'\]"):
        load(study, labels=["dog", "cat", "owl"])
    with pytest.raises(BadSpec, match=r'2 labels are given \(cat, dog\), but "net" has 3 logits'):
        load(study, labels=["cat", "dog"])
