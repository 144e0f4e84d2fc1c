"""Text predictors: the same row for a text beside any others, gradients, archives, training."""

from __future__ import annotations

import copy
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from stimuli.datasets.lines import open_lines
from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.planner.values import ExplainedNumber
from stimuli.predictors import open_predictor, restore, training_key_of
from stimuli.predictors.files.packing import LENGTH_BYTES, MAGIC
from stimuli.predictors.text.base import TextPredictor, word_spans
from stimuli.predictors.text.text_encoders import EmbeddedEncoder, word_vector
from stimuli.predictors.text.units import piece_spans
from stimuli.spec import Component, content_key
from tests.stimuli.text_toys import people_of, task_of, trained

pytestmark = pytest.mark.pure

FEW: dict[str, Any] = {"epochs": 2, "train_items": 200}
WORDS = (
    "a",
    "b",
    "c",
    "the",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    ".",
    ",",
    "un",
    "##happ",
    "##ily",
    "old",
    "new",
    "ran",
    "barks",
    "cats",
    "dogs",
    "!",
    "loud",
)


def model_folder(
    folder: Path, *, classifies: bool, name: str = "model", kind: str = "Bert", count: int = 3
) -> Path:
    """A tiny model of the library with its tokenizer, as `save_pretrained` leaves it."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: at for at, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    sizes: dict[str, Any] = {"vocab_size": len(vocabulary), "max_position_embeddings": 40, "pad_token_id": 0}
    if kind == "DistilBert":
        sizes |= {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    else:
        sizes |= {
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
        }
    config = getattr(transformers, f"{kind}Config")(
        **sizes, id2label=dict(enumerate(["bad", "fair", "good"][:count])), initializer_range=0.5
    )
    ending = "ForSequenceClassification" if classifies else "Model"
    with torch.random.fork_rng():
        torch.manual_seed(4)
        getattr(transformers, f"{kind}{ending}")(config).save_pretrained(folder / name)
    tokenizer.save(str(folder / name / "tokenizer.json"))
    return folder / name


def texts_file(folder: Path, count: int = 120) -> Component:
    rows = [f"tr\t{place % 2}\tthe {'cats' if place % 2 else 'dog'} sat {place}" for place in range(count)]
    rows += [f"te\t{place % 2}\tthe {'cats' if place % 2 else 'dog'} ran {place}" for place in range(8)]
    (folder / "t.txt").write_text("\n".join(rows))
    return Component("lines", {"path": "t.txt"})


def transformer(folder: Path, kind: str = "Bert") -> TextPredictor:
    place = model_folder(folder, classifies=True, kind=kind)
    data = open_lines(texts_file(folder), folder)
    made = open_predictor(Component("transformers_text", {"path": place.name}), folder, data)
    assert isinstance(made, TextPredictor)
    return made


def of_kind(kind: str, folder: Path) -> TextPredictor:
    if kind in {"Bert", "DistilBert", "Roberta", "Electra"}:
        return transformer(folder, kind)
    if kind == "frozen":
        model_folder(folder, classifies=False)
        params = {**FEW, "encoder": "transformers", "encoder_path": "model"}
        made = open_predictor(
            Component("trained_text", params), folder, open_lines(texts_file(folder), folder)
        )
        assert isinstance(made, TextPredictor)
        return made
    return trained("sentence_length" if kind == "mean" else "tense", kind, 600, 2)


KINDS = ["lstm", "mean", "frozen", "Bert", "DistilBert", "Roberta", "Electra"]
MIXED = (
    "The old dog sat.",
    "",
    "a",
    "Unhappily the cats ran on, the dogs sat on the mat, the new cat sat!",
    "dogs barks loud " * 20,
    "the cat",
)


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_it_gives_a_text_the_same_row_beside_any_others(self, kind: str, tmp_path: Path) -> None:
        net = of_kind(kind, tmp_path)
        together = net.text_logits(MIXED)
        assert together.shape == (6, len(net.labels)) and together.dtype == np.float32
        alone = np.concatenate([net.text_logits([text]) for text in MIXED])
        turned = net.text_logits(MIXED[::-1] * 9)[: len(MIXED)][::-1]
        assert (together == alone).all()
        assert (together == turned).all()

    def test_it_gives_the_row_that_no_filling_up_would_give(self, kind: str, tmp_path: Path) -> None:
        """Against the network on one text of exactly its own length, without any mask to speak of."""
        net = of_kind(kind, tmp_path)
        for text, row in zip(MIXED, net.text_logits(MIXED), strict=True):
            tokens = net.network.tokens(text)
            count = len(tokens.ids)
            with torch.inference_mode():
                exact = net.network(
                    net.network.embeddings([tokens], count), torch.ones((1, count), dtype=torch.bool)
                )
            np.testing.assert_allclose(row, exact[0].numpy(), atol=2e-5)

    def test_its_gradient_is_the_limit_of_differences(self, kind: str, tmp_path: Path) -> None:
        net = of_kind(kind, tmp_path)
        text = MIXED[0]
        traced = net.text_gradient(text, ExplainedNumber(1))
        tokens = net.network.tokens(text)
        assert [text[start:end].lower() for start, end in traced.spans] == ["the", "old", "dog", "sat", "."]
        double = copy.deepcopy(net.network).double()
        start = net.network.embeddings([tokens], len(tokens.ids)).double()
        np.testing.assert_array_equal(start[0, list(tokens.places)].float().numpy(), traced.embeddings)
        mask = torch.ones((1, len(tokens.ids)), dtype=torch.bool)
        direction = torch.from_numpy(np.random.default_rng(3).normal(size=start.shape))
        direction[:, [at for at in range(start.shape[1]) if at not in tokens.places]] = 0
        with torch.inference_mode():
            high, low = (double(start + step * direction, mask)[0, 1] for step in (1e-4, -1e-4))
        expected = float(high - low) / 2e-4
        slope = float((traced.gradients * direction[0, list(tokens.places)].numpy()).sum())
        assert slope == pytest.approx(expected, rel=1e-3, abs=1e-6)

    def test_it_comes_back_from_its_archive(self, kind: str, tmp_path: Path) -> None:
        net = of_kind(kind, tmp_path)
        data = net.dump()
        again = restore(data)
        assert isinstance(again, TextPredictor)
        assert (again.key, again.labels, again.modality) == (net.key, net.labels, "text")
        assert (again.text_logits(MIXED) == net.text_logits(MIXED)).all()
        assert again.text_key("x") == net.text_key("x")
        assert again.dump() == data


def test_it_refuses_an_archive_that_was_changed() -> None:
    data = trained("tense", "lstm", 600, 2).dump()
    with pytest.raises(BadSpec, match="was changed"):
        restore(data[:-4] + bytes(4))
    start = len(MAGIC) + LENGTH_BYTES
    size = int.from_bytes(data[len(MAGIC) : start], "little")
    header = json.loads(data[start : start + size])
    del header["architecture"]["pooling"]
    text = json.dumps(header).encode()
    with pytest.raises(BadSpec, match="damaged"):
        restore(MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text + data[start + size :])


def test_it_learns_what_is_planted() -> None:
    net, dataset = trained("tense"), task_of("tense")
    answers = net.text_logits(people_of("tense")).argmax(1)
    truths = [dataset.labels.index(item.truth) for item in dataset.items("people")]
    assert float(np.mean(answers == truths)) > 0.85
    assert net.provenance["held_out_accuracy"] > 0.9
    assert net.provenance["held_out_count"] == 300


def test_it_trains_to_the_same_weights_and_others_by_seed() -> None:
    dataset = task_of("tense", 600)

    def key(**more: object) -> str:
        return open_predictor(Component("trained_text", {**FEW, **more}), Path(), dataset).key

    state = torch.random.get_rng_state()
    assert key() == key() != key(seed=1)
    assert torch.equal(state, torch.random.get_rng_state())


def test_its_training_is_named_beforehand(tmp_path: Path) -> None:
    dataset = Component("sentences", {"task": "tense"})
    plain = Component("trained_text", {})
    names = {
        training_key_of(plain, dataset, "aa", tmp_path),
        training_key_of(plain, dataset, "bb", tmp_path),
        training_key_of(Component("trained_text", {"seed": 1}), dataset, "aa", tmp_path),
    }
    assert len(names) == 3
    spelt_out = Component("trained_text", {"epochs": 20, "pooling": "lstm"})
    assert training_key_of(spelt_out, dataset, "aa", tmp_path) in names
    model_folder(tmp_path, classifies=False)
    component = Component("trained_text", {"encoder": "transformers", "encoder_path": "model"})
    before = training_key_of(component, dataset, "aa", tmp_path)
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text() + " ")
    assert training_key_of(component, dataset, "aa", tmp_path) != before


def test_it_does_not_change_the_encoder(tmp_path: Path) -> None:
    net = of_kind("frozen", tmp_path)
    from safetensors.torch import load_file

    before = load_file(tmp_path / "model" / "model.safetensors")
    for name, value in net.network.encoder.model.state_dict().items():  # type: ignore[attr-defined]
        assert torch.equal(value, before[name])


def test_it_reads_the_encoder_of_a_classifier(tmp_path: Path) -> None:
    """A fine-tuned classifier's folder holds an encoder within."""
    model_folder(tmp_path, classifies=True)
    params = {**FEW, "encoder": "transformers", "encoder_path": "model"}
    net = open_predictor(
        Component("trained_text", params), tmp_path, open_lines(texts_file(tmp_path), tmp_path)
    )
    assert net.labels == ("0", "1")


def test_it_has_the_logits_of_the_library(tmp_path: Path) -> None:
    import transformers

    net = transformer(tmp_path)
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "model")
    theirs.train(False)
    assert net.labels == ("bad", "fair", "good")
    for text in MIXED:
        ids = torch.tensor([net.network.tokens(text).ids])
        with torch.inference_mode():
            np.testing.assert_allclose(
                net.text_logits([text])[0], theirs(input_ids=ids).logits[0].numpy(), rtol=1e-5, atol=2e-6
            )


@pytest.mark.parametrize("kind", ["Bert", "frozen"])
def test_it_says_from_which_precision_its_weights_were_cast(tmp_path: Path, kind: str) -> None:
    assert "cast_from" not in of_kind(kind, tmp_path).provenance
    file = tmp_path / "model" / "model.safetensors"
    state = safetensors.torch.load_file(file)
    safetensors.torch.save_file({name: value.half() for name, value in state.items()}, file)
    data = open_lines(texts_file(tmp_path), tmp_path)
    params = {**FEW, "encoder": "transformers", "encoder_path": "model"}
    name = "trained_text" if kind == "frozen" else "transformers_text"
    made = open_predictor(Component(name, params if kind == "frozen" else {"path": "model"}), tmp_path, data)
    assert made.provenance["cast_from"] == "float16"
    assert restore(made.dump()).provenance["cast_from"] == "float16"


def test_it_cuts_words_as_the_tokenizer_says_and_maps_them_back(tmp_path: Path) -> None:
    tokens = transformer(tmp_path).network.tokens("Unhappily, dogs!")
    assert tokens.places == tuple(range(1, 7))
    assert ["Unhappily, dogs!"[a:b] for a, b in tokens.spans] == ["Un", "happ", "ily", ",", "dogs", "!"]


def test_it_reads_only_so_many_tokens(tmp_path: Path) -> None:
    net = transformer(tmp_path)
    long, longer = "the cat sat " * 20, "the cat sat " * 40
    assert len(net.network.tokens(long).ids) == net.network.limit == 38
    assert (net.text_logits([long]) == net.text_logits([longer])).all()


def test_it_counts_the_tokens_that_it_does_not_read(tmp_path: Path) -> None:
    """Against the tokenizer's own count, without a limit; two of the limit's places mark start and end."""
    from tokenizers import Tokenizer

    net = transformer(tmp_path)
    whole = Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    whole.no_truncation()
    for count in (1, 10, 40, 400):
        text = "Unhappily, dogs! " * count
        tokens = len(whole.encode(text, add_special_tokens=False).ids)
        assert net.unread(text) == max(0, tokens - (net.network.limit - 2))
    few = trained("tense", "lstm", 600, 2)
    limit = few.network.limit - 2
    assert few.unread("a " * limit) == 0 and few.unread("a, " * limit) == limit


def test_its_keys_name_the_text_and_the_tokenizer(tmp_path: Path) -> None:
    net, other = trained("tense", "lstm", 600, 2), transformer(tmp_path)
    assert net.text_key("cafe\u0301") == net.text_key("café") != net.text_key("cafe")
    assert net.text_key("x") != other.text_key("x")
    assert len(net.text_key("x")) == 64


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("tokenizer.json", 'no file "tokenizer.json"'),
        ("model.safetensors", 'no file "model.safetensors"'),
        ("code", "code of its own, which is never run"),
        ("kind", "names no known model"),
        ("picture", "no such text model|does not fit|cannot be read"),
        ("cut", "config.json|damaged"),
        ("words", "tokenizer.json cannot be read"),
    ],
)
def test_it_refuses_folders_that_it_cannot_read(tmp_path: Path, harm: str, said: str) -> None:
    place = model_folder(tmp_path, classifies=True)
    config = json.loads((place / "config.json").read_text())
    if harm == "cut":
        (place / "config.json").write_text("{")
    elif harm == "words":
        (place / "tokenizer.json").write_text('{"model": 3}')
    elif harm in {"code", "kind", "picture"}:
        config |= {"code": {"auto_map": {"AutoModel": "own.Own"}}, "kind": {"model_type": "no-such"}}.get(
            harm, {"model_type": "vit"}
        )
        (place / "config.json").write_text(json.dumps(config))
    else:
        (place / harm).unlink()
    data = open_lines(texts_file(tmp_path), tmp_path)
    with pytest.raises((BadSpec, ShapeMismatch), match=said):
        open_predictor(Component("transformers_text", {"path": "model"}), tmp_path, data)


def test_it_refuses_weights_that_do_not_fit(tmp_path: Path) -> None:
    model_folder(tmp_path, classifies=False)
    data = open_lines(texts_file(tmp_path), tmp_path)
    classifier = Component("transformers_text", {"path": "model"})
    with pytest.raises(ShapeMismatch, match=r"encoder without a head .*\(classifier.weight, .*trained_text"):
        open_predictor(classifier, tmp_path, data)
    remedy = {**FEW, "encoder": "transformers", "encoder_path": "model"}
    open_predictor(Component("trained_text", remedy), tmp_path, data)
    place = model_folder(tmp_path, classifies=True)
    state = safetensors.torch.load_file(place / "model.safetensors")
    del state["classifier.bias"]
    safetensors.torch.save_file(state, place / "model.safetensors")
    with pytest.raises(ShapeMismatch, match='"classifier.bias" is missing; save config.json and model'):
        open_predictor(classifier, tmp_path, data)


def test_it_refuses_wrong_labels_and_parameters(tmp_path: Path) -> None:
    model_folder(tmp_path, classifies=True)
    data = open_lines(texts_file(tmp_path), tmp_path)
    wrong = Component("transformers_text", {"path": "model", "labels": ["a", "b"]})
    with pytest.raises(ShapeMismatch, match="2 labels are given"):
        open_predictor(wrong, tmp_path, data)
    with pytest.raises(BadSpec, match="encoder_path names the folder"):
        open_predictor(Component("trained_text", {"encoder": "transformers"}), tmp_path, data)
    few = open_lines(texts_file(tmp_path, 6), tmp_path)
    with pytest.raises(BadSpec, match=r'class "0" has 3 text\(s\) for training'):
        open_predictor(Component("trained_text", FEW), tmp_path, few)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी भाषा, अच्छी!", ["हिन्दी", "भाषा", "अच्छी"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("สวัสดีครับ ที่นี่", ["สวัสดีครับ", "ที่นี่"]),
        ("שָׁלוֹם עוֹלָם.", ["שָׁלוֹם", "עוֹלָם"]),
        ("مرحباً می\u200cخواهم", ["مرحباً", "می\u200cخواهم"]),
        ("q\u0302x cafe\u0301s", ["q\u0302x", "cafe\u0301s"]),
        ("👩\u200d👩 ok \u0301 it's", ["ok", "it", "s"]),
    ],
)
def test_it_cuts_no_word_at_a_combining_mark(text: str, words: list[str]) -> None:
    net = trained("tense", "lstm", 600, 2)
    assert [text[start:end] for start, end in net.words(text)] == words
    spans = net.network.tokens(text).spans
    assert set(words) <= {text[start:end] for start, end in spans}
    for start, end in spans:
        upon = unicodedata.category(text[start])[0] == "M" or text[start] in "\u200c\u200d"
        assert not upon or start == 0 or text[start - 1].isspace()
        assert end > start


def test_it_cuts_other_texts_as_before() -> None:
    for text in (*MIXED, "It's 12 times_over - (naïve) 尾巴 Ω≥3 🙂!", *people_of("tense")[:20]):
        words = [match.span() for match in re.finditer(r"\w+", text)]
        tokens = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
        assert list(word_spans(text)) == words and piece_spans(text) == tokens


def test_its_tokenizer_has_a_new_name_since_words_keep_their_marks() -> None:
    old = content_key({"tokenizer": "embedded", "version": 1, "limit": 64})
    assert EmbeddedEncoder(0, 64).tokenizer_digest() != old


def causal_folder(folder: Path, kind: str) -> Path:
    """A classifier that reads from left to right and decides at the last place."""
    import transformers

    place = model_folder(folder, classifies=True)
    ends = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "num_labels": 3}
    sizes: dict[str, Any] = {"vocab_size": 4 + len(WORDS)}
    if kind == "Llama":
        sizes |= {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
        sizes |= {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64}
    else:
        sizes |= {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}
    config = getattr(transformers, f"{kind}Config")(**sizes, **ends)
    with torch.random.fork_rng():
        torch.manual_seed(4)
        getattr(transformers, f"{kind}ForSequenceClassification")(config).save_pretrained(place)
    return place


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Llama", "reads what fills a text up behind its end"),
        ("XLNet", "max_position_embeddings = -1 leaves -3 tokens .* at least 8 are needed"),
    ],
)
def test_it_refuses_models_whose_answer_filling_up_would_change(tmp_path: Path, kind: str, said: str) -> None:
    causal_folder(tmp_path, kind)
    data = open_lines(texts_file(tmp_path), tmp_path)
    with pytest.raises(BadSpec, match=said):
        open_predictor(Component("transformers_text", {"path": "model"}), tmp_path, data)


class TestEmbedded:
    def test_it_puts_words_with_one_ending_near_each_other(self) -> None:
        def near(word: str, other: str) -> float:
            a, b = word_vector(word, 0), word_vector(other, 0)
            return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

        assert near("painted", "polished") > 0.1 > near("painted", "moon")
        assert near("painted", "paint") > near("painted", "polished")

    def test_its_vectors_never_change(self) -> None:
        """Signs of a hash: the same on every machine and for every release of every library."""
        vector = word_vector("word", 0)
        assert vector.shape == (128,) and abs(float(np.square(vector).mean()) - 1) < 0.35
        runs = 1 + 5 + 4 + 3  # the word, and its runs of 2, 3 and 4 letters with its ends
        signs = np.rint(vector * np.sqrt(runs)).astype(int)
        assert signs[:8].tolist() == [-3, -5, -1, -1, -5, 3, 3, 3]

    def test_it_forgets_words_when_there_are_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("stimuli.predictors.text.text_encoders.KNOWN_MAX", 5)
        encoder = EmbeddedEncoder(0, 64)
        for text in ("one two three four five six", "seven one", "two seven"):
            vectors = encoder.embeddings([encoder.tokens(text)], 10)[0].numpy()
            words = text.split()
            expected = np.stack([word_vector(word, 0) for word in words])
            np.testing.assert_array_equal(vectors[1 : 1 + len(words)], expected)
            assert not vectors[2 + len(words) :].any()
