"""Explanations as rows of numbers: what is encoded, how often, what is kept, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from stimuli.errors import BadRatings, BadSpec
from stimuli.preference.embedding import AT_ONCE, ShownExplanation, embed
from stimuli.preference.encoders import Histograms, Vectors, open_encoder
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.scorer_file import SavedScorer
from stimuli.render.heatmap import overlay
from stimuli.render.png import encode
from stimuli.render.recipe import RenderSpec
from stimuli.types import PixelAttribution, Pixels
from tests.stimuli.hub_models import MEAN, STD, save_clip
from tests.stimuli.predictors.test_transformers_image import views
from tests.stimuli.preferring import card

pytestmark = pytest.mark.pure


class Recording:
    """Three numbers per content, and everything that it was given; `limit` contents, and it breaks."""

    name, digest, size = "recording", "e" * 64, 3

    def __init__(self, limit: int = 10_000) -> None:
        self.shown: list[Pixels] = []
        self.read: list[str] = []
        self.limit = limit

    def pictures(self, pictures: Sequence[Pixels]) -> Vectors:
        self.shown += pictures
        if len(self.shown) > self.limit:
            raise RuntimeError("the power failed")
        return np.array([picture.mean(axis=(0, 1)) for picture in pictures], np.float32)

    def texts(self, texts: Sequence[str]) -> Vectors:
        self.read += texts
        return np.array([[len(text), text.count(" "), 1] for text in texts], np.float32)


def picture(value: int) -> bytes:
    return encode(np.full((4, 4, 3), value, np.uint8))


def test_what_the_renderer_wrote_is_what_is_embedded() -> None:
    """T13: the overlay that people see, to the pixel, on the model's own view."""
    rng = np.random.default_rng(0)
    view = rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)
    drawn = overlay(view, PixelAttribution(rng.random((20, 20), np.float32), signed=False), RenderSpec())
    encoder = Recording()
    (row,) = embed([ShownExplanation(encode(drawn))], encoder)
    assert (encoder.shown[0] == drawn).all()
    assert row == pytest.approx(drawn.mean(axis=(0, 1)))


def test_each_content_is_encoded_once_and_kept() -> None:
    subjects = [ShownExplanation(picture(k % 3), label="ab"[k % 2]) for k in range(12)] + [
        ShownExplanation(text="ears", label="a")
    ]
    encoder = Recording()
    rows = embed(subjects, encoder, ("a", "b"))
    assert len(encoder.shown) == 3 and encoder.read == ["ears"]
    assert rows[:, :3].tolist() == [[k % 3] * 3 for k in range(12)] + [[4, 0, 1]]
    assert rows[:, 3:].tolist() == [[1 - k % 2, k % 2] for k in range(12)] + [[1, 0]]


def test_a_killed_embedding_goes_on(tmp_path: Path) -> None:
    count = AT_ONCE + 40
    subjects = [
        ShownExplanation(encode(np.full((2, 2, 3), (k // 256, k % 256, 0), np.uint8))) for k in range(count)
    ]
    with pytest.raises(RuntimeError):
        embed(subjects, Recording(limit=AT_ONCE), folder=tmp_path)
    again = Recording()
    rows = embed(subjects, again, folder=tmp_path)
    assert len(again.shown) == 40
    assert (rows == embed(subjects, Recording())).all()
    last = Recording()
    embed(subjects, last, folder=tmp_path)
    assert last.shown == []
    (file, *_) = sorted(tmp_path.rglob("*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(BadSpec, match="changed after it was written.*encoded again"):
        embed(subjects, Recording(), folder=tmp_path)


def test_pairs_need_both_pictures() -> None:
    """T14: Q5 and Q6 compare two pictures, and a single overlay is another input."""
    both = ShownExplanation(picture(1), other=picture(9))
    assert embed([both], Recording(), pairs=True).tolist() == [[1, 1, 1, 9, 9, 9]]
    assert embed([both], Recording()).tolist() == [[1, 1, 1]]
    with pytest.raises(BadRatings, match="takes the picture and that of its perturbed copy"):
        embed([ShownExplanation(picture(1))], Recording(), pairs=True)
    with pytest.raises(BadRatings, match="give one of the two"):
        ShownExplanation()


def test_an_unknown_label_is_told() -> None:
    """T11: the label is said, and never read off the name of a file."""
    with pytest.raises(BadRatings, match=r"the label 'owl' is none of the scorer's \(cat, dog\)"):
        embed([ShownExplanation(picture(1), label="owl")], Recording(), ("cat", "dog"))


def test_embeddings_of_another_encoder_are_refused() -> None:
    """T19."""
    X = embed([ShownExplanation(picture(k)) for k in range(30)], Recording())
    scorer = PreferenceScorer(hidden=(4,), epochs=1).fit(X, np.tile([[1.0], [3], [5]], (10, 1)))
    saved = SavedScorer(
        scorer, card(scorer, encoder=card(scorer).encoder.model_copy(update={"digest": "f" * 64}))
    )
    with pytest.raises(BadRatings, match="embed with that, or fit a scorer on these"):
        saved.predict(X, Recording())


@pytest.mark.parametrize("form", ["clip", "siglip", "blip"])
def test_a_local_model_embeds_as_the_library_does(form: str, tmp_path: Path) -> None:
    model = save_clip(tmp_path / "net", form=form)
    encoder = open_encoder(str(tmp_path / "net"))
    scaled = (views().astype(np.float32) / 255 - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    with torch.no_grad():
        wanted = model.get_image_features(torch.from_numpy(scaled.transpose(0, 3, 1, 2).copy())).pooler_output
    wanted = (wanted / wanted.norm(dim=1, keepdim=True)).numpy()
    rows = encoder.pictures(list(views()))
    assert rows == pytest.approx(wanted, abs=1e-5)
    assert encoder.texts(["the cat", "a dog"]).shape == (2, encoder.size) == (2, rows.shape[1])
    assert encoder.digest == open_encoder(str(tmp_path / "net")).digest
    (tmp_path / "net" / "model.safetensors").unlink()
    with pytest.raises(BadSpec):
        open_encoder(str(tmp_path / "net"))
    with pytest.raises(BadSpec, match='there is no encoder "elsewhere"'):
        open_encoder("elsewhere")


def test_histograms_count_colours_places_and_edges() -> None:
    encoder = Histograms()
    grey = np.full((48, 48, 3), 128, np.uint8)
    split = grey.copy()
    split[:, :24] = 0
    plain, half = encoder.pictures([grey, split]).astype(np.float64)
    colours, cells, edges = np.split(half, [216, 216 + 108])
    assert sorted(colours**2)[-2:] == pytest.approx([0.5, 0.5])
    assert cells.reshape(6, 6, 3)[:, :3].max() == 0 and cells.reshape(6, 6, 3)[:, 3:].min() > 0.5
    assert (plain[:216] ** 2).max() == 1 and (plain[324:].reshape(3, 12)[:, 0] == 1).all()
    assert all((part**2).sum() == pytest.approx(1) for part in edges.reshape(3, 12))
    bigger = encoder.pictures([np.kron(split, np.ones((4, 4, 1), np.uint8))])[0]
    assert bigger[:324] == pytest.approx(half[:324], abs=0.05), "the size of the picture does not matter"
    words = encoder.texts(["black ears", "ears Black", "a tail"])
    assert (words[0] == words[1]).all() and np.linalg.norm(words, axis=1) == pytest.approx([1, 1, 1])
    assert (words[0] != words[2]).any()
    with pytest.raises(BadSpec, match="is empty"):
        encoder.texts([" "])
