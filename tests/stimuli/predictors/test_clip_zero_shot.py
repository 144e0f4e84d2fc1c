"""CLIP and SigLIP as classifiers, compared with the library's own logits for pictures and texts together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.clip import canonical, load_clip, picture_tower
from stimuli.predictors.files.weights import pack_weights, read_weights
from stimuli.spec import JsonValue
from tests.stimuli.hub_models import MEAN, STD, rewrite, save_clip
from tests.stimuli.predictors.test_predictors import opened, restored
from tests.stimuli.predictors.test_transformers_image import views

pytestmark = pytest.mark.pure
FORMS = ("clip", "siglip", "blip")
Saved = dict[str, tuple[Path, Any]]


def load(study_folder: Path, **params: JsonValue) -> TorchPredictor:
    return opened("clip_zero_shot", study_folder, **{"folder": "net", **params})


def pixels() -> torch.Tensor:
    """The views scaled and normalised by hand."""
    scaled = views().transpose(0, 3, 1, 2).astype(np.float32) / 255
    mean, std = (np.array(values, np.float32)[None, :, None, None] for values in (MEAN, STD))
    return torch.from_numpy((scaled - mean) / std)


def together(model: Any, folder: Path, texts: list[str], form: str) -> np.ndarray[Any, Any]:
    """The library's own pass over pictures and texts, padded as its documentation says."""
    words = Tokenizer.from_file(str(folder / "net" / "tokenizer.json"))
    words.enable_padding(pad_id=0, length=16 if form == "siglip" else None)
    encoded = words.encode_batch(texts)
    ids = torch.tensor([encoding.ids for encoding in encoded])
    masked = (
        {"attention_mask": torch.tensor([encoding.attention_mask for encoding in encoded])}
        if form != "siglip"
        else {}
    )
    with torch.no_grad():
        return np.asarray(model(input_ids=ids, pixel_values=pixels(), **masked).logits_per_image.numpy())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folders = {form: tmp_path_factory.mktemp(form) for form in FORMS}
    return {form: (path, save_clip(path / "net", form=form)) for form, path in folders.items()}


@pytest.mark.parametrize("form", FORMS)
def test_it_says_what_the_library_says(saved: Saved, form: str) -> None:
    folder, model = saved[form]
    predictor = load(folder, prompt="photo of the {} in wild")
    texts = ["photo of the cat in wild", "photo of the dog in wild"]
    expected = together(model, folder, texts, form)
    assert float(np.abs(expected[:, 0] - expected[:, 1]).min()) > 1e-3
    np.testing.assert_allclose(predictor.logits(views(), batch=2), expected, atol=2e-5)


def test_it_asks_for_a_photo_of_each_label(saved: Saved) -> None:
    folder, model = saved["clip"]
    predictor = load(folder)
    expected = together(model, folder, ["a photo of a cat .", "a photo of a dog ."], "clip")
    np.testing.assert_allclose(predictor.logits(views()), expected, atol=2e-5)
    assert predictor.provenance["prompts"] == ["a photo of a cat.", "a photo of a dog."]


def test_it_puts_names_where_labels_are_no_words(saved: Saved) -> None:
    folder, _ = saved["clip"]
    named = load(folder, labels=["n01", "n02", "n03"], names=["owl", "dog", "cat"])
    plain = load(folder, labels=["owl", "dog", "cat"])
    assert named.labels == ("n01", "n02", "n03") and named.key != plain.key
    np.testing.assert_array_equal(named.logits(views()), plain.logits(views()))


def test_it_gives_each_label_the_same_logit_beside_any_others(saved: Saved) -> None:
    folder, _ = saved["clip"]
    three = load(folder, labels=["owl", "cat", "dog"]).logits(views())
    np.testing.assert_array_equal(load(folder, labels=["cat", "dog"]).logits(views()), three[:, 1:])


@pytest.mark.parametrize("form", FORMS)
def test_it_comes_back_without_text_model_and_tokenizer(saved: Saved, form: str) -> None:
    predictor = load(saved[form][0])
    archive = predictor.dump()
    assert b"text_model" not in archive and b"token_embedding" not in archive
    back = restored(predictor)
    assert (back.key, back.layer, back.layouts) == (predictor.key, predictor.layer, predictor.layouts)
    np.testing.assert_array_equal(back.logits(views()), predictor.logits(views()))
    assert back.dump() == archive == load(saved[form][0]).dump()


def test_it_reads_the_last_layer_whose_cells_bear_on_the_logits(saved: Saved) -> None:
    clip = load(saved["clip"][0])
    assert clip.layer == "tower.vision.encoder.layers.1.layer_norm1"
    assert (clip.layouts[clip.layer].prefix, clip.layouts[clip.layer].height) == (1, 4)
    assert not clip.layouts["tower.vision.encoder.layers.1.layer_norm2"].sees_target
    siglip = load(saved["siglip"][0])  # its head attends to every cell of the last normalisation
    assert siglip.layer == "tower.vision.post_layernorm"
    assert (siglip.layouts[siglip.layer].prefix, siglip.layouts[siglip.layer].height) == (0, 4)


def test_it_is_differentiable_in_the_picture(saved: Saved) -> None:
    """Against central differences in single precision."""
    predictor = load(saved["clip"][0])
    x = predictor.inputs(views(1)).requires_grad_()
    (gradient,) = torch.autograd.grad(predictor(x)[0, 1], x)
    step = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)) * 1e-3
    with torch.no_grad():
        change = (predictor(x + step) - predictor(x - step))[0, 1] / 2
    assert float((gradient * step).sum()) == pytest.approx(float(change), rel=0.02)


@pytest.mark.parametrize("form", FORMS)
def test_it_offers_both_halves(saved: Saved, form: str) -> None:
    """The basis of the predictors by concepts: scaled cosines are the library's logits."""
    folder, model = saved[form]
    clip = load_clip(folder, "net")
    texts = ["the cat", "the dog in wild"]
    with torch.no_grad():
        cosines = clip.tower(pixels()) @ clip.embed(texts).T
    assert float(cosines.abs().max()) <= 1 + 1e-6
    expected = together(model, folder, texts, form)
    np.testing.assert_allclose(cosines.numpy() * clip.scale + clip.bias, expected, atol=2e-5)
    back = picture_tower(
        clip.architecture, read_weights(pack_weights(clip.tower), "the archive"), "the archive"
    )
    with torch.no_grad():
        assert torch.equal(back(pixels()), clip.tower(pixels()))


def test_it_writes_texts_as_siglip_s_were() -> None:
    assert canonical("A photo,  of a Cat. ") == "a photo of a cat"


def test_it_refuses_prompts_that_do_not_fit(saved: Saved) -> None:
    folder, _ = saved["clip"]
    for params, words in (
        ({"prompt": "a photo"}, r'prompt = "a photo": write \{\} once'),
        ({"prompt": "{} or {}"}, r"write \{\} once"),
        ({"names": ["cat"]}, "names = .*: 2 are needed, one per label"),
        (
            {"prompt": "{} " + "cat " * 40},
            'the text "cat cat .*" has 43 tokens, and "net" takes 1 to 16; shorten',
        ),
    ):
        with pytest.raises(BadSpec, match=words):
            load(folder, **params)


def test_it_refuses_folders_that_are_no_clip(tmp_path: Path) -> None:
    save_clip(tmp_path / "net")
    for changes, error, words in (
        ({"model_type": "vit"}, BadSpec, 'a model of type "vit"; clip, siglip, blip are taken'),
        ({"auto_map": {"AutoModel": "evil.Net"}}, BadSpec, "no code of others is run"),
        (
            {"text_config": {"num_hidden_layers": 10_000}},
            BadSpec,
            "num_hidden_layers = 10000, and at most 512",
        ),
        ({"text_config": {"num_hidden_layers": 1}}, ShapeMismatch, "do not belong together|does not fit"),
    ):
        save_clip(tmp_path / "net")
        rewrite(tmp_path / "net", **changes)
        with pytest.raises(error, match=words):
            load(tmp_path)


def test_it_refuses_tokenizers_that_bring_code_or_do_not_fit(tmp_path: Path) -> None:
    save_clip(tmp_path / "net")
    path = tmp_path / "net" / "tokenizer.json"
    (tmp_path / "net" / "tokenizer_config.json").write_text(
        '{"auto_map": {"AutoTokenizer": ["evil.T", null]}}'
    )
    with pytest.raises(BadSpec, match="tokenizer_config.json.* auto_map names code"):
        load(tmp_path)
    (tmp_path / "net" / "tokenizer_config.json").write_text(
        '{"model_max_length": 1000000000000000019884624838656}'
    )
    load(tmp_path)
    path.write_text(path.read_text().replace('"cat": ', '"cat": 90'))
    with pytest.raises(BadSpec, match="has more words than its text model"):
        load(tmp_path)
    path.write_text("{}")
    with pytest.raises(BadSpec, match='tokenizer.json" is no tokenizer'):
        load(tmp_path)
    path.unlink()
    with pytest.raises(BadSpec, match="holds no tokenizer.json; save the tokenizer there"):
        load(tmp_path)
